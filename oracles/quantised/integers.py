"""Quantised arithmetic, recomputed: which levels a correct kernel may return, from scales and zero points.

An accumulator is a whole number below 2^53 and exact in float64, as it is in int64. What it is worth in quanta of the
result, its *position*, is a real number; a kernel gets there with a few roundings of its own, so that a position this
near to the middle of two levels may become either of them. Everywhere else there is one right level: an allowance is
never a whole quantum for all elements, which would let another rounding mode pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from generators.bounds.bounded import Bounded

Array = np.ndarray
UNIT = 2.0**-24
"""Unit roundoff of float32, in which scales are held and most kernels rescale."""

LIMITS = {
    **{f"int{b}": (-(2 ** (b - 1)), 2 ** (b - 1) - 1) for b in (4, 8, 16, 32, 64)},
    **{f"uint{b}": (0, 2**b - 1) for b in (4, 8, 16, 32)},
}


@dataclass(frozen=True)
class Levels:
    """Whole numbers, as float64: the lowest and the highest that a correct kernel may return, element by element."""

    low: Array
    high: Array
    dtype: str

    @property
    def middle(self) -> Array:
        return (self.low + self.high) / 2

    @property
    def reach(self) -> Array:
        """How far from the middle it may be."""
        return (self.high - self.low) / 2

    def map(self, layout: Callable[[Array], Array]) -> Levels:
        """The same elements in another layout."""
        return Levels(layout(self.low), layout(self.high), self.dtype)


def known(array: Array) -> Levels:
    """Whole numbers that were observed."""
    value = np.asarray(array).astype(np.float64)
    return Levels(value, value, str(array.dtype))


Rounding = Callable[[Array], Array]


def upwards(x: Array) -> Array:
    """To the nearest, of two to the greater one."""
    return np.floor(x + 0.5)


def away(x: Array) -> Array:
    """To the nearest, of two to the one farther from zero."""
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def along(parameter: Array, rank: int, axis: int) -> Array:
    """One number for all, or one for each place on an axis, in a shape that goes with a tensor's."""
    parameter = np.asarray(parameter, np.float64)
    if parameter.size == 1:
        return parameter.reshape(())
    return parameter.reshape([-1 if i == axis % rank else 1 for i in range(rank)])


@dataclass(frozen=True)
class Quantisation:
    """Scales and zero points of a tensor, along an axis where there are several."""

    scale: Array
    zero: Array
    axis: int

    def spread(self, rank: int) -> tuple[Array, Array]:
        """Both in a shape that goes with a tensor's."""
        return along(self.scale, rank, self.axis), along(self.zero, rank, self.axis)

    def alike(self, other: Quantisation) -> bool:
        """Do levels of both mean the same?"""
        return np.array_equal(self.scale, other.scale) and np.array_equal(self.zero, other.zero)


def settled(
    position: Array, slack: Array, zero_point: Array, dtype: str, rounding: Rounding = np.rint,
    limits: tuple[float, float] | None = None,
) -> Levels:  # fmt: skip
    """Levels of positions that a kernel may miss by `slack` quanta, saturated. What is NaN may become anything."""
    least, most = limits or LIMITS[dtype]
    with np.errstate(invalid="ignore"):
        low = np.clip(rounding(position - slack) + zero_point, least, most)
        high = np.clip(rounding(position + slack) + zero_point, least, most)
    low, high = np.where(np.isnan(low), least, low), np.where(np.isnan(high), most, high)
    return Levels(low, high, dtype)


def quantised(
    x: Bounded, scale: Array, zero_point: Array, dtype: str, rounding: Rounding = np.rint, reciprocal: bool = False
) -> Levels:
    """Levels of real numbers: x / scale in float32, rounded, then the zero point added (ONNX QuantizeLinear). A number
    that is known is divided as float32 divides, which leaves one level; where kernels multiply by the rounded
    reciprocal of the scale (as PyTorch does), two more roundings are allowed."""
    with np.errstate(all="ignore"):
        if not reciprocal and not x.error.any():
            position = (x.value.astype(np.float32) / np.float32(scale)).astype(np.float64)
            return settled(position, np.zeros(()), zero_point, dtype, rounding)
        position = x.value / scale
        lost = np.where(np.frexp(scale)[0] == 0.5, 0.0, (3 if reciprocal else 1) * UNIT * np.abs(position))
        return settled(position, x.error / scale + 1.01 * lost, zero_point, dtype, rounding)


def dequantised(q: Levels, scale: Array, zero_point: Array) -> Bounded:
    """(q - zero point) * scale in float32: exact up to the product where the difference fits into 24 bits."""
    with np.errstate(all="ignore"):
        difference = (q.middle - zero_point).astype(np.float32)
        value = (difference.astype(np.float64) * scale).astype(np.float32).astype(np.float64)
        loose = q.reach > 0
        error = np.where(loose, q.reach * scale + 2 * UNIT * (np.abs(value) + q.reach * scale), 0.0)
    return Bounded(value, error, "float32")


def rescaled(
    accumulator: Array, factor: Array, zero_point: Array, dtype: str, roundings: int, magnitude: Array | None = None,
    exact: bool = False, rounding: Rounding = np.rint,
) -> Levels:  # fmt: skip
    """Levels of an exact accumulator times a factor that the kernel makes of scales, with so many roundings in float32
    in all. magnitude: of what is rounded, if that is more than the result (terms that cancel, a zero point that is
    added first); exact: nothing is rounded on the way (scales that are powers of two, sums of at most 24 bits)."""
    position = accumulator * factor
    size = np.abs(position) if magnitude is None else magnitude
    slack = np.zeros(()) if exact else roundings * UNIT * np.asarray(size)
    return settled(position, slack, zero_point, dtype, rounding)


def powers_of_two(*scales: Array) -> bool:
    """Do products and quotients of these round nothing?"""
    return all(bool((np.frexp(np.asarray(s, np.float64))[0] == 0.5).all()) for s in scales)
