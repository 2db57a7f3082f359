"""Conversion to another dtype, and the same bits read as one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded, Precision, ends, exact, holds_zero, rounded
from generators.graph import COMMON, DTYPES, FLOATS, INTEGERS, RARE, Attr, TensorType
from generators.ops.slots import numeric, one_of, tensor
from generators.ops.spec import Attrs, Call, Draw, OpSpec, TypeRuleError, Types, unsupported


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


def _cast_to(d: Draw, operands: Types, attrs: Attrs) -> Attr:
    return d.choice(DTYPES if d.dtype in RARE else COMMON)


def _cast_type(operands: Types, attrs: Attrs) -> TensorType:
    if attrs["to"] not in DTYPES:
        raise TypeRuleError(f"{attrs['to']!r} is not a dtype")
    return TensorType(str(attrs["to"]), operands[0].shape)


cast = OpSpec(
    "cast", "unary", (tensor(),), _cast_type, _cast, attrs={"to": _cast_to}, signed_zero=True,
    torch="{0}.to({dtype})", tensorflow="tf.cast({0}, {dtype})", jax="{0}.astype({dtype})",
    relax="relax.op.astype({0}, {dtype})", onnx='g.op("Cast", {0}, to={dtype})',
)  # fmt: skip

# ---- the same bits ----

READ = (*FLOATS, *INTEGERS)
WIDTH = {dtype: np.empty(0, dtype).itemsize for dtype in READ}
_TENSORFLOW_ONLY = unsupported("only TensorFlow has such a cast")


def _bitcast(args: Sequence[Bounded], call: Call) -> Bounded:
    """Floating bits are known of numbers that are exact: not of NaN, which has many, nor of a zero whose sign is not
    known, nor of subnormal numbers, which may be flushed."""
    x, to = args[0], call.result.dtype
    with np.errstate(all="ignore"):
        bits = np.ascontiguousarray(x.value.astype(x.dtype)).view(to).reshape(x.value.shape)
        lost = x.undetermined
        if x.floating:
            size = np.abs(x.value)
            lost = lost | (x.error > 0) | np.isnan(x.value) | (size < PRECISION[x.dtype].tiny) & (size > 0)
            lost |= (size == 0) & (not x.zero_sign)
        if to not in PRECISION:
            return exact(bits, to, lost)
        value = bits.astype(np.float64)
        lost = lost | (np.abs(value) < PRECISION[to].tiny) & (value != 0)
    return Bounded(np.where(lost, 0.0, value), np.where(lost, np.inf, 0.0), to)


def _read_as(d: Draw, operands: Types, attrs: Attrs) -> Attr:
    of = operands[0].dtype
    return d.choice([dtype for dtype in READ if WIDTH[dtype] == WIDTH[of] and dtype != of])


def _bitcast_type(operands: Types, attrs: Attrs) -> TensorType:
    to = attrs["to"]
    if to not in WIDTH or WIDTH[to] != WIDTH[operands[0].dtype]:
        raise TypeRuleError(f"{operands[0]} is not as wide as {to!r}")
    return TensorType(str(to), operands[0].shape)


bitcast = OpSpec(
    "bitcast", "unary", (tensor(READ),), _bitcast_type, _bitcast, attrs={"to": _read_as},
    torch="{0}.view({dtype})", tensorflow="tf.bitcast({0}, {dtype})", jax="jax.lax.bitcast_convert_type({0}, {dtype})",
    relax=unsupported("Relax reads no bits as another dtype"),
    onnx='g.op("BitCast", {0}, to={dtype})',
)  # fmt: skip

# ---- to the nearest number that the dtype holds ----


def _saturated(args: Sequence[Bounded], call: Call) -> Bounded:
    """Towards zero, after what lies outside was brought to the limits of the dtype, or to the last number inside that
    the operand's dtype holds; as float64. NaN is left open, and so is an interval that crosses an integer."""
    x, info = args[0], np.iinfo(str(call.attrs["to"]))
    if not x.floating:
        whole = [min(max(int(v), int(info.min)), int(info.max)) for v in x.value.reshape(-1)]
        value = np.array(whole, dtype=np.float64).reshape(x.value.shape)
        return rounded(value, np.where(x.undetermined, np.inf, 0.0), "float64", 0.5)
    least, most, p = float(info.min), float(info.max), PRECISION[x.dtype]
    with np.errstate(all="ignore"):
        low, high = (np.clip(np.trunc(end), least, most) for end in ends(x))
        held = info.max < 2 / p.unit and most <= p.largest
        error = np.where((low >= most * (1 - 2 * p.unit)) & (not held), 4 * p.unit * most, 0.0)
        lost = (low != high) | np.isnan(x.value) | np.isnan(x.error) | np.isinf(x.value) & (p.largest < most)
    return Bounded(np.where(lost, 0.0, low), np.where(lost, np.inf, error), "float64")


def _saturated_type(operands: Types, attrs: Attrs) -> TensorType:
    if attrs["to"] not in INTEGERS:
        raise TypeRuleError(f"{attrs['to']!r} is no dtype of integers")
    return TensorType("float64", operands[0].shape)


saturate_cast = OpSpec(
    "saturate_cast", "unary", (numeric(),), _saturated_type, _saturated, attrs={"to": one_of(*INTEGERS)},
    torch=_TENSORFLOW_ONLY, jax=_TENSORFLOW_ONLY, relax=_TENSORFLOW_ONLY, onnx=_TENSORFLOW_ONLY,
    tensorflow=lambda call: f"tf.cast(tf.saturate_cast({{0}}, tf.{call.attrs['to']}), tf.float64)",
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (cast, bitcast, saturate_cast)
