"""Local derivatives of one node, by central differences of the float64 value of its own reference.

Steps of h, h/2 and h/4 are extrapolated to zero twice (Richardson); the last correction, with what the rounding of the
differences may add, bounds what is left. An entry is *undetermined* where the two sides disagree however short the step
is (a kink, a tie, a jump), where the extrapolation does not settle, or where the result is not finite."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded
from generators.ops.spec import Call, OpSpec
from oracles.derivatives.complex_pairs import exact, numbers_of, paired
from oracles.derivatives.jacobians.choices import between
from oracles.derivatives.jacobians.columns import columns_of
from oracles.derivatives.jacobians.finite_differences import (
    Function,
    along,
    extrapolated,
    off_by,
    steps_of,
    swallowed,
)
from oracles.derivatives.jacobians.movement import INSIDE, moved_by_shifts
from oracles.derivatives.jacobians.sparsity import (
    FAR,
    SHORT,
    confirmed,
    fed,
    groups_of,
    lost_to_others,
    pattern,
    reach_of,
    seen_elsewhere,
)
from oracles.derivatives.rounding.formulas import Known, taken_as_whole

Array = np.ndarray
COLUMNS = 2048
"""Operands with more elements, each of which moves several results, are left undetermined: each element costs several
evaluations, and two rows of results are kept of it."""
HIDDEN = 2.0**-24
"""Beside a result in which steps hide a slope of that size (a product with an element of 1e228), longer ones show
whether further elements move it."""


@dataclass(frozen=True)
class Jacobian:
    """The derivative of a node by one operand: d result[rows] / d operand[columns] = value, all else 0.

    error: of the differences themselves; infinite where undetermined
    moved: how far the slope moves when the operands move by what they may be off
    floor: by element of the operand, how steep it may be for any result without having been seen
    open:  results whose columns could not be told: they leave every element of the operand undetermined
    at:    values of all operands, steps by element of this one -> the same slopes there, by central differences
    block: so many slopes, one after the other, are those of one number by one number: 2 or 4 of complex ones
    known: what the formula of the derivative loses, if it is known and is to be asked for"""

    rows: Array
    columns: Array
    value: Array
    error: Array
    moved: Array
    floor: Array
    open: Array
    at: Callable[[Sequence[Array], Array], Array]
    block: int = 1
    known: Known | None = None

    @property
    def size(self) -> Array:
        """Magnitudes: of what is of one block, the greatest singular value (|f'| of a holomorphic f)."""
        if self.block == 1:
            return np.abs(self.value)
        blocks = self.value.reshape(-1, self.block)
        square = np.sum(blocks**2, axis=1)
        if self.block == 4:
            twice = 2 * (blocks[:, 0] * blocks[:, 3] - blocks[:, 1] * blocks[:, 2])
            square = (square + np.sqrt(np.maximum((square - twice) * (square + twice), 0.0))) / 2
        return np.repeat(np.sqrt(square), self.block)

    def together(self, marked: Array) -> Array:
        """By slope: is any of its block marked?"""
        return np.repeat(marked.reshape(-1, self.block).any(1), self.block) if self.block > 1 else marked


def function_of(spec: OpSpec, operands: Sequence[Bounded], call: Call) -> Function:
    """The node as a function of the values of its operands; complex ones as pairs (`complex_pairs.py`)."""
    fixed = [exact(o, o.value) for o in operands]

    def f(values: Sequence[Array]) -> Array:
        given = [
            Bounded(numbers_of(v) if x.complex else v, x.error, x.dtype) if x.floating else x
            for x, v in zip(fixed, values, strict=True)
        ]
        with np.errstate(all="ignore"):
            result = paired(spec.reference(given, call))
            return np.where(result.undetermined, np.nan, result.value).astype(np.float64).ravel()

    return f


def _none(values: Sequence[Array], steps: Array) -> Array:
    return np.zeros(0)


ROUNDED = 16.0
"""So many u of a slope at a kink are beyond what a formula of a piece loses."""
ORDINARY = 2.0
"""Slopes by an operand that a function is linear in are measured no farther from zero."""


def jacobian(
    f: Function,
    operands: Sequence[Bounded],
    position: int,
    result: Bounded,
    shift: Array | float = 0.0,
    known: Known | None = None,
) -> Jacobian:
    """The derivative of f by the operand at `position`. shift: how far operand 0 is moved beside what it is off by;
    known: what the formula loses, which then counts in place of what moving the operands by their roundings shows."""
    if known is not None and known.linear:  # the same slopes everywhere: nothing great need stand beside them
        x = operands[position]
        near = np.clip(np.where(np.isfinite(x.value), x.value, 0.0), -ORDINARY, ORDINARY)
        operands = [*operands[:position], Bounded(near, np.zeros(near.shape), x.dtype), *operands[position + 1 :]]
    if known is not None and known.added:  # beside it differences of the rest may show nothing
        nothing = np.zeros(operands[0].value.shape)
        operands = [Bounded(nothing, nothing, operands[0].dtype), *operands[1:]]
    if known is not None and known.reach is not None:
        reached = replace(operands[position], error=np.maximum(operands[position].error, known.reach))
        operands = [*operands[:position], reached, *operands[position + 1 :]]
    values = [o.value for o in operands]
    base = f(values)
    if not operands[position].value.size:
        empty, none = np.zeros(0), np.zeros(0, int)
        return Jacobian(none, none, empty, empty, empty, empty, np.zeros(base.size, bool), _none)
    with np.errstate(all="ignore"):
        inside = INSIDE if known is None else 0.0
        others = lost_to_others(operands, position, result)
        found = _single(f, operands, position, result, base, shift, inside, others)
        if found is None:
            found = _dense(f, operands, position, base, shift, inside, others)
        lost = result.undetermined.ravel() | ~np.isfinite(result.value.ravel())
        found = replace(found, error=np.where(lost[found.rows], np.inf, found.error), known=known)
        if known is None or not (known.whole or known.pieces):
            return found
        value, error, moved = found.value, found.error, found.moved
        if known.whole:
            value, error, moved = taken_as_whole(value, error, moved)
        unknown = np.isinf(error) & ~lost[found.rows]
        low, high = between(f, operands, position, found.rows, found.columns, base, unknown, known.whole)
        told, half = np.isfinite(low), (high - low) / 2
        # the formula's roundings count by the middle, and the greatest slope has those of the rest, too
        half *= 1.0 if known.whole else 1 + ROUNDED * PRECISION[result.dtype].unit
        value = np.where(told, (low + high) / 2, value)
        error, moved = np.where(told, half, error), np.where(told, 0.0, moved)
        return replace(found, value=value, error=error, moved=moved)


# ---- each result moved by one element of the operand: elementwise functions, layouts, choices ----


def _single(
    f: Function,
    operands: Sequence[Bounded],
    position: int,
    result: Bounded,
    base: Array,
    shift: Array | float,
    inside: float,
    others: Array,
) -> Jacobian | None:
    """All elements are moved at once, three times: together, each by an amount that tells its number, and at random
    as a check. None where some result is moved by several elements, or may be. others: `lost_to_others`."""
    x = operands[position]
    values = [o.value for o in operands]
    count = x.value.size
    code = 1 + np.arange(count).reshape(x.value.shape) / max(count, 1)
    check = np.random.default_rng(count).uniform(0.5, 1.5, x.value.shape)
    source = np.full(base.size, -1)
    best: list[Array] | None = None
    flats: list[tuple[Array, Array, Array]] = []
    steps = steps_of(x)
    longest = np.max([h.ravel() for h in steps], axis=0)
    # steps of whole numbers walk down a staircase (floor) as if it were a slope
    short = np.minimum(longest, SHORT)
    near = along(f, values, position, short.reshape(x.value.shape), base)
    told = ((near.value == 0) & np.isfinite(near.error)).all() and (x.value.ravel() + short != x.value.ravel()).all()
    if (longest > short).any() and told:
        steps, longest = [short.reshape(x.value.shape)], short
    for h in steps:
        plain, coded, checked = (along(f, values, position, h * c, base) for c in (1.0, code, check))
        settled = np.isfinite(plain.error) & np.isfinite(coded.error) & np.isfinite(checked.error)
        slack = 4 * (plain.error + coded.error + checked.error)
        flat = settled & (np.abs(plain.value) <= slack)
        number = np.where(
            flat | ~settled, 0.0, (coded.value / np.where(plain.value == 0, 1.0, plain.value) - 1) * count
        )
        index = np.clip(np.nan_to_num(np.rint(number)), 0, max(count - 1, 0)).astype(int)
        sharp = settled & ~flat
        exact = (np.abs(number - index) < 0.25) & (
            np.abs(checked.value - plain.value * check.ravel()[index] if count else 0.0)
            <= slack * 2 + 1e-7 * np.abs(plain.value)
        )
        if (sharp & ~exact).any() or (flat & (np.abs(checked.value) > 4 * slack)).any():
            return None
        source = np.where(sharp, index, source)
        step = h.ravel()[np.where(sharp, index, 0)] if count else np.ones(base.size)
        flats.append((flat, slack, h.ravel()))
        now = [plain.value, plain.error, step, settled, sharp]
        if best is None:
            best = now
        else:
            with np.errstate(all="ignore"):
                old = best[1] / (np.abs(best[0]) + np.finfo(float).tiny)
                new = now[1] / (np.abs(now[0]) + np.finfo(float).tiny)
            better = now[3] & (~best[3] | (now[4] & ~best[4]) | ((now[4] == best[4]) & (new < old)))
            best = [np.where(better, n, b) for n, b in zip(now, best, strict=True)]
        if (best[3] & (best[1] <= 1e-9 * np.abs(best[0]))).all():
            break
    assert best is not None
    found = confirmed(f, values, position, x, base, source)
    top = float(np.max(np.abs(base[np.isfinite(base)]), initial=0.0))
    if found is not None and count and 64 * U64 * top > HIDDEN * np.min(longest):
        found = confirmed(f, values, position, x, base, found, top)
    if found is None:
        return None
    source = found
    regular = pattern(x.value.shape, result.value.shape, source)
    settled, sharp = best[3].astype(bool), best[4].astype(bool)
    # a long step may leave the range in which anything moves (elements of a matrix that are cut off)
    leaves = (longest > SHORT).any() & ~np.isfinite(near.error)
    hidden = (~settled | leaves) & (source < 0) | others
    if (hidden if regular is None else ~seen_elsewhere(f, operands, position, regular, hidden)).any():
        return None
    source = source if regular is None else regular
    rows = np.flatnonzero(source >= 0)
    columns = source[rows]
    step = np.where(sharp[rows], best[2][rows], longest[columns])
    value = np.where(sharp, best[0], 0.0)[rows] / step
    # a slope of zero is known as well as the best of the steps shows it
    level = np.full(rows.size, np.inf)
    for flat, slack, h in flats:
        level = np.minimum(level, np.where(flat[rows], slack[rows] / h[columns], np.inf))
    error = np.where(sharp[rows], best[1][rows] / step, np.where(settled[rows], level, np.inf))
    # what a short step does not confirm is not so, if it was seen by a longer one
    slope_near, error_near = near.value[rows] / short[columns], 4 * near.error[rows] / short[columns]
    error_near = np.where(swallowed(x.value.ravel(), short)[columns], np.inf, error_near)
    same = (np.abs(slope_near - value) <= 1e-4 * np.abs(value) + error_near) & np.isfinite(error_near)
    clear = (value == 0) | (error_near <= 0.1 * np.abs(value))
    denied = (step > SHORT) & ~(same & clear)
    value = np.where(denied, slope_near, value)
    error = np.where(denied, np.where(clear, error_near, np.inf), error)
    unseen = np.ones(count, bool)
    unseen[columns] = False
    floor = np.where(unseen, off_by(np.max(np.abs(base[np.isfinite(base)]), initial=0.0)) / longest, 0.0)
    # moved along the same steps: one shift after the other
    h = _per_column(count, columns, np.where(sharp[rows], step, 0.0)).reshape(x.value.shape)
    h = np.where(h > 0, h, steps[0])
    h = np.where(_per_column(count, columns, denied * 1.0).reshape(x.value.shape) > 0, short.reshape(x.value.shape), h)

    def slope(at: Sequence[Array], steps: Array) -> Array:
        ahead, behind = list(at), list(at)
        ahead[position] = at[position] + steps
        behind[position] = at[position] - steps
        return (f(ahead) - f(behind))[rows] / (2 * steps.ravel()[columns])

    moved = moved_by_shifts(lambda at: slope(at, h / 2), rows.size, operands, shift, inside)
    return Jacobian(rows, columns, value, error, moved, floor, np.zeros(base.size, bool), slope)


def _per_column(count: int, columns: Array, values: Array) -> Array:
    found = np.zeros(count)
    np.maximum.at(found, columns, values)
    return found


# ---- results moved by several elements -----------------------------------------------------------


def _dense(
    f: Function,
    operands: Sequence[Bounded],
    position: int,
    base: Array,
    shift: Array | float,
    inside: float,
    others: Array,
) -> Jacobian:
    """Elements moved alone, or at once where they reach no result in common; then those that move none in common."""
    x = operands[position]
    values = [o.value for o in operands]
    count = x.value.size
    known = np.isfinite(base)
    if count > COLUMNS:
        empty = np.zeros(0)
        none = empty.astype(int)
        return Jacobian(none, none, empty, empty, empty, np.zeros(count), np.ones(base.size, bool), _none)
    tried = np.stack([steps.ravel() for steps in steps_of(x)])
    far = FAR * float(np.max(tried))
    reach = reach_of(f, operands, position, far, base)
    found = columns_of(f, values, position, tried, base, reach)
    ahead, behind, touched = found.ahead, found.behind, found.touched & known
    # what a result that is great beside the long step hides
    floor = np.full(count, off_by(np.max(np.abs(base[known]), initial=0.0)) / far)
    h = found.step.reshape(x.value.shape)
    columns, rows = np.nonzero(touched)
    groups = groups_of(touched)
    halves, gaps = [(ahead - behind)[columns, rows] / 2], [np.abs(ahead - 2 * base + behind)[columns, rows]]
    top = np.maximum(np.abs(base), np.maximum(np.abs(ahead), np.abs(behind)))[columns, rows]
    group_of = np.zeros(count, int)
    for number, members in enumerate(groups):
        group_of[members] = number

    def grouped(at: Sequence[Array], steps: Array) -> tuple[Array, Array]:
        """f ahead and behind, by group."""
        sides: tuple[list[Array], list[Array]] = ([], [])
        for members in groups:
            step = np.zeros(count)
            step[members] = steps.ravel()[members]
            for side, sign in zip(sides, (1, -1), strict=True):
                moved = list(at)
                moved[position] = at[position] + sign * step.reshape(x.value.shape)
                side.append(f(moved))
        return np.array(sides[0]), np.array(sides[1])

    feeding, unclear = fed(f, operands, position, known & ~others, reach)
    if rows.size == 0:
        empty = np.zeros(0)
        still = Jacobian(rows, columns, empty, empty, empty, floor, unclear, _none)
        tied, unknown = _ties(f, values, position, h, base, still)
        return _with_unknown(replace(still, open=unclear | unknown), feeding | tied)
    for t in (0.5, 0.25):
        up, down = grouped(values, t * h)
        halves.append(((up - down) / (2 * t))[group_of[columns], rows])
        gaps.append((np.abs(up - 2 * base + down) / t)[group_of[columns], rows])
    settled = extrapolated(halves, gaps, top)
    step = h.ravel()[columns]

    def slope(at: Sequence[Array], steps: Array) -> Array:
        up, down = grouped(at, steps)
        return (up - down)[group_of[columns], rows] / (2 * steps.ravel()[columns])

    moved = moved_by_shifts(lambda at: slope(at, h / 2), rows.size, operands, shift, inside)
    sloped = Jacobian(rows, columns, settled.value / step, settled.error / step, moved, floor, unclear, slope)
    tied, unknown = _ties(f, values, position, h, base, sloped)
    return _with_unknown(replace(sloped, open=unclear | unknown), feeding | tied)


def _ties(
    f: Function, values: Sequence[Array], position: int, h: Array, base: Array, found: Jacobian
) -> tuple[Array, Array]:
    """Results that move where all elements move, otherwise than these do one by one: that in the middle of three equal
    ones. As (element, result) where the result is equal to elements; of the others it cannot be told who moves them.
    The second of four equal ones has a kink when all move, and none when one does; a kink that one shows is known."""
    x = values[position]
    step = (
        h
        * np.random.default_rng(x.size).uniform(0.5, 1.0, x.shape)
        * np.where(np.arange(x.size) % 3, 1, -1).reshape(x.shape)
    )
    seen, sizes = along(f, values, position, step, base), np.abs(step.ravel())
    told = np.bincount(found.rows, found.value * step.ravel()[found.columns], base.size)
    error = np.bincount(found.rows, found.error * sizes[found.columns], base.size) + found.floor @ sizes
    error += 1e-6 * np.bincount(found.rows, np.abs(found.value) * sizes[found.columns], base.size)
    other = np.isfinite(base) & np.isfinite(seen.error) & (np.abs(seen.value - told) > error + 4 * seen.error)
    open_already = np.isin(np.arange(base.size), found.rows[np.isinf(found.error)])
    kinked = np.isfinite(base) & ~np.isfinite(seen.error) & ~open_already
    tied = (x.ravel()[:, None] == base) & (other | kinked)
    tied &= np.count_nonzero(tied, axis=0) > 1
    return tied, other & ~tied.any(axis=0)


def _with_unknown(found: Jacobian, fed: Array) -> Jacobian:
    """With slopes that are not determined, of results that are not finite."""
    columns, rows = np.nonzero(fed)
    nothing, unknown = np.zeros(rows.size), np.full(rows.size, np.inf)
    return replace(
        found,
        rows=np.concatenate([found.rows, rows]),
        columns=np.concatenate([found.columns, columns]),
        value=np.concatenate([found.value, nothing]),
        error=np.concatenate([found.error, unknown]),
        moved=np.concatenate([found.moved, nothing]),
        at=lambda values, steps: np.concatenate([found.at(values, steps), nothing + np.nan]),
    )
