"""Places counted along the flattened tensor (take, put), what a mask lets through, windows along an axis, and a block
that is written where a tensor says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import DTYPES, EVERY, TensorType
from generators.ops.index.gather import SOURCE, indexing, read
from generators.ops.index.scatter import summed_at, written
from generators.ops.shape.layout import ARRAY, Array, layout, moved
from generators.ops.slots import (
    INDEX_DTYPES,
    MAX_ELEMENTS,
    axis_in,
    axis_of,
    computed,
    flag,
    index_slot,
    int_of,
    ints_of,
    numeric,
    tensor,
)
from generators.ops.spec import Attrs, Call, Domain, Draw, OpSpec, Slot, SpellingRule, TypeRuleError, Types, unsupported

# ---- take and put -------------------------------------------------------------------------------------


def _everywhere(earlier: Types) -> Domain:
    return 0, earlier[0].size - 1


take_flat = indexing(
    "take_flat", (SOURCE, index_slot(0, 2, _everywhere)),
    lambda operands, attrs: TensorType(operands[0].dtype, operands[1].shape),
    read(lambda x, places, call: np.reshape(x, -1)[places]),
    torch="torch.take({0}, {1}.long())", tensorflow="tf.gather(tf.reshape({0}, [-1]), {1})",
    jax="jnp.take({0}, {1})", relax="relax.op.take(relax.op.reshape({0}, [-1]), {1}, axis=0)",
    onnx='g.op("Gather", g.op("Reshape", {0}, g.const([-1], "int64")), {1}, axis=0)',
)  # fmt: skip


def _put_type(operands: Types, attrs: Attrs) -> TensorType:
    if operands[2] != TensorType(operands[0].dtype, operands[1].shape):
        raise TypeRuleError(f"{operands[2]} does not go with the places {operands[1]}")
    return operands[0]


def _put(args: Sequence[Bounded], call: Call) -> Bounded:
    x, places, update = args
    at = np.unravel_index(places.value.astype(np.int64), x.value.shape)
    return summed_at(x, update, at) if call.attrs["accumulate"] else written(x, update, at)


def _jax_put(call: Call) -> str:
    return f"{{0}}.reshape(-1).at[{{1}}].{'add' if call.attrs['accumulate'] else 'set'}({{2}}).reshape({{shape}})"


def _tf_put(call: Call) -> str:
    word = "add" if call.attrs["accumulate"] else "update"
    written = f"tf.tensor_scatter_nd_{word}(tf.reshape({{0}}, [-1]), tf.expand_dims({{1}}, -1), {{2}})"
    return f"tf.reshape({written}, {{shape}})"


_FLAT = unsupported("the same is asked of it as scatter_nd")
put = OpSpec(
    "put", "indexing",
    (numeric(min_rank=1, nonempty=True), index_slot(1, 2, _everywhere),
     computed(lambda e: TensorType(e[0].dtype, e[1].shape))),
    _put_type, _put, attrs={"accumulate": flag()},
    torch="torch.put({0}, {1}.long(), {2}, accumulate={accumulate})", tensorflow=_tf_put, jax=_jax_put,
    relax=_FLAT, onnx=_FLAT,
)  # fmt: skip

# ---- masked -------------------------------------------------------------------------------------------


def _masked_type(operands: Types, attrs: Attrs) -> TensorType:
    x, mask, source = operands
    if mask != TensorType("bool", x.shape) or source != TensorType(x.dtype, (x.size,)):
        raise TypeRuleError(f"{source} does not go into {x} where {mask} says")
    return x


def _masked(args: Sequence[Bounded], call: Call) -> Bounded:
    """The first numbers of the source, in order, where the mask holds. Behind a place that is not known nothing is."""
    x, mask, source = args
    place = np.maximum(np.cumsum(mask.value.ravel()) - 1, 0).reshape(x.value.shape)
    value = np.where(mask.value, source.value[place], x.value) if x.value.size else x.value
    error = np.where(mask.value, source.error[place], x.error) if x.value.size else x.error
    unknown = np.logical_or.accumulate(mask.undetermined.ravel()).reshape(x.value.shape)
    return Bounded(value, np.where(unknown, np.inf, error), x.dtype)


_NO_MASKED = unsupported("it has no scatter by a mask")
masked_scatter = OpSpec(
    "masked_scatter", "indexing",
    (tensor(DTYPES, nonempty=True), computed(lambda e: TensorType("bool", e[0].shape)),
     computed(lambda e: TensorType(e[0].dtype, (e[0].size,)))),
    _masked_type, _masked, signed_zero=True,
    torch="torch.masked_scatter({0}, {1}, {2})",
    tensorflow="tf.where({1}, tf.reshape(tf.gather({2}, tf.maximum(tf.cumsum(tf.reshape(tf.cast({1}, tf.int32), "
    "[-1])) - 1, 0)), {shape}), {0})",
    jax="jnp.where({1}, {2}[jnp.maximum(jnp.cumsum({1}.reshape(-1)) - 1, 0)].reshape({shape}), {0})",
    relax=_NO_MASKED, onnx=_NO_MASKED,
)  # fmt: skip

# ---- windows ------------------------------------------------------------------------------------------


def _window_size(d: Draw, operands: Types, attrs: Attrs) -> int:
    dim = operands[0].shape[axis_in(attrs, operands[0].rank)]
    return min(d.choice((2, 1, 3, dim, 0)), dim)


def _windows_type(operands: Types, attrs: Attrs) -> TensorType:
    x, size, step = operands[0], int_of(attrs, "size"), int_of(attrs, "step")
    axis = axis_in(attrs, x.rank)
    if not 0 <= size <= x.shape[axis] or step < 1:
        raise TypeRuleError(f"no windows of {size} elements, {step} apart, of {x}")
    count = (x.shape[axis] - size) // step + 1
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :], size)
    if int(np.prod(shape)) > 4 * MAX_ELEMENTS:
        raise TypeRuleError(f"windows of shape {shape} are too many")
    return TensorType(x.dtype, shape)


def _table(call: Call) -> Array:
    axis = axis_in(call.attrs, call.operands[0].rank)
    start = np.arange(call.result.shape[axis]) * int_of(call.attrs, "step")
    return start[:, None] + np.arange(int_of(call.attrs, "size"))


def _windows(x: Array, call: Call) -> Array:
    axis = axis_in(call.attrs, x.ndim)
    return np.moveaxis(np.take(x, _table(call), axis), axis + 1, -1)


def _taken(text: str) -> SpellingRule:
    """`text` with the table of places and the order of the axes of what they take: the window's last."""

    def spell(call: Call) -> str:
        axis, rank = axis_in(call.attrs, call.operands[0].rank), call.result.rank
        order = [a for a in range(rank) if a != axis + 1] + [axis + 1]
        table = f"np.array({_table(call).tolist()!r}, 'int64').reshape({_table(call).shape!r})"
        return text.replace("<table>", table).replace("<order>", repr(order)).replace("<axis>", str(axis))

    return spell


sliding_windows = layout(
    "sliding_windows", ARRAY, _windows_type, moved(_windows),
    attrs={"axis": axis_of(0), "size": _window_size, "step": lambda d, operands, attrs: d.choice((1, 2, 3))},
    torch="{0}.unfold({axis}, {size}, {step})",
    tensorflow=_taken("tf.transpose(tf.gather({0}, <table>, axis=<axis>), <order>)"),
    jax=_taken("jnp.transpose(jnp.take({0}, <table>, axis=<axis>), <order>)"),
    relax=_taken("relax.op.permute_dims(relax.op.take({0}, relax.const(<table>), axis=<axis>), <order>)"),
    onnx=_taken('g.op("Transpose", g.op("Gather", {0}, g.const(<table>, "int64"), axis=<axis>), perm=<order>)'),
)  # fmt: skip

# ---- a block that is written somewhere ----------------------------------------------------------------


def _accepts_block(type_: TensorType, earlier: Types) -> bool:
    x = earlier[0]
    small = type_.rank == x.rank and all(a <= b for a, b in zip(type_.shape, x.shape, strict=True))
    return type_.dtype == x.dtype and small


def _fresh_block(d: Draw, earlier: Types) -> TensorType:
    x = earlier[0]
    return TensorType(x.dtype, tuple(min(dim, d.choice((1, 2, dim, max(1, dim - 1)))) for dim in x.shape))


def _block_type(operands: Types, attrs: Attrs) -> TensorType:
    x, update, starts = operands
    if not _accepts_block(update, operands) or starts.dtype not in INDEX_DTYPES or starts.shape != (x.rank,):
        raise TypeRuleError(f"{update} is no block of {x} at {starts}")
    return x


def _block(args: Sequence[Bounded], call: Call) -> Bounded:
    """A start is moved so that the block lies inside."""
    x, update, starts = args
    room = np.subtract(x.value.shape, update.value.shape)
    first = np.clip(starts.value, 0, room)
    places = tuple(slice(a, a + n) for a, n in zip(first, update.value.shape, strict=True))
    value, error = x.value.copy(), x.error.copy()
    value[places], error[places] = update.value, update.error
    return Bounded(value, error, x.dtype)


_NO_BLOCK = unsupported("its slices start where the program says")
dynamic_update_slice = OpSpec(
    "dynamic_update_slice", "indexing",
    (tensor(EVERY, min_rank=1, nonempty=True), Slot(_accepts_block, _fresh_block),
     Slot(lambda t, e: t.dtype in INDEX_DTYPES and t.shape == (e[0].rank,),
          lambda d, e: TensorType(d.choice(INDEX_DTYPES), (e[0].rank,)),
          lambda e: (0, max(e[0].shape) + 2))),
    _block_type, _block, signed_zero=True,
    torch=_NO_BLOCK, tensorflow=_NO_BLOCK, jax="jax.lax.dynamic_update_slice({0}, {1}, tuple({2}))",
    relax=_NO_BLOCK, onnx=_NO_BLOCK,
)  # fmt: skip


# ---- a block that is read somewhere -------------------------------------------------------------------


def _sizes(d: Draw, operands: Types, attrs: Attrs) -> tuple[int, ...]:
    return tuple(d.choice((max(1, dim - 1), dim, 1, max(1, dim // 2))) for dim in operands[0].shape)


def _read_block_type(operands: Types, attrs: Attrs) -> TensorType:
    x, starts = operands
    sizes = ints_of(attrs, "sizes")
    inside = len(sizes) == x.rank and all(0 < size <= dim for size, dim in zip(sizes, x.shape, strict=True))
    if not inside or starts.dtype not in INDEX_DTYPES or starts.shape != (x.rank,):
        raise TypeRuleError(f"no block of {sizes} of {x} at {starts}")
    return TensorType(x.dtype, sizes)


def _read_block(args: Sequence[Bounded], call: Call) -> Bounded:
    """A start is moved so that the block lies inside."""
    x, starts = args
    first = np.clip(starts.value, 0, np.subtract(x.value.shape, call.result.shape))
    places = tuple(slice(a, a + n) for a, n in zip(first, call.result.shape, strict=True))
    return x.map(lambda array: array[places])


def _room(call: Call) -> list[int]:
    """The greatest start along each axis."""
    return [dim - size for dim, size in zip(call.operands[0].shape, call.result.shape, strict=True)]


def _tf_read_block(call: Call) -> str:
    room = f"tf.constant({_room(call)!r}, {{dtype1}})"
    return f"tf.slice({{0}}, tf.minimum(tf.maximum({{1}}, 0), {room}), {{shape}})"


def _onnx_read_block(call: Call) -> str:
    """ONNX moves a start that lies outside, but not so that the block keeps its size."""
    dtype, axes = call.operands[1].dtype, list(range(call.operands[0].rank))
    start = f'g.op("Min", {{1}}, g.const({_room(call)!r}, {dtype!r}))'
    end = f'g.op("Add", {start}, g.const({list(call.result.shape)!r}, {dtype!r}))'
    return f'g.op("Slice", {{0}}, {start}, {end}, g.const({axes!r}, {dtype!r}))'


dynamic_slice = OpSpec(
    "dynamic_slice", "indexing",
    (tensor(EVERY, min_rank=1, nonempty=True),
     Slot(lambda t, e: t.dtype in INDEX_DTYPES and t.shape == (e[0].rank,),
          lambda d, e: TensorType(d.choice(INDEX_DTYPES), (e[0].rank,)),
          lambda e: (0, max(e[0].shape) + 2))),
    _read_block_type, _read_block, attrs={"sizes": _sizes}, signed_zero=True,
    torch=_NO_BLOCK, tensorflow=_tf_read_block, jax="jax.lax.dynamic_slice({0}, tuple({1}), {sizes})",
    relax="block_at(bb, {0}, {1}, {sizes}, {shape0}, {name})", onnx=_onnx_read_block,
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (take_flat, put, masked_scatter, sliding_windows, dynamic_update_slice, dynamic_slice)
