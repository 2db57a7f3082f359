"""References, and parts of them, that several elementwise operators share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import (
    PRECISION,
    SMALLEST,
    U64,
    Bounded,
    ends,
    exact,
    holds_zero,
    monotone,
    rounded,
    spread,
)
from generators.ops.spec import Call, Reference

Array = np.ndarray
Function = Callable[[Array], Array]


def certainly_nan(x: Bounded) -> Array:
    """Where the element is NaN for certain."""
    return np.isnan(x.value) & ~x.undetermined


def unit_of(x: Bounded) -> float:
    """The unit roundoff of its dtype, and that of float64, in which the value was computed."""
    return PRECISION[x.dtype].unit + U64


def spread_out(x: Bounded, call: Call) -> Bounded:
    return x.map(lambda a: np.broadcast_to(a, call.result.shape))


# ---- constants and what they add ----------------------------------------------------------------------


def constant(value: float, like: Bounded) -> Bounded:
    """A constant that every back end rounds to the dtype first, once."""
    return rounded(np.full(like.value.shape, value), np.zeros(like.value.shape), like.dtype)


def exactly(value: float, like: Bounded) -> Bounded:
    return Bounded(np.full(like.value.shape, value), np.zeros(like.value.shape), like.dtype)


def loose(result: Bounded, units: float, where: Array) -> Bounded:
    """`result` with an absolute error of so many unit roundoffs more where the mask holds."""
    return replace(result, error=result.error + np.where(where, units * PRECISION[result.dtype].unit, 0.0))


# ---- one operand --------------------------------------------------------------------------------------


def unrounded(f: Function, x: Bounded) -> Bounded:
    """f of x where f is monotone and its value needs no rounding (a step, a clamp): the spread of the ends.
    A zero that may come from either side is of unknown sign."""
    with np.errstate(all="ignore"):
        value = np.asarray(f(x.value), dtype=np.float64)
        error = np.where(x.undetermined, np.inf, spread(value, *(f(end) for end in ends(x))))
        error = np.where((value == 0) & (error == 0) & holds_zero(x), SMALLEST, error)
    return Bounded(value, error, x.dtype)


def ulps(f: Function, ulps: float) -> Reference:
    """Monotone on each side of every pole and edge of its domain (or even, and monotone for x > 0)."""
    return lambda args, call: monotone(f, args[0], ulps)


def exponential(f: Function, ulps: float) -> Reference:
    """Grows like exp. Where the reference's own float64 leaves its range a float64 back end may just stay
    inside: an underflow may be a subnormal, and the last argument before an overflow decides nothing."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x = args[0]
        result = monotone(f, x, ulps)
        across = np.isinf(result.value) & holds_zero(x)  # cosh: the ends may overflow both
        result = replace(result, error=np.where(across, np.inf, result.error))
        if x.dtype != "float64":
            return result
        with np.errstate(all="ignore"):
            number = np.isfinite(x.value) & (x.value != 0)
            edge = number & np.isinf(result.value) & np.isfinite(f(np.nextafter(x.value, 0.0)))
            error = np.where(edge, np.inf, result.error)
            error += np.where(number & (result.value == 0), PRECISION[x.dtype].tiny, 0.0)
        return replace(result, error=error)

    return reference


# ---- two operands -------------------------------------------------------------------------------------


def wrapping(f: Callable[[Array, Array], Array], x: Bounded, y: Bounded) -> Bounded:
    """f of integers or booleans in their own dtype: overflow wraps, nothing is rounded."""
    with np.errstate(all="ignore"):
        return exact(f(x.value, y.value), x.dtype, x.undetermined | y.undetermined)


def corners(f: Callable[[Array, Array], Array], x: Bounded, y: Bounded, value: Array) -> Array:
    """The spread over a rectangle of an f that is monotone in each operand (in a direction that may depend on
    the other one): its extremes lie at corners. NaN at a corner of a number is infinitely far."""
    (x_low, x_high), (y_low, y_high) = ends(x), ends(y)
    return spread(value, f(x_low, y_low), f(x_low, y_high), f(x_high, y_low), f(x_high, y_high))


def logic(f: Callable[[Array, Array], Array], deciding: bool | None) -> Reference:
    """Three-valued logic: a certain operand equal to `deciding` decides alone."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x, y = args
        unknown = x.undetermined | y.undetermined
        if deciding is not None:
            certain = (~x.undetermined & (x.value == deciding)) | (~y.undetermined & (y.value == deciding))
            return exact(np.where(certain, deciding, f(x.value, y.value)), "bool", unknown & ~certain)
        return exact(f(x.value, y.value), "bool", unknown)

    return reference
