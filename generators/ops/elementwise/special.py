"""Special functions: the error function and its kin, gamma functions, a Bessel function."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import zetac

from generators.bounds.bounded import PRECISION, U64, Bounded, monotone, rounded
from generators.ops.elementwise.records import NO_ONNX, NO_RELAX, numpy_unary, unary
from generators.ops.elementwise.references import ulps
from generators.ops.slots import floating, same_as
from generators.ops.spec import Call, OpSpec, Reference, Spelling, unsupported

Array = np.ndarray
Function = Callable[[Array], Array]

# ---- in float64 ---------------------------------------------------------------------------------------


def _lgamma_of(x: float) -> float:
    if math.isnan(x):
        return math.nan
    if x == math.inf:
        return math.inf
    if abs(x - 1.5) <= 0.75:  # its roots are 1 and 2: math.lgamma is off by an ulp of 1 there
        z = x - 1 if x < 1.5 else x - 2
        series = z * (1 - np.euler_gamma) + z * z * math.fsum(c * (-z) ** k for k, c in enumerate(_ZETAS))
        return series - math.log1p(z) if x < 1.5 else series
    return math.lgamma(x) if 0 < x < 1e305 else math.inf


_ZETAS = tuple(float(zetac(k) / k) for k in range(2, 42))
"""Coefficients of log(gamma(1 + z)) + log(1 + z) - (1 - gamma) z, at most 2**-k / k (Abramowitz and Stegun, 6.1.33)."""


lgamma_of: Callable[[Array], Array] = np.vectorize(_lgamma_of, otypes=[np.float64])
# np.vectorize rather than np.frompyfunc: it takes size-0 arrays and gives float64
erf_of: Callable[[Array], Array] = np.vectorize(math.erf, otypes=[np.float64])


def digamma_of(x: Array) -> Array:
    """Of positive numbers: by psi(x) = psi(x + 1) - 1 / x up to 10, then the asymptotic series (Abramowitz and Stegun,
    6.3.5 and 6.3.18)."""
    with np.errstate(all="ignore"):
        result, y = np.zeros(x.shape), np.array(x, dtype=np.float64)
        for _ in range(10):
            small = y < 10
            result = np.where(small, result - 1 / y, result)
            y = np.where(small, y + 1, y)
        r = 1 / (y * y)
        series = r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r * (1 / 240 - r * (1 / 132 - r * 691 / 32760)))))
        return result + np.log(y) - 0.5 / y - series


def erfinv_of(y: Array) -> Array:
    """Winitzki's approximation, then Newton's method on erf, or on the logarithm of erfc in the tail."""
    with np.errstate(all="ignore"):
        a = np.abs(y)
        tail = 1 - a
        logarithm = np.log1p(-a * a)
        half = 2 / (math.pi * 0.147) + logarithm / 2
        x = np.sqrt(np.sqrt(half * half - logarithm / 0.147) - half)
        for _ in range(6):
            density = 2 / math.sqrt(math.pi) * np.exp(-x * x)
            rest = erfc_of(np.where(np.isfinite(x), x, 0.0))
            near = x - (erf_of(np.where(np.isfinite(x), x, 0.0)) - a) / density
            far = x + (np.log(rest) - np.log(tail)) * rest / density
            x = np.where(a < 0.5, near, far)
        x = np.where(a < 1e-150, a * math.sqrt(math.pi) / 2, x)
        x = np.where(a == 1, np.inf, np.where(a > 1, np.nan, x))
        return np.where(np.isnan(y), np.nan, np.copysign(x, y))


# ---- references ---------------------------------------------------------------------------------------


def _erfinv(args: Sequence[Bounded], call: Call) -> Bounded:
    """8 ulp: Giles (GPU Computing Gems, Jade Edition, 2011, chapter 10) gives 4e-7 for single precision, which XLA and
    others use."""
    return monotone(erfinv_of, args[0], 8)


def _positive(
    f: Callable[[Array], Array], slope: Callable[[Array, Array], Array], scale: Callable[[Array], Array]
) -> Reference:
    """Of numbers of at least 2^-20; elsewhere undetermined. Formulas (Stirling's, Lanczos') add terms of magnitude
    `scale`, each off by 8 roundings."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x, unit = args[0], PRECISION[args[0].dtype].unit + U64
        with np.errstate(all="ignore"):
            low = x.value - x.error
            known = (low >= 2.0**-20) & (x.value < 1e30)
            inside = np.where(known, x.value, 1.0)
            error = np.where(x.error > 0, x.error * slope(inside, np.where(known, low, 1.0)), 0.0)
            error += 16 * unit * scale(inside)
        nan = np.isnan(x.value) & (x.error == 0)
        value = np.where(nan, np.nan, f(inside))
        return rounded(value, np.where(nan, 0.0, np.where(known, error, np.inf)), x.dtype, 4)

    return reference


def _steepest(x: Array, low: Array) -> Array:
    """psi rises: its greatest magnitude is at one of the ends, and beyond x it is below log."""
    return np.maximum(np.abs(digamma_of(low)), np.abs(np.log(2 * x + 1)) + 1)


def _falling(x: Array, low: Array) -> Array:
    """psi' falls, and is below 1 / x + 1 / x^2."""
    return 1 / low + 1 / low**2


def _i0(args: Sequence[Bounded], call: Call) -> Bounded:
    """Even, rising from 0. 8 ulp: Cephes (Moshier 1984) gives 4e-7 in single precision, 5.8e-16 in double, which is
    that of numpy, too, hence 4 more. Scaled by exp |x|, which is off by 3 ulp."""
    x = args[0]
    size = Bounded(np.abs(x.value), x.error, x.dtype)
    with np.errstate(all="ignore"):
        return monotone(lambda v: np.where(np.isinf(v), np.inf, np.i0(np.maximum(v, 0.0))), size, 16)


# ---- records ------------------------------------------------------------------------------------------


def _special(name: str, reference: Reference, torch: str, tensorflow: Spelling, jax: str) -> OpSpec:
    return OpSpec(
        name, "special", (floating(),), same_as(0), reference, torch=torch, tensorflow=tensorflow, jax=jax,
        relax=NO_RELAX, onnx=NO_ONNX,
    )  # fmt: skip


erfc_of: Function = np.vectorize(math.erfc, otypes=[np.float64])

_NO_ERFC = unsupported("it has erf only, and 1 - erf(x) loses the tail")

OPERATORS: tuple[OpSpec, ...] = (
    unary("erf", ulps(erf_of, 16), "Erf", jax="jax.lax.erf"),
    numpy_unary(
        "erfc", lambda args, call: monotone(erfc_of, args[0], 16),
        tensorflow="tf.math.erfc({0})", jax="jax.lax.erfc({0})", relax=_NO_ERFC, onnx=_NO_ERFC,
    ),
    _special("erfinv", _erfinv, "torch.erfinv({0})", "tf.math.erfinv({0})", "jax.lax.erf_inv({0})"),
    _special(
        "lgamma", _positive(lgamma_of, _steepest, lambda x: (1 + x) * np.abs(np.log(x + 7)) + np.abs(np.log(x))),
        "torch.lgamma({0})", "tf.math.lgamma({0})", "jax.lax.lgamma({0})",
    ),
    _special(
        "digamma", _positive(digamma_of, _falling, lambda x: 1 / x + np.abs(np.log(x + 7))),
        "torch.digamma({0})", "tf.math.digamma({0})", "jax.lax.digamma({0})",
    ),
    _special("bessel_i0", _i0, "torch.special.i0({0})", "tf.math.bessel_i0({0})", "jax.scipy.special.i0({0})"),
)  # fmt: skip
