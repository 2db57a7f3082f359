"""Operators that join tensors and cut them into pieces, and those that turn them round: concat to roll."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import EVERY, TensorType
from generators.ops.shape.reshape import ARRAY, Array, Attrs, Shape, axis_in, int_of, ints_of, layout, moved
from generators.ops.slots import (
    MAX_ELEMENTS,
    axes_of,
    axis_of,
    draw_dim,
    draw_dtype,
    draw_shape,
    normalized,
    size_of,
    tensor,
)
from generators.ops.spec import Call, Draw, OpSpec, Reference, Slot, TypeRuleError, Types, Unsupported


def joined(join: Callable[[list[Array], Call], Array]) -> Reference:
    """The reference of an operator that lays out several operands of one dtype, and their bounds alike."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        value, error = join([x.value for x in args], call), join([x.error for x in args], call)
        return Bounded(value, error, args[0].dtype)

    return reference


# ---- joining ------------------------------------------------------------------------------------------


def joinable(shapes: Sequence[Shape]) -> Shape:
    """The axes in which the shapes may differ when they are laid end to end; none if their ranks differ."""
    if len({len(shape) for shape in shapes}) != 1:
        return ()
    return tuple(a for a in range(len(shapes[0])) if len({(*s[:a], *s[a + 1 :]) for s in shapes}) == 1)


def _accepts_piece(type_: TensorType, earlier: Types) -> bool:
    if not earlier:
        return ARRAY.accepts(type_, ())
    fits = joinable([t.shape for t in (*earlier, type_)]) and type_.dtype == earlier[0].dtype
    return bool(fits) and sum(t.size for t in (*earlier, type_)) <= MAX_ELEMENTS


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
    return type_ == earlier[0] and type_.size * (len(earlier) + 1) <= MAX_ELEMENTS


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


def _starts(d: Draw, operands: Types, attrs: Attrs) -> Shape:
    """Somewhere on the axis, counted from either end, or before it; seldom at its end."""
    starts = []
    for dim in operands[0].shape:
        inside = (0, 0, min(1, dim - 1), dim // 2, -1, -dim - 1) if dim else (0, -1)
        starts.append(dim if d.integer(0, 31) == 31 else d.choice(inside))
    return tuple(starts)


def _stops(d: Draw, operands: Types, attrs: Attrs) -> Shape:
    """The end of the axis or beyond, or between start and end, counted from either end; seldom before it."""
    stops = []
    for dim, start in zip(operands[0].shape, ints_of(attrs, "starts"), strict=True):
        begin = slice(start, None).indices(dim)[0]
        after = (dim, dim, dim + 3, begin + 1, (begin + dim + 1) // 2, -1 if begin < dim - 1 else dim)
        stops.append(d.choice((begin, 0, -dim)) if d.integer(0, 31) == 31 else d.choice(after))
    return tuple(stops)


def _steps(d: Draw, operands: Types, attrs: Attrs) -> Shape:
    return tuple(d.choice((1, 1, 1, 2, 3, 40)) for _ in operands[0].shape)


def slices(call: Call) -> tuple[slice, ...]:
    """The attributes `starts`, `stops` and `steps` as Python slices."""
    attrs = call.attrs
    return tuple(map(slice, ints_of(attrs, "starts"), ints_of(attrs, "stops"), ints_of(attrs, "steps")))


def _slice_type(operands: Types, attrs: Attrs) -> TensorType:
    rank = operands[0].rank
    triples = zip(
        ints_of(attrs, "starts", rank),
        ints_of(attrs, "stops", rank),
        ints_of(attrs, "steps", rank, least=1),
        strict=True,
    )
    shape = (len(range(*slice(*t).indices(dim))) for t, dim in zip(triples, operands[0].shape, strict=True))
    return TensorType(operands[0].dtype, tuple(shape))


def _python_slice(call: Call) -> str:
    """The subscript that torch, TensorFlow and JAX share with numpy."""
    parts = (f"{s.start}:{s.stop}" + (f":{s.step}" if s.step != 1 else "") for s in slices(call))
    return f"{{0}}[{', '.join(parts)}]"


def _relax_slice(call: Call) -> str:
    begin, end = [], []
    for s, dim in zip(slices(call), call.operands[0].shape, strict=True):
        empty = not range(*s.indices(dim))  # relax refuses an end before the begin
        begin.append(0 if empty else s.start)
        end.append(0 if empty else s.stop)
    axes = list(range(len(begin)))
    return f"relax.op.strided_slice({{0}}, {axes}, {begin}, {end}, list({{steps}}))"


def _onnx_slice(call: Call) -> str:
    axes = list(range(call.result.rank))
    return f"slice_(g, {{0}}, {{starts}}, {{stops}}, {axes}, {{steps}})"


def _flip_type(operands: Types, attrs: Attrs) -> TensorType:
    if not normalized(ints_of(attrs, "axes"), operands[0].rank):
        raise TypeRuleError("no axes to flip")
    return operands[0]


def _roll_type(operands: Types, attrs: Attrs) -> TensorType:
    axis_in(attrs, operands[0].rank)
    int_of(attrs, "shift")
    return operands[0]


def _shift(d: Draw, operands: Types, attrs: Attrs) -> int:
    dim = operands[0].shape[axis_in(attrs, operands[0].rank)]
    return d.choice((1, -1, 2, 0, dim, dim + 1, -dim - 2))


def _turn(call: Call) -> str:
    """The helper functions of relax and onnx take the place where the last elements begin that come first."""
    axis = axis_in(call.attrs, call.result.rank)
    dim = call.result.shape[axis]
    return f"{{0}}, {dim - int_of(call.attrs, 'shift') % dim if dim else 0}, {axis}"


# ---- records ------------------------------------------------------------------------------------------

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

slice_ = layout(
    "slice", ARRAY, _slice_type, moved(lambda x, call: x[slices(call)]),
    attrs={"starts": _starts, "stops": _stops, "steps": _steps},
    torch=_python_slice, tensorflow=_python_slice, jax=_python_slice, relax=_relax_slice, onnx=_onnx_slice,
)  # fmt: skip

flip = layout(
    "flip", ARRAY, _flip_type, moved(lambda x, call: np.flip(x, ints_of(call.attrs, "axes"))),
    attrs={"axes": axes_of(0)},
    torch="torch.flip({0}, {axes})", tensorflow="tf.reverse({0}, {axes})", jax="jnp.flip({0}, axis={axes})",
    relax="flip({0}, {axes})", onnx="flip(g, {0}, {axes})",
)  # fmt: skip

roll = layout(
    "roll", ARRAY, _roll_type,
    moved(lambda x, call: np.roll(x, int_of(call.attrs, "shift"), int_of(call.attrs, "axis"))),
    attrs={"axis": axis_of(0), "shift": _shift},
    torch="torch.roll({0}, {shift}, {axis})", tensorflow="tf.roll({0}, {shift}, {axis})",
    jax="jnp.roll({0}, {shift}, axis={axis})",
    relax=lambda call: f"roll({_turn(call)})", onnx=lambda call: f"roll(g, {_turn(call)})",
)  # fmt: skip

PIECES: tuple[OpSpec, ...] = (concat, stack, split, slice_, flip, roll)
