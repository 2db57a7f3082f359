"""Elementwise functions of one operand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import (
    PRECISION,
    SMALLEST,
    Bounded,
    Precision,
    divide,
    ends,
    exact,
    holds_zero,
    monotone,
    rounded,
    smooth,
    spread,
)
from generators.graph import COMMON, DTYPES, RARE, Attr, TensorType
from generators.ops.slots import boolean, floating, numeric, same_as, tensor
from generators.ops.spec import (
    Call,
    Draw,
    OpSpec,
    Reference,
    ResultRule,
    Slot,
    Spelling,
    TypeRuleError,
    Types,
    Unsupported,
    unsupported,
)

Array = np.ndarray
Function = Callable[[Array], Array]

# np.vectorize rather than np.frompyfunc: it takes size-0 arrays and gives float64
erf_of: Function = np.vectorize(math.erf, otypes=[np.float64])

_NO_RELAX = unsupported("Relax has no such operator")
_NO_ONNX = unsupported("ONNX has no such operator")


# ---- references ---------------------------------------------------------------------------------------


def unrounded(f: Function, x: Bounded) -> Bounded:
    """f of x where f is monotone and its value needs no rounding (a step, a clamp): the spread of the ends.
    A zero that may come from either side is of unknown sign."""
    with np.errstate(all="ignore"):
        value = np.asarray(f(x.value), dtype=np.float64)
        error = np.where(x.undetermined, np.inf, spread(value, *(f(end) for end in ends(x))))
        error = np.where((value == 0) & (error == 0) & holds_zero(x), SMALLEST, error)
    return Bounded(value, error, x.dtype)


def _ulps(f: Function, ulps: float) -> Reference:
    """Monotone on each side of every pole and edge of its domain (or even, and monotone for x > 0)."""
    return lambda args, call: monotone(f, args[0], ulps)


def _exponential(f: Function, ulps: float) -> Reference:
    """Grows like exp. Where the reference's own float64 leaves its range a float64 back end may just stay
    inside: an underflow may be a subnormal, and the last argument before an overflow decides nothing."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x = args[0]
        result = monotone(f, x, ulps)
        across = np.isinf(result.value) & holds_zero(x)  # cosh: the ends may overflow both
        result = replace(result, error=np.where(across, np.inf, result.error))
        if x.dtype != "float64":
            return result
        with np.errstate(all="ignore"):
            number = np.isfinite(x.value) & (x.value != 0)
            edge = number & np.isinf(result.value) & np.isfinite(f(np.nextafter(x.value, 0.0)))
            error = np.where(edge, np.inf, result.error)
            error += np.where(number & (result.value == 0), PRECISION[x.dtype].tiny, 0.0)
        return replace(result, error=error)

    return reference


def _on_unit_interval(f: Function, ulps: float) -> Reference:
    """Monotone on [-1, 1]; NaN outside, unless the operand's interval reaches across."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x = args[0]
        result = monotone(f, x, ulps)
        with np.errstate(all="ignore"):
            reaches = np.isnan(result.value) & (x.error > 0) & (np.abs(x.value) - x.error <= 1)
        return replace(result, error=np.where(reaches, np.inf, result.error))

    return reference


def _wave(f: Function, slope: Function) -> Reference:
    """sin and cos: |f''| <= 1, and no two values are further apart than 2; 4 ulp."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x = args[0]
        result = smooth(f, slope, 1.0, x, 4)
        with np.errstate(all="ignore"):
            most = (1 + np.abs(result.value)) * (1 + 8 * PRECISION[x.dtype].unit)
            known = np.isfinite(x.error) & np.isfinite(result.value)
            error = np.where(known, np.minimum(result.error, most), result.error)
        return replace(result, error=error)

    return reference


def _tan(args: Sequence[Bounded], call: Call) -> Bounded:
    """Monotone between poles; the distance to the nearest one is asin |cos x|. 5 ulp."""
    x = args[0]
    result = monotone(np.tan, x, 5)
    with np.errstate(all="ignore"):
        pole = (x.error > 0) & ~(np.arcsin(np.abs(np.cos(x.value))) > x.error)
    return replace(result, error=np.where(pole, np.inf, result.error))


def _neg(args: Sequence[Bounded], call: Call) -> Bounded:
    x = args[0]
    with np.errstate(all="ignore"):
        return Bounded(-x.value, x.error, x.dtype)


def _abs(args: Sequence[Bounded], call: Call) -> Bounded:
    """Never further from |x| than the operand is from x; the least integer is its own magnitude (it wraps)."""
    x = args[0]
    with np.errstate(all="ignore"):
        return Bounded(np.abs(x.value), x.error, x.dtype)


def _sign(args: Sequence[Bounded], call: Call) -> Bounded:
    """NaN is undetermined: PyTorch documents no value for it (and gives 0), numpy, TF and JAX give NaN."""
    x = args[0]
    if not x.floating:
        return exact(np.sign(x.value), x.dtype, x.undetermined)
    result = unrounded(np.sign, x)
    return replace(result, error=np.where(np.isnan(x.value), np.inf, result.error))


def _square(args: Sequence[Bounded], call: Call) -> Bounded:
    """x^2 moves by (2 |x| + e) e over [x - e, x + e]."""
    x = args[0]
    with np.errstate(all="ignore"):
        value = x.value * x.value
        if not x.floating:
            return exact(value, x.dtype, x.undetermined)
        error = np.where(x.error == 0, 0.0, x.error * (2 * np.abs(x.value) + x.error))
        error += np.where((value == 0) & (x.value != 0), PRECISION[x.dtype].tiny, 0.0)
        return rounded(value, np.where(np.isnan(error), np.inf, error), x.dtype)


def _rsqrt(args: Sequence[Bounded], call: Call) -> Bounded:
    """2 ulp, which leaves room for 1 / sqrt(x), both correctly rounded. A zero is a pole whose side is its
    sign (IEEE 754-2019, 9.2.1: rSqrt(-0) is -inf)."""
    x = args[0]
    result = monotone(lambda v: 1 / np.sqrt(v), x, 2)
    side = (x.value == 0) & (not x.zero_sign)
    return replace(result, error=np.where(side, np.inf, result.error))


def _reciprocal(args: Sequence[Bounded], call: Call) -> Bounded:
    x = args[0]
    one = Bounded(np.ones(x.value.shape), np.zeros(x.value.shape), x.dtype, zero_sign=True)
    return divide(one, x)


def _predicate(f: Function) -> Reference:
    return lambda args, call: exact(f(args[0].value), "bool", args[0].undetermined)


# ---- cast ---------------------------------------------------------------------------------------------


def _cast(args: Sequence[Bounded], call: Call) -> Bounded:
    """To a floating dtype: IEEE 754 convertFormat and convertFromInt, correctly rounded. To bool: is it other
    than 0 (NaN is). Integer to integer: the low bits. Floating to integer: towards zero, see `_truncated`."""
    x, to = args[0], call.result.dtype
    if to in PRECISION:
        return _cast_to_float(x, to)
    if to == "bool":
        return exact(x.value != 0, to, x.undetermined | (x.floating & holds_zero(x)))
    if x.floating:
        return _truncated(x, to)
    return exact(x.value.astype(to), to, x.undetermined)


# Many back ends reach the 16-bit formats through float32, whose own rounding comes on top: in ulps of the result
_BY_WAY_OF_FLOAT32 = {dtype: 0.5 * 2.0**-24 / p.unit if p.unit > 2.0**-24 else 0.0 for dtype, p in PRECISION.items()}


def _holds_all(to: Precision, of: Precision) -> bool:
    """Are all numbers of one format (normal ones) numbers of another one?"""
    return to.unit <= of.unit and to.tiny <= of.tiny and to.largest >= of.largest


def _cast_to_float(x: Bounded, to: str) -> Bounded:
    with np.errstate(all="ignore"):
        value = x.value.astype(np.float64)
        if x.floating and _holds_all(PRECISION[to], PRECISION[x.dtype]):
            return Bounded(value, x.error, to)
        result = rounded(value, x.error, to, 0.5 + _BY_WAY_OF_FLOAT32[to])
        fits = (value.astype(to) == value) & (np.abs(value) >= PRECISION[to].tiny) | (value == 0)
        if not x.floating:  # an int64 need not be a float64 either
            fits &= (np.abs(value) < 2.0**53) & (x.error == 0)
        return Bounded(result.value, np.where(fits & (x.error == 0), 0.0, result.error), to)


def _truncated(x: Bounded, to: str) -> Bounded:
    """NaN and what the dtype does not hold are undetermined (C23 6.3.1.4), and so is an interval that crosses
    an integer. The limits are powers of two, so that the comparison is exact."""
    info = np.iinfo(to)
    least, limit = float(info.min), 2.0 ** (info.bits - (info.min < 0))
    with np.errstate(all="ignore"):
        low, high = (np.trunc(end) for end in ends(x))
        known = (low == high) & (low >= least) & (high < limit) & ~x.undetermined
        return exact(np.where(known, low, 0.0), to, ~known)


def _cast_to(d: Draw, operands: Types, attrs: Mapping[str, Attr]) -> Attr:
    return d.choice(DTYPES if d.dtype in RARE else COMMON)


def _cast_type(operands: Types, attrs: Mapping[str, Attr]) -> TensorType:
    if attrs["to"] not in DTYPES:
        raise TypeRuleError(f"{attrs['to']!r} is not a dtype")
    return TensorType(str(attrs["to"]), operands[0].shape)


def _boolean_result(operands: Types, attrs: Mapping[str, Attr]) -> TensorType:
    return TensorType("bool", operands[0].shape)


# ---- records ------------------------------------------------------------------------------------------


def _unary(
    name: str,
    reference: Reference,
    torch: str,
    tensorflow: str,
    jax: str,
    relax: str | Unsupported,
    onnx: str | Unsupported,
    *,
    operand: Slot | None = None,
    result: ResultRule | None = None,
    signed_zero: bool = False,
) -> OpSpec:
    """A spelling without a parenthesis is the name of a function (or ONNX operator) of the one operand."""

    def applied(text: str | Unsupported, template: str = "{name}({{0}})") -> Spelling:
        return template.format(name=text) if isinstance(text, str) and "(" not in text else text

    return OpSpec(
        name, "unary", (operand or floating(),), result or same_as(0), reference,
        torch=applied(torch), tensorflow=applied(tensorflow), jax=applied(jax), relax=applied(relax),
        onnx=applied(onnx, 'g.op("{name}", {{0}})'), signed_zero=signed_zero,
    )  # fmt: skip


def _named(
    name: str,
    reference: Reference,
    onnx: str | Unsupported,
    *,
    torch: str = "",
    tensorflow: str = "",
    jax: str = "",
    relax: str | Unsupported = "",
    operand: Slot | None = None,
    result: ResultRule | None = None,
    signed_zero: bool = True,
) -> OpSpec:
    """The frameworks call it `name`, except where another name is given."""
    return _unary(
        name, reference, torch or f"torch.{name}", tensorflow or f"tf.math.{name}", jax or f"jnp.{name}",
        relax or f"relax.op.{name}", onnx, operand=operand, result=result, signed_zero=signed_zero,
    )  # fmt: skip


_ARITHMETIC: tuple[OpSpec, ...] = (
    _named("neg", _neg, "Neg", tensorflow="tf.negative", jax="jnp.negative", relax="relax.op.negative",
           operand=numeric()),
    _named("abs", _abs, "Abs", operand=numeric()),
    _named("sign", _sign, "Sign", operand=numeric(), signed_zero=False),
    _named("square", _square, 'g.op("Mul", {0}, {0})', operand=numeric()),
    _named("reciprocal", _reciprocal, "Reciprocal", relax="relax.op.divide(relax.const(1.0, {name}), {0})"),
    _named("sqrt", _ulps(np.sqrt, 3), "Sqrt"),
    _named("rsqrt", _rsqrt, 'g.op("Reciprocal", g.op("Sqrt", {0}))', jax="jax.lax.rsqrt"),
)  # fmt: skip

exp = _named("exp", _exponential(np.exp, 3), "Exp", signed_zero=False)
log = _named("log", _ulps(np.log, 3), "Log", signed_zero=False)

# C Annex F.10 gives all of these a zero of the operand's sign for a zero, unless signed_zero=False (f(0) != 0,
# or a zero that comes from elsewhere than a zero)
_TRANSCENDENTAL: tuple[OpSpec, ...] = (
    exp,
    _named("expm1", _exponential(np.expm1, 3), _NO_ONNX, relax=_NO_RELAX),
    log,
    _named("log1p", _ulps(np.log1p, 2), _NO_ONNX, relax=_NO_RELAX),
    # log(x) / log(2), which is how JAX and TensorFlow define it: 3 + 2.5 ulp, and 3 of the constant
    _named("log2", _ulps(np.log2, 8.5), _NO_ONNX, relax=_NO_RELAX, tensorflow="tf.experimental.numpy.log2",
           signed_zero=False),
    _named("sin", _wave(np.sin, np.cos), "Sin"),
    _named("cos", _wave(np.cos, np.sin), "Cos", signed_zero=False),
    _named("tan", _tan, "Tan"),
    _named("asin", _on_unit_interval(np.arcsin, 4), "Asin", jax="jnp.arcsin"),
    _named("acos", _on_unit_interval(np.arccos, 4), "Acos", jax="jnp.arccos", signed_zero=False),
    _named("atan", _ulps(np.arctan, 5), "Atan", jax="jnp.arctan"),
    _named("sinh", _exponential(np.sinh, 4), "Sinh"),
    _named("cosh", _exponential(np.cosh, 4), "Cosh", signed_zero=False),
    _named("tanh", _ulps(np.tanh, 5), "Tanh"),
    _named("asinh", _ulps(np.arcsinh, 4), "Asinh", jax="jnp.arcsinh"),
    _named("acosh", _ulps(np.arccosh, 4), "Acosh", jax="jnp.arccosh", signed_zero=False),
    _named("atanh", _on_unit_interval(np.arctanh, 5), "Atanh", jax="jnp.arctanh"),
    _named("erf", _ulps(erf_of, 16), "Erf", jax="jax.lax.erf"),
)  # fmt: skip


def _step(f: Function) -> Reference:
    return lambda args, call: unrounded(f, args[0])


# IEEE 754-2019, 5.9: the sign of a zero result is the sign of the operand
_ROUNDING: tuple[OpSpec, ...] = (
    _named("floor", _step(np.floor), "Floor"),
    _named("ceil", _step(np.ceil), "Ceil"),
    _named("round", _step(np.rint), "Round", tensorflow="tf.round"),
    _named("trunc", _step(np.trunc),
           'g.op("Where", g.op("Less", {0}, g.const(0, {name})), g.op("Ceil", {0}), g.op("Floor", {0}))',
           tensorflow="tf.where({0} < 0, tf.math.ceil({0}), tf.math.floor({0}))"),
)  # fmt: skip

_PREDICATES: tuple[OpSpec, ...] = (
    _named("isnan", _predicate(np.isnan), "IsNaN", tensorflow="tf.math.is_nan", result=_boolean_result),
    _named("isinf", _predicate(np.isinf), "IsInf", tensorflow="tf.math.is_inf", result=_boolean_result),
    _named("isfinite", _predicate(np.isfinite),
           'g.op("Not", g.op("Or", g.op("IsNaN", {0}), g.op("IsInf", {0})))',
           tensorflow="tf.math.is_finite", result=_boolean_result),
    _named("logical_not", _predicate(np.logical_not), "Not", operand=boolean()),
)  # fmt: skip

cast = OpSpec(
    "cast", "unary", (tensor(),), _cast_type, _cast, attrs={"to": _cast_to}, signed_zero=True,
    torch="{0}.to({dtype})", tensorflow="tf.cast({0}, {dtype})", jax="{0}.astype({dtype})",
    relax="relax.op.astype({0}, {dtype})", onnx='g.op("Cast", {0}, to={dtype})',
)  # fmt: skip

UNARY = (*_ARITHMETIC, *_TRANSCENDENTAL, *_ROUNDING, *_PREDICATES, cast)
