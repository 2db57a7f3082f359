"""Further forms of operators: clamping to tensors, a quotient that is added, rounding to decimals, powers in float64,
the angle of real numbers, TensorFlow's operators of other names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import (
    PRECISION,
    U64,
    Bounded,
    add,
    divide,
    exact,
    holds_zero,
    multiply,
    rounded,
    settled,
)
from generators.graph import TensorType
from generators.ops.composed import compute
from generators.ops.elementwise.arithmetic import OPERATORS as ARITHMETIC
from generators.ops.elementwise.powers import pow_
from generators.ops.elementwise.records import NO_ONNX, NO_RELAX, numpy_binary
from generators.ops.elementwise.references import certainly_nan, exactly, unrounded
from generators.ops.elementwise.selection import extreme
from generators.ops.slots import broadcast, broadcastable, floating, like, numeric, one_of, same_as
from generators.ops.spec import Attrs, Call, OpSpec, Reference, ResultRule, Slot, Spelling, Types, only, unsupported

NO_TORCH = unsupported("PyTorch has no such operator")
NO_TENSORFLOW = unsupported("TensorFlow has no such operator")
NO_JAX = unsupported("JAX has no such operator")
_reciprocal = next(spec for spec in ARITHMETIC if spec.name == "reciprocal")


def _clamped(args: Sequence[Bounded], call: Call) -> Bounded:
    """min(max(x, low), high): high where the bounds cross (PyTorch's documentation, numpy's clip). NaN of x or of a
    bound stays."""
    x, low, high = args
    return extreme(np.minimum, extreme(np.maximum, x, low), high)


def _addcdiv(args: Sequence[Bounded], call: Call) -> Bounded:
    """x + value y / z, with `value` a power of two before or after the division: as of addcmul, what overflows in one
    order is undetermined; what underflows in one loses as much as there."""
    x, y, z = args
    factor = call.number("value")
    quotient = divide(y, z)
    scaled = multiply(quotient, exactly(factor, quotient))
    early = multiply(y, exactly(factor, y))
    with np.errstate(all="ignore"):
        numbers = np.isfinite(y.value) & np.isfinite(z.value) & (z.value != 0)
        loose = numbers & ~(np.isfinite(quotient.value) & np.isfinite(scaled.value) & np.isfinite(early.value))
        error = np.maximum(scaled.error, divide(early, z).error)
        return add(x, replace(scaled, error=np.where(loose, np.inf, error)))


def _decimals(args: Sequence[Bounded], call: Call) -> Bounded:
    """rint(x 10^d) / 10^d, d >= 0, or rint(x / 10^-d) 10^-d: a product (or a quotient of 2.5 ulp) whose rounding may
    pass a half. Undetermined where x 10^d overflows."""
    x, decimals = args[0], int(call.number("decimals"))
    power = exactly(10.0 ** abs(decimals), x)
    if 10.0 ** abs(decimals) > 2 / PRECISION[x.dtype].unit:
        power = replace(power, error=PRECISION[x.dtype].unit * power.value)
    before, after = (multiply, divide) if decimals >= 0 else (divide, multiply)
    moved = before(x, power)
    result = after(unrounded(np.rint, moved), power)
    with np.errstate(all="ignore"):
        over = np.isfinite(x.value) & ~(np.isfinite(moved.value) & np.isfinite(result.value))
    return Bounded(result.value, np.where(over, np.inf, result.error), x.dtype)


def _float_power(args: Sequence[Bounded], call: Call) -> Bounded:
    """The power of both operands as float64."""
    wide = [Bounded(x.value.astype(np.float64), x.error, "float64", x.zero_sign) for x in args]
    return compute(pow_, *wide)


def _float64(operands: Types, attrs: Attrs) -> TensorType:
    return replace(broadcast()(operands, attrs), dtype="float64")


def _angle(args: Sequence[Bounded], call: Call) -> Bounded:
    """0, or pi below 0. Of -0 it is pi for atan2(0, x), 0 for PyTorch: undetermined where there is a -0."""
    x = args[0]
    nan = certainly_nan(x)
    pi = rounded(np.full(x.value.shape, math.pi), np.zeros(x.value.shape), x.dtype)
    negative = x.value < 0
    minus = (x.value == 0) & (np.signbit(x.value) | (not x.zero_sign))
    value = np.where(nan, np.nan, np.where(negative, pi.value, 0.0))
    error = np.where(negative, pi.error, 0.0)
    return Bounded(value, np.where(nan, 0.0, np.where(minus | holds_zero(x) | x.undetermined, np.inf, error)), x.dtype)


def _approximately(args: Sequence[Bounded], call: Call) -> Bounded:
    """|x - y| < tolerance. The difference has a rounding, and so has the constant."""
    x, y = args
    tolerance = call.number("atol")
    with np.errstate(all="ignore"):
        distance = np.abs(x.value - y.value)
        error = x.error + y.error + (PRECISION[x.dtype].unit + U64) * (distance + tolerance) + PRECISION[x.dtype].tiny
        same = (x.value == y.value) & (x.error + y.error == 0)
        unsure = np.isfinite(x.value) & np.isfinite(y.value) & ~same & ~(np.abs(distance - tolerance) > error)
    return exact(distance < tolerance, "bool", settled(x, y, np.where(unsure, np.inf, 0.0)) > 0)


def _of_tensorflow(
    name: str, text: Spelling, reference: Reference, operands: tuple[Slot, ...], result: ResultRule
) -> OpSpec:
    return OpSpec(
        name, "binary" if len(operands) == 2 else "unary", operands, result, reference,
        torch=NO_TORCH, tensorflow=text, jax=NO_JAX, relax=NO_RELAX, onnx=NO_ONNX,
    )  # fmt: skip


OPERATORS: tuple[OpSpec, ...] = (
    OpSpec(
        "clip_tensors", "comparison", (numeric(), broadcastable(0), broadcastable(0)), broadcast(), _clamped,
        torch="torch.clamp({0}, {1}, {2})", tensorflow="tf.minimum(tf.maximum({0}, {1}), {2})",
        jax="jnp.clip({0}, {1}, {2})",
        relax="relax.op.minimum(relax.op.maximum({0}, {1}), {2})",
        onnx='g.op("Min", g.op("Max", {0}, {1}), {2})',
    ),
    OpSpec(
        "clip_min", "comparison", (numeric(), broadcastable(0)), broadcast(),
        lambda args, call: extreme(np.maximum, args[0], args[1]), torch="torch.clamp({0}, min={1})",
        tensorflow="tf.maximum({0}, {1})", jax="jnp.clip({0}, min={1})", relax="relax.op.maximum({0}, {1})",
        onnx='g.op("Max", {0}, {1})',
    ),
    OpSpec(
        "clip_max", "comparison", (numeric(), broadcastable(0)), broadcast(),
        lambda args, call: extreme(np.minimum, args[0], args[1]), torch="torch.clamp({0}, max={1})",
        tensorflow="tf.minimum({0}, {1})", jax="jnp.clip({0}, max={1})", relax="relax.op.minimum({0}, {1})",
        onnx='g.op("Min", {0}, {1})',
    ),
    numpy_binary(
        "addcdiv", _addcdiv, operands=(floating(), broadcastable(0), broadcastable(0)),
        attrs={"value": one_of(1.0, 0.5, -1.0, 2.0)}, torch="torch.addcdiv({0}, {1}, {2}, value={value})",
        tensorflow="{0} + {value} * {1} / {2}", jax="{0} + {value} * {1} / {2}",
        relax="relax.op.add({0}, relax.op.divide(relax.op.multiply(relax.const({value}, {dtype}), {1}), {2}))",
        onnx='g.op("Add", {0}, g.op("Div", g.op("Mul", g.const({value}, {name}), {1}), {2}))',
    ),
    OpSpec(
        "round_decimals", "rounding", (floating(),), same_as(0), _decimals, attrs={"decimals": one_of(1, 2, -1, 0, 3)},
        torch="torch.round({0}, decimals={decimals})", tensorflow=NO_TENSORFLOW,
        jax="jnp.round({0}, {decimals})", relax=NO_RELAX, onnx=NO_ONNX,
    ),
    OpSpec(
        "float_power", "binary", (numeric(), broadcastable(0)), _float64, _float_power,
        torch="torch.float_power({0}, {1})", tensorflow="tf.pow(tf.cast({0}, tf.float64), tf.cast({1}, tf.float64))",
        jax=only(("float64", "int64"), "its float_power keeps smaller types", "jnp.float_power({0}, {1})"),
        relax=NO_RELAX, onnx=NO_ONNX,
    ),
    OpSpec(
        "angle", "unary", (floating(),), same_as(0), _angle, torch="torch.angle({0})", tensorflow=NO_TENSORFLOW,
        jax="jnp.angle({0})", relax=NO_RELAX, onnx=NO_ONNX,
    ),
    OpSpec(
        "approximate_equal", "comparison", (floating(), like(0)),
        lambda operands, attrs: TensorType("bool", operands[0].shape), _approximately,
        attrs={"atol": one_of(1e-5, 0.5, 1e-3)},
        torch=NO_TORCH, tensorflow="tf.raw_ops.ApproximateEqual(x={0}, y={1}, tolerance={atol})", jax=NO_JAX,
        relax=NO_RELAX, onnx=NO_ONNX,
    ),
    _of_tensorflow("rint", "tf.raw_ops.Rint(x={0})", lambda args, call: unrounded(np.rint, args[0]), (floating(),),
                   same_as(0)),
    _of_tensorflow("inv", "tf.raw_ops.Inv(x={0})", _reciprocal.reference, (floating(),), same_as(0)),
)  # fmt: skip
