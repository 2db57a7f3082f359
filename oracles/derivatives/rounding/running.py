"""Numbers with running error bounds that formulas of derivatives are written with."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import frexp

import numpy as np

from generators.bounds import bounded
from generators.bounds.bounded import PRECISION, U64, Bounded
from generators.bounds.sums import summed
from generators.graph import TensorType
from generators.ops import OPS
from generators.ops.spec import Call

Array = np.ndarray


class Number:
    """An array with a running error bound."""

    def __init__(self, value: Bounded) -> None:
        self.value = value

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.value.shape

    def _lifted(self, other: Number | float) -> Bounded:
        return other.value if isinstance(other, Number) else constant(other, self.value.dtype).value

    def __add__(self, other: Number | float) -> Number:
        return Number(bounded.add(self.value, self._lifted(other)))

    def __sub__(self, other: Number | float) -> Number:
        return Number(bounded.add(self.value, self._lifted(other), -1.0))

    def __mul__(self, other: Number | float) -> Number:
        if isinstance(other, float | int) and abs(frexp(other)[0]) == 0.5:  # a power of two: no rounding
            return Number(Bounded(self.value.value * other, self.value.error * abs(other), self.value.dtype))
        return Number(bounded.multiply(self.value, self._lifted(other)))

    def __truediv__(self, other: Number | float) -> Number:
        return Number(bounded.divide(self.value, self._lifted(other)))

    def __radd__(self, other: float) -> Number:
        return self + other

    def __rsub__(self, other: float) -> Number:
        return Number(bounded.add(self._lifted(other), self.value, -1.0))

    def __rmul__(self, other: float) -> Number:
        return self * other

    def __rtruediv__(self, other: float) -> Number:
        return Number(bounded.divide(self._lifted(other), self.value))

    def __neg__(self) -> Number:
        return Number(Bounded(-self.value.value, self.value.error, self.value.dtype))

    def __abs__(self) -> Number:
        return Number(Bounded(np.abs(self.value.value), self.value.error, self.value.dtype))

    def at_most(self, most: float) -> Number:
        return Number(Bounded(np.minimum(self.value.value, most), self.value.error, self.value.dtype))

    def off_by(self, more: Array) -> Number:
        """With so much more that it may be off by."""
        return Number(Bounded(self.value.value, self.value.error + more, self.value.dtype))

    def f(self, name: str) -> Number:
        """A function of one number, by the name of the operator."""
        type_ = TensorType(self.value.dtype, self.shape)
        return Number(OPS[name].reference([self.value], Call((type_,), {}, type_)))

    def map(self, layout: Callable[[Array], Array]) -> Number:
        """The same elements in another layout."""
        return Number(self.value.map(layout))

    def sum(self, axes: tuple[int, ...]) -> Number:
        """Over some axes, which stay, in any order."""
        terms = int(np.prod([self.shape[axis] for axis in axes]))
        return Number(summed(self.value, partial(np.sum, axis=axes, keepdims=True), terms, overflows=False))

    def mean(self, axes: tuple[int, ...]) -> Number:
        return self.sum(axes) / float(np.prod([self.shape[axis] for axis in axes]))

    def max(self, axes: tuple[int, ...]) -> Number:
        """Of elements without an error."""
        return exactly(np.max(self.value.value, axis=axes, keepdims=True), self.value.dtype)


def exactly(value: Array, dtype: str) -> Number:
    """Without an error."""
    return Number(Bounded(value, np.zeros(np.shape(value)), dtype))


def constant(number: float, dtype: str) -> Number:
    """With its own rounding, unless the number is exact in the dtype."""
    with np.errstate(all="ignore"):
        held = float(np.asarray(number).astype(dtype)) == number
    error = 0.0 if held else (PRECISION[dtype].unit + U64) * abs(number)
    return Number(Bounded(np.asarray(float(number)), np.asarray(error), dtype))


def chosen(where: Array, one: Number, other: Number) -> Number:
    """One where it holds, which is known for certain, the other elsewhere."""
    pick = lambda a, b: np.where(where, a, b)  # noqa: E731
    one_, other_ = one.value, other.value
    return Number(Bounded(pick(one_.value, other_.value), pick(one_.error, other_.error), one_.dtype))


def of_one_number(
    y: Number, f: Callable[[Number], Number], slope: Callable[[Array], Array], curvature: float
) -> Number:
    """f(y) where the same y, as it was rounded, stands in several places of f: f's own roundings at y, and what y is
    off by times the slope of f, |f''| <= curvature (Taylor)."""
    off, unit = y.value.error, PRECISION[y.value.dtype].unit
    own = f(exactly(y.value.value, y.value.dtype)).value
    moved = np.where(off > 0, off * (np.abs(slope(y.value.value)) + off * curvature / 2), 0.0)
    return Number(Bounded(own.value, own.error * (1 + 64 * unit) + moved, own.dtype))
