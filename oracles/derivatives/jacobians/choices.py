"""Slopes where an operator chooses, and two choices are as good as each other: a maximum of equal numbers, relu at 0,
or where two of the pieces meet that it is made of: leaky_relu at 0. Frameworks take one of them, or a share of each.
What they may take lies between the slopes of the two sides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import Bounded
from oracles.derivatives.jacobians.finite_differences import Function, off_by, steps_of
from oracles.derivatives.jacobians.sparsity import SHORT, groups_of

Array = np.ndarray
MOST = 1024
"""Elements that are moved one by one, each at the cost of four evaluations; the slopes of more stay undetermined."""
NEAR = 2.0**-20
"""So near a whole number a side's slope is one."""
SETTLED = 2.0**-10
"""A side's slope is known to that part of itself, or not at all: at a jump and at a cusp quotients grow."""


def between(
    f: Function,
    operands: Sequence[Bounded],
    position: int,
    rows: Array,
    columns: Array,
    base: Array,
    lost: Array,
    whole: bool,
) -> tuple[Array, Array]:
    """The least and the greatest slope of result[rows] by operand[columns] of the two sides, where they are `lost`; NaN
    where they are not, where a side jumps or is not finite, and where no short step shows it. whole: each slope is 1,
    -1 or 0. Equal numbers of which one is the result may each be the one that is taken then, also where none of them
    moves it alone: that in the middle of three."""
    low, high = np.full(rows.shape, np.nan), np.full(rows.shape, np.nan)
    x = operands[position].value
    open_ = np.flatnonzero(lost & np.isfinite(base[rows]) & np.isfinite(x.ravel()[columns]))
    moved = np.unique(columns[open_])
    if not moved.size or moved.size > MOST:
        return low, high
    touched = np.zeros((moved.size, base.size), bool)
    of_column = np.searchsorted(moved, columns)
    mine = np.isin(columns, moved)
    touched[of_column[mine], rows[mine]] = True
    group = np.zeros(moved.size, int)
    groups = groups_of(touched)
    for number, members in enumerate(groups):
        group[members] = number
    step = np.minimum(np.min([h.ravel() for h in steps_of(operands[position])], axis=0), SHORT)
    values = [one.value for one in operands]
    far = step / 4 < np.where(operands[position].undetermined, np.inf, operands[position].error).ravel()
    hidden = far[columns[open_]] | (x.ravel() + step / 4 == x.ravel())[columns[open_]]

    def quotients(length: float) -> tuple[Array, Array]:
        """Of differences over steps of that length, and what these may be off by."""
        there = []
        for members in groups:
            h = np.zeros(x.size)
            h[moved[members]] = length * step[moved[members]]
            there.append(f([*values[:position], x + h.reshape(x.shape), *values[position + 1 :]]))
        moved_to, short = np.array(there)[group[of_column[open_]], rows[open_]], length * step[columns[open_]]
        noise = off_by(np.maximum(np.abs(moved_to), np.abs(base[rows[open_]]))) / np.abs(short)
        return (moved_to - base[rows[open_]]) / short, noise

    sides = [_of_side([quotients(length * sign) for length in (1.0, 0.5, 0.25)], whole) for sign in (1, -1)]
    for least, most in sides:
        hidden |= np.isnan(least) | np.isnan(most)
    least, most = (pick([side[i] for side in sides], axis=0) for i, pick in ((0, np.min), (1, np.max)))
    hidden |= ~(most - least <= 2 * np.maximum(np.abs(least), np.abs(most)))
    if whole:
        tied = x.ravel()[columns[open_]] == base[rows[open_]]
        least, most = np.where(tied, np.minimum(least, 0), least), np.where(tied, np.maximum(most, 1), most)
        least, most = np.floor(least + NEAR), np.ceil(most - NEAR)
        hidden |= ~((least >= -1) & (most <= 1))
    low[open_], high[open_] = np.where(hidden, np.nan, least), np.where(hidden, np.nan, most)
    return low, high


def _of_side(seen: Sequence[tuple[Array, Array]], whole: bool) -> tuple[Array, Array]:
    """The least and the greatest that the slope of a side may be, of quotients over a step, its half and its quarter;
    NaN where they do not tell it. Those of whole slopes are the same, unless there is a jump; others are extrapolated
    twice."""
    quotients, noises = zip(*seen, strict=True)
    noise = np.max(noises, axis=0)
    if whole:
        least, most = np.min(quotients[:2], axis=0), np.max(quotients[:2], axis=0)
        sure = noise <= NEAR
    else:
        first, second = 2 * quotients[1] - quotients[0], 2 * quotients[2] - quotients[1]
        value = (4 * second - first) / 3
        off = np.abs(value - second)
        sure = off <= SETTLED * np.max(np.abs(quotients), axis=0) + 8 * noise
        least, most = value - off - 8 * noise, value + off + 8 * noise
    return np.where(sure, least, np.nan), np.where(sure, most, np.nan)
