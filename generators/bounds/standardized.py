"""The bounds that normalisation layers share: standardisation, then scale and bias."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, gamma, rounded

Array = np.ndarray


@dataclass(frozen=True)
class Standard:
    """x after standardisation, before scale and bias. value, error: as in Bounded, without the last rounding;
    size: the magnitude of the terms whose difference it is (|x| + |mean|, each by the inverse deviation);
    nan: NaN for certain; top: at most the inverse deviation."""

    value: Array
    error: Array
    size: Array
    nan: Array
    top: Array
    dtype: str


def scaled(z: Standard, scale: Bounded, bias: Bounded | None) -> Bounded:
    """z * scale + bias, or the form that frameworks choose to save work: x * a + (bias - mean * a), where a is
    scale by the deviation. That form has four roundings of the size of its terms.

    An infinite scale is undetermined, since the second form is inf - inf. An infinite bias is certain."""
    p = PRECISION[z.dtype]
    unit = p.unit + U64
    offset = Bounded(np.zeros(()), np.zeros(()), z.dtype) if bias is None else bias
    with np.errstate(all="ignore"):
        reach = np.abs(scale.value) + scale.error
        value = z.value * scale.value + offset.value
        error = np.abs(z.value) * scale.error + z.error * reach + offset.error
        terms = z.size * reach + np.where(np.isfinite(offset.value), np.abs(offset.value) + offset.error, 0.0)
        terms = np.broadcast_to(terms, value.shape)
        # flushed: the result, the standardised value, scale by the inverse deviation (times x, that is size / top)
        flushed = 4 * p.tiny * (1 + reach + np.where(z.size > 0, z.size / z.top, 0.0))
        error = error + 4 * unit * terms + np.where(terms + z.size * (reach > 0) > 0, flushed, 0.0)
        nan = z.nan | (np.isnan(scale.value) & ~scale.undetermined) | (np.isnan(offset.value) & ~offset.undetermined)
        loose = scale.undetermined | offset.undetermined | np.isinf(scale.value) | ~np.isfinite(z.error)
        loose = loose | (np.maximum(terms, z.size) > p.largest / 2) | (reach > p.largest / 4)
        loose = loose | (z.top * reach > p.largest / 2)  # scale by the inverse deviation, taken first
        # an infinity by a scale of known sign (and not so small that scale by deviation may be flushed)
        known = (np.abs(scale.value) - scale.error > 4 * p.tiny) | (scale.value == 0) & (scale.error == 0)
        error = np.where(np.isinf(z.value), np.where(known, 0.0, np.inf), error)
        error = np.where(np.isinf(offset.value) & np.isfinite(z.value), 0.0, error)
        error = np.where(nan, 0.0, np.where(loose | np.isnan(error), np.inf, error))
        return rounded(np.where(nan, np.nan, value), error, z.dtype, 0.5)


def inverse_root(low: Array, high: Array, middle: Array, unit: float) -> tuple[Array, Array, Array]:
    """1 / sqrt of a variance plus epsilon that is within [low, high]: its value, error, and upper end. Square
    root of 3 ulp and reciprocal of 2.5 (OpenCL), or rsqrt of 2."""
    budget = 11 * unit
    value = 1 / np.sqrt(middle)
    top, bottom = (1 + budget) / np.sqrt(low), (1 - budget) / np.sqrt(high)
    return value, np.maximum(top - value, value - bottom), top


def standardized(x: Bounded, axes: tuple[int, ...], epsilon: float) -> Standard:
    """(x - mean) / sqrt(variance + epsilon) over the axes.

    The mean of n carries rho = gamma_{n+5} mean|x| (sum, and a division of 2.5 ulp). A two-pass variance,
    mean((x - mean)^2), sees rho only squared (the differences sum to zero; Higham, problem 1.10); Welford's
    algorithm, which PyTorch documents, has a relative error of n u sqrt(1 + mean^2 / variance) (Chan, Golub and
    LeVeque 1983), of the size of gamma_n deviation rms(x) at most. mean(x^2) - mean^2 is not allowed for: it
    loses all digits where the mean is large. Errors e of x move the deviation by rms(e) at most (the norm's
    triangle inequality). One non-finite element makes all of them NaN."""
    p = PRECISION[x.dtype]
    unit = p.unit + U64
    n = prod(x.value.shape[a] for a in axes)
    finite = np.isfinite(x.value) & ~x.undetermined
    loose = np.any(x.undetermined, axes, keepdims=True)
    nan = np.any(~finite & ~x.undetermined, axes, keepdims=True)
    v, e = np.where(finite, x.value, 0.0), np.where(finite, x.error, 0.0)

    def mean(a: Array) -> Array:
        return np.sum(a, axes, keepdims=True) / n

    with np.errstate(all="ignore"):
        center = mean(v)
        d = v - center
        variance = mean(d * d)
        deviation, moved = np.sqrt(variance), np.sqrt(mean(e * e))
        absolute = mean(np.abs(v) + e)
        rho = gamma(n + 5, unit) * absolute + 2 * p.tiny
        rms = np.sqrt(mean((np.abs(v) + e) ** 2))
        most, least = deviation + moved, np.maximum(deviation - moved, 0.0)
        steps = gamma(n + 8, unit) * most * np.maximum(rms, most)
        high = (most**2 + rho**2 + steps + 2 * p.tiny + epsilon) * (1 + unit)
        low = (np.maximum(least**2 - steps - 2 * p.tiny, 0.0) + epsilon) * (1 - unit)
        root, root_error, top = inverse_root(low, high, variance + epsilon, unit)
        off = e + mean(e) + rho
        error = off * top + np.abs(d) * root_error
        # the squares of x itself, which some frameworks compute, overflow sooner than those of x - mean
        overflow = (n * (rms**2 + rho**2) > p.largest / 2) | (n * absolute > p.largest / 2)
        error = np.where(loose | overflow | np.isnan(error), np.inf, error)
        size = (np.abs(v) + e + np.abs(center) + mean(e)) * top
        nan = np.broadcast_to(nan, v.shape)
        return Standard(d * root, error, size, nan, np.broadcast_to(top, v.shape), x.dtype)
