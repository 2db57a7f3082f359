"""Grids, members and pieces: what array libraries have of tensors as sets and sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import Bounded, exact
from generators.graph import FLOATS, INTEGERS, TensorType
from generators.ops.composed import compute, joined
from generators.ops.reduce.cumulative import cumsum
from generators.ops.reduce.reductions import mean
from generators.ops.shape.reshape import Attrs, axis_in, int_of
from generators.ops.slots import (
    MAX_ELEMENTS,
    NUMBERS,
    axis_of,
    draw_dim,
    draw_dtype,
    flag,
    numeric,
    one_of,
    tensor,
)
from generators.ops.spec import Call, Draw, OpSpec, Slot, Spelling, TypeRuleError, Types, only, unsupported

# ---- grids --------------------------------------------------------------------------------------------


def _beside(type_: TensorType, earlier: Types) -> bool:
    return type_.dtype == earlier[0].dtype and type_.rank == 1 and type_.size * earlier[0].size <= MAX_ELEMENTS


def _fresh_beside(d: Draw, earlier: Types) -> TensorType:
    return TensorType(earlier[0].dtype, (draw_dim(d, max(1, MAX_ELEMENTS // max(1, earlier[0].size))),))


def _grid_type(operands: Types, attrs: Attrs) -> TensorType:
    if any(o.rank != 1 for o in operands) or not _beside(operands[1], operands[:1]):
        raise TypeRuleError(f"no grid of {operands[0]} and {operands[1]}")
    shape = (operands[0].size, operands[1].size)
    return TensorType(operands[0].dtype, shape if attrs["indexing"] == "ij" else shape[::-1])


def _along(call: Call) -> int:
    """The axis of the grid along which the picked operand lies."""
    return int_of(call.attrs, "pick") if call.attrs["indexing"] == "ij" else 1 - int_of(call.attrs, "pick")


def _grid(args: Sequence[Bounded], call: Call) -> Bounded:
    x, other = args[int_of(call.attrs, "pick")], 1 - _along(call)
    return x.map(lambda array: np.broadcast_to(np.expand_dims(array, other), call.result.shape))


def _spread(text: str) -> Spelling:
    """The picked operand with a new axis."""
    return lambda call: text.replace("<x>", f"{{{call.attrs['pick']}}}").replace("<axis>", str(1 - _along(call)))


meshgrid = OpSpec(
    "meshgrid", "grids", (tensor(min_rank=1, max_rank=1), Slot(_beside, _fresh_beside)), _grid_type, _grid,
    attrs={"indexing": one_of("ij", "xy"), "pick": one_of(0, 1)}, signed_zero=True,
    torch="torch.meshgrid({0}, {1}, indexing={indexing})[{pick}].contiguous()",
    tensorflow="tf.meshgrid({0}, {1}, indexing={indexing})[{pick}]",
    jax="jnp.meshgrid({0}, {1}, indexing={indexing})[{pick}]",
    relax=_spread("relax.op.broadcast_to(relax.op.expand_dims(<x>, <axis>), {shape})"),
    onnx=_spread('g.op("Expand", g.op("Unsqueeze", <x>, g.const([<axis>], "int64")), g.const({shape}, "int64"))'),
)  # fmt: skip

# ---- members ------------------------------------------------------------------------------------------


def _of_set(type_: TensorType, earlier: Types) -> bool:
    return type_.dtype == earlier[0].dtype and type_.rank == 1 and type_.size <= 9


def _isin_type(operands: Types, attrs: Attrs) -> TensorType:
    if not _of_set(operands[1], operands[:1]):
        raise TypeRuleError(f"{operands[1]} is no set for {operands[0]}")
    return TensorType("bool", operands[0].shape)


def _isin(args: Sequence[Bounded], call: Call) -> Bounded:
    """Equal to an element for certain, or farther from all than either may be off; NaN equals nothing."""
    x, members = (a.map(lambda array: array[..., None]) if i == 0 else a for i, a in enumerate(args))
    with np.errstate(all="ignore"):
        equal = x.value == members.value
        off = x.error + members.error
        sure = equal & (off == 0)
        near = (off > 0) & ~(np.abs(x.value.astype(np.float64) - members.value) > off)
        near &= ~((np.isnan(x.value) & (x.error == 0)) | (np.isnan(members.value) & (members.error == 0)))
    found = np.any(sure, axis=-1)
    return exact(found != bool(call.attrs["invert"]), "bool", np.any(near, axis=-1) & ~found)


def _inverted(negation: str, found: str) -> Spelling:
    return lambda call: negation.replace("<found>", found) if call.attrs["invert"] else found


isin = OpSpec(
    "isin", "grids",
    (numeric(), Slot(_of_set, lambda d, earlier: TensorType(earlier[0].dtype, (draw_dim(d, 9),)))), _isin_type, _isin,
    attrs={"invert": flag()}, torch="torch.isin({0}, {1}, invert={invert})",
    tensorflow="tf.not_equal(tf.reduce_any(tf.equal({0}[..., tf.newaxis], {1}), -1), {invert})",
    jax="jnp.isin({0}, {1}, invert={invert})",
    relax=_inverted("relax.op.logical_not(<found>)", "relax.op.greater(relax.op.sum(relax.op.astype(relax.op.equal("
                    "relax.op.expand_dims({0}, -1), {1}), 'int32'), axis=[-1]), relax.const(0, 'int32'))"),
    onnx=_inverted('g.op("Not", <found>)', 'g.op("Greater", g.op("ReduceSum", g.op("Cast", g.op("Equal", '
                   'g.op("Unsqueeze", {0}, g.const([-1], "int64")), {1}), to=TensorProto.INT64), '
                   'g.const([{rank}], "int64"), keepdims=0), g.const(0, "int64"))'),
)  # fmt: skip


def _inverse_type(operands: Types, attrs: Attrs) -> TensorType:
    if operands[0].dtype not in INTEGERS:
        raise TypeRuleError(f"{operands[0]} holds no integers")
    return TensorType("int64", operands[0].shape)


unique_inverse = OpSpec(
    "unique_inverse", "grids", (tensor(INTEGERS, nonempty=True),), _inverse_type,
    lambda args, call: exact(
        np.unique(args[0].value, return_inverse=True)[1].reshape(call.result.shape), "int64",
        bool(args[0].undetermined.any()),
    ),
    torch="torch.unique({0}, return_inverse=True)[1]",
    tensorflow=unsupported("tf.unique numbers elements in the order in which they come"),
    jax="jnp.unique({0}, return_inverse=True, size={0}.size)[1].reshape({shape}).astype(jnp.int64)",
    relax=unsupported("the results of relax.op.unique are of unknown shape"),
    onnx='g.op("Reshape", g.op("Unique", {0}, outputs=3, pick=2, sorted=1), g.const({shape}, "int64"))',
)  # fmt: skip

# ---- pieces -------------------------------------------------------------------------------------------


def _unstacked_type(operands: Types, attrs: Attrs) -> TensorType:
    x, pick = operands[0], int_of(attrs, "pick")
    axis = axis_in(attrs, x.rank)
    if not 0 <= pick < x.shape[axis]:
        raise TypeRuleError(f"{x} has no piece {pick} along axis {axis}")
    return TensorType(x.dtype, (*x.shape[:axis], *x.shape[axis + 1 :]))


unstack = OpSpec(
    "unstack", "grids", (tensor(min_rank=1, nonempty=True),), _unstacked_type,
    lambda args, call: args[0].map(
        lambda a: np.take(a, int_of(call.attrs, "pick"), axis_in(call.attrs, a.ndim))),
    attrs={"axis": axis_of(0), "pick": lambda d, operands, attrs: d.integer(
        0, operands[0].shape[axis_in(attrs, operands[0].rank)] - 1)},
    signed_zero=True, torch="torch.unbind({0}, {axis})[{pick}]", tensorflow="tf.unstack({0}, axis={axis})[{pick}]",
    jax="jnp.unstack({0}, axis={axis})[{pick}]",
    relax='relax.op.take({0}, relax.const({pick}, "int64"), axis={axis})',
    onnx='g.op("SequenceAt", g.op("SplitToSequence", {0}, axis={axis}, keepdims=0), g.const({pick}, "int64"))',
)  # fmt: skip


def _initial(shape: Sequence[int], attrs: Attrs) -> tuple[int, ...]:
    axis = axis_in(attrs, len(shape))
    return (*shape[:axis], 1, *shape[axis + 1 :])


def _cumulative_type(operands: Types, attrs: Attrs) -> TensorType:
    x = operands[0]
    axis = axis_in(attrs, x.rank)
    shape = (*x.shape[:axis], x.shape[axis] + 1, *x.shape[axis + 1 :])
    if x.size == 0 or int(np.prod(shape)) > MAX_ELEMENTS:
        raise TypeRuleError(f"no cumulative sums of {x} with a zero before them")
    return TensorType(x.dtype, shape)


def _cumulative(args: Sequence[Bounded], call: Call) -> Bounded:
    """A zero before all sums."""
    axis = axis_in(call.attrs, args[0].value.ndim)
    sums = compute(cumsum, args[0], axis=axis)
    zeros = np.zeros(_initial(sums.value.shape, call.attrs), sums.value.dtype)
    return joined(Bounded(zeros, np.zeros(zeros.shape), sums.dtype), sums, axis=axis)


def _with_zeros(text: str) -> Spelling:
    return lambda call: text.replace("<initial>", repr(_initial(call.operands[0].shape, call.attrs)))


def _room(type_: TensorType, earlier: Types) -> bool:
    return numeric(1, nonempty=True).accepts(type_, earlier) and type_.size <= MAX_ELEMENTS // 2


cumulative_sum = OpSpec(
    "cumulative_sum", "grids",
    (Slot(_room, lambda d, e: TensorType(
        draw_dtype(d, NUMBERS), tuple(draw_dim(d, 9, zero=False) for _ in range(d.choice((2, 1, 3)))))),),
    _cumulative_type, _cumulative, attrs={"axis": axis_of(0)},
    torch=_with_zeros("torch.cat([torch.zeros(<initial>, dtype={dtype}, device={0}.device), "
                      "torch.cumsum({0}, {axis}, dtype={dtype})], {axis})"),
    tensorflow=_with_zeros("tf.concat([tf.zeros(<initial>, {dtype}), tf.cumsum({0}, {axis})], {axis})"),
    jax="jnp.cumulative_sum({0}, axis={axis}, dtype={dtype}, include_initial=True)",
    relax=_with_zeros("relax.op.concat([relax.op.zeros(<initial>, {dtype}), "
                      "relax.op.cumsum({0}, {axis}, dtype={dtype})], axis={axis})"),
    onnx=_with_zeros('g.op("Concat", g.op("Expand", g.const(0, {name}), g.const(<initial>, "int64")), '
                     'g.op("CumSum", {0}, g.const({axis}, "int64")), axis={axis})'),
)  # fmt: skip

# ---- resizing by areas ---------------------------------------------------------------------------------


def _area_type(operands: Types, attrs: Attrs) -> TensorType:
    x, factor = operands[0], int_of(attrs, "factor")
    if x.size == 0 or factor not in _factors(x):
        raise TypeRuleError(f"{x} has no areas of side {factor}")
    return replace(x, shape=(*x.shape[:2], x.shape[2] // factor, x.shape[3] // factor))


def _area(args: Sequence[Bounded], call: Call) -> Bounded:
    """Means of areas that do not overlap."""
    x, k = args[0], int_of(call.attrs, "factor")
    batch, channels, rows, columns = x.value.shape
    shape = (batch, channels, rows // k, k, columns // k, k)
    return compute(mean, x.map(lambda array: array.reshape(shape)), axes=(3, 5), keepdims=False)


FACTORS = (2, 3)


def _factors(type_: TensorType) -> list[int]:
    """Those that divide both sides."""
    return [k for k in FACTORS if type_.rank == 4 and not any(side % k for side in type_.shape[2:])]


def _fresh_area(d: Draw, earlier: Types) -> TensorType:
    rows, columns = (d.choice((6, 12)) for _ in range(2))
    return TensorType(draw_dtype(d, FLOATS), (draw_dim(d, 2, zero=False), draw_dim(d, 3, zero=False), rows, columns))


def _areas(type_: TensorType, earlier: Types) -> bool:
    return type_.dtype in FLOATS and type_.size > 0 and bool(_factors(type_))


resize_area = OpSpec(
    "resize_area", "grids", (Slot(_areas, _fresh_area),), _area_type, _area,
    attrs={"factor": lambda d, operands, attrs: d.choice(_factors(operands[0]))},
    torch=lambda call: "torch.nn.functional.interpolate({0}, size=<size>, mode='area')".replace(
        "<size>", repr(call.result.shape[2:])),
    tensorflow=only(("float32",), "tf.image.resize by areas returns float32",
                    "tf.transpose(tf.image.resize(tf.transpose({0}, [0, 2, 3, 1]), {shape}[2:], method='area'), "
                    "[0, 3, 1, 2])"),
    jax="jnp.mean({0}.reshape({shape}[:3] + ({factor}, {shape}[3], {factor})), axis=(3, 5))",
    relax="relax.op.nn.avg_pool2d({0}, [{factor}, {factor}], strides=[{factor}, {factor}])",
    onnx='g.op("AveragePool", {0}, kernel_shape=[{factor}] * 2, strides=[{factor}] * 2)',
)  # fmt: skip

GRIDS: tuple[OpSpec, ...] = (meshgrid, isin, unique_inverse, unstack, cumulative_sum, resize_area)
