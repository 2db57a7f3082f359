"""Complex values with bounds on the modulus of their error.

A correct evaluation works on the parts, in their precision, with or without fused multiply-add. It may compute products
and quotients in the plain way, so that nothing is said of them where the square of a modulus leaves the range of the
dtype, nor where a part is infinite or NaN: annex G of C11 leaves products and quotients of those open, and frameworks
differ. A modulus is that of hypot, so that logarithms, roots and signs are those of all normal numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, gamma
from generators.graph import COMPONENT

Array = np.ndarray

PRODUCT = 5**0.5
"""In units of roundoff: Brent, Percival, Zimmermann, Math. Comp. 76, 2007; 2 with fused multiply-add."""
SQUARE = 3.0
"""(a - b)(a + b) + 2ab i: three roundings of one part, one of the other."""
QUOTIENT = 10.0
"""The plain formula: sqrt 5 for the numerator, 2 for c^2 + d^2, 1: 3 + sqrt 5. Smith's, |d| <= |c|, r = d / c: the
parts of a + b r, b - a r are off by at most gamma_3 of |a| + |b r|, |b| + |a r|, whose norm is at most sqrt 2 times
that of the numerator; gamma_3 for c + d r; 2 for a product with its reciprocal: 3 sqrt 2 + 5 = 9.25."""
EXPONENTIAL = 15.0
"""exp of 3 ulp, sine and cosine of 4 ulp (OpenCL C 3.0, section 7.4), one product: 2 (3 + 4) + 1."""
LOGARITHM = (8.0, 6.0, 12.0)
"""The modulus is off by 4 ulp (hypot), so its logarithm by 8 u; log of 3 ulp, atan2 of 6 ulp (the same source)."""
ROOT = 40.0
"""sqrt((|x| + |re x|) / 2), then im x / 2 of it: 16 u. By polar form: half of 8 u for the modulus and 6 u for its root
(3 ulp); an angle of at most pi/2, off by 12 u of it, moves the point by 19 u; 8 u for sine and cosine, 1 for the
product: 38."""


def finite_size(value: Array) -> Array:
    """The modulus, infinite and NaN parts taken for 0."""
    return np.hypot(*(np.where(np.isfinite(part), part, 0.0) for part in (np.real(value), np.imag(value))))


def reach(x: Bounded) -> Array:
    """The greatest modulus that an element may have: NaN or infinite where a part of it is."""
    with np.errstate(all="ignore"):
        return np.abs(x.value) + x.error


def rounded(
    value: Array, error: Array, dtype: str, factor: float = 1.0, loose: Array | bool = False, grains: float = 2.0
) -> Bounded:
    """A complex result whose operands' errors have been propagated into `error`, off by `factor` roundings relative to
    its modulus beside, by those of the complex128 reference, and by so many smallest normal numbers (`grains`) where
    parts may be flushed. Undetermined where `loose`, and where a part may overflow. An exact zero stays exact."""
    p = PRECISION[dtype]
    value = np.asarray(value, np.complex128)
    with np.errstate(all="ignore"):
        error = np.where(np.isnan(error), np.inf, error)
        size = finite_size(value) + error
        slack = factor * (p.unit + U64) * (1 + 2.0**-10) * size
        total = error + np.where(size > 0, slack + grains * p.tiny, 0.0)
        over = [np.isfinite(part) & (np.abs(part) + total > p.largest) for part in (np.real(value), np.imag(value))]
        total = np.where(loose | over[0] | over[1], np.inf, total)
    return Bounded(value, total, dtype)


def add(x: Bounded, y: Bounded, sign: float = 1.0) -> Bounded:
    """x + sign * y, part by part: what is infinite or NaN is so in each part for itself."""
    with np.errstate(all="ignore"):
        value = _joined(np.real(x.value) + sign * np.real(y.value), np.imag(x.value) + sign * np.imag(y.value))
        return rounded(value, x.error + y.error, x.dtype, loose=_blurred(x) | _blurred(y))


def multiply(x: Bounded, y: Bounded, factor: float = PRODUCT) -> Bounded:
    """x * y. Each of the four real products may be flushed or overflow by itself."""
    p = PRECISION[x.dtype]
    with np.errstate(all="ignore"):
        size_x, size_y = np.abs(x.value), np.abs(y.value)
        error = size_x * y.error + x.error * (size_y + y.error)
        error = error + np.where((reach(x) > 0) & (reach(y) > 0), 4 * p.tiny, 0.0)
        loose = ~(reach(x) * reach(y) <= p.largest / 2)
        return rounded(x.value * y.value, error, x.dtype, factor, loose)


def divide(x: Bounded, y: Bounded) -> Bounded:
    """x / y, where |y|^2 and |x| |y| are well inside the range."""
    p = PRECISION[x.dtype]
    with np.errstate(all="ignore"):
        value = x.value / y.value
        least = np.maximum(np.abs(y.value) - y.error, 0.0)
        error = (x.error + np.abs(value) * y.error) / least
        error = error + np.where(reach(x) > 0, p.tiny + 8 * p.tiny / least**2, 0.0)
        loose = ~(least**2 >= p.tiny / p.unit**2) | ~(reach(y) ** 2 <= p.largest / 4)
        loose = loose | ~(reach(x) * reach(y) <= p.largest / 4)
        return rounded(value, error, x.dtype, QUOTIENT, loose)


def exponential(x: Bounded) -> Bounded:
    """|exp(x + d) - exp(x)| <= |exp(x)| (e^|d| - 1); exp of the real part must not overflow by itself."""
    p = PRECISION[x.dtype]
    with np.errstate(all="ignore"):
        size = np.exp(np.real(x.value))
        loose = ~(size * np.exp(x.error) <= p.largest / 2) | ~np.isfinite(np.imag(x.value))
        return rounded(np.exp(x.value), size * np.expm1(x.error) + p.tiny, x.dtype, EXPONENTIAL, loose, 4.0)


def logarithm(x: Bounded) -> Bounded:
    """log(x + d) - log(x) is at most -log(1 - |d| / |x|) away, but across the cut of negative numbers."""
    p = PRECISION[x.dtype]
    with np.errstate(all="ignore"):
        value = np.log(x.value)
        modulus, reals, angles = LOGARITHM
        own = modulus + reals * np.abs(np.real(value)) + angles * np.abs(np.imag(value))
        error = -np.log1p(-flushed(x) / np.abs(x.value)) + (p.unit + U64) * own
        return rounded(value, error, x.dtype, 1.0, beyond(x) | crosses_cut(x))


def root(x: Bounded) -> Bounded:
    """sqrt(x (1 + d)) is at most |d| |sqrt(x)| away for |d| <= 1, but across the cut of negative numbers."""
    with np.errstate(all="ignore"):
        value = np.sqrt(x.value)
        zero = (x.value == 0) & (x.error == 0)
        error = np.where(zero, 0.0, np.abs(value) * (flushed(x) / np.abs(x.value)))
        return rounded(value, error, x.dtype, ROOT, ~zero & (beyond(x) | crosses_cut(x)))


def crosses_cut(x: Bounded) -> Array:
    """Where the argument may be pi or -pi, or anything: the sign of the imaginary part is not known."""
    side = (np.real(x.value) - x.error <= 0) & (np.abs(np.imag(x.value)) <= x.error)
    return side & ((x.error > 0) | (not x.zero_sign))


def parts(x: Bounded) -> tuple[Bounded, Bounded]:
    """The real and the imaginary part, each off by no more than the number."""
    real, imag = np.real(x.value).copy(), np.imag(x.value).copy()
    return tuple(Bounded(part, x.error, COMPONENT[x.dtype], x.zero_sign) for part in (real, imag))  # type: ignore[return-value]


def joined(real: Bounded, imag: Bounded, dtype: str) -> Bounded:
    """A number of two parts."""
    return Bounded(_joined(real.value, imag.value), np.hypot(real.error, imag.error), dtype)


def added_up(x: Bounded, axes: tuple[int, ...], keepdims: bool, count: int) -> Bounded:
    """The sum in any order: gamma(n - 1) of the sum of moduli, since the parts are sums by themselves."""
    p = PRECISION[x.dtype]

    def over(array: Array) -> Array:
        return np.sum(array, axis=axes, keepdims=keepdims)

    with np.errstate(all="ignore"):
        size = over(reach(x))
        steps = gamma(max(count - 1, 0), p.unit) + gamma(count, U64)
        error = over(x.error) + steps * size + np.where(size > 0, count * 2 * p.tiny, 0.0)
        loose = ~(size <= p.largest / 2)
        return rounded(over(np.where(np.isfinite(x.value), x.value, 0.0)), error, x.dtype, 0.0, loose)


def contracted(f: Callable[[Array, Array], Array], x: Bounded, y: Bounded, terms: int) -> Bounded:
    """f, sums of `terms` products of elements of x and y: each part is a sum of 2 * terms real products in any order,
    so that it is off by gamma_2k of sum |x| |y| (Cauchy and Schwarz), the number by sqrt 2 of that."""
    p = PRECISION[x.dtype]
    with np.errstate(all="ignore"):
        size = f(reach(x), reach(y))
        propagated = f(np.abs(x.value), y.error) + f(x.error, reach(y))
        steps = 2**0.5 * (gamma(2 * terms, p.unit) + gamma(2 * terms, U64))
        error = propagated + steps * size + np.where(size > 0, 8 * terms * p.tiny, 0.0)
        finite = [np.where(np.isfinite(array), array, 0.0) for array in (x.value, y.value)]
        return rounded(f(*finite), error, x.dtype, 0.0, ~(size <= p.largest / 2))


def _joined(real: Array, imag: Array) -> Array:
    """real + 1j * imag would make NaN of infinities."""
    pairs = np.stack(np.broadcast_arrays(np.asarray(real, np.float64), imag), axis=-1)
    return pairs.view(np.complex128)[..., 0]


def _blurred(x: Bounded) -> Array:
    """A part that is not finite beside one that is off: the bound says nothing of which it is."""
    return ~np.isfinite(x.value) & (x.error > 0)


def flushed(x: Bounded) -> Array:
    """How far a number may be off with subnormal parts read as zero: those that are neither are exact."""
    tiny = PRECISION[x.dtype].tiny
    parts = np.real(x.value), np.imag(x.value)
    lost = [np.where((part != 0) & (np.abs(part) < 4 * tiny), tiny, 0.0) for part in parts]
    return x.error + np.hypot(*lost)


def beyond(x: Bounded) -> Array:
    """Where a modulus, or a sum of it and a part, may leave the range of normal numbers, or be NaN."""
    p = PRECISION[x.dtype]
    return ~(np.abs(x.value) - x.error >= 8 * p.tiny) | ~(reach(x) <= p.largest / 4)
