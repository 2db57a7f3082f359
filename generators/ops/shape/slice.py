"""Slices: read forwards and backwards, and written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from generators.bounds.bounded import Bounded
from generators.graph import TensorType
from generators.ops.composed import left_out
from generators.ops.shape.layout import ARRAY, Array, joinable, layout, moved
from generators.ops.slots import axis_in, int_of, ints_of, one_of, tensor
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Shape, Slot, Spelling, TypeRuleError, Types

# ---- updating a slice ---------------------------------------------------------------------------------


def _update_axes(operands: Types) -> tuple[int, ...]:
    """The axes along which operand 1 may replace a slice of operand 0."""
    x, update = operands
    return tuple(a for a in joinable([x.shape, update.shape]) if update.shape[a] <= x.shape[a])


def _accepts_update(type_: TensorType, earlier: Types) -> bool:
    return type_.dtype == earlier[0].dtype and bool(_update_axes((earlier[0], type_)))


def _fresh_update(d: Draw, earlier: Types) -> TensorType:
    shape = list(earlier[0].shape)
    axis = d.integer(0, len(shape) - 1)
    shape[axis] = d.integer(0, shape[axis])
    return TensorType(earlier[0].dtype, tuple(shape))


def _update_axis(d: Draw, operands: Types, attrs: Attrs) -> int:
    axes = _update_axes(operands)
    return d.choice((*axes, *(axis - operands[0].rank for axis in axes)))


def _dims(operands: Types, attrs: Attrs) -> tuple[int, int]:
    """Sizes of the axis in the operand and in the update."""
    axis = axis_in(attrs, operands[0].rank)
    return operands[0].shape[axis], operands[1].shape[axis]


def _update_step(d: Draw, operands: Types, attrs: Attrs) -> int:
    size, count = _dims(operands, attrs)
    most = (size - 1) // (count - 1) if count > 1 else 3
    return d.integer(1, max(1, min(most, 3)))


def _update_start(d: Draw, operands: Types, attrs: Attrs) -> int:
    size, count = _dims(operands, attrs)
    return d.integer(0, size - ((count - 1) * int_of(attrs, "step") + 1)) if count else 0


def _update_type(operands: Types, attrs: Attrs) -> TensorType:
    axis = axis_in(attrs, operands[0].rank)
    if operands[0].dtype != operands[1].dtype or axis not in _update_axes(operands):
        raise TypeRuleError(f"{operands[1]} is no slice of {operands[0]} along axis {axis}")
    start, step, (size, count) = int_of(attrs, "start"), int_of(attrs, "step"), _dims(operands, attrs)
    if start < 0 or step < 1 or (count and start + (count - 1) * step >= size):
        raise TypeRuleError(f"{count} elements from {start} by {step} lie outside a dimension of {size}")
    return operands[0]


def _stop(call: Call) -> int:
    count = _dims(call.operands, call.attrs)[1]
    return int_of(call.attrs, "start") + (count - 1) * int_of(call.attrs, "step") + 1 if count else 0


def _update_places(call: Call) -> tuple[slice, ...]:
    """The subscript of the slice that is replaced."""
    axis = axis_in(call.attrs, call.result.rank)
    start, stop, step = int_of(call.attrs, "start"), _stop(call), int_of(call.attrs, "step")
    return (*(slice(None),) * axis, slice(start, max(start, stop), step))


def _slice_update(args: Sequence[Bounded], call: Call) -> Bounded:
    x, update = args
    value, error = x.value.copy(), x.error.copy()
    value[_update_places(call)], error[_update_places(call)] = update.value, update.error
    return Bounded(value, error, x.dtype)


def _jax_update(call: Call) -> str:
    *before, s = _update_places(call)
    return f"{{0}}.at[{':, ' * len(before)}{s.start}:{s.stop}:{s.step}].set({{1}})"


def _update_call(text: str) -> Spelling:
    """`text` with the places of the update as `%s`."""

    def spell(call: Call) -> str:
        *_, s = _update_places(call)
        return text.replace("%s", f"{s.start}, {s.stop}, {s.step}")

    return spell


def _tensorflow_update(call: Call) -> str:
    """An operator of its own; an axis with another step by places."""
    *before, s = _update_places(call)
    if s.step > 1:
        return f"slice_update({{0}}, {{1}}, {{axis}}, range({s.start}, {s.stop}, {s.step}))"
    begin, end = ([0] * len(before) + [edge] for edge in (s.start, s.stop))
    mask = 2 ** len(before) - 1
    return (
        f"tf.raw_ops.TensorStridedSliceUpdate(input={{0}}, begin={begin}, end={end}, strides={[1] * len(begin)}, "
        f"value={{1}}, end_mask={mask})"
    )


slice_update = OpSpec(
    "slice_update", "indexing", (tensor(min_rank=1, nonempty=True), Slot(_accepts_update, _fresh_update)),
    _update_type, _slice_update,
    attrs={"axis": _update_axis, "step": _update_step, "start": _update_start},
    torch=_update_call("torch.slice_scatter({0}, {1}, {axis}, %s)"),
    tensorflow=_tensorflow_update, jax=_jax_update,
    relax=_update_call("relax.op.slice_scatter({0}, {1}, %s, axis={axis})"),
    onnx=_update_call("slice_update(g, {0}, {1}, {shape1}, {axis}, range(%s))"),
    signed_zero=True,
)  # fmt: skip


def _from_front(call: Call) -> str:
    """Without the place where it begins."""
    whole = replace(call, attrs={**call.attrs, "start": 0})
    return f"torch.slice_scatter({{0}}, {{1}}, {{axis}}, None, {_stop(whole)}, {{step}})"


slice_update_front = left_out(
    slice_update, "slice_update_front", {"start": lambda operands: 0}, attrs={"start": one_of(None)}, torch=_from_front
)

# ---- backwards ----------------------------------------------------------------------------------------


def _backward_starts(d: Draw, operands: Types, attrs: Attrs) -> Shape:
    return tuple(d.choice((dim - 1, 0, dim // 2)) for dim in operands[0].shape)


def _backward_type(operands: Types, attrs: Attrs) -> TensorType:
    rank = operands[0].rank
    starts, steps = ints_of(attrs, "starts", rank, least=0), ints_of(attrs, "steps", rank, least=1)
    if any(start >= dim for start, dim in zip(starts, operands[0].shape, strict=True)):
        raise TypeRuleError(f"{starts} lies outside {operands[0]}")
    return TensorType(operands[0].dtype, tuple(start // step + 1 for start, step in zip(starts, steps, strict=True)))


def _backward(x: Array, call: Call) -> Array:
    starts, steps = ints_of(call.attrs, "starts"), ints_of(call.attrs, "steps")
    return x[tuple(slice(start, None, -step) for start, step in zip(starts, steps, strict=True))]


def _subscript(call: Call) -> str:
    starts, steps = ints_of(call.attrs, "starts"), ints_of(call.attrs, "steps")
    return f"{{0}}[{', '.join(f'{start}::{-step}' for start, step in zip(starts, steps, strict=True))}]"


def _backward_torch(call: Call) -> str:
    """PyTorch has no negative steps: what comes before the start is flipped first."""
    starts, steps = ints_of(call.attrs, "starts"), ints_of(call.attrs, "steps")
    before = ", ".join(f":{start + 1}" for start in starts)
    after = ", ".join(f"::{step}" for step in steps)
    return f"torch.flip({{0}}[{before}], {tuple(range(len(starts)))})[{after}]"


slice_backwards = layout(
    "slice_backwards", tensor(min_rank=1, nonempty=True), _backward_type, moved(_backward),
    attrs={"starts": _backward_starts, "steps": lambda d, operands, attrs: tuple(
        d.choice((1, 2, 1, 3, 40)) for _ in operands[0].shape)},
    torch=_backward_torch, tensorflow=_subscript, jax=_subscript,
    relax="slice_backwards({0}, {starts}, {steps})", onnx="slice_backwards(g, {0}, {starts}, {steps})",
)  # fmt: skip

# ---- forwards -----------------------------------------------------------------------------------------


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


slice_ = layout(
    "slice", ARRAY, _slice_type, moved(lambda x, call: x[slices(call)]),
    attrs={"starts": _starts, "stops": _stops, "steps": _steps},
    torch=_python_slice, tensorflow=_python_slice, jax=_python_slice, relax=_relax_slice, onnx=_onnx_slice,
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (slice_, slice_backwards, slice_update, slice_update_front)
