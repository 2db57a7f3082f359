"""Bounds of what chooses among numbers: the greatest or the least of them, where subnormals may be read as zero."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded, ends, exact, spread

Array = np.ndarray


def near_zero(x: Bounded) -> Array:
    """Where an element may be a subnormal number."""
    return (np.abs(x.value) - x.error < PRECISION[x.dtype].tiny) & ((x.value != 0) | (x.error > 0))


def flushable(x: Bounded) -> Array:
    """Numbers that may be read as zero."""
    if not x.floating:
        return np.zeros(x.value.shape, bool)
    return (np.abs(x.value) < PRECISION[x.dtype].tiny) & (x.value != 0)


def beside_zero(value: Array, error: Array, near: Array, dtype: str) -> Array:
    """The error of a choice among numbers: a processor that reads subnormals as zero compares them as equal to
    zero and each other, and may return the wrong one of them unchanged."""
    tiny = PRECISION[dtype].tiny
    return np.where(near & (np.abs(value) < tiny), np.maximum(error, 2 * tiny), error)


def highest(x: Bounded, pooled: Callable[[Array], Array]) -> Bounded:
    """Exact selection, by `pooled`: errors widen the interval only. A NaN in a window is its maximum."""
    with np.errstate(all="ignore"):
        value, (low, high) = pooled(x.value), ends(x)
        error = spread(value, pooled(low), pooled(high))
        if x.error.any():  # flushed subnormals compare equal: any of them may be taken
            tiny = PRECISION[x.dtype].tiny
            near = (np.abs(value) < tiny) & (pooled(np.where(np.abs(x.value) < tiny, x.error, 0.0)) > 0)
            error = np.where(near, np.maximum(error, np.abs(value) + tiny), error)
        if x.undetermined.any():
            nan = pooled(1.0 * (np.isnan(x.value) & ~x.undetermined)) > 0
            unknown = pooled(1.0 * x.undetermined) > 0
            value = np.where(nan, np.nan, value)
            error = np.where(nan, 0.0, np.where(unknown, np.inf, error))
    return Bounded(value, error, x.dtype)


def greatest(x: Bounded, numbers: Array) -> Bounded:
    """Which of the numbers stands at the greatest element along the last axis: certain where no other one, read as it
    is or flushed, may be as great."""
    best = np.argmax(np.where(np.isnan(x.value), np.inf, x.value), axis=-1, keepdims=True)
    with np.errstate(all="ignore"):
        flushed = np.where(near_zero(x), PRECISION[x.dtype].tiny, 0.0)
        low, high = x.value - x.error - flushed, x.value + x.error + flushed
        rivals = np.count_nonzero(~(high < np.take_along_axis(low, best, -1)), axis=-1)
    unknown = (rivals > 1) | np.any(np.isnan(x.value) | x.undetermined, axis=-1)
    return exact(np.take_along_axis(numbers, best, -1)[..., 0], "int64", unknown)
