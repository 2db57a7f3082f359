"""Operators that join tensors and cut them into pieces: concat, stack, split, unstack."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from generators.graph import EVERY, TensorType
from generators.ops.shape.layout import ARRAY, Array, joinable, joined, layout, moved
from generators.ops.slots import (
    MAX_ELEMENTS,
    axis_in,
    axis_of,
    draw_dim,
    draw_dtype,
    draw_shape,
    int_of,
    ints_of,
    most_elements,
    size_of,
    tensor,
)
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Shape, Slot, TypeRuleError, Types, Unsupported, unsupported

# ---- joining ------------------------------------------------------------------------------------------


def _accepts_piece(type_: TensorType, earlier: Types) -> bool:
    if not earlier:
        return ARRAY.accepts(type_, ())
    fits = joinable([t.shape for t in (*earlier, type_)]) and type_.dtype == earlier[0].dtype
    return bool(fits) and sum(t.size for t in (*earlier, type_)) <= most_elements(earlier)


def _fresh_piece(d: Draw, earlier: Types) -> TensorType:
    if not earlier:
        return ARRAY.fresh(d, ())
    axis = d.choice(joinable([t.shape for t in earlier]))
    shape = list(earlier[0].shape)
    shape[axis] = 1
    room = (MAX_ELEMENTS - sum(t.size for t in earlier)) // max(1, size_of(shape))
    shape[axis] = draw_dim(d, room) if room else 0
    return TensorType(earlier[0].dtype, tuple(shape))


def _concat_axis(d: Draw, operands: Types, attrs: Attrs) -> int:
    axes, rank = joinable([t.shape for t in operands]), operands[0].rank
    return d.choice((*axes, *(axis - rank for axis in axes)))


def _concat_type(operands: Types, attrs: Attrs) -> TensorType:
    axis = axis_in(attrs, operands[0].rank)
    if axis not in joinable([t.shape for t in operands]) or len({t.dtype for t in operands}) > 1:
        raise TypeRuleError(f"cannot join {', '.join(map(str, operands))} along axis {axis}")
    shape = list(operands[0].shape)
    shape[axis] = sum(t.shape[axis] for t in operands)
    return TensorType(operands[0].dtype, tuple(shape))


_FIRST = tensor(EVERY)


def _accepts_twin(type_: TensorType, earlier: Types) -> bool:
    if not earlier:
        return _FIRST.accepts(type_, ())
    return type_ == earlier[0] and type_.size * (len(earlier) + 1) <= most_elements(earlier)


def _fresh_twin(d: Draw, earlier: Types) -> TensorType:
    return earlier[0] if earlier else TensorType(draw_dtype(d, EVERY), draw_shape(d)[:3])


def _stack_type(operands: Types, attrs: Attrs) -> TensorType:
    if len(set(operands)) > 1:
        raise TypeRuleError(f"cannot stack {', '.join(map(str, operands))}")
    shape = list(operands[0].shape)
    shape.insert(axis_in(attrs, len(shape) + 1), len(operands))
    return TensorType(operands[0].dtype, tuple(shape))


# ---- cutting ------------------------------------------------------------------------------------------


def _sizes(d: Draw, operands: Types, attrs: Attrs) -> Shape:
    """The dimension cut into one to four pieces, equal or not, seldom empty ones."""
    dim = operands[0].shape[axis_in(attrs, operands[0].rank)]
    least = 0 if dim == 0 or d.integer(0, 7) == 7 else 1
    count = d.choice([n for n in (2, 3, 1, 4) if n * least <= dim])
    if dim % count == 0 and d.boolean():
        return (dim // count,) * count
    left = dim - least * count
    extra = []
    for _ in range(count - 1):
        extra.append(d.integer(0, left))
        left -= extra[-1]
    return tuple(least + e for e in (*extra, left))


def _split_type(operands: Types, attrs: Attrs) -> TensorType:
    axis = axis_in(attrs, operands[0].rank)
    sizes, index = ints_of(attrs, "sizes", least=0), int_of(attrs, "index")
    if not 0 <= index < len(sizes) or sum(sizes) != operands[0].shape[axis]:
        raise TypeRuleError(f"cannot split axis {axis} of {operands[0]} into {sizes} and take number {index}")
    shape = list(operands[0].shape)
    shape[axis] = sizes[index]
    return TensorType(operands[0].dtype, tuple(shape))


def cuts(call: Call) -> Shape:
    """Where the pieces of a split but the first begin."""
    return tuple(accumulate(ints_of(call.attrs, "sizes")))[:-1]


def _split(array: Array, call: Call) -> Array:
    return np.split(array, cuts(call), axis_in(call.attrs, array.ndim))[int_of(call.attrs, "index")]


def _index(d: Draw, operands: Types, attrs: Attrs) -> int:
    return d.integer(0, len(ints_of(attrs, "sizes")) - 1)


def _jax_split(call: Call) -> str:
    return f"jnp.split({{0}}, {list(cuts(call))}, axis={{axis}})[{{index}}]"


def _onnx_split(call: Call) -> str:
    count = len(ints_of(call.attrs, "sizes"))
    sizes = 'g.const({sizes}, "int64")'
    return f'g.op("Split", {{0}}, {sizes}, outputs={count}, pick={{index}}, axis={{axis}})'


def _relax_split(call: Call) -> str | Unsupported:
    where = cuts(call)
    if not where:  # one piece is no tuple
        return "relax.op.split({0}, 1, axis={axis})"
    if list(where) != sorted({*where} - {0}):
        return Unsupported("relax.op.split refuses indices that do not increase, as empty pieces need")
    return f"relax.op.split({{0}}, {list(where)}, axis={{axis}})[{{index}}]"


# ---- at any places ------------------------------------------------------------------------------------


def _places(d: Draw, operands: Types, attrs: Attrs) -> Shape:
    """In any order, counted from either end, beyond it, and twice."""
    dim = operands[0].shape[axis_in(attrs, operands[0].rank)]
    near = (dim // 2, 1, dim, 0, -1, dim + 2, -dim - 1, max(dim - 1, 0))
    return tuple(d.choice(near) for _ in range(d.choice((2, 1, 3))))


def _pieces(dim: int, attrs: Attrs) -> list[slice]:
    """From each place to the next one, as Python reads them."""
    places = ints_of(attrs, "boundaries")
    return [slice(start, stop) for start, stop in zip((0, *places), (*places, dim), strict=True)]


def _split_at_type(operands: Types, attrs: Attrs) -> TensorType:
    x, index = operands[0], int_of(attrs, "index")
    axis = axis_in(attrs, x.rank)
    pieces = _pieces(x.shape[axis], attrs)
    if not 1 < len(pieces) <= 8 or not 0 <= index < len(pieces):
        raise TypeRuleError(f"cannot split axis {axis} of {x} at {attrs['boundaries']} and take number {index}")
    shape = list(x.shape)
    shape[axis] = len(range(*pieces[index].indices(x.shape[axis])))
    return TensorType(x.dtype, tuple(shape))


def _split_at(array: Array, call: Call) -> Array:
    axis = axis_in(call.attrs, array.ndim)
    piece = _pieces(array.shape[axis], call.attrs)[int_of(call.attrs, "index")]
    return array[(*(slice(None),) * axis, piece)]


_SORTED = unsupported("it splits by sizes, or at places that increase")

# ---- records ------------------------------------------------------------------------------------------

split_at = layout(
    "split_at", ARRAY, _split_at_type, moved(_split_at),
    attrs={"axis": axis_of(0), "boundaries": _places,
           "index": lambda d, operands, attrs: d.integer(0, len(ints_of(attrs, "boundaries")))},
    torch="torch.tensor_split({0}, {boundaries}, dim={axis})[{index}]",
    tensorflow="tf.experimental.numpy.split({0}, list({boundaries}), axis={axis})[{index}]",
    jax="jnp.split({0}, list({boundaries}), axis={axis})[{index}]", relax=_SORTED, onnx=_SORTED,
)  # fmt: skip

concat = layout(
    "concat", Slot(_accepts_piece, _fresh_piece), _concat_type,
    joined(lambda arrays, call: np.concatenate(arrays, axis=int_of(call.attrs, "axis"))),
    attrs={"axis": _concat_axis}, variadic=4,
    torch="torch.concat([{args}], dim={axis})", tensorflow="tf.concat([{args}], axis={axis})",
    jax="jnp.concatenate([{args}], axis={axis})", relax="relax.op.concat([{args}], axis={axis})",
    onnx='g.op("Concat", {args}, axis={axis})',
)  # fmt: skip

stack = layout(
    "stack", Slot(_accepts_twin, _fresh_twin), _stack_type,
    joined(lambda arrays, call: np.stack(arrays, axis=int_of(call.attrs, "axis"))),
    attrs={"axis": axis_of(0, extra=1)}, variadic=4,
    torch="torch.stack([{args}], dim={axis})", tensorflow="tf.stack([{args}], axis={axis})",
    jax="jnp.stack([{args}], axis={axis})", relax="relax.op.stack([{args}], axis={axis})",
    onnx="stack(g, [{args}], {axis})",
)  # fmt: skip

split = layout(
    "split", ARRAY, _split_type, moved(_split),
    attrs={"axis": axis_of(0), "sizes": _sizes, "index": _index},
    torch="torch.split({0}, list({sizes}), dim={axis})[{index}]",
    tensorflow="tf.split({0}, {sizes}, axis={axis})[{index}]",
    jax=_jax_split, relax=_relax_split, onnx=_onnx_split,
)  # fmt: skip

# ---- unstack ------------------------------------------------------------------------------------------


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

OPERATORS: tuple[OpSpec, ...] = (concat, stack, split, unstack, split_at)
