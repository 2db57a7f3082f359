"""Derivatives of results that are moved by several elements of an operand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import Bounded
from oracles.derivatives.jacobians.columns import columns_of
from oracles.derivatives.jacobians.finite_differences import Function, along, extrapolated, greatest, off_by, steps_of
from oracles.derivatives.jacobians.jacobian import Array, Jacobian, no_slopes
from oracles.derivatives.jacobians.movement import moved_by_shifts
from oracles.derivatives.jacobians.sparsity import FAR, fed, groups_of, reach_of

COLUMNS = 2048
"""Operands with more elements, each of which moves several results, are left undetermined: each element costs several
evaluations, and two rows of results are kept of it."""


def dense(
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
        return Jacobian(none, none, empty, empty, empty, np.zeros(count), np.ones(base.size, bool), no_slopes)
    tried = np.stack([steps.ravel() for steps in steps_of(x)])
    far = FAR * float(np.max(tried))
    reach = reach_of(f, operands, position, far, base)
    found = columns_of(f, values, position, tried, base, reach)
    ahead, behind, touched = found.ahead, found.behind, found.touched & known
    # what a result that is great beside the long step hides
    floor = np.full(count, off_by(greatest(base)) / far)
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
        still = Jacobian(rows, columns, empty, empty, empty, floor, unclear, no_slopes)
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
