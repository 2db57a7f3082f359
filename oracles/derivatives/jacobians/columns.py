"""Columns of a Jacobian: elements of an operand moved one by one, or at once where they reach no result in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from generators.bounds.bounded import U64
from oracles.derivatives.jacobians.finite_differences import Function
from oracles.derivatives.jacobians.sparsity import FAR, SHORT, groups_of

Array = np.ndarray


@dataclass(frozen=True)
class Columns:
    """By element: the step (1 where it reaches nothing), f ahead and behind, and which results it moves."""

    step: Array
    ahead: Array
    behind: Array
    touched: Array


def columns_of(f: Function, values: Sequence[Array], position: int, tried: Array, base: Array, reach: Array) -> Columns:
    """Of all elements. tried: steps, by element, (steps, elements); reach: of `reach_of`."""
    count = reach.shape[0]
    found = Columns(
        tried[0].copy(), np.repeat(base[None], count, 0), np.repeat(base[None], count, 0), np.zeros(reach.shape, bool)
    )
    far = FAR * float(np.max(tried))
    for members in groups_of(reach):
        step, ahead, behind, touched = _moved(f, values, position, tried[:, members], members, base, reach, far)
        found.step[members], found.touched[members] = step, touched
        found.ahead[members], found.behind[members] = ahead, behind
    return found


def _moved(
    f: Function,
    values: Sequence[Array],
    position: int,
    tried: Array,
    members: Sequence[int],
    base: Array,
    reach: Array,
    far: float,
) -> tuple[Array, Array, Array, Array]:
    """Elements moved at once: of each the step, f ahead and behind, and which results it moves. What a long step does
    not move does not depend on it; of the steps, that which shows most of the others clearly and nearly straight."""
    mine = reach[members]

    def at(steps: Array | float) -> Array:
        moved = list(values)
        moved[position] = values[position].copy()
        moved[position].flat[members] += steps
        return np.where(mine, f(moved), base)

    touched = (at(far) != base) | (at(-far) != base)  # the least of all shows downwards only
    if far > FAR:  # what lies far out may be cut off (matrices that are tamed)
        touched |= at(FAR * np.median(tried, axis=0)) != base
    touched &= mine
    noise = 64 * U64 * np.abs(base)
    least = np.full(len(members), np.inf)
    step, ahead, behind = (
        tried[0].copy(),
        np.repeat(base[None], len(members), 0),
        np.repeat(base[None], len(members), 0),
    )
    for h in tried:
        left = least > 0
        if not left.any():
            break
        up, down = at(h), at(-h)
        touched |= left[:, None] & mine & ((up != base) | (down != base))
        difference, bend = np.abs(up - down), np.abs(up - 2 * base + down)
        clear = (difference > 2.0**14 * noise) & (bend < 0.1 * difference)
        clear |= noise < 2.0**-33 * np.max(np.where(clear, difference, 0.0), axis=1, initial=0.0, keepdims=True)
        faults = np.count_nonzero(touched & ~clear, axis=1)
        better = faults < least
        least, step = np.where(better, faults, least), np.where(better, h, step)
        ahead, behind = np.where(better[:, None], up, ahead), np.where(better[:, None], down, behind)
    long = (step > SHORT)[:, None]
    if long.any():  # as where each result has one source: a staircase is no slope
        near = (at(SHORT) - at(-SHORT)) / (2 * SHORT)
        slope = (ahead - behind) / (2 * step[:, None])
        stairs = long & touched & ~(np.abs(near - slope) <= 0.01 * np.abs(slope))
        ahead = np.where(stairs, np.nan, ahead)
    return step, ahead, behind, touched
