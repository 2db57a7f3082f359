"""Further elementwise functions of one operand: powers and logarithms to other bases, predicates on signs, functions
with attributes. Where a dialect has none, it is composed of what the bound allows for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, ends, exact, holds_zero, monotone, multiply, rounded
from generators.graph import Attr, TensorType
from generators.ops.elementwise.activations import constant, loose
from generators.ops.slots import floating, one_of, same_as
from generators.ops.spec import (
    AttrRule,
    Call,
    OpSpec,
    Reference,
    ResultRule,
    Spelling,
    TypeRuleError,
    Types,
    unsupported,
)

Array = np.ndarray
Function = Callable[[Array], Array]

erfc_of: Function = np.vectorize(math.erfc, otypes=[np.float64])

_NO_ERFC = unsupported("it has erf only, and 1 - erf(x) loses the tail")


# ---- references ---------------------------------------------------------------------------------------


def _exp2(args: Sequence[Bounded], call: Call) -> Bounded:
    """2 ** x, which is how TensorFlow defines it: 16 ulp, those of pow. A float64 that underflows here may be a
    subnormal elsewhere."""
    x = args[0]
    result = monotone(np.exp2, x, 16)
    tiny = np.where(np.isfinite(x.value) & (result.value == 0), PRECISION[x.dtype].tiny, 0.0)
    return replace(result, error=result.error + tiny)


def _sinc(args: Sequence[Bounded], call: Call) -> Bounded:
    """sin(pi x) / (pi x), 1 at 0. pi and the product are rounded: an argument off by 2 u |pi x| moves the result by
    2 u, and no two sines are further apart than 2. |sinc'| < 1.4. Sine 4 ulp, division 2.5, the divisor 1.
    At infinity NaN or the limit, as is where the product overflows: undetermined."""
    x, unit = args[0], PRECISION[args[0].dtype].unit + U64
    with np.errstate(all="ignore"):
        size = np.abs(x.value)
        value = np.sinc(x.value)
        most = 2 / (np.pi * np.maximum(size - x.error, 0.0)) * (1 + 16 * unit)
        error = np.minimum(1.4 * x.error + np.where(size > 0, 2 * unit, 0.0), most)
        error = np.where(x.value == 0, 1.4 * x.error, error)
        far = ~(size + x.error < PRECISION[x.dtype].largest / 4) & ~np.isnan(x.value)
        result = rounded(value, np.where(far | x.undetermined, np.inf, error), x.dtype, 7.5)
    one = (x.value == 0) & (x.error == 0)
    return replace(result, error=np.where(one, 0.0, result.error))


def _frac(args: Sequence[Bounded], call: Call) -> Bounded:
    """x - trunc(x), exact; NaN for an infinity, by this definition. Where the interval crosses an integer, the
    result is anything between 0 and 1 (or -1 and 1 beside zero)."""
    x = args[0]
    with np.errstate(all="ignore"):
        value = x.value - np.trunc(x.value)
        low, high = (np.trunc(end) for end in ends(x))
        error = np.where(low == high, x.error, 1 + np.abs(value))
        error = np.where(np.isnan(value), 0.0, error)
    return Bounded(value, np.where(x.undetermined, np.inf, error), x.dtype)


def _signbit(args: Sequence[Bounded], call: Call) -> Bounded:
    """Of NaN (whose sign no operation determines, IEEE 754-2019, 6.3) and of what may be a zero of either sign:
    undetermined."""
    x = args[0]
    unknown = holds_zero(x) | np.isnan(x.value) | x.undetermined
    if not x.zero_sign:
        unknown |= x.value == 0
    return exact(np.signbit(x.value), "bool", unknown)


def _nan_to_num(args: Sequence[Bounded], call: Call) -> Bounded:
    """What replaces them is rounded to the dtype first: 65504 is 65536 in bfloat16."""
    x = args[0]
    numbers = [float(np.float64(call.number(name)).astype(x.dtype)) for name in ("nan", "posinf", "neginf")]
    return Bounded(np.nan_to_num(x.value, True, *numbers), x.error, x.dtype)


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


def _logit_type(operands: Types, attrs: Mapping[str, Attr]) -> TensorType:
    eps = attrs["eps"]
    if eps is not None and not (isinstance(eps, float) and 0 < eps <= 0.5):
        raise TypeRuleError(f"nothing lies between {eps} and 1 - {eps}")
    return operands[0]


def _infinite(sign: float) -> Reference:
    return lambda args, call: exact(args[0].value == sign * np.inf, "bool", args[0].undetermined)


# ---- records ------------------------------------------------------------------------------------------


def _boolean(operands: Types, attrs: Mapping[str, Attr]) -> TensorType:
    return TensorType("bool", operands[0].shape)


def _function(
    name: str,
    reference: Reference,
    *,
    torch: Spelling = "",
    tensorflow: Spelling = "",
    jax: Spelling = "",
    relax: Spelling,
    onnx: Spelling,
    attrs: Mapping[str, AttrRule] | None = None,
    result: ResultRule | None = None,
    signed_zero: bool = False,
) -> OpSpec:
    """PyTorch, and the numpy interfaces of TensorFlow and JAX call it `name`, except where another text is given."""
    return OpSpec(
        name, "unary", (floating(),), result or same_as(0), reference, attrs=attrs or {},
        torch=torch or f"torch.{name}({{0}})", tensorflow=tensorflow or f"tf.experimental.numpy.{name}({{0}})",
        jax=jax or f"jnp.{name}({{0}})", relax=relax, onnx=onnx, signed_zero=signed_zero,
    )  # fmt: skip


def _conversion(name: str, factor: float) -> OpSpec:
    return _function(
        name, lambda args, call: multiply(args[0], constant(factor, args[0])), signed_zero=True,
        relax=f"relax.op.multiply({{0}}, relax.const({factor!r}, {{dtype}}))",
        onnx=f'g.op("Mul", {{0}}, g.const({factor!r}, {{name}}))',
    )  # fmt: skip


def _equals(number: str) -> str:
    return f"relax.op.equal({{0}}, relax.const({number}, {{dtype0}}))"


FUNCTIONS: tuple[OpSpec, ...] = (
    _function(
        "exp2", _exp2,
        relax="relax.op.power(relax.const(2, {dtype}), {0})", onnx='g.op("Pow", g.const(2, {name}), {0})',
    ),
    # log(x) / log(10), which is how TensorFlow defines it: 3 + 2.5 ulp, and 3 of the constant
    _function(
        "log10", lambda args, call: monotone(np.log10, args[0], 8.5),
        relax=f"relax.op.divide(relax.op.log({{0}}), relax.const({math.log(10)!r}, {{dtype}}))",
        onnx=f'g.op("Div", g.op("Log", {{0}}), g.const({math.log(10)!r}, {{name}}))',
    ),
    _function(
        "erfc", lambda args, call: monotone(erfc_of, args[0], 16),
        tensorflow="tf.math.erfc({0})", jax="jax.lax.erfc({0})", relax=_NO_ERFC, onnx=_NO_ERFC,
    ),
    _function("sinc", _sinc, relax="sinc(bb, {0}, {dtype})", onnx="sinc(g, {0}, {name})"),
    _conversion("deg2rad", math.pi / 180),
    _conversion("rad2deg", 180 / math.pi),
    _function(
        "frac", _frac,
        tensorflow="{0} - tf.where({0} < 0, tf.math.ceil({0}), tf.math.floor({0}))", jax="{0} - jnp.trunc({0})",
        relax="relax.op.subtract({0}, relax.op.trunc({0}))", onnx="frac(g, {0}, {name})",
    ),
    _function(
        "signbit", _signbit, result=_boolean, tensorflow="signbit({0})",
        relax="signbit({0}, {dtype0})", onnx="signbit(g, {0}, {name0})",
    ),
    _function(
        "nan_to_num", _nan_to_num,
        attrs={"nan": one_of(0.0, 1.0, -2.5), "posinf": one_of(1.0, 8.0, 0.0, 65504.0),
               "neginf": one_of(-1.0, 0.0, -65504.0, 3.0)},
        torch="torch.nan_to_num({0}, nan={nan}, posinf={posinf}, neginf={neginf})",
        tensorflow="nan_to_num({0}, {nan}, {posinf}, {neginf})",
        jax="jnp.nan_to_num({0}, nan={nan}, posinf={posinf}, neginf={neginf})",
        relax="nan_to_num({0}, {nan}, {posinf}, {neginf}, {dtype})",
        onnx="nan_to_num(g, {0}, {nan}, {posinf}, {neginf}, {name})",
    ),
    _function(
        "logit", _logit, result=_logit_type, attrs={"eps": one_of(None, 0.125, 2.0**-10)},
        torch="torch.logit({0}, eps={eps})", tensorflow="logit({0}, {eps})", jax="logit({0}, {eps})",
        relax="logit(bb, {0}, {eps}, {dtype})", onnx="logit(g, {0}, {eps}, {name})",
    ),
    _function(
        "isposinf", _infinite(1.0), result=_boolean, tensorflow="tf.equal({0}, float('inf'))",
        relax=_equals("float('inf')"), onnx='g.op("IsInf", {0}, detect_negative=0)',
    ),
    _function(
        "isneginf", _infinite(-1.0), result=_boolean, tensorflow="tf.equal({0}, -float('inf'))",
        relax=_equals("-float('inf')"), onnx='g.op("IsInf", {0}, detect_positive=0)',
    ),
)  # fmt: skip
