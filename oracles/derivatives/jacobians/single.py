"""Derivatives of results that are moved by one element of an operand each: elementwise functions, layouts, choices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from generators.bounds.bounded import U64, Bounded
from oracles.derivatives.jacobians.finite_differences import (
    Function,
    along,
    greatest,
    off_by,
    steps_of,
    swallowed,
)
from oracles.derivatives.jacobians.jacobian import Array, Jacobian
from oracles.derivatives.jacobians.movement import moved_by_shifts
from oracles.derivatives.jacobians.sparsity import SHORT, confirmed, pattern, seen_elsewhere

HIDDEN = 2.0**-24
"""Beside a result in which steps hide a slope of that size (a product with an element of 1e228), longer ones show
whether further elements move it."""
PRECISE = 1e-9
"""Relative: slopes of which a step tells so much need no other one."""


@dataclass(frozen=True)
class _Shown:
    """What a length of steps shows, by result. value, error: of the difference, before it is divided by the step;
    source: the element that moves it, if it is `sharp`; step: of that; settled: is it told? flat: does nothing move it,
    as far as `slack` tells? steps: by element"""

    value: Array
    error: Array
    source: Array
    step: Array
    settled: Array
    sharp: Array
    flat: Array
    slack: Array
    steps: Array


def single(
    f: Function,
    operands: Sequence[Bounded],
    position: int,
    result: Bounded,
    base: Array,
    shift: Array | float,
    inside: float,
    others: Array,
) -> Jacobian | None:
    """None where some result is moved by several elements, or may be. others: `lost_to_others`."""
    x = operands[position]
    values = [o.value for o in operands]
    count = x.value.size
    steps = steps_of(x)
    longest = np.max([h.ravel() for h in steps], axis=0)
    # steps of whole numbers walk down a staircase (floor) as if it were a slope
    short = np.minimum(longest, SHORT)
    near = along(f, values, position, short.reshape(x.value.shape), base)
    told = ((near.value == 0) & np.isfinite(near.error)).all() and (x.value.ravel() + short != x.value.ravel()).all()
    if (longest > short).any() and told:
        steps, longest = [short.reshape(x.value.shape)], short
    walked = _walked(f, values, position, steps, base)
    if walked is None:
        return None
    best, shown = walked
    source = _sources(f, values, position, x, base, shown, longest)
    if source is None:
        return None
    regular = pattern(x.value.shape, result.value.shape, source)
    # a long step may leave the range in which anything moves (elements of a matrix that are cut off)
    leaves = (longest > SHORT).any() & ~np.isfinite(near.error)
    hidden = (~best.settled | leaves) & (source < 0) | others
    if (hidden if regular is None else ~seen_elsewhere(f, operands, position, regular, hidden)).any():
        return None
    source = source if regular is None else regular
    rows = np.flatnonzero(source >= 0)
    columns = source[rows]
    step, value, error = _slopes(best, shown, rows, columns, longest)
    error_near = np.where(swallowed(x.value.ravel(), short)[columns], np.inf, 4 * near.error[rows] / short[columns])
    value, error, denied = _denied(step, value, error, near.value[rows] / short[columns], error_near)
    unseen = np.ones(count, bool)
    unseen[columns] = False
    floor = np.where(unseen, off_by(greatest(base)) / longest, 0.0)
    # moved along the same steps: one shift after the other
    h = _per_column(count, columns, np.where(best.sharp[rows], step, 0.0)).reshape(x.value.shape)
    h = np.where(h > 0, h, steps[0])
    h = np.where(_per_column(count, columns, denied * 1.0).reshape(x.value.shape) > 0, short.reshape(x.value.shape), h)

    def slope(at: Sequence[Array], steps: Array) -> Array:
        ahead, behind = list(at), list(at)
        ahead[position] = at[position] + steps
        behind[position] = at[position] - steps
        return (f(ahead) - f(behind))[rows] / (2 * steps.ravel()[columns])

    moved = moved_by_shifts(lambda at: slope(at, h / 2), rows.size, operands, shift, inside)
    return Jacobian(rows, columns, value, error, moved, floor, np.zeros(base.size, bool), slope)


def _walked(
    f: Function, values: Sequence[Array], position: int, steps: Sequence[Array], base: Array
) -> tuple[_Shown, list[_Shown]] | None:
    """By result what tells its slope best, and all that was shown. None where a result is moved by several elements."""
    best, shown = None, []
    for h in steps:
        now = _step(f, values, position, h, base)
        if now is None:
            return None
        shown.append(now)
        best = now if best is None else _better(best, now)
        if (best.settled & (best.error <= PRECISE * np.abs(best.value))).all():
            break
    assert best is not None
    return best, shown


def _step(f: Function, values: Sequence[Array], position: int, h: Array, base: Array) -> _Shown | None:
    """All elements are moved at once, three times: together, each by an amount that tells its number, and at random as
    a check. None where a result is moved by several elements."""
    count = h.size
    code = 1 + np.arange(count).reshape(h.shape) / max(count, 1)
    check = np.random.default_rng(count).uniform(0.5, 1.5, h.shape)
    plain, coded, checked = (along(f, values, position, h * c, base) for c in (1.0, code, check))
    settled = np.isfinite(plain.error) & np.isfinite(coded.error) & np.isfinite(checked.error)
    slack = 4 * (plain.error + coded.error + checked.error)
    flat = settled & (np.abs(plain.value) <= slack)
    relative = coded.value / np.where(plain.value == 0, 1.0, plain.value)
    number = np.where(flat | ~settled, 0.0, (relative - 1) * count)
    index = np.clip(np.nan_to_num(np.rint(number)), 0, max(count - 1, 0)).astype(int)
    sharp = settled & ~flat
    expected = plain.value * check.ravel()[index] if count else 0.0
    exact = (np.abs(number - index) < 0.25) & (
        np.abs(checked.value - expected) <= slack * 2 + 1e-7 * np.abs(plain.value)
    )
    if (sharp & ~exact).any() or (flat & (np.abs(checked.value) > 4 * slack)).any():
        return None
    step = h.ravel()[np.where(sharp, index, 0)] if count else np.ones(base.size)
    return _Shown(plain.value, plain.error, index, step, settled, sharp, flat, slack, h.ravel())


def _better(best: _Shown, now: _Shown) -> _Shown:
    """By result the one that is settled, then the one that moves it, then the one that errs less."""
    with np.errstate(all="ignore"):
        old = best.error / (np.abs(best.value) + np.finfo(float).tiny)
        new = now.error / (np.abs(now.value) + np.finfo(float).tiny)
    better = now.settled & (~best.settled | (now.sharp & ~best.sharp) | ((now.sharp == best.sharp) & (new < old)))
    return replace(
        best,
        value=np.where(better, now.value, best.value),
        error=np.where(better, now.error, best.error),
        step=np.where(better, now.step, best.step),
        settled=np.where(better, now.settled, best.settled),
        sharp=np.where(better, now.sharp, best.sharp),
    )


def _sources(
    f: Function,
    values: Sequence[Array],
    position: int,
    x: Bounded,
    base: Array,
    shown: Sequence[_Shown],
    longest: Array,
) -> Array | None:
    """The element that moves each result, -1 where none does; None where several do."""
    source = np.full(base.size, -1)
    for one in shown:
        source = np.where(one.sharp, one.source, source)
    found = confirmed(f, values, position, x, base, source)
    top = float(greatest(base))
    if found is not None and x.value.size and 64 * U64 * top > HIDDEN * np.min(longest):
        found = confirmed(f, values, position, x, base, found, top)
    return found


def _slopes(
    best: _Shown, shown: Sequence[_Shown], rows: Array, columns: Array, longest: Array
) -> tuple[Array, Array, Array]:
    """The step, the slope and its error, of each row. A slope of zero is known as well as the best of the steps shows
    it."""
    sharp = best.sharp[rows]
    step = np.where(sharp, best.step[rows], longest[columns])
    value = np.where(sharp, best.value[rows], 0.0) / step
    level = np.full(rows.size, np.inf)
    for one in shown:
        level = np.minimum(level, np.where(one.flat[rows], one.slack[rows] / one.steps[columns], np.inf))
    return step, value, np.where(sharp, best.error[rows] / step, np.where(best.settled[rows], level, np.inf))


def _denied(step: Array, value: Array, error: Array, near: Array, error_near: Array) -> tuple[Array, Array, Array]:
    """What a short step (near, error_near) does not confirm is not so, if it was seen by a longer one. The slopes,
    their errors, and where a short step said otherwise."""
    same = (np.abs(near - value) <= 1e-4 * np.abs(value) + error_near) & np.isfinite(error_near)
    clear = (value == 0) | (error_near <= 0.1 * np.abs(value))
    denied = (step > SHORT) & ~(same & clear)
    value = np.where(denied, near, value)
    return value, np.where(denied, np.where(clear, error_near, np.inf), error), denied


def _per_column(count: int, columns: Array, values: Array) -> Array:
    found = np.zeros(count)
    np.maximum.at(found, columns, values)
    return found
