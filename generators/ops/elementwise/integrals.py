"""Integrals that have no closed form: Dawson's and Fresnel's, the exponential integral, Spence's function."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import special

from generators.bounds.bounded import PRECISION, Bounded, monotone, rounded, smooth
from generators.ops.elementwise.incomplete import mostly
from generators.ops.elementwise.records import NO_ONNX, NO_RELAX
from generators.ops.elementwise.references import certainly_nan, spread_out, unit_of
from generators.ops.slots import broadcast, broadcastable, floating, one_of, same_as
from generators.ops.spec import AttrRule, Call, OpSpec, Reference, Spelling, unsupported

Array = np.ndarray
ULPS = 32.0
"""Of Cephes' rational functions (Moshier 1989: 7e-16 to 2e-15 in double), for a kernel and for scipy's value."""


def _dawson(x: Array) -> Array:
    """scipy is off by up to 60 units of roundoff where |x| < 0.2; near 0 the series x sum((-2 x^2)^n / (2 n + 1)!!)."""
    near, total = np.where(np.abs(x) < 0.5, x, 0.0), np.ones(np.shape(x))
    for n in range(15, 0, -1):
        total = 1 - 2 * near * near / (2 * n + 1) * total
    return np.where(np.abs(x) < 0.5, near * total, special.dawsn(x))


def _dawsn(args: Sequence[Bounded], call: Call) -> Bounded:
    """D' = 1 - 2 x D, |D''| < 2. 1 / (2 x) far out: infinities are left open."""
    x = args[0]
    with np.errstate(all="ignore"):
        result = smooth(_dawson, lambda v: 1 - 2 * v * _dawson(v), 2.0, x, ULPS)
    return replace(result, error=np.where(np.isinf(x.value), np.inf, result.error))


def _exponential_integral(x: Array) -> Array:
    """scipy is off by 230 units of roundoff where x is a little above 40, whence it takes 20 terms of exp(x) / x
    sum(k! / x^k) (Abramowitz and Stegun 5.1.51), of which the 40th is the least there."""
    far, total = np.clip(x, 40.0, 1e300), np.ones(np.shape(x))
    for k in range(39, 0, -1):
        total = 1 + k / far * total
    return np.where(x > 40, np.exp(far) / far * total, special.expi(x))


def _expint(args: Sequence[Bounded], call: Call) -> Bounded:
    """Ei, rising for x > 0 from -inf; its zero at 0.3725 is a difference of terms of the size of the logarithm. exp(x)
    has 3 ulp, and leaves the range before Ei(x) does; of infinity it is infinite. Documented for x > 0 only."""
    x = args[0]
    with np.errstate(all="ignore"):
        inside = (x.value - x.error > 0) & (x.value < np.log(PRECISION[x.dtype].largest) - 1)
        known = Bounded(np.where(inside, x.value, 1.0), np.where(inside, x.error, 0.0), x.dtype)
        result = monotone(_exponential_integral, known, ULPS)
        near = ULPS * unit_of(x) * np.where(known.value < 2, 2 + np.abs(np.log(known.value)), 0.0)
    nan, far = certainly_nan(x), (x.value == np.inf) & (x.error == 0)
    error = np.where(nan | far, 0.0, np.where(inside, result.error + near, np.inf))
    return Bounded(np.where(nan, np.nan, np.where(far, np.inf, result.value)), error, x.dtype)


def _fresnel(args: Sequence[Bounded], call: Call) -> Bounded:
    """S and C have slopes of at most 1; beyond 1.6 they are 1/2 and an oscillation of amplitude 1 / (pi x), whose phase
    pi x^2 / 2 is rounded (XLA and Cephes reduce it by 4 no more than the multiplication does)."""
    x, sine = args[0], call.attrs["kind"] == "sine"
    with np.errstate(all="ignore"):
        known = np.abs(x.value) < 1e100
        value = special.fresnel(np.where(known, x.value, 0.0))[0 if sine else 1]
        size = np.abs(x.value)
        turn = math.pi * size**2 / 2
        slope = np.minimum(1.0, np.abs(np.sin(turn) if sine else np.cos(turn)) + math.pi * (size + x.error) * x.error)
        wave = np.where(size > 1, np.minimum(8 * turn * unit_of(x), 2.0) / (math.pi * size), 0.0)
        least = np.where(size > 0.5, 0.5, np.abs(value))
        error = np.where(x.error == 0, 0.0, x.error * slope) + ULPS * unit_of(x) * least + wave
        error = np.where((value == 0) & (size > 0), PRECISION[x.dtype].tiny, error)
    nan = certainly_nan(x)
    error = np.where(nan | (size == 0) & (x.error == 0), 0.0, np.where(known, error, np.inf))
    return rounded(np.where(nan, np.nan, value), np.where(x.undetermined, np.inf, error), x.dtype, 1)


def _spence(args: Sequence[Bounded], call: Call) -> Bounded:
    """Li2(1 - x) = the integral of -log(t) / (t - 1) from 1 to x: falling, 0 at 1, NaN below 0. Reflections (Cephes)
    add pi^2 / 6 and squares of logarithms."""
    x = args[0]
    with np.errstate(all="ignore"):
        result = monotone(special.spence, x, ULPS)
        log = np.log(np.maximum(np.abs(x.value), PRECISION[x.dtype].tiny))
        far = np.where((x.value < 0.5) | (x.value > 1.5), 2 + log**2, 0.0)
        error = result.error + ULPS * unit_of(x) * np.where(np.isfinite(result.value), far, 0.0)
    return replace(result, error=np.where(np.isinf(x.value) & (x.value > 0), np.inf, error))


def _whole_line(args: Sequence[Bounded], call: Call) -> Bounded:
    """Ei of negative numbers, too, where it falls from 0 to -infinity at 0: -E_1(-x), which vanishes as exp(x) does.
    What lies beyond its last normal number is left open, but for -infinity."""
    x = args[0]
    above = _expint(args, call)
    with np.errstate(all="ignore"):
        inside = (x.value + x.error < 0) & (-x.value < -np.log(PRECISION[x.dtype].tiny) - 8)
        known = Bounded(np.where(inside, x.value, -1.0), np.where(inside, x.error, 0.0), x.dtype)
        below = monotone(special.expi, known, ULPS)
        near = ULPS * unit_of(x) * np.where(known.value > -2, 2 + np.abs(np.log(-known.value)), 0.0)
    sure = x.error == 0
    zero, far = sure & (x.value == 0), sure & (x.value == -np.inf)
    value = np.where(zero, -np.inf, np.where(far, 0.0, np.where(inside, below.value, above.value)))
    error = np.where(zero | far, 0.0, np.where(inside, below.error + near, above.error))
    return Bounded(value, error, x.dtype)


def _owens(args: Sequence[Bounded], call: Call) -> Bounded:
    """Owen's T(h, a) = 1 / (2 pi) times the integral from 0 to a of exp(-h^2 (1 + x^2) / 2) / (1 + x^2): half of what
    lies beyond h and below a times it. Its slopes are at most 1 / (2 pi) in a, and 1 / sqrt(8 pi) in h. The exponent is
    rounded, which counts h^2 / 2 times, and h x where it matters; a quadrature adds terms of one sign. Beyond |h| = 8,
    where a few points of one see too little of a steep integrand, nothing is said."""
    h, a = (spread_out(arg, call) for arg in args)
    with np.errstate(all="ignore"):
        nan = certainly_nan(h) | certainly_nan(a)
        value = special.owens_t(h.value, a.value)
        moved = np.where(h.error > 0, h.error / 5, 0.0) + np.where(a.error > 0, a.error / 6, 0.0)
        own = (ULPS + 4 * np.minimum(h.value**2, 1e6)) * unit_of(h) * np.abs(value)
        vanished = (np.abs(value) < PRECISION[h.dtype].tiny * 2**24) & (h.value != 0)
    error = np.where(nan, 0.0, moved + own + np.where(vanished, PRECISION[h.dtype].tiny * 2**24, 0.0))
    lost = (h.undetermined | a.undetermined | (np.abs(h.value) > 8) & np.isfinite(h.value)) & ~nan
    return rounded(np.where(nan, np.nan, value), np.where(lost, np.inf, error), h.dtype, 1)


def _record(name: str, reference: Reference, tensorflow: Spelling, jax: Spelling, **attrs: AttrRule) -> OpSpec:
    return OpSpec(
        name, "special", (floating(),), same_as(0), reference, attrs=attrs,
        torch=unsupported("PyTorch has no such function"), tensorflow=tensorflow, jax=jax,
        relax=NO_RELAX, onnx=NO_ONNX,
    )  # fmt: skip


OPERATORS: tuple[OpSpec, ...] = (
    _record("dawsn", _dawsn, "tf.math.special.dawsn({0})", "jax.scipy.special.dawsn({0})"),
    _record("expint", _expint, "tf.math.special.expint({0})", "jax.scipy.special.expi({0})"),
    _record(
        "fresnel", _fresnel,
        lambda call: f"tf.math.special.fresnel_{'sin' if call.attrs['kind'] == 'sine' else 'cos'}({{0}})",
        lambda call: f"jax.scipy.special.fresnel({{0}})[{0 if call.attrs['kind'] == 'sine' else 1}]",
        kind=one_of("sine", "cosine"),
    ),
    _record("expint_whole", _whole_line, unsupported("documented for x > 0"), "jax.scipy.special.expi({0})"),
    OpSpec(
        "owens_t", "special", (mostly(floating(), -5, 5), broadcastable(0)), broadcast(), _owens,
        torch=unsupported("PyTorch has no such function"), tensorflow=unsupported("TensorFlow has no such function"),
        jax="jax.scipy.special.owens_t({0}, {1})", relax=NO_RELAX, onnx=NO_ONNX,
    ),
    _record("spence", _spence, "tf.math.special.spence({0})", "jax.scipy.special.spence({0})"),
)  # fmt: skip
