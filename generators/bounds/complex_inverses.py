"""Bounds on inverse functions of complex numbers, and on functions that are small where their parts cancel: relative to
the modulus of the result, by formulas of the parts that do not cancel, nor overflow where the result does not.

Functions of one part are taken to be off by what section 7.4 of OpenCL C 3.0 allows: hypot, sine, cosine, arc sine and
arc cosine by 4 ulp, arc tangent by 5, atan2 by 6, exponentials and logarithms by 3, log1p by 2, quotients by 2.5."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded
from generators.bounds.complex_values import EXPONENTIAL, LOGARITHM, QUOTIENT, flushed, reach, rounded

Array = np.ndarray

ARC_SINE = 48.0
"""Hull, Fairgrieve, Tang, ACM TOMS 23, 1997: A = (|z + 1| + |z - 1|) / 2 is off by 8 u for each modulus and two for the
sums, x / A by 5 more, its arc sine up to 0.64 by 1.2 times that and 8: 26 u; A - 1 by 25 u (quotients of squares whose
terms are positive), a root of it, a sum and a logarithm of 2 ulp: 40 u, which is what the arc tangent beyond 0.64 is
off by, too."""
ARC_TANGENT = 40.0
"""log1p(4 x / ((1 - x)^2 + y^2)) / 4: 10 u of the quotient, 4 for log1p; atan2(2 y, (1 - x) (1 + x) - y^2) / 2, whose
second argument is off by 4 u of what the first one and it make together, and atan2 by 12 u: 14 + 16, and what is left
of the first where z is small."""
LOG1P = 70.0
"""Of |z| < 1/2: t = x (2 + x) + y^2 is off by 3 u of its terms, 2.5 |z| at most, and 1 + t is 1/4 at least: 15 u of
|z|; log1p 4 u, atan2 and the sum before it 26 u; |log(1 + z)| is 0.66 |z| at least."""
EXPM1 = 104.0
"""expm1(x) cos y - 2 sin^2(y / 2), e^x sin y: 15 u of the first term, 18 u of the second, 15 u of the other part. The
first is at most |e^z - 1|, the second four times that: |e^z - 1|^2 = expm1(x)^2 + 4 e^x sin^2(y / 2)."""
LOST = 4.0
"""In smallest normal numbers: parts on the way that may be flushed."""


def _slots(x: Bounded) -> tuple[Array, Array]:
    """How far the operand may be off, and where nothing is said of any function: it is not finite, or near the end of
    the range."""
    return flushed(x), ~np.isfinite(x.value) | ~(reach(x) <= PRECISION[x.dtype].largest / 16)


def _edge(x: Bounded, along: Array, across: Array, beyond: Array) -> Array:
    """Where an operand may lie on either side of a cut, `across` from it, or upon it: what the sign of a zero says
    there is lost where a real number is added."""
    return (np.abs(across) <= x.error) & (along + x.error >= beyond)


def _inverse(
    f: Callable[[Array], Array],
    x: Bounded,
    factor: float,
    slope: Callable[[Array, Array], Array],
    cut: Array,
    turn: complex,
) -> Bounded:
    """f, singular at the two points 1 / turn and -1 / turn. slope: of the distances from these, each less the error."""
    off, loose = _slots(x)
    with np.errstate(all="ignore"):
        z = np.where(loose, 0.0, x.value)
        near = [np.abs(z * turn - one) for one in (1.0, -1.0)]
        least = [np.maximum(d - off, 0.0) for d in near]
        moved = np.where(off > 0, off * slope(*least), 0.0)
        lost = (off > 0) & ((near[0] <= 2 * off) | (near[1] <= 2 * off))
        return rounded(f(z), moved, x.dtype, factor, loose | lost | cut | ~np.isfinite(f(z)), LOST)


def _root(a: Array, b: Array) -> Array:
    return 1 / np.sqrt(a * b)


def _product(a: Array, b: Array) -> Array:
    return 1 / (a * b)


def _parts(x: Bounded) -> tuple[Array, Array]:
    return np.real(x.value), np.imag(x.value)


def arc_sine(x: Bounded) -> Bounded:
    real, imag = _parts(x)
    return _inverse(np.arcsin, x, ARC_SINE, _root, _edge(x, np.abs(real), imag, np.array(1.0)), 1.0)


def arc_cosine(x: Bounded) -> Bounded:
    real, imag = _parts(x)
    return _inverse(np.arccos, x, ARC_SINE, _root, _edge(x, np.abs(real), imag, np.array(1.0)), 1.0)


def arc_hyperbolic_sine(x: Bounded) -> Bounded:
    real, imag = _parts(x)
    return _inverse(np.arcsinh, x, ARC_SINE, _root, _edge(x, np.abs(imag), real, np.array(1.0)), -1j)


def arc_hyperbolic_cosine(x: Bounded) -> Bounded:
    """The cut goes from 1 to minus infinity."""
    real, imag = _parts(x)
    return _inverse(np.arccosh, x, ARC_SINE, _root, _edge(x, -real, imag, np.array(-1.0)), 1.0)


def arc_tangent(x: Bounded) -> Bounded:
    real, imag = _parts(x)
    return _inverse(np.arctan, x, ARC_TANGENT, _product, _edge(x, np.abs(imag), real, np.array(1.0)), -1j)


def arc_hyperbolic_tangent(x: Bounded) -> Bounded:
    real, imag = _parts(x)
    return _inverse(np.arctanh, x, ARC_TANGENT, _product, _edge(x, np.abs(real), imag, np.array(1.0)), 1.0)


def logarithm_of_more(x: Bounded) -> Bounded:
    """log(1 + z): beyond 1/2 as a logarithm, of a sum that is off by one rounding of its real part."""
    p, (real, imag) = PRECISION[x.dtype], _parts(x)
    off, loose = _slots(x)
    with np.errstate(all="ignore"):
        z = np.where(loose, 0.0, x.value)
        a, b = np.real(z), np.imag(z)
        small, size = np.abs(z) < 0.5, np.hypot(1 + a, b)
        length = np.where(small, np.log1p(a * (2 + a) + b * b) / 2, np.log(size))
        value = np.stack([length, np.arctan2(b, 1 + a)], axis=-1).view(np.complex128)[..., 0]
        modulus, reals, angles = LOGARITHM
        own = 1 + modulus + reals * np.abs(length) + angles * np.abs(np.imag(value))
        own = np.where(small, LOG1P * np.abs(value), own) * (p.unit + U64)
        moved = -np.log1p(-off / size)
        lost = ~(size - off >= 8 * p.tiny) | _edge(x, -real, imag, np.array(1.0))
        return rounded(value, moved + own, x.dtype, 1.0, loose | lost, LOST)


def exponential_less_one(x: Bounded) -> Bounded:
    """|e^(z + d) - e^z| <= e^x (e^|d| - 1)."""
    p = PRECISION[x.dtype]
    off, loose = _slots(x)
    with np.errstate(all="ignore"):
        z = np.where(loose, 0.0, x.value)
        a, b = np.real(z), np.imag(z)
        size = np.exp(a)
        half = np.sin(b / 2)
        value = np.stack([np.expm1(a) * np.cos(b) - 2 * half * half, size * np.sin(b)], axis=-1).view(np.complex128)[
            ..., 0
        ]
        loose = loose | ~(size * np.exp(off) <= p.largest / 2)
        return rounded(np.where(loose, 0.0, value), size * np.expm1(off), x.dtype, EXPM1, loose, LOST)


def logistic(x: Bounded) -> Bounded:
    """1 / (1 + e^-z), or e^z / (1 + e^z): with w the exponential that is at most 1, the sum is off by 16 u and by what
    w is off, of 1 + |w|, which counts where the sum is near 0, a pole. Where the square of the greater exponential
    leaves the range, a quotient in the plain way is 0, off by the whole; e^-z by itself must not make it a NaN."""
    p = PRECISION[x.dtype]
    off, loose = _slots(x)
    with np.errstate(all="ignore"):
        z = np.where(loose, 0.0, x.value)
        left = np.real(z) < 0
        w = np.exp(np.where(left, z, -z))
        value = np.where(left, w, 1.0) / (1 + w)
        share = (1 + np.abs(w)) / np.abs(1 + w) * ((EXPONENTIAL + 1) * (p.unit + U64) + np.expm1(off))
        moved = np.abs(value) * (share / (1 - share) + np.where(left, np.expm1(off), 0.0))
        vanishing = left & (2 * np.abs(np.real(z)) + 4 > np.log(p.largest))
        moved = moved + np.where(vanishing, np.abs(value) + LOST * p.tiny, 0.0)
        return rounded(value, moved, x.dtype, EXPONENTIAL + QUOTIENT, loose | ~(share <= 0.25), LOST)
