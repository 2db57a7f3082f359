"""Bessel functions of the orders 0 and 1, the spherical one, and Airy's Ai.

The float64 values are scipy's (Cephes, and AMOS for Ai), whose own error is that of the kernels in question: every
bound allows for it beside theirs. J, Y and Ai oscillate: x is reduced by a phase that is rounded, so that they err by
u |x| times the amplitude, however small the value is (Moshier, *Methods and Programs for Mathematical Functions*, 1989,
gives absolute errors for the same reason)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from scipy import special

from generators.bounds.bounded import PRECISION, Bounded, monotone, rounded, smooth
from generators.ops.elementwise.records import NO_ONNX, NO_RELAX
from generators.ops.elementwise.references import unit_of
from generators.ops.slots import flag, floating, one_of, same_as
from generators.ops.spec import AttrRule, Call, OpSpec, Reference, Spelling, unsupported

Array = np.ndarray
Function = Callable[[Array], Array]

ULPS = 16.0
"""Of Cephes' rational functions: 4e-7 in single precision, 6e-16 to 1.2e-15 in double (Moshier), for the kernel and for
scipy's value."""


FLUSHED = 1445
"""Cephes has x p(x^2) (x^2 - 14.68) (x^2 - 49.22) for J1: near 0 its first product is x / 1445, which may be flushed
where it is subnormal."""


def _order(call: Call) -> int:
    return int(call.number("order"))


def _amplitude(x: Array) -> Array:
    """sqrt(2 / (pi x)), below which J0 and Y0 stay for all x > 0 (Watson, *Theory of Bessel Functions*, 13.74)."""
    return math.sqrt(2 / math.pi) / np.sqrt(np.abs(x))


def _of_number(x: Bounded, result: Bounded) -> Bounded:
    """`result`, undetermined at what is, or may be, an infinity: kernels take the cosine of the phase, or the limit."""
    return replace(result, error=np.where(np.isinf(x.value), np.inf, result.error))


def _j(args: Sequence[Bounded], call: Call) -> Bounded:
    """Slopes: J0' = -J1, J1' = J0 - J1 / x, and no second derivative is above 1 (integrals of cosines)."""
    x, order = args[0], _order(call)
    with np.errstate(all="ignore"):
        first, amplitude = special.j1(x.value), _amplitude(x.value)
        slope = first if order == 0 else special.jvp(1, x.value)
        size = np.minimum(np.abs(x.value) / 2 if order else 1.0, amplitude)
        own = unit_of(x) * (2 * ULPS * size + np.where(np.abs(x.value) > 1, 4 * np.abs(x.value) * amplitude, 0.0))
        if order:
            own += np.where(np.abs(x.value) < FLUSHED * PRECISION[x.dtype].tiny, np.abs(x.value) / 2, 0.0)
        most = np.minimum(own, 2 * amplitude)  # no phase takes it beyond
        result = smooth(special.j0 if order == 0 else special.j1, lambda _: slope, 1.0, x, 1)
    zero = (result.value == 0) & (x.value == 0) & (x.error == 0)
    return _of_number(x, replace(result, error=result.error + np.where(zero | np.isnan(x.value), 0.0, most)))


def _y(args: Sequence[Bounded], call: Call) -> Bounded:
    """Of x > 0: a pole at 0; below it NaN (PyTorch) or infinite (TensorFlow). With E0 = sqrt(2 / (pi x)) above |Y0| and
    E1 = E0 + 2 / (pi x) above |Y1|, the slopes are below E1 (Y0) and E0 + E1 / x (Y1). Near 0 the sums have terms of
    the size of the logarithm."""
    x, order = args[0], _order(call)
    with np.errstate(all="ignore"):
        low = x.value - x.error
        even, pole = _amplitude(low), 2 / (math.pi * low)
        steepest = even + pole if order == 0 else even + (even + pole) / low
        size = np.minimum(1 + np.abs(np.log(x.value)), _amplitude(x.value))
        if order:
            size = 2 / (math.pi * x.value) + np.minimum(1.0, _amplitude(x.value))
        own = unit_of(x) * (2 * ULPS * size + 4 * np.abs(x.value) * _amplitude(x.value))
        error = np.where(x.error > 0, x.error * steepest, 0.0) + own
        error = np.where(low > 0, error, np.inf)
        value = (special.y0 if order == 0 else special.y1)(x.value)
        error = np.where((x.value == 0) & (x.error == 0) | np.isnan(x.value) & ~x.undetermined, 0.0, error)
    return _of_number(x, rounded(value, np.where(x.undetermined, np.inf, error), x.dtype, 1))


def _i(args: Sequence[Bounded], call: Call) -> Bounded:
    """I0 is even, I1 odd, both rise; scaled by exp(-|x|), I0 falls, and I1 has slopes below 1/2 and second derivatives
    below 3/2 (series, Abramowitz and Stegun 9.6.10)."""
    x, order = args[0], _order(call)
    if not call.attrs["scaled"]:
        if order == 1:
            return _overflowing(x, monotone(special.i1, x, 2 * ULPS))
        size = Bounded(np.abs(x.value), x.error, x.dtype)
        return _overflowing(x, monotone(lambda v: special.i0(np.maximum(v, 0.0)), size, 2 * ULPS))
    if order == 0:
        size = Bounded(np.abs(x.value), x.error, x.dtype)
        return _of_number(x, monotone(lambda v: special.i0e(np.maximum(v, 0.0)), size, 2 * ULPS))
    with np.errstate(all="ignore"):
        slope = special.i0e(x.value) - special.i1e(x.value) * (
            np.sign(x.value) + 1 / np.where(x.value, x.value, np.inf)
        )
        slope = np.where(x.value == 0, 0.5, slope)
    return _of_number(x, smooth(special.i1e, lambda _: slope, 1.5, x, 2 * ULPS))


def _overflowing(x: Bounded, result: Bounded) -> Bounded:
    """exp(|x|) overflows before I0 and I1 do: undetermined within a factor of |x| + 1 of the largest number, which is
    more than what divides them."""
    with np.errstate(all="ignore"):
        near = np.abs(result.value) > PRECISION[x.dtype].largest / (np.abs(x.value) + 1) / 4
        near &= np.isfinite(x.value) & (np.abs(x.value) < 2 * np.log(PRECISION[x.dtype].largest))
    return replace(result, error=np.where(near, np.inf, result.error))


def _k(args: Sequence[Bounded], call: Call) -> Bounded:
    """Falls from a pole at 0; below it NaN (PyTorch) or infinite (TensorFlow). Up to 2 it is a difference with
    log(x / 2) I(x), a few times as large as the result; exp(-x) has 3 ulp. Undetermined where x / 2 is subnormal, and
    may be flushed."""
    x, order = args[0], _order(call)
    scaled = bool(call.attrs["scaled"])
    f = {(0, False): special.k0, (1, False): special.k1, (0, True): special.k0e, (1, True): special.k1e}[order, scaled]
    result = monotone(f, x, 3 * ULPS)
    with np.errstate(all="ignore"):
        vanishes = np.isfinite(x.value) & (result.value == 0)
        error = result.error + np.where(vanishes, PRECISION[x.dtype].tiny, 0.0)
        # exp(-x) is subnormal before the result is
        error = np.where(result.value < 64 * PRECISION[x.dtype].tiny, error + 64 * PRECISION[x.dtype].tiny, error)
        pole = (x.value == 0) & (x.error == 0)
        error = np.where((x.value - x.error < 2 * PRECISION[x.dtype].tiny) & ~pole, np.inf, error)
        error = np.where(np.isnan(x.value) & ~x.undetermined, 0.0, error)
    return _of_number(x, replace(result, error=np.where(x.undetermined, np.inf, error)))


def _spherical(args: Sequence[Bounded], call: Call) -> Bounded:
    """sin(x) / x: 4 ulp and a division; slopes and second derivatives of cos(t x), averaged over t in [0, 1], are at
    most 1/2 and 1/3. 0, the limit, at infinities (the branch of its own that PyTorch has)."""
    x = args[0]

    def f(v: Array) -> Array:
        return np.where(v == 0, 1.0, np.where(np.isinf(v), 0.0, np.sin(v) / v))

    def slope(v: Array) -> Array:
        near = -v / 3 + v**3 / 30
        return np.where(np.abs(v) < 1e-3, near, np.where(np.isinf(v), 0.0, (np.cos(v) - np.sin(v) / v) / v))

    with np.errstate(all="ignore"):
        return smooth(f, slope, 1 / 3, x, 8)


def _airy(args: Sequence[Bounded], call: Call) -> Bounded:
    """Ai'' = x Ai, |Ai| <= 0.54. exp(-z) and the phase z = 2/3 |x|^(3/2) lose what z is rounded by: 4 u z; below 0 the
    amplitude is at most |x|^(-1/4) / sqrt(pi) (Abramowitz and Stegun 10.4.60). Up to 2.09 Cephes takes the difference
    of two series (10.4.2) of which the sum is Bi / sqrt(3)."""
    x, tiny = args[0], PRECISION[args[0].dtype].tiny
    with np.errstate(all="ignore"):
        known = np.abs(x.value) < 1e6
        value, slope, other, _ = special.airy(np.where(known, x.value, 0.0))
        z = 2 / 3 * np.abs(x.value) ** 1.5
        far = known & (x.value > 100)  # where scipy has 0 before it is
        value = np.where(far, special.airye(np.where(far, x.value, 0.0))[0] * np.exp(-np.where(far, z, 0.0)), value)
        series = np.where(x.value <= 2.09, other / math.sqrt(3), np.abs(value))
        size = np.where(x.value > 0, series, np.minimum(0.54, np.abs(x.value) ** -0.25 / math.sqrt(math.pi)))
        error = np.where(x.error == 0, 0.0, x.error * (np.abs(slope) + x.error * (np.abs(x.value) + x.error)))
        error += unit_of(x) * (2 * ULPS + 8 * z) * size + np.where(value < 64 * tiny, 64 * tiny, 0.0)
        nan = np.isnan(x.value) & ~x.undetermined
    error = np.where(nan, 0.0, np.where(known & np.isfinite(value), error, np.inf))
    return rounded(np.where(nan, np.nan, value), np.where(x.undetermined, np.inf, error), x.dtype, 1)


# ---- records ------------------------------------------------------------------------------------------

NO_TENSORFLOW = unsupported("TensorFlow has no such function")
NO_JAX = unsupported("JAX has no such function")


def _named(text: str, scaled: str = "") -> Spelling:
    """`text` with the order in place of `#`; `scaled`, where it is given, for the scaled function."""
    return lambda call: (scaled if call.attrs.get("scaled") else text).replace("#", str(call.attrs["order"]))


def _record(
    name: str, reference: Reference, torch: Spelling, tensorflow: Spelling, jax: Spelling, **attrs: AttrRule
) -> OpSpec:
    return OpSpec(
        name, "special", (floating(),), same_as(0), reference, attrs=attrs, torch=torch, tensorflow=tensorflow,
        jax=jax, relax=NO_RELAX, onnx=NO_ONNX,
    )  # fmt: skip


ORDER, SCALED = one_of(0, 1), flag()

OPERATORS: tuple[OpSpec, ...] = (
    _record("bessel_j", _j, _named("torch.special.bessel_j#({0})"), _named("tf.math.special.bessel_j#({0})"), NO_JAX,
            order=ORDER),
    _record("bessel_y", _y, _named("torch.special.bessel_y#({0})"), _named("tf.math.special.bessel_y#({0})"), NO_JAX,
            order=ORDER),
    _record("bessel_i", _i, _named("torch.special.i#({0})", "torch.special.i#e({0})"),
            _named("tf.math.bessel_i#({0})", "tf.math.bessel_i#e({0})"),
            _named("jax.scipy.special.i#({0})", "jax.lax.bessel_i#e({0})"), order=ORDER, scaled=SCALED),
    _record("modified_bessel_i", lambda args, call: _i(args, replace(call, attrs={**call.attrs, "scaled": False})),
            _named("torch.special.modified_bessel_i#({0})"), NO_TENSORFLOW, NO_JAX, order=ORDER),
    _record("bessel_k", _k,
            _named("torch.special.modified_bessel_k#({0})", "torch.special.scaled_modified_bessel_k#({0})"),
            _named("tf.math.special.bessel_k#({0})", "tf.math.special.bessel_k#e({0})"), NO_JAX,
            order=ORDER, scaled=SCALED),
    _record("spherical_bessel_j0", _spherical, "torch.special.spherical_bessel_j0({0})", NO_TENSORFLOW, NO_JAX),
    _record("airy_ai", _airy, "torch.special.airy_ai({0})", NO_TENSORFLOW, NO_JAX),
)  # fmt: skip
