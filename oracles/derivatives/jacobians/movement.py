"""How far slopes move when the operands move by what they may be off."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded

Array = np.ndarray
SHIFTS = 2
ALLOWANCE = 1.5
"""The greatest change among so many random shifts of a whole operand, times this, stands for the greatest of all."""
INSIDE = 2.0
"""So many u of an operand's magnitude stand for the roundings inside a formula that starts from it."""


def off(x: Bounded, inside: float = INSIDE) -> Array:
    """How far an operand may be off: its bound, and `inside` u of its magnitude."""
    with np.errstate(all="ignore"):
        size = np.where(np.isfinite(x.value), np.abs(x.value), 0.0)
        return np.where(x.undetermined, 0.0, x.error) + inside * PRECISION[x.dtype].unit * size


def moved_by_shifts(
    slope: Callable[[Sequence[Array]], Array],
    count: int,
    operands: Sequence[Bounded],
    shift: Array | float,
    inside: float,
) -> Array:
    """How far so many slopes move when each operand in turn is shifted by what it may be off, with random signs."""
    values = [o.value for o in operands]
    most = {k: off(o, inside) + (shift if k == 0 else 0.0) for k, o in enumerate(operands) if o.floating}
    if not any(one.any() for one in most.values()):  # operands that are exact do not move: most of those that are drawn
        return np.zeros(count)
    start = slope(values)
    total = np.zeros(start.shape)
    rng = np.random.default_rng(len(start))
    for k, by in most.items():
        if not by.any():
            continue
        worst = np.zeros(start.shape)
        for _ in range(SHIFTS):
            shifted = list(values)
            shifted[k] = values[k] + by * rng.choice([-1.0, 1.0], values[k].shape)
            change = np.abs(slope(shifted) - start)
            worst = np.maximum(worst, np.where(np.isfinite(start), np.where(np.isnan(change), np.inf, change), 0.0))
        total += ALLOWANCE * worst
    return total
