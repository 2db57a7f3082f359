"""Bounds of sums, products and variances of many terms, in any order: what reductions and scans share."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import log, prod

import numpy as np

from generators.bounds.bounded import PRECISION, SMALLEST, U64, Bounded, gamma, holds_zero, monotone, multiply, rounded

Array = np.ndarray
Collect = Callable[[Array], Array]
"""Sums (or multiplies) float64 terms along the axes of a reduction or a scan."""


def scaled_product(x: Bounded, y: Bounded) -> Bounded:
    """x y, of which an overflow is left open: back ends may scale beforehand, multiply in a wider dtype or in another
    order, or add the product in a fused operation."""
    product = multiply(x, y)
    overflow = np.isfinite(x.value) & np.isfinite(y.value) & ~np.isfinite(product.value)
    return Bounded(product.value, np.where(overflow, np.inf, product.error), x.dtype)


def scaled_square(x: Bounded) -> Bounded:
    return scaled_product(x, x)


def summed(x: Bounded, collect: Collect, terms: int | Array, overflows: bool = True) -> Bounded:
    """Sums of `terms` elements each: terms - 1 additions in any order, none of them needed for a single term.

    NaN and infinities are certain in any order, unless finite terms may overflow to the opposite infinity.
    `overflows`: a finite sum beyond the dtype is infinity for certain (False where a back end may scale first).
    """
    p = PRECISION[x.dtype]
    with np.errstate(all="ignore"):
        finite, unknown = np.isfinite(x.value), x.undetermined
        plain = finite.all()
        terms_ = x.value if plain else np.where(finite, x.value, 0.0)
        error = np.where(finite & ~unknown, x.error, 0.0)
        value, propagated = collect(terms_), collect(error)
        magnitude = collect(np.abs(terms_)) + propagated
        steps = np.maximum(np.asarray(terms) - 1, 0)
        relative = gamma(steps, p.unit + U64)
        bound = propagated + relative * magnitude + np.where(magnitude > 0, steps * p.tiny, 0.0)
        reach = magnitude * (1 + relative) > p.largest
        if overflows:
            # the terms of the other sign cannot overflow, hence no partial sum is the opposite infinity
            opposite = (magnitude - np.abs(value)) * (1 + relative) < p.largest
            certain = reach & opposite & (np.abs(value) - bound > p.largest * (1 + p.unit))
        else:
            certain = np.zeros(np.shape(value), bool)
        value = np.where(certain, np.copysign(np.inf, value), value)
        bound = np.where(certain, 0.0, np.where(reach, np.inf, bound))
        unsure = collect(unknown.astype(np.float64)) > 0
        if not plain:
            above = collect((x.value == np.inf).astype(np.float64)) > 0
            below = collect((x.value == -np.inf).astype(np.float64)) > 0
            nan = collect((np.isnan(x.value) & ~unknown).astype(np.float64)) > 0
            both = above & below | nan
            bound = np.where((above | below) & ~reach, 0.0, bound)
            value = np.where(above, np.inf, np.where(below, -np.inf, value))
            value, bound = np.where(both, np.nan, value), np.where(both, 0.0, bound)
            unsure &= ~nan
        bound = np.where(unsure | np.isnan(bound), np.inf, bound)
    return Bounded(value, bound, x.dtype)


def multiplied(x: Bounded, collect: Collect, terms: int | Array) -> Bounded:
    """Products of `terms` factors each, in any order. With errors e the product moves by at most
    prod(|x| + e) - prod |x|. Partial products stay between prod min(1, |x|) and prod max(1, |x|): where these
    leave the dtype, the order decides. A lost partial product costs `tiny` times the factors still to come."""
    p = PRECISION[x.dtype]
    with np.errstate(all="ignore"):
        finite, unknown = np.isfinite(x.value), x.undetermined
        factors = np.where(finite, x.value, np.where(np.isnan(x.value), 1.0, np.copysign(1.0, x.value)))
        error = np.where(finite & ~unknown, x.error, 0.0)
        size = np.abs(factors)
        exact_zero = (size == 0) & (error == 0)
        value, high = collect(factors), collect(size + error)
        large = collect(np.maximum(size + error, 1.0))
        small = collect(np.minimum(np.where(exact_zero, 1.0, size - error), 1.0))
        loose = holds_zero(x)
        zero, loose_any = _some(collect, exact_zero), _some(collect, loose)
        small = np.where(loose_any, 0.0, small)  # two negative lower ends would make a positive product
        steps = np.maximum(np.asarray(terms) - 1, 0)
        relative = gamma(steps, p.unit + U64)
        bound = np.maximum(high - np.abs(value), 0.0) + relative * high
        bound += np.where(_some(collect, error > 0), 2 * U64 * np.asarray(terms) * high, 0.0)
        vanishing = small * (1 - relative) < p.tiny
        bound += np.where(vanishing, steps * p.tiny * large, 0.0)
        reach = large * (1 + relative) > p.largest
        certain = reach & (small >= 1) & ~zero & (np.abs(value) - bound > p.largest * (1 + p.unit))
        bound = np.where(zero, np.where(loose_any, SMALLEST, 0.0), bound)
        value = np.where(certain, np.copysign(np.inf, value), np.where(zero, np.copysign(0.0, value), value))
        bound = np.where(certain, 0.0, np.where(reach, np.inf, bound))
        nan = _some(collect, np.isnan(x.value) & ~unknown)
        infinite = _some(collect, np.isinf(x.value) & ~unknown)
        value = np.where(infinite, np.copysign(np.inf, value), value)
        bound = np.where(infinite, np.where(vanishing | loose_any, np.inf, 0.0), bound)
        undefined = nan | infinite & zero
        value, bound = np.where(undefined, np.nan, value), np.where(undefined, 0.0, bound)
        bound = np.where(_some(collect, unknown) & ~nan | np.isnan(bound), np.inf, bound)
    return Bounded(value, bound, x.dtype)


def variance_of(x: Bounded, axes: tuple[int, ...], keepdims: bool) -> Bounded:
    """The population variance V of the n elements along the axes (counted from the front).

    Operands: with d = x - mean(x), errors e move V by at most mean(2 |d| e + e^2), since deviations sum to 0.
    Two passes: the rounding error m of the mean adds m^2 (again since deviations sum to 0); each squared
    deviation has three roundings, the sum n - 1, the division 2.5 ulp.
    Welford (one pass; torch.compile's): sum of a_k b_k, a_k = x_k - m_{k-1}, b_k = x_k - m_k. If the running
    means are off by h_k, each term is off by |a_k h_k| + |b_k h_{k-1}| + |h_k h_{k-1}|; with
    sum a_k^2 <= 2nV and sum b_k^2 <= nV, Cauchy-Schwarz gives (1 + sqrt 2) sqrt(V) h + h^2,
    where h is the root mean square of the h_k. A running mean makes three roundings of a_k / k (difference,
    division or product with the rounded 1/k) and one of itself, at most A = max |x|, a step, hence
    h <= u (3 sqrt(2 V (1 + ln n)) + A (n + 1)^1.5 / sqrt(12 n))."""
    p = PRECISION[x.dtype]
    u = p.unit + U64
    n = prod(x.value.shape[axis] for axis in axes)
    collect = partial(np.sum, axis=axes, keepdims=keepdims)
    with np.errstate(all="ignore"):
        finite = np.isfinite(x.value) & ~x.undetermined
        values, error = np.where(finite, x.value, 0.0), np.where(finite, x.error, 0.0)
        if n > 1:
            d = values - np.mean(values, axis=axes, keepdims=True)
            d -= np.mean(d, axis=axes, keepdims=True)  # what the rounding of the mean left
            value = collect(d * d) / n
            propagated = collect(error * (2 * np.abs(d) + error)) / n
            size = np.abs(values) + error
            total = collect(size)
            v = value + propagated
            mean_off = gamma(n + 4, u) * total / n + n * p.tiny
            greatest = np.max(size, axis=axes, keepdims=keepdims)
            h = 3 * np.sqrt(2 * v * (1 + log(n))) + greatest * (n + 1) ** 1.5 / (12 * n) ** 0.5
            h = u * h + n * p.tiny
            off = mean_off**2 + (1 + 2**0.5) * np.sqrt(v) * h + h * h
            bound = propagated + gamma(n + 8, u) * (v + off) + off + (n + 2) * p.tiny
            bound = np.where(total == 0, 0.0, bound)
            reach = (n * (v + bound) > p.largest) | (2 * total > p.largest)
            bound = np.where(reach | np.isnan(bound), np.inf, bound)
        else:
            value = collect(values) * 0.0 if n else collect(values) / 0.0
            bound = np.zeros(np.shape(value))
        unknown = collect(x.undetermined.astype(np.float64)) > 0
        nan = collect((np.isnan(x.value) & ~x.undetermined).astype(np.float64)) > 0
        special = collect((~np.isfinite(x.value)).astype(np.float64)) > 0
        value = np.where(special, np.nan, value)
        bound = np.where(nan, 0.0, np.where(unknown, np.inf, np.where(special, 0.0, bound)))
    return Bounded(value, bound, x.dtype)


def _some(collect: Collect, mask: Array) -> Array:
    """Does the mask hold for any of the factors?"""
    return collect(np.where(mask, 0.0, 1.0)) == 0


def average(total: Bounded, count: Array | int) -> Bounded:
    """The sum by the count: a division of 2.5 ulp, which also covers the product with a rounded reciprocal, and
    the quotient of the averages of the padded input and of padded ones, all three correctly rounded."""
    with np.errstate(all="ignore"):
        return rounded(total.value / count, total.error / count, total.dtype, 2.5)


def root(x: Bounded) -> Bounded:
    """The square root of what is never negative in a correct evaluation; 3 ulp."""
    return monotone(lambda v: np.sqrt(np.maximum(v, 0.0)), x, 3)
