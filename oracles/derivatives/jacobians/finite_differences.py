"""Derivatives by central differences along one direction, extrapolated to steps of no length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from generators.bounds.bounded import U64, Bounded

Array = np.ndarray
Function = Callable[[Sequence[Array]], Array]
"""Values of all operands -> the flat result, NaN where the reference leaves it open."""

STEP = 2.0**-9
SUBNORMAL = 2.0**-1060
"""What differences of subnormal numbers may be off by."""


def off_by(top: Array) -> Array:
    """What differences of results may be off by that are no greater than `top`, before they are divided by a step."""
    return 64 * U64 * top + SUBNORMAL


def greatest(base: Array) -> Array:
    """The magnitude of the greatest result that is finite, without dimensions; 0 where there is none."""
    return np.asarray(np.max(np.abs(base[np.isfinite(base)]), initial=0.0))


@dataclass(frozen=True)
class Difference:
    """A derivative along one direction: its value, what it may be off by, the plain half-step difference."""

    value: Array
    error: Array
    half: Array


def steps_of(x: Bounded) -> list[Array]:
    """Lengths to try: by the size of each element, at least 1, by the size of the greatest. Powers of two, so that
    adding them to a float32 is exact; at least twice as long as the element may be off, so that a kink in reach of a
    correct evaluation is seen."""
    size = np.where(np.isfinite(x.value), np.abs(x.value), 0.0)
    top = float(np.max(size, initial=0.0))
    least = 4 * np.where(x.undetermined, 0.0, x.error)
    tried = (np.where(size > 0, size, min(top, 1.0) or 1.0), np.maximum(size, 1.0), np.full(size.shape, top or 1.0))
    steps = []
    for scale in tried:
        h = np.exp2(np.ceil(np.log2(np.maximum(STEP * scale, least))))
        if not any(np.array_equal(h, other) for other in steps):
            steps.append(h)
    return steps


def swallowed(x: Array, step: Array) -> Array:
    """Which elements are so great that a quarter of a step is lost beside them."""
    with np.errstate(all="ignore"):
        quarter = step / 4
        return np.abs(x + quarter - x - quarter) > 1e-4 * quarter


def along(f: Function, values: Sequence[Array], position: int, direction: Array, base: Array) -> Difference:
    """The derivative of f along a direction, one unit of it being the longest step."""
    moved = list(values)
    halves, gaps = [], []
    top = np.abs(base)
    for t in (1.0, 0.5, 0.25):
        moved[position] = values[position] + t * direction
        ahead = f(moved)
        moved[position] = values[position] - t * direction
        behind = f(moved)
        halves.append((ahead - behind) / (2 * t))
        gaps.append(np.abs(ahead - 2 * base + behind) / t)
        top = np.maximum(top, np.maximum(np.abs(ahead), np.abs(behind)))
    return extrapolated(halves, gaps, top)


def extrapolated(halves: Sequence[Array], gaps: Sequence[Array], top: Array) -> Difference:
    """A smooth function has halves that converge with the square of the step, and sides whose gap shrinks with it: to
    a quarter here. At a kink the gap stays, at a jump it grows."""
    first = (4 * halves[1] - halves[0]) / 3
    second = (4 * halves[2] - halves[1]) / 3
    value = (16 * second - first) / 15
    noise = off_by(top)
    error = np.abs(value - second) + noise
    # where only the curvature jumps, halving the step halves the change instead of quartering it
    change, last = np.abs(halves[1] - halves[0]), np.abs(halves[2] - halves[1])
    error += np.where((last > 0.35 * change) & (last > noise), last, 0.0)
    # a kink that the shortest step does not reach: the gap of a smooth function goes down by half, by an eighth at most
    error += np.where((gaps[2] < gaps[1] / 10) & (gaps[1] > noise) & (last > noise), last, 0.0)
    size = np.abs(halves[0]) + gaps[0]
    kink = (gaps[2] > 0.4 * gaps[0]) & (gaps[2] > 1e-6 * np.abs(halves[2]) + noise)
    rough = np.abs(value - second) > 2.0**-10 * size + noise
    error = np.where(kink | rough | ~np.isfinite(error), np.inf, error)
    return Difference(np.where(np.isfinite(error), value, 0.0), error, halves[1])
