"""Sums of products with their error bound: what matmul, linear, convolutions and average pooling share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, gamma

Array = np.ndarray
Contract = Callable[[Array, Array], Array]
"""Multiplies and sums two arrays of float64 (or of one integer dtype): bilinear."""


def bilinear(
    contract: Contract,
    a: Bounded,
    b: Bounded,
    roundings: int | Array,
    hole: Array | None = None,
    bias: Bounded | None = None,
) -> Bounded:
    """contract(a, b) + bias with the bound of Higham, section 3.5: `|a| e_b + e_a |b| + e_a e_b` is carried
    over, and gamma_{roundings} of the terms' magnitudes covers every order of summation, with or without
    fused multiply-add. That holds for direct and im2col algorithms, not for fast ones (Winograd, FFT, Strassen),
    which no framework takes on a CPU unless told to.

    roundings: of one term on its way into the sum: n for n products, n + 1 with a bias
    hole:      where elements of `a` are not there (padding, a gap between strides): some back ends multiply
               by a zero there, others skip, so that a NaN or an infinity of `b` may be lost there or not
    bias:      broadcasts with the result"""
    p = PRECISION[a.dtype]
    with np.errstate(all="ignore"):
        value_a, error_a = _finite(a)
        value_b, error_b = _finite(b)
        abs_a, reach_b = np.abs(value_a), np.abs(value_b) + error_b
        value = contract(value_a, value_b)
        propagated = contract(abs_a, error_b) + contract(error_a, reach_b)
        magnitude = contract(abs_a + error_a, reach_b)
        if bias is not None:
            value_c, error_c = _finite(bias)
            value = value + value_c
            propagated = propagated + error_c
            magnitude = magnitude + np.abs(value_c) + error_c
        # the second U64 term: the reference sums in float64, in an order of its own
        steps = gamma(roundings, p.unit + U64) * magnitude + (np.asarray(roundings) + 1) * p.tiny
        error = propagated + np.where(magnitude > 0, steps, 0.0)
        # partial sums may overflow in some order of summation
        error = np.where(magnitude * (1 + gamma(roundings, p.unit)) > p.largest, np.inf, error)
        error = np.where(np.isnan(error), np.inf, error)
        operands = (a, b) if bias is None else (a, b, bias)
        if all(np.isfinite(o.value).all() and np.isfinite(o.error).all() for o in operands):
            return Bounded(value, error, a.dtype)
        return _with_specials(contract, a, b, hole, bias, Bounded(value, error, a.dtype))


def bilinear_integer(contract: Contract, a: Bounded, b: Bounded) -> Bounded:
    """contract(a, b) of integers: wraps, exact; undetermined where an operand that goes into it is."""
    with np.errstate(all="ignore"):
        value = contract(a.value, b.value)
        if not (a.undetermined.any() or b.undetermined.any()):
            return Bounded(value, np.zeros(value.shape), a.dtype)
        ones_a, ones_b = np.ones(a.value.shape), np.ones(b.value.shape)
        unknown = contract(1.0 * a.undetermined, ones_b) + contract(ones_a, 1.0 * b.undetermined) > 0
    return Bounded(value, np.where(unknown, np.inf, 0.0), a.dtype)


def _finite(x: Bounded) -> tuple[Array, Array]:
    """Value and error with zeros for what is not finite."""
    ok = np.isfinite(x.value) & np.isfinite(x.error)
    if ok.all():
        return x.value, x.error
    return np.where(ok, x.value, 0.0), np.where(ok, x.error, 0.0)


def _with_specials(
    contract: Contract, a: Bounded, b: Bounded, hole: Array | None, bias: Bounded | None, finite: Bounded
) -> Bounded:
    """The sum of the finite terms (`finite`) together with the terms that are NaN, infinite or undetermined."""
    hole = np.zeros(a.value.shape, bool) if hole is None else np.broadcast_to(hole, a.value.shape)
    ka, kb = _Kinds(a), _Kinds(b)
    there, everywhere = ~hole, np.ones(b.value.shape, bool)

    def meet(*pairs: tuple[Array, Array]) -> Array:
        found = sum(contract(x.astype(np.float64), y.astype(np.float64)) for x, y in pairs)
        return np.asarray(found) > 0

    nan = meet(
        (ka.nan, everywhere), (there, kb.nan), (ka.plus | ka.minus, kb.zero), (ka.zero & there, kb.plus | kb.minus)
    )
    loose = meet(
        (ka.unknown, everywhere),
        (np.ones(a.value.shape, bool), kb.unknown),
        (ka.plus | ka.minus, kb.either),
        (ka.either, kb.plus | kb.minus),
        (hole, ~np.isfinite(b.value)),
    )
    plus = meet((ka.plus, kb.above), (ka.minus, kb.below), (ka.above, kb.plus), (ka.below, kb.minus))
    minus = meet((ka.plus, kb.below), (ka.minus, kb.above), (ka.above, kb.minus), (ka.below, kb.plus))
    if bias is not None:
        kc = _Kinds(bias)
        nan, loose, plus, minus = nan | kc.nan, loose | kc.unknown, plus | kc.plus, minus | kc.minus
    nan |= plus & minus
    value = np.where(nan, np.nan, np.where(plus, np.inf, np.where(minus, -np.inf, finite.value)))
    error = np.where(plus | minus, np.where(np.isinf(finite.error), np.inf, 0.0), finite.error)
    return Bounded(value, np.where(nan, 0.0, np.where(loose, np.inf, error)), finite.dtype)


class _Kinds:
    """Masks of what the elements certainly are: nan, plus and minus (infinity), above and below (zero, infinity
    included), zero; either: a finite interval across zero; unknown: anything."""

    def __init__(self, x: Bounded) -> None:
        self.unknown = x.undetermined
        self.nan = np.isnan(x.value) & ~self.unknown
        self.plus = (x.value == np.inf) & ~self.unknown
        self.minus = (x.value == -np.inf) & ~self.unknown
        self.above = (x.value > x.error) & ~self.unknown
        self.below = (-x.value > x.error) & ~self.unknown
        self.zero = (x.value == 0) & (x.error == 0)
        self.either = ~(self.unknown | self.nan | self.above | self.below | self.zero)


def sum_of(x: Bounded, roundings: Array | int) -> Bounded:
    """The sum over the last dimension."""
    ones = Bounded(np.ones((x.value.shape[-1], 1)), np.zeros((x.value.shape[-1], 1)), x.dtype)
    return bilinear(lambda a, b: np.matmul(a, b)[..., 0], x, ones, roundings)
