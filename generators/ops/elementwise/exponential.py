"""Exponentials and logarithms of any base, and what is defined by them: logaddexp, xlogy, logit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, holds_zero, monotone, multiply, rounded, settled
from generators.graph import TensorType
from generators.ops.elementwise.records import FLOAT_PAIR, NO_ONNX, NO_RELAX, numpy_binary, numpy_unary, unary
from generators.ops.elementwise.references import exponential, loose, ulps
from generators.ops.slots import broadcast, one_of
from generators.ops.spec import Attrs, Call, OpSpec, TypeRuleError, Types

Array = np.ndarray


def _exp2(args: Sequence[Bounded], call: Call) -> Bounded:
    """2 ** x, which is how TensorFlow defines it: 16 ulp, those of pow. A float64 that underflows here may be a
    subnormal elsewhere."""
    x = args[0]
    result = monotone(np.exp2, x, 16)
    tiny = np.where(np.isfinite(x.value) & (result.value == 0), PRECISION[x.dtype].tiny, 0.0)
    return replace(result, error=result.error + tiny)


def _logit(args: Sequence[Bounded], call: Call) -> Bounded:
    """log(z / (1 - z)) of z = x, or x clamped to [eps, 1 - eps]. The difference 0.5 ulp and the division 2.5 move
    it by 7 u, and log takes 3 ulp. log(z) - log1p(-z) needs no more: 6 u |log z| + 4 u |log1p(-z)| and a rounding,
    and the smaller one of both logarithms is at most 0.7. What is clamped to a 1 - eps that the dtype does not hold
    is undetermined: it may be rounded to 1."""
    x, eps = args[0], call.attrs["eps"]

    def logit(v: Array) -> Array:
        z = v if eps is None else np.clip(v, float(eps), 1 - float(eps))  # type: ignore[arg-type]
        return np.log(z) - np.log1p(-z)

    result = monotone(logit, x, 3.5)
    with np.errstate(all="ignore"):
        reaches = np.isnan(result.value) & (x.error > 0) & (np.abs(x.value - 0.5) - x.error <= 0.5)
        result = loose(result, 7, np.isfinite(result.value))
        if eps is not None:
            most = 1 - call.number("eps")
            held = float(np.asarray(most, x.dtype)) == most
            reaches |= (not held) & (x.value + x.error > most - PRECISION[x.dtype].unit)
    return replace(result, error=np.where(reaches, np.inf, result.error))


def _logit_type(operands: Types, attrs: Attrs) -> TensorType:
    eps = attrs["eps"]
    if eps is not None and not (isinstance(eps, float) and 0 <= eps <= 0.5):
        raise TypeRuleError(f"nothing lies between {eps} and 1 - {eps}")
    return operands[0]


def _logaddexp2(args: Sequence[Bounded], call: Call) -> Bounded:
    """m + L, m = max(x, y), L = log2(1 + 2^-d), d = |x - y|. As of logaddexp: slopes add up to 1; the difference has a
    rounding, the power 16 ulp, 1 + 2^-d loses u, the logarithm 3 ulp and its conversion to base 2 another 5."""
    x, y = args
    unit = PRECISION[x.dtype].unit + U64
    with np.errstate(all="ignore"):
        value = np.logaddexp2(x.value, y.value)
        d = np.abs(x.value - y.value)
        power = np.exp2(-d)
        own = unit * (np.where(power > 0, d * power, 0.0) + 50 * power + 1 + 16 * np.log2(1 + power))
        moved = np.maximum(x.error, y.error)
        error = np.where(np.isfinite(x.value) & np.isfinite(y.value), moved + own, 0.0)
        alone = np.isneginf(x.value) | np.isneginf(y.value)
        error = np.where(alone & np.isfinite(value), moved, error)
    return rounded(value, settled(x, y, error), x.dtype)


def _logaddexp(args: Sequence[Bounded], call: Call) -> Bounded:
    """m + L, m = max(x, y), L = log(1 + exp(-d)), d = |x - y|. Its slopes add up to 1. The difference has one
    rounding, which exp turns into u d exp(-d), exp has 3 ulp, 1 + exp(-d) loses u, log 3 ulp; log1p needs less. By
    definition infinite for two infinities of one sign."""
    x, y = args
    p = PRECISION[x.dtype]
    unit = p.unit + U64
    with np.errstate(all="ignore"):
        value = np.logaddexp(x.value, y.value)
        d = np.abs(x.value - y.value)
        power = np.exp(-d)
        own = unit * (np.where(power > 0, d * power, 0.0) + 6 * power + 1 + 6 * np.log1p(power))
        moved = np.maximum(x.error, y.error)
        error = np.where(np.isfinite(x.value) & np.isfinite(y.value), moved + own, 0.0)
        alone = np.isneginf(x.value) | np.isneginf(y.value)
        error = np.where(alone & np.isfinite(value), moved, error)
    return rounded(value, settled(x, y, error), x.dtype)


def _xlogy(args: Sequence[Bounded], call: Call) -> Bounded:
    """x log(y), 3 ulp and a product; 0 for x = 0, whatever y is. With NaN it is NaN for PyTorch, 0 for TensorFlow:
    undetermined."""
    x, y = args
    result = multiply(x, monotone(np.log, y, 3))
    zero = (x.value == 0) & (x.error == 0)
    maybe = holds_zero(x) & ~np.isfinite(result.value)
    value = np.where(zero, 0.0, result.value)
    error = np.where(zero, np.where(np.isnan(y.value) | y.undetermined, np.inf, 0.0), result.error)
    return Bounded(value, np.where(maybe, np.inf, error), x.dtype)


exp = unary("exp", exponential(np.exp, 3), "Exp", signed_zero=False)

log = unary("log", ulps(np.log, 3), "Log", signed_zero=False)

# C Annex F.10 gives all of these a zero of the operand's sign for a zero, unless signed_zero=False (f(0) != 0,
# or a zero that comes from elsewhere than a zero)
OPERATORS: tuple[OpSpec, ...] = (
    exp,
    numpy_unary(
        "exp2", _exp2,
        relax="relax.op.power(relax.const(2, {dtype}), {0})", onnx='g.op("Pow", g.const(2, {name}), {0})',
    ),
    unary("expm1", exponential(np.expm1, 3), NO_ONNX, relax=NO_RELAX),
    log,
    # log(x) / log(2), which is how JAX and TensorFlow define it: 3 + 2.5 ulp, and 3 of the constant
    unary("log2", ulps(np.log2, 8.5), NO_ONNX, relax=NO_RELAX, tensorflow="tf.experimental.numpy.log2",
          signed_zero=False),
    # log(x) / log(10), which is how TensorFlow defines it: 3 + 2.5 ulp, and 3 of the constant
    numpy_unary(
        "log10", lambda args, call: monotone(np.log10, args[0], 8.5),
        relax=f"relax.op.divide(relax.op.log({{0}}), relax.const({math.log(10)!r}, {{dtype}}))",
        onnx=f'g.op("Div", g.op("Log", {{0}}), g.const({math.log(10)!r}, {{name}}))',
    ),
    unary("log1p", ulps(np.log1p, 2), NO_ONNX, relax=NO_RELAX),
    numpy_binary(
        "logaddexp", _logaddexp, relax="relax.op.log_add_exp({0}, {1})", onnx="logaddexp(g, {0}, {1}, {name})",
    ),
    OpSpec(
        "logaddexp2", "numerals", FLOAT_PAIR, broadcast(), _logaddexp2, torch="torch.logaddexp2({0}, {1})",
        tensorflow="tf.experimental.numpy.logaddexp2({0}, {1})", jax="jnp.logaddexp2({0}, {1})",
        relax=NO_RELAX, onnx=NO_ONNX,
    ),
    numpy_binary(
        "xlogy", _xlogy, tensorflow="tf.math.xlogy({0}, {1})", jax="jax.scipy.special.xlogy({0}, {1})",
        relax="xlogy({0}, {1}, {dtype})", onnx="xlogy(g, {0}, {1}, {name})",
    ),
    numpy_unary(
        "logit", _logit, result=_logit_type, attrs={"eps": one_of(None, 0.125, 2.0**-10, 0.0)},
        torch="torch.logit({0}, eps={eps})", tensorflow="logit({0}, {eps})", jax="logit({0}, {eps})",
        relax="logit(bb, {0}, {eps}, {dtype})", onnx="logit(g, {0}, {eps}, {name})",
    ),
)  # fmt: skip
