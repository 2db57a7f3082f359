"""Values with running error bounds (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., ch. 3-4).

A `Bounded` is the float64 value of a tensor and, element by element, a bound on how far a *correct* evaluation
in the tensor's own dtype may be from it. An infinite bound means *undetermined*: a correct evaluation may give
anything there (a comparison too close to call, a possible overflow, …); such elements are excused and counted.
NaN and infinities with a bound of 0 are demanded exactly.

Ulp budgets are those of the OpenCL C 3.0 specification, section 7.4 "Relative Error as ULPs" (single precision,
full profile; double precision has the same or tighter ones), unless an operator's record cites another source.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from ml_dtypes import finfo  # numpy's own does not know bfloat16

from generators.graph import COMPONENT, FLOATS

Array = np.ndarray

U64 = 2.0**-53  # unit roundoff of the reference's own float64 arithmetic
SMALLEST = 2.0**-1074  # the bound of a zero that is exact, but of unknown sign


@dataclass(frozen=True)
class Precision:
    """unit: unit roundoff; tiny: smallest normal number (back ends may flush below it); largest: largest finite."""

    unit: float
    tiny: float
    largest: float


PRECISION = {
    dtype: Precision(float(finfo(dtype).eps) / 2, float(finfo(dtype).smallest_normal), float(finfo(dtype).max))
    for dtype in FLOATS
}
PRECISION |= {dtype: PRECISION[part] for dtype, part in COMPONENT.items()}  # that of the parts


@dataclass(frozen=True)
class Bounded:
    """value: float64 for floating dtypes, complex128 for complex ones, else the dtype itself; error: float64 of the
    same shape, >= 0, on the modulus of the difference where the dtype is complex;
    zero_sign: are the signs of zeros among the values fixed (by the standard, through all operators so far)?"""

    value: Array
    error: Array
    dtype: str
    zero_sign: bool = False

    @property
    def floating(self) -> bool:
        return self.dtype in PRECISION

    @property
    def complex(self) -> bool:
        return self.dtype in COMPONENT

    @property
    def undetermined(self) -> Array:
        return np.isinf(self.error)

    def map(self, layout: Callable[[Array], Array]) -> Bounded:
        """The same elements in another layout (reshape, transpose, slice, …), applied to value and bound alike."""
        return Bounded(layout(self.value), layout(self.error), self.dtype)


def leaf(array: Array) -> Bounded:
    """A value that every back end is given: exact, but a subnormal may be read as zero."""
    dtype = str(array.dtype)
    if dtype not in PRECISION:
        return Bounded(array, np.zeros(array.shape), dtype, zero_sign=True)
    if dtype in COMPONENT:
        parts = [leaf(np.asarray(part)).error for part in (np.real(array), np.imag(array))]
        return Bounded(array.astype(np.complex128), np.hypot(*parts), dtype, zero_sign=True)
    value = array.astype(np.float64)
    magnitude = np.abs(value)
    flushed = (magnitude < PRECISION[dtype].tiny) & (magnitude > 0)
    return Bounded(value, np.where(flushed, magnitude, 0.0), dtype, zero_sign=True)


def exact(value: Array, dtype: str, undetermined: Array | bool = False) -> Bounded:
    """An integer or boolean result (or an exactly representable one), undetermined where the mask says so."""
    value = np.asarray(value)
    if dtype not in PRECISION:
        value = value.astype(dtype)
    return Bounded(value, np.where(np.broadcast_to(undetermined, value.shape), np.inf, 0.0), dtype)


def rounded(value: Array, error: Array, dtype: str, ulps: float = 0.5) -> Bounded:
    """A floating result whose operands' errors have been propagated into `error`, plus its own rounding of
    `ulps` (0.5 = correctly rounded; one ulp is at most 2u|v|), the reference's own roundoff, and the smallest
    normal number where the result may be flushed. Decides overflow. An exact zero (zero error) stays exact."""
    p = PRECISION[dtype]
    value = np.asarray(value, dtype=np.float64)
    with np.errstate(all="ignore"):
        error = np.where(np.isnan(error), np.inf, error)
        finite = np.isfinite(value)
        magnitude = np.abs(value)
        slack = (2 * ulps * p.unit + 2 * U64) * (magnitude + error)
        slack = np.where((magnitude + error > 0) & (magnitude - error < np.inf), slack + p.tiny, 0.0)
        total = np.where(finite, error + slack, np.where(error > 0, np.inf, 0.0))
        reach = finite & (magnitude + total > p.largest)
        certain = reach & (magnitude - total > p.largest * (1 + p.unit))
        value = np.where(certain, np.copysign(np.inf, value), value)
        total = np.where(certain, 0.0, np.where(reach, np.inf, total))
    return Bounded(value, total, dtype)


def ends(x: Bounded) -> tuple[Array, Array]:
    """Lower and upper end of the interval around each element (NaN stays NaN). For float64 they are rounded
    outwards, since there the bound is of the size of the ends' own rounding."""
    with np.errstate(all="ignore"):
        low = np.where(x.error == 0, x.value, x.value - x.error)
        high = np.where(x.error == 0, x.value, x.value + x.error)
        if x.dtype == "float64":
            low = np.where((x.error == 0) | (low == 0), low, np.nextafter(low, -np.inf))
            high = np.where((x.error == 0) | (high == 0), high, np.nextafter(high, np.inf))
    return low, high


def spread(value: Array, *others: Array) -> Array:
    """The greatest distance of `others` from `value`; equal infinities and NaN against NaN are no distance,
    NaN against a number is infinite."""
    worst = np.zeros(np.shape(value))
    with np.errstate(all="ignore"):
        for other in others:
            same = (value == other) | (np.isnan(value) & np.isnan(other))
            distance = np.where(same, 0.0, np.abs(value - other))
            worst = np.maximum(worst, np.where(np.isnan(distance), np.inf, distance))
    return worst


def monotone(f: Callable[[Array], Array], x: Bounded, ulps: float) -> Bounded:
    """f of x where f is monotone on each side of every pole or edge of its domain: the spread over the
    interval is that of its end points. An interval that crosses an edge must give NaN or infinity at an end."""
    with np.errstate(all="ignore"):
        value = np.asarray(f(x.value), dtype=np.float64)
        low, high = ends(x)
        error = np.where(x.undetermined, np.inf, spread(value, f(low), f(high)))
    return rounded(value, error, x.dtype, ulps)


def smooth(
    f: Callable[[Array], Array], slope: Callable[[Array], Array], curvature: float, x: Bounded, ulps: float
) -> Bounded:
    """f of x where f is defined everywhere, not monotone, with |f''| <= curvature: over [x-e, x+e] f moves by
    at most e (|f'(x)| + e curvature / 2) (Taylor)."""
    with np.errstate(all="ignore"):
        value = np.asarray(f(x.value), dtype=np.float64)
        error = np.where(x.error == 0, 0.0, x.error * (np.abs(slope(x.value)) + 0.5 * x.error * curvature))
    return rounded(value, error, x.dtype, ulps)


def gamma(n: int | Array, unit: float) -> Array:
    """The relative error bound of n roundings in any order: (1 - u)^-n - 1, the greatest that a product of n factors
    (1 + d)^{+-1}, |d| <= u, is away from 1. Higham's gamma_n = n u / (1 - n u) (lemma 3.1) is a bound on it that
    means nothing from n u = 1 on, which is 256 terms of bfloat16."""
    return np.expm1(-np.asarray(n, dtype=np.float64) * np.log1p(-unit))


def add(x: Bounded, y: Bounded, sign: float = 1.0) -> Bounded:
    """x + sign * y, one rounding. An exact infinity stays one whatever the error of the finite operand."""
    with np.errstate(all="ignore"):
        value = x.value + sign * y.value
        error = np.where(np.isfinite(x.value) & np.isfinite(y.value), x.error + y.error, 0.0)
        return rounded(value, settled(x, y, error), x.dtype)


def multiply(x: Bounded, y: Bounded) -> Bounded:
    """x * y, one rounding. Infinity times an interval that holds zero is undetermined."""
    with np.errstate(all="ignore"):
        value = x.value * y.value
        size_x, size_y = np.abs(x.value), np.abs(y.value)
        finite = np.isfinite(size_x) & np.isfinite(size_y)
        error = size_x * y.error + x.error * (size_y + y.error)
        error += np.where((value == 0) & (size_x > 0) & (size_y > 0), PRECISION[x.dtype].tiny, 0.0)
        loose_x, loose_y = holds_zero(x), holds_zero(y)
        error = np.where(finite, error, np.where(loose_x | loose_y, np.inf, 0.0))
        if x.zero_sign and y.zero_sign:  # 0 * y, where the sign of y is not known: a zero of unknown sign
            loose = ((value == 0) & (error == 0)) & (loose_x | loose_y)
            error = np.where(loose, SMALLEST, error)
        return rounded(value, settled(x, y, error), x.dtype)


def divide(x: Bounded, y: Bounded, ulps: float = 2.5) -> Bounded:
    """x / y; 2.5 ulp (OpenCL single precision). A divisor whose interval holds zero is a pole: undetermined,
    unless it is exactly zero and its sign is known or cannot matter (0/0, NaN)."""
    with np.errstate(all="ignore"):
        value = x.value / y.value
        low = np.abs(y.value) - y.error
        error = (x.error + np.abs(value) * y.error) / low
        error += np.where((value == 0) & (x.value != 0), PRECISION[x.dtype].tiny, 0.0)
        loose_x = holds_zero(x)
        error = np.where(np.isfinite(x.value) & np.isfinite(y.value) & (y.value != 0), error, 0.0)
        pole = (y.error > 0) & (low <= 0) | (y.value == 0) & loose_x
        if not y.zero_sign:
            pole |= (y.value == 0) & ~np.isnan(value)
        error = np.where(pole & ~np.isinf(y.value), np.inf, error)
        if x.zero_sign and y.zero_sign:
            error = np.where((value == 0) & (error == 0) & loose_x, SMALLEST, error)
    return rounded(value, settled(x, y, error), x.dtype, ulps)


def holds_zero(x: Bounded) -> Array:
    """Where the interval, of more than one point, holds zero: the sign of the element is not known."""
    return (x.error > 0) & ~(np.abs(x.value) > x.error)


def settled(x: Bounded, y: Bounded, error: Array) -> Array:
    """The error of a result that is NaN where an operand is NaN for certain, and undetermined where it is not
    and an operand is undetermined."""
    nan = (np.isnan(x.value) & (x.error == 0)) | (np.isnan(y.value) & (y.error == 0))
    return np.where(nan, 0.0, np.where(x.undetermined | y.undetermined, np.inf, error))
