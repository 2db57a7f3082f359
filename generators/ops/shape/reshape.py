"""The same elements in another shape: reshape, flatten, squeeze, broadcast_to and others."""

from __future__ import annotations

from math import prod

import numpy as np

from generators.graph import EVERY, TensorType
from generators.ops.shape.layout import ANY, DEEP, layout, moved
from generators.ops.slots import (
    MAX_ELEMENTS,
    MAX_RANK,
    axis_in,
    axis_of,
    draw_dim,
    draw_dtype,
    draw_shape,
    floating,
    int_of,
    ints_of,
    normalized,
    one_of,
    same_as,
    spreads_to,
    tensor,
)
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Shape, Slot, TypeRuleError, Types, Unsupported, unsupported

# ---- shapes -------------------------------------------------------------------------------------------


def _new_shape(d: Draw, operands: Types, attrs: Attrs) -> Shape:
    """Any factorisation of the size, with dimensions of 1 here and there."""
    rest = operands[0].size
    if rest == 0:
        shape = list(draw_shape(d, 1, MAX_RANK))
        shape[d.integer(0, len(shape) - 1)] = 0
        return tuple(shape)
    shape = []
    while rest > 1 and len(shape) < MAX_RANK:
        last = len(shape) == MAX_RANK - 1
        shape.append(rest if last else d.choice((rest, *(n for n in range(2, rest) if rest % n == 0))))
        rest //= shape[-1]
    while len(shape) < DEEP and d.integer(0, 3) == 3:
        shape.insert(d.integer(0, len(shape)), 1)
    return tuple(shape)


def _reshape_type(operands: Types, attrs: Attrs) -> TensorType:
    shape = ints_of(attrs, "shape", least=0)
    if prod(shape) != operands[0].size:
        raise TypeRuleError(f"cannot reshape {operands[0]} to {shape}")
    return TensorType(operands[0].dtype, shape)


def _onnx_reshape(call: Call) -> str:
    # without allowzero a 0 means "as in the operand"
    zero = ", allowzero=1" if 0 in call.result.shape else ""
    return f'g.op("Reshape", {{0}}, g.const({{shape}}, "int64"){zero})'


def _relax_reshape(call: Call) -> str | Unsupported:
    old, new = call.operands[0].shape, call.result.shape
    if any(dim == 0 and (axis >= len(old) or old[axis] != 0) for axis, dim in enumerate(new)):
        return Unsupported("relax.op.reshape reads 0 in a shape as the operand's dimension of that place")
    return f"relax.op.reshape({{0}}, {new})"


def _matrix_type(operands: Types, attrs: Attrs) -> TensorType:
    shape, axis = operands[0].shape, int_of(attrs, "axis")
    if not -len(shape) <= axis <= len(shape):
        raise TypeRuleError(f"axis {axis} is outside {operands[0]}")
    cut = axis + len(shape) if axis < 0 else axis
    return TensorType(operands[0].dtype, (prod(shape[:cut]), prod(shape[cut:])))


def _cut(d: Draw, operands: Types, attrs: Attrs) -> int:
    rank = operands[0].rank
    return d.choice((*range(min(rank, 1), rank + 1), 0, *range(-rank, 0)))


def _ones(shape: Shape) -> Shape:
    return tuple(axis for axis, dim in enumerate(shape) if dim == 1)


def _fresh_with_one(d: Draw, earlier: Types) -> TensorType:
    shape = list(draw_shape(d, 0, MAX_RANK - 1))
    shape.insert(d.integer(0, len(shape)), 1)
    return TensorType(draw_dtype(d, EVERY), tuple(shape))


def _unit_axes(d: Draw, operands: Types, attrs: Attrs) -> Shape:
    units, rank = _ones(operands[0].shape), operands[0].rank
    first = d.choice(units)
    chosen = [axis for axis in units if axis == first or d.boolean()]
    return tuple(axis - rank if d.integer(0, 3) == 3 else axis for axis in chosen)


def _squeeze_type(operands: Types, attrs: Attrs) -> TensorType:
    shape = operands[0].shape
    axes = normalized(ints_of(attrs, "axes"), len(shape))
    if not axes or any(shape[axis] != 1 for axis in axes):
        raise TypeRuleError(f"cannot squeeze axes {axes} of {operands[0]}")
    return TensorType(operands[0].dtype, tuple(dim for axis, dim in enumerate(shape) if axis not in axes))


def _unsqueeze_type(operands: Types, attrs: Attrs) -> TensorType:
    shape = list(operands[0].shape)
    shape.insert(axis_in(attrs, len(shape) + 1), 1)
    return TensorType(operands[0].dtype, tuple(shape))


def _wider(d: Draw, operands: Types, attrs: Attrs) -> Shape:
    """Dimensions of 1 grow, new ones come before."""
    shape = list(operands[0].shape)
    room = MAX_ELEMENTS // max(1, operands[0].size)
    while len(shape) < MAX_RANK and d.integer(0, 2) > 0:
        shape.insert(0, draw_dim(d, room))
        room //= max(1, shape[0])
    for axis in range(len(shape) - operands[0].rank, len(shape)):
        if shape[axis] == 1 and d.boolean():
            shape[axis] = draw_dim(d, room)
            room //= max(1, shape[axis])
    return tuple(shape)


def _broadcast_to_type(operands: Types, attrs: Attrs) -> TensorType:
    shape = ints_of(attrs, "shape", least=0)
    if not spreads_to(operands[0].shape, shape):
        raise TypeRuleError(f"cannot broadcast {operands[0]} to {shape}")
    return TensorType(operands[0].dtype, shape)


# ---- records ------------------------------------------------------------------------------------------

identity = layout(
    "identity", ANY, same_as(0), moved(lambda x, call: x),
    torch="torch.clone({0})", tensorflow="tf.identity({0})", jax="jnp.copy({0})",
    relax="{0}", onnx='g.op("Identity", {0})',
)  # fmt: skip

dropout_off = layout(
    "dropout_off", floating(), same_as(0), moved(lambda x, call: x), attrs={"rate": one_of(0.5, 0.0, 0.25)},
    torch="torch.nn.functional.dropout({0}, {rate}, training=False)", tensorflow="tf.nn.dropout({0}, 0.0)",
    jax=unsupported("JAX has no dropout"), relax="relax.op.nn.dropout({0}, rate={rate})[0]",
    onnx='g.op("Dropout", {0}, g.const({rate}, "float32"), g.const(False, "bool"))',
)  # fmt: skip

reshape = layout(
    "reshape", ANY, _reshape_type, moved(lambda x, call: x.reshape(call.result.shape)),
    attrs={"shape": _new_shape},
    torch="torch.reshape({0}, {shape})", tensorflow="tf.reshape({0}, {shape})",
    jax="jnp.reshape({0}, {shape})", relax=_relax_reshape, onnx=_onnx_reshape,
)  # fmt: skip

flatten = layout(
    "flatten", ANY, lambda operands, attrs: TensorType(operands[0].dtype, (operands[0].size,)),
    moved(lambda x, call: x.reshape(-1)),
    torch="torch.flatten({0})", tensorflow="tf.reshape({0}, [-1])", jax="jnp.ravel({0})",
    relax="relax.op.flatten({0})", onnx='g.op("Reshape", {0}, g.const([-1], "int64"))',
)  # fmt: skip

flatten_2d = layout(
    "flatten_2d", ANY, _matrix_type, moved(lambda x, call: x.reshape(call.result.shape)),
    attrs={"axis": _cut},
    torch="torch.reshape({0}, {shape})", tensorflow="tf.reshape({0}, {shape})",
    jax="jnp.reshape({0}, {shape})", relax=_relax_reshape,
    onnx='g.op("Flatten", {0}, axis={axis})',
)  # fmt: skip

squeeze = layout(
    "squeeze", Slot(lambda type_, earlier: ANY.accepts(type_, ()) and 1 in type_.shape, _fresh_with_one),
    _squeeze_type, moved(lambda x, call: x.reshape(call.result.shape)),
    attrs={"axes": _unit_axes},
    torch="torch.squeeze({0}, dim={axes})", tensorflow="tf.squeeze({0}, axis={axes})",
    jax="jnp.squeeze({0}, axis={axes})", relax="relax.op.squeeze({0}, axis=list({axes}))",
    onnx='g.op("Squeeze", {0}, g.const({axes}, "int64"))',
)  # fmt: skip

unsqueeze = layout(
    "unsqueeze", tensor(EVERY), _unsqueeze_type, moved(lambda x, call: x.reshape(call.result.shape)),
    attrs={"axis": axis_of(0, extra=1)},
    torch="torch.unsqueeze({0}, dim={axis})", tensorflow="tf.expand_dims({0}, axis={axis})",
    jax="jnp.expand_dims({0}, axis={axis})", relax="relax.op.expand_dims({0}, axis={axis})",
    onnx='g.op("Unsqueeze", {0}, g.const([{axis}], "int64"))',
)  # fmt: skip

broadcast_to = layout(
    "broadcast_to", tensor(EVERY), _broadcast_to_type,
    moved(lambda x, call: np.broadcast_to(x, call.result.shape)),
    attrs={"shape": _wider},
    torch="torch.broadcast_to({0}, {shape})", tensorflow="tf.broadcast_to({0}, {shape})",
    jax="jnp.broadcast_to({0}, {shape})", relax="relax.op.broadcast_to({0}, {shape})",
    onnx='g.op("Expand", {0}, g.const({shape}, "int64"))',
)  # fmt: skip

# ---- unflatten ----------------------------------------------------------------------------------------


def _unflattened(d: Draw, operands: Types, attrs: Attrs) -> Shape:
    dim = operands[0].shape[axis_in(attrs, operands[0].rank)]
    factors = tuple(n for n in range(1, dim + 1) if dim % n == 0)
    first = d.choice(factors) if factors else 2
    return first, dim // first


def _unflatten_type(operands: Types, attrs: Attrs) -> TensorType:
    axis, sizes = axis_in(attrs, operands[0].rank), ints_of(attrs, "sizes", least=0)
    shape = operands[0].shape
    if not sizes or prod(sizes) != shape[axis]:
        raise TypeRuleError(f"cannot make {sizes} of a dimension of {shape[axis]}")
    return TensorType(operands[0].dtype, (*shape[:axis], *sizes, *shape[axis + 1 :]))


unflatten = layout(
    "unflatten", tensor(min_rank=1), _unflatten_type, moved(lambda x, call: x.reshape(call.result.shape)),
    attrs={"axis": axis_of(0), "sizes": _unflattened},
    torch="torch.unflatten({0}, {axis}, {sizes})", tensorflow="tf.reshape({0}, {shape})",
    jax="jnp.reshape({0}, {shape})", relax="relax.op.reshape({0}, {shape})",
    onnx='g.op("Reshape", {0}, g.const({shape}, "int64"), allowzero=1)',
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (
    identity,
    dropout_off,
    reshape,
    flatten,
    flatten_2d,
    unflatten,
    squeeze,
    unsqueeze,
    broadcast_to,
)
