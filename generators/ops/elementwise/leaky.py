"""ReLU with a slope below zero: a number, one for each channel, or whatever broadcasts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded, ends, multiply, rounded
from generators.graph import TensorType
from generators.ops.elementwise.records import activation, by_dtype
from generators.ops.slots import floating, one_of, spreads_to
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Slot, Spelling, TypeRuleError, Types

Array = np.ndarray


def _leaky(x: Bounded, below: Bounded, steepness: Array | float) -> Bounded:
    """x above zero, `below` under it. Where x may be on either side the result moves by at most
    max(1, steepness) * x.error, beside the errors of `below`."""
    with np.errstate(all="ignore"):
        above = (ends(x)[0] >= 0) & (x.value > 0)
        either = (x.error > 0) & (np.abs(x.value) <= x.error)
        value = np.where(x.value > 0, x.value, below.value)
        error = np.where(above, x.error, below.error)
        across = np.maximum(1.0, steepness) * x.error * (1 + 4 * PRECISION[x.dtype].unit) + below.error
        error = np.where(either, np.maximum(error, across), error)
        error = np.where(x.undetermined, np.inf, np.where(np.isnan(error), np.inf, error))
    return Bounded(value, error, x.dtype)


def _leaky_relu(args: Sequence[Bounded], call: Call) -> Bounded:
    """alpha is rounded to the dtype, then the product is. 0 * -inf is NaN, or 0 for those who make relu of it."""
    x, alpha = args[0], call.number("alpha")
    with np.errstate(all="ignore"):
        own = 0.0 if (2 * alpha).is_integer() else 0.5
        moved = np.where(x.error == 0, 0.0, abs(alpha) * x.error)
        below = rounded(alpha * x.value, np.where(np.isfinite(x.value), moved, x.error), x.dtype, 0.5 + own)
    result = _leaky(x, below, abs(alpha))
    return replace(result, error=np.where(np.isneginf(x.value) & (alpha == 0), np.inf, result.error))


def _prelu(args: Sequence[Bounded], call: Call) -> Bounded:
    """0 times an infinite or undetermined slope is NaN for those who take the product at 0 (x > 0 or x >= 0)."""
    x, given = args
    column = (-1,) + (1,) * (x.value.ndim - 2)
    return _sloped(x, given.map(lambda a: np.broadcast_to(a.reshape(column), x.value.shape)))


def _prelu_broadcast(args: Sequence[Bounded], call: Call) -> Bounded:
    """As prelu, by a slope of any shape that broadcasts to that of the operand, from the last dimension on."""
    x, given = args
    return _sloped(x, given.map(lambda a: np.broadcast_to(a, x.value.shape)))


def _sloped(x: Bounded, slope: Bounded) -> Bounded:
    result = _leaky(x, multiply(x, slope), np.abs(slope.value) + slope.error)
    with np.errstate(all="ignore"):
        zero = (np.abs(x.value) <= x.error) & ~(np.isfinite(slope.value) & np.isfinite(slope.error))
    return replace(result, error=np.where(zero, np.inf, result.error))


def _column(text: str, double: str | None = None) -> Spelling:
    """`text` with {column}: the shape in which the slopes broadcast against the channels, dimension 1."""

    def spell(call: Call) -> str:
        shape = (*call.operands[1].shape, *(1,) * (call.operands[0].rank - 2))
        chosen = double if double and call.result.dtype == "float64" else text
        return chosen.replace("{column}", str(list(shape)))

    return spell


def _one_or_per_channel() -> Slot:
    def accepts(type_: TensorType, earlier: Types) -> bool:
        return type_.dtype == earlier[0].dtype and type_.shape in ((earlier[0].shape[1],), (1,))

    def fresh(d: Draw, earlier: Types) -> TensorType:
        return TensorType(earlier[0].dtype, (earlier[0].shape[1] if d.integer(0, 3) < 3 else 1,))

    return Slot(accepts, fresh)


def _prelu_type(operands: Types, attrs: Attrs) -> TensorType:
    x, slope = operands
    if x.rank < 2 or slope.dtype != x.dtype or slope.shape not in ((x.shape[1],), (1,)):
        raise TypeRuleError(f"{slope} is no slope for the channels of {x}")
    return x


def _spreading() -> Slot:
    """What broadcasts to operand 0 and leaves its shape as it is: usually one number for each place of the last
    dimension."""

    def accepts(type_: TensorType, earlier: Types) -> bool:
        return type_.dtype == earlier[0].dtype and spreads_to(type_.shape, earlier[0].shape)

    def fresh(d: Draw, earlier: Types) -> TensorType:
        shape = earlier[0].shape
        kept = shape[d.choice((-1, -1, *range(-len(shape), 0))) :]
        return TensorType(earlier[0].dtype, tuple(dim if d.integer(0, 3) < 3 else 1 for dim in kept))

    return Slot(accepts, fresh)


def _prelu_broadcast_type(operands: Types, attrs: Attrs) -> TensorType:
    x, slope = operands
    if not x.rank or slope.dtype != x.dtype or not spreads_to(slope.shape, x.shape):
        raise TypeRuleError(f"{slope} does not broadcast to {x}")
    return x


def _prelu_along_last(call: Call) -> str:
    if call.operands[0].shape[-1:] == call.operands[1].shape:
        return "relax.op.nn.prelu({0}, {1}, axis=-1)"
    return "relax.op.where(relax.op.greater({0}, relax.const(0, {dtype})), {0}, relax.op.multiply({0}, {1}))"


_ONNX_LEAKY = 'leaky(g, {0}, g.op("Mul", {0}, g.const({alpha}, {name})), {name})'
_ONNX_COLUMN = 'g.op("Reshape", {1}, g.const({column}, "int64"), allowzero=1)'
_LEAKY_SLOPES = one_of(0.5, 0.01, 0.2, 0.0, 1.0, 2.0, -0.5)


OPERATORS: tuple[OpSpec, ...] = (
    activation("leaky_relu", _leaky_relu, "leaky_relu({0}, negative_slope={alpha})",
               "tf.nn.leaky_relu({0}, alpha={alpha})", "jax.nn.leaky_relu({0}, negative_slope={alpha})",
               "relax.op.nn.leakyrelu({0}, alpha={alpha})",
               by_dtype('g.op("LeakyRelu", {0}, alpha={alpha})', float64=_ONNX_LEAKY), {"alpha": _LEAKY_SLOPES}),
    activation("prelu", _prelu, "prelu({0}, {1})", _column("tf.where({0} > 0, {0}, {0} * tf.reshape({1}, {column}))"),
               _column("jnp.where({0} > 0, {0}, {0} * jnp.reshape({1}, {column}))"),
               "relax.op.nn.prelu({0}, {1}, axis=1)",
               _column(f'g.op("PRelu", {{0}}, {_ONNX_COLUMN})',
                       f'leaky(g, {{0}}, g.op("Mul", {{0}}, {_ONNX_COLUMN}), {{name}})'),
               operands=(floating(min_rank=2), _one_or_per_channel()), result=_prelu_type),
    OpSpec(
        "prelu_broadcast", "activation", (floating(min_rank=1), _spreading()), _prelu_broadcast_type, _prelu_broadcast,
        torch="torch.where({0} > 0, {0}, {0} * {1})", tensorflow="tf.where({0} > 0, {0}, {0} * {1})",
        jax="jnp.where({0} > 0, {0}, {0} * {1})", relax=_prelu_along_last,
        onnx=by_dtype('g.op("PRelu", {0}, {1})', float64='leaky(g, {0}, g.op("Mul", {0}, {1}), {name})'),
    ),
)  # fmt: skip
