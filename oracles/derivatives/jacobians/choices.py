"""Slopes where an operator chooses, and two choices are as good as each other: a maximum of equal numbers, relu at 0.
Frameworks take one of them, or a share of each. What they may take lies between the slopes of the two sides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import U64, Bounded
from oracles.derivatives.jacobians.finite_differences import Function, steps_of
from oracles.derivatives.jacobians.sparsity import SHORT, groups_of

Array = np.ndarray
MOST = 1024
"""Elements that are moved one by one, each at the cost of four evaluations; the slopes of more stay undetermined."""
NEAR = 2.0**-20
"""So near a whole number a side's slope is one."""


def between(
    f: Function, operands: Sequence[Bounded], position: int, rows: Array, columns: Array, base: Array, lost: Array
) -> tuple[Array, Array]:
    """The least and the greatest slope of result[rows] by operand[columns], of which each is 1, -1 or 0, where they
    are `lost`; NaN where they are not, where a side jumps or is not finite, and where no short step shows it. Equal
    numbers of which one is the result may each be the one that is taken, also where none of them moves it alone:
    that in the middle of three."""
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
    least, most = np.full(open_.size, np.inf), np.full(open_.size, -np.inf)
    far = step / 4 < np.where(operands[position].undetermined, np.inf, operands[position].error).ravel()
    hidden = far[columns[open_]] | (x.ravel() + step / 2 == x.ravel())[columns[open_]]
    for length in (1.0, 0.5, -1.0, -0.5):
        there = []
        for members in groups:
            h = np.zeros(x.size)
            h[moved[members]] = length * step[moved[members]]
            there.append(f([*values[:position], x + h.reshape(x.shape), *values[position + 1 :]]))
        moved_to, short = np.array(there)[group[of_column[open_]], rows[open_]], abs(length) * step[columns[open_]]
        change = moved_to - base[rows[open_]]
        hidden |= 64 * U64 * np.maximum(np.abs(moved_to), np.abs(base[rows[open_]])) > NEAR * short
        slope = change / np.copysign(short, length)
        least, most = np.minimum(least, slope), np.maximum(most, slope)
    tied = x.ravel()[columns[open_]] == base[rows[open_]]
    least, most = np.where(tied, np.minimum(least, 0), least), np.where(tied, np.maximum(most, 1), most)
    least, most = np.floor(least + NEAR), np.ceil(most - NEAR)
    sure = (least >= -1) & (most <= 1) & ~hidden  # NaN is not
    low[open_], high[open_] = np.where(sure, least, np.nan), np.where(sure, most, np.nan)
    return low, high
