"""Powers and roots: pow, of integers too, square and cube roots, hypot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import (
    PRECISION,
    SMALLEST,
    U64,
    Bounded,
    add,
    ends,
    exact,
    holds_zero,
    monotone,
    rounded,
    spread,
)
from generators.bounds.sums import root, scaled_square
from generators.graph import INTEGERS
from generators.ops.elementwise.records import FLOAT_PAIR, NO_ONNX, NO_RELAX, binary, numpy_binary, unary
from generators.ops.elementwise.references import corners, ulps
from generators.ops.slots import broadcastable, floating, same_as, tensor
from generators.ops.spec import Call, OpSpec, unsupported


def _pow(args: Sequence[Bounded], call: Call) -> Bounded:
    """C Annex F.10.4.4 in every special case (pow(x, 0) = pow(1, y) = 1 even for NaN); 16 ulp.

    x^y is monotone in x on each side of 0, and in y. A negative base takes an exact exponent: an inexact one
    is an integer for some back ends, and for others a hair beside it, where the result is NaN.
    np.power, unlike np.float_power, takes the root where one exponent, 0.5, goes with all: NaN of -inf, -0 of -0."""
    x, y = args
    with np.errstate(all="ignore"):
        value = np.float_power(x.value, y.value)
        error = corners(np.float_power, x, y, value)
        low, high = ends(x)
        across = (low < 0) & (high > 0)  # the turning point, or the pole
        at_zero = np.where(across, 0.0, x.value)
        y_low, y_high = ends(y)
        error = np.maximum(error, spread(value, np.float_power(at_zero, y_low), np.float_power(at_zero, y_high)))
        error = np.where((low < 0) & (y.error > 0), np.inf, error)
        odd = np.isfinite(y.value) & (np.fmod(y.value, 2.0) != 0) & (np.floor(y.value) == y.value)
        unsigned = np.zeros(np.shape(value), bool) if x.zero_sign else (x.value == 0) & odd
        error = np.where((x.value == 0) & (y.value < 0) & ((y.error > 0) | unsigned), np.inf, error)
        underflow = (value == 0) & (x.value != 0) & np.isfinite(x.value) & np.isfinite(y.value)
        error += np.where(underflow, PRECISION[x.dtype].tiny, 0.0)
        # NaN operands: certain unless the other one may make 1 of them
        loose_one = (x.error > 0) & (np.abs(x.value - 1.0) <= x.error)
        error = np.where(np.isnan(y.value) & loose_one | np.isnan(x.value) & holds_zero(y), np.inf, error)
        error = np.where(x.undetermined | y.undetermined, np.inf, error)
        one = (x.value == 1) & (x.error == 0) | (y.value == 0) & (y.error == 0)
        value, error = np.where(one, 1.0, value), np.where(one, 0.0, error)
        sign = (value == 0) & (error == 0) & (x.value == 0) & (y.error > 0)
        result = rounded(value, np.where(sign, SMALLEST, error), x.dtype, 16)
        return Bounded(result.value, np.where(one, 0.0, result.error), x.dtype)


pow_ = binary(
    "pow", FLOAT_PAIR, _pow, signed_zero=True,
    torch="torch.pow({0}, {1})", tensorflow="tf.pow({0}, {1})", jax="jnp.power({0}, {1})",
    relax="relax.op.power({0}, {1})", onnx='g.op("Pow", {0}, {1})',
)  # fmt: skip


def _integer_pow(args: Sequence[Bounded], call: Call) -> Bounded:
    """Where it leaves the dtype nothing is said: some wrap, others stay at the end."""
    x, y = args
    with np.errstate(all="ignore"):
        value = np.power(x.value, y.value)
        away = ~(np.abs(np.float_power(x.value.astype(np.float64), y.value)) < float(np.iinfo(value.dtype).max))
    return exact(value, x.dtype, x.undetermined | y.undetermined | away)


integer_pow = binary(
    "integer_pow", (tensor(INTEGERS), replace(broadcastable(0), domain=lambda earlier: (0, 7))), _integer_pow,
    torch="torch.pow({0}, {1})", tensorflow="tf.pow({0}, {1})", jax="jnp.power({0}, {1})",
    relax="relax.op.power({0}, {1})", onnx='g.op("Pow", {0}, {1})',
)  # fmt: skip


def _cbrt(args: Sequence[Bounded], call: Call) -> Bounded:
    """2 ulp; TensorFlow takes the power 1/3 of |x|: 16 ulp, and u |log x| / 3 of the rounded exponent."""
    x = args[0]
    result = monotone(np.cbrt, x, 16)
    with np.errstate(all="ignore"):
        log = np.abs(np.log(np.where((x.value != 0) & np.isfinite(x.value), np.abs(x.value), 1.0)))
        further = (PRECISION[x.dtype].unit + U64) * log / 3 * np.abs(result.value)
    return replace(result, error=np.where(np.isfinite(result.value), result.error + further, result.error))


def _hypot(args: Sequence[Bounded], call: Call) -> Bounded:
    """sqrt(x^2 + y^2), the definition in numpy. Squares may overflow or vanish, or be scaled beforehand. An infinity
    beside NaN is infinite in C (Annex F.10.4.3) and NaN by the definition: undetermined, and so is NaN beside what
    may be infinite."""
    x, y = args
    total = add(scaled_square(x), scaled_square(y))
    finite = np.isfinite(x.value) & np.isfinite(y.value)
    mixed = np.zeros(total.value.shape, bool)
    for one, other in ((x, y), (y, x)):
        mixed |= np.isnan(one.value) & (np.isinf(other.value) | other.undetermined)
    loose = mixed | finite & ~np.isfinite(total.value)
    return root(replace(total, error=np.where(loose, np.inf, total.error)))


def _rsqrt(args: Sequence[Bounded], call: Call) -> Bounded:
    """2 ulp, which leaves room for 1 / sqrt(x), both correctly rounded. A zero is a pole whose side is its
    sign (IEEE 754-2019, 9.2.1: rSqrt(-0) is -inf)."""
    x = args[0]
    result = monotone(lambda v: 1 / np.sqrt(v), x, 2)
    side = (x.value == 0) & (not x.zero_sign)
    return replace(result, error=np.where(side, np.inf, result.error))


OPERATORS: tuple[OpSpec, ...] = (
    pow_,
    integer_pow,
    unary("sqrt", ulps(np.sqrt, 3), "Sqrt"),
    unary("rsqrt", _rsqrt, 'g.op("Reciprocal", g.op("Sqrt", {0}))', jax="jax.lax.rsqrt"),
    OpSpec(
        "cbrt", "numerals", (floating(),), same_as(0), _cbrt, signed_zero=True, torch=unsupported(
            "PyTorch has no cube root"), tensorflow="tf.experimental.numpy.cbrt({0})", jax="jnp.cbrt({0})",
        relax=NO_RELAX, onnx=NO_ONNX,
    ),
    numpy_binary(
        "hypot", _hypot,
        relax="relax.op.sqrt(relax.op.add(relax.op.square({0}), relax.op.square({1})))", onnx="hypot(g, {0}, {1})",
    ),
)  # fmt: skip
