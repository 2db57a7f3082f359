"""Exponential integrals of whole order, the sine and the cosine integral, and the sign of the gamma function."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import special

from generators.bounds.bounded import PRECISION, Bounded, exact, monotone, rounded
from generators.graph import TensorType
from generators.ops.elementwise.incomplete import NO_TENSORFLOW, mostly
from generators.ops.elementwise.integrals import ULPS
from generators.ops.elementwise.records import NO_ONNX, NO_RELAX
from generators.ops.elementwise.references import certainly_nan, unit_of
from generators.ops.slots import floating, int_of, one_of, same_as
from generators.ops.spec import Attrs, Call, OpSpec, TypeRuleError, Types, unsupported

Array = np.ndarray

ORDERS = (1, 0, 2, 3, 5, 12, 60)
"""Of E_n: Cephes' expn has a power series, continued fractions, and an expansion for n > 50."""


def _expn_type(operands: Types, attrs: Attrs) -> TensorType:
    if not 0 <= int_of(attrs, "n") <= 64:
        raise TypeRuleError(f"no exponential integral of order {attrs['n']!r}")
    return operands[0]


def _expn(args: Sequence[Bounded], call: Call) -> Bounded:
    """The integral of exp(-x t) / t^n from 1 to infinity: falling in x > 0, 1 / (n - 1) or infinite at 0 (DLMF 8.19.6),
    0 of infinity. Numbers below 0 are left open, as is what is close to where exp(-x) underflows."""
    x, n = args[0], int_of(call.attrs, "n")
    p = PRECISION[x.dtype]
    with np.errstate(all="ignore"):
        inside = (x.value - x.error > 0) & (x.value < -np.log(p.tiny) - 24)
        known = Bounded(np.where(inside, x.value, 1.0), np.where(inside, x.error, 0.0), x.dtype)
        result = monotone(lambda v: special.expn(n, v), known, ULPS)
        # the series of order 1 and more ends with the logarithm of x by x^(n - 1) / (n - 1)!
        near = ULPS * unit_of(x) * np.where(known.value < 2, 2 + np.abs(np.log(known.value)), 0.0) * (n == 1)
    nan, sure = certainly_nan(x), x.error == 0
    zero, far = sure & (x.value == 0) & (~np.signbit(x.value) | (n > 1)), sure & (x.value == np.inf)
    first = 1 / (n - 1) if n > 1 else np.inf
    error = np.where(inside, result.error + near, np.where(zero & (n > 1), 2 * unit_of(x), np.inf))
    error = np.where(nan | far | zero & (n < 2), 0.0, error)
    value = np.where(zero, first, np.where(far, 0.0, result.value))
    return Bounded(np.where(nan, np.nan, value), error, x.dtype)


def _sine_integral(args: Sequence[Bounded], call: Call) -> Bounded:
    """The integral of sin(t) / t from 0 to x: a slope of 1 and 1 / x at most, pi / 2 far out, where it is that less
    cos(x) / x."""
    x = args[0]
    with np.errstate(all="ignore"):
        size, known = np.abs(x.value), np.isfinite(x.value)
        value = special.sici(x.value)[0]
        slope = 1 / np.maximum(1.0, size - x.error)
        error = np.where(x.error == 0, 0.0, x.error * slope) + ULPS * unit_of(x) * np.minimum(size, 2.0)
    nan = certainly_nan(x)
    error = np.where(nan, 0.0, np.where(known, error, np.inf))
    return rounded(np.where(nan, np.nan, value), np.where(x.undetermined, np.inf, error), x.dtype, 1)


def _cosine_integral(args: Sequence[Bounded], call: Call) -> Bounded:
    """Euler's constant, the logarithm of x, and the integral of (cos(t) - 1) / t from 0 to x > 0; far out sin(x) / x.
    Numbers that are not positive are left open: -infinity at 0, NaN or a real part below."""
    x = args[0]
    with np.errstate(all="ignore"):
        inside = (x.value - 2 * x.error > 0) & np.isfinite(x.value)
        known = np.where(inside, x.value, 1.0)
        value, off = special.sici(known)[1], np.where(inside, x.error, 0.0)
        terms = np.where(known < 4, 2 + np.abs(np.log(known)), 4 / known)
        error = off / (known - off) + ULPS * unit_of(x) * terms
    nan = certainly_nan(x)
    error = np.where(nan, 0.0, np.where(inside, error, np.inf))
    return rounded(np.where(nan, np.nan, value), error, x.dtype, 1)


def _integral(args: Sequence[Bounded], call: Call) -> Bounded:
    return (_sine_integral if call.attrs["kind"] == "sine" else _cosine_integral)(args, call)


def _gamma_sign(args: Sequence[Bounded], call: Call) -> Bounded:
    """1 above 0, then in turn; open at the poles."""
    x = args[0]
    with np.errstate(all="ignore"):
        steps = np.ceil(np.minimum(x.value, 0.0))
        sure = (x.value > x.error) | (np.abs(x.value - np.rint(x.value)) > x.error) & (x.value < 0)
        value = np.where(x.value > 0, 1.0, np.where(steps % 2 == 0, -1.0, 1.0))
    nan = certainly_nan(x)
    sure &= np.isfinite(x.value)
    return exact(np.where(nan, np.nan, value), x.dtype, ~(sure | nan))


_NO_TORCH = unsupported("PyTorch has no such function")

OPERATORS: tuple[OpSpec, ...] = (
    OpSpec(
        "expn", "special", (mostly(floating(), 0, 30),), _expn_type, _expn, attrs={"n": one_of(*ORDERS)},
        torch=_NO_TORCH, tensorflow=NO_TENSORFLOW, jax="jax.scipy.special.expn({n}, {0})", relax=NO_RELAX, onnx=NO_ONNX,
    ),
    OpSpec(
        "trigonometric_integral", "special", (mostly(floating(), 0, 60),), same_as(0), _integral,
        attrs={"kind": one_of("sine", "cosine")}, torch=_NO_TORCH, tensorflow=NO_TENSORFLOW,
        jax=lambda call: f"jax.scipy.special.sici({{0}})[{0 if call.attrs['kind'] == 'sine' else 1}]",
        relax=NO_RELAX, onnx=NO_ONNX,
    ),
    OpSpec(
        "gamma_sign", "special", (mostly(floating(), -9, 9),), same_as(0), _gamma_sign, torch=_NO_TORCH,
        tensorflow=NO_TENSORFLOW, jax="jax.scipy.special.gammasgn({0})", relax=NO_RELAX, onnx=NO_ONNX,
    ),
)  # fmt: skip
