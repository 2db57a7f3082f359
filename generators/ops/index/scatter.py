"""Operators that write or add elements at places: slice updates, and sums, maxima and minima by index.

Indices may name a place more than once. Then the order of writing would show, so that scattering without a
reduction is not here; sums are bounded for any order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from generators.bounds.bounded import Bounded, ends, exact, spread
from generators.bounds.sums import summed
from generators.graph import TensorType
from generators.ops.elementwise.comparison import beside_zero, near_zero
from generators.ops.index.gather import ALONG, CLASSES, INDEX_DTYPES, along, along_axis, least
from generators.ops.shape.join_split import joinable
from generators.ops.shape.reshape import Array, Attrs, axis_in, int_of
from generators.ops.slots import MAX_ELEMENTS, computed, draw_dim, numeric, tensor
from generators.ops.spec import Call, Draw, OpSpec, Slot, Spelling, TypeRuleError, Types

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


slice_update = OpSpec(
    "slice_update", "indexing", (tensor(min_rank=1, nonempty=True), Slot(_accepts_update, _fresh_update)),
    _update_type, _slice_update,
    attrs={"axis": _update_axis, "step": _update_step, "start": _update_start},
    torch=_update_call("torch.slice_scatter({0}, {1}, {axis}, %s)"),
    tensorflow=_update_call("slice_update({0}, {1}, {axis}, range(%s))"), jax=_jax_update,
    relax=_update_call("relax.op.slice_scatter({0}, {1}, %s, axis={axis})"),
    onnx=_update_call("slice_update(g, {0}, {1}, {shape1}, {axis}, range(%s))"),
    signed_zero=True,
)  # fmt: skip


# ---- reducing by index --------------------------------------------------------------------------------


Places = Any
"""A tuple of slices and arrays of indices, which numpy's type stubs do not know `ufunc.at` to take."""


def summed_at(x: Bounded, update: Bounded, places: Places) -> Bounded:
    """x plus the elements of `update` that go to each place, in any order. What nothing is added to stays."""
    if not x.floating:
        value = x.value.copy()
        np.add.at(value, places, update.value)
        return exact(value, x.dtype, _scattered(x.undetermined, update.undetermined, places))

    n = x.value.size

    def collect(terms: Array) -> Array:
        result = terms[:n].reshape(x.value.shape).copy()
        np.add.at(result, places, terms[n:].reshape(update.value.shape))
        return result

    def joined(first: Array, second: Array) -> Array:
        return np.concatenate([first.ravel(), second.ravel()])

    terms = Bounded(joined(x.value, update.value), joined(x.error, update.error), x.dtype)
    return summed(terms, collect, collect(np.ones(terms.value.size)))


def _scattered(here: Array, there: Array, places: Places) -> Array:
    """Does the mask hold for an element or for anything that is scattered to it?"""
    result = here.copy()
    np.logical_or.at(result, places, there)
    return result


def _extremes(f: np.ufunc, x: Bounded, update: Bounded, places: Places) -> Bounded:
    """np.maximum or np.minimum of all that goes to a place, which propagates NaN; monotone, not rounded."""

    def best(start: Array, terms: Array) -> Array:
        result = start.copy()
        f.at(result, places, terms)
        return result

    unknown = _scattered(x.undetermined, update.undetermined, places)
    if not x.floating:
        return exact(best(x.value, update.value), x.dtype, unknown)
    with np.errstate(all="ignore"):
        value = best(x.value, update.value)
        (x_low, x_high), (low, high) = ends(x), ends(update)
        error = spread(value, best(x_low, low), best(x_high, high))
        error = beside_zero(value, error, _scattered(near_zero(x), near_zero(update), places), x.dtype)
        nan = _scattered(np.isnan(x.value) & ~x.undetermined, np.isnan(update.value) & ~update.undetermined, places)
    return Bounded(value, np.where(nan, 0.0, np.where(unknown, np.inf, error)), x.dtype)


def _scatter(name: str, reduce: Callable[[Bounded, Bounded, Places], Bounded], torch: str, word: str) -> OpSpec:
    """Operand 2 goes, element by element, where operand 1 says along the axis. word: for the other dialects."""

    def result(operands: Types, attrs: Attrs) -> TensorType:
        along(operands, attrs)
        if operands[2] != TensorType(operands[0].dtype, operands[1].shape):
            raise TypeRuleError(f"{operands[2]} does not go with the indices {operands[1]}")
        return operands[0]

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x, indices, update = args
        grid: list[Array] = list(np.indices(indices.value.shape, sparse=True))
        grid[axis_in(call.attrs, x.value.ndim)] = indices.value
        return reduce(x, update, tuple(grid))

    return OpSpec(
        name, "indexing",
        (numeric(min_rank=1, nonempty=True), ALONG, computed(lambda e: TensorType(e[0].dtype, e[1].shape))),
        result, reference, attrs={"axis": along_axis},
        torch=torch, tensorflow=f"tf.tensor_scatter_nd_{word}({{0}}, coordinates({{1}}, {{axis}}), {{2}})",
        jax=f"at_elements({{0}}, {{1}}, {{axis}}).{word}({{2}})",
        relax=f'relax.op.scatter_elements({{0}}, {{1}}, {{2}}, axis={{axis}}, reduction="{word}")',
        onnx=f'g.op("ScatterElements", {{0}}, {{1}}, {{2}}, axis={{axis}}, reduction="{word}")',
    )  # fmt: skip


scatter_add = _scatter("scatter_add", summed_at, "torch.scatter_add({0}, {axis}, {1}.long(), {2})", "add")
scatter_max, scatter_min = (
    _scatter(
        f"scatter_{word}",
        partial(_extremes, f),
        f'torch.scatter_reduce({{0}}, {{axis}}, {{1}}.long(), {{2}}, "a{word}")',
        word,
    )
    for word, f in (("max", np.maximum), ("min", np.minimum))
)


def _row_axes(operands: Types) -> tuple[int, ...]:
    """The axes of operand 0 on which the rows of operand 2 may be those that operand 1 counts."""
    x, indices, update = operands
    return tuple(a for a in joinable([x.shape, update.shape]) if (update.shape[a],) == indices.shape)


def _accepts_rows(type_: TensorType, earlier: Types) -> bool:
    return type_.dtype == earlier[0].dtype and bool(_row_axes((*earlier[:2], type_)))


def _fresh_rows(d: Draw, earlier: Types) -> TensorType:
    shape = list(earlier[0].shape)
    axis = d.choice([*(a for a, dim in enumerate(shape) if dim == min(shape)), *range(len(shape))])
    shape[axis] = earlier[1].shape[0]
    return TensorType(earlier[0].dtype, tuple(shape))


def _row_axis(d: Draw, operands: Types, attrs: Attrs) -> int:
    axes = _row_axes(operands)
    return d.choice((*axes, *(axis - operands[0].rank for axis in axes)))


def _index_add_type(operands: Types, attrs: Attrs) -> TensorType:
    if operands[0].dtype != operands[2].dtype or axis_in(attrs, operands[0].rank) not in _row_axes(operands):
        raise TypeRuleError(f"{operands[2]} holds no {operands[1].size} rows of {operands[0]}")
    return operands[0]


def _index_add(args: Sequence[Bounded], call: Call) -> Bounded:
    x, indices, update = args
    return summed_at(x, update, (*(slice(None),) * axis_in(call.attrs, x.value.ndim), indices.value))


def _jax_index_add(call: Call) -> str:
    return f"{{0}}.at[{':, ' * axis_in(call.attrs, call.result.rank)}{{1}}].add({{2}})"


index_add = OpSpec(
    "index_add", "indexing",
    (
        numeric(min_rank=1, nonempty=True),
        Slot(
            lambda type_, earlier: type_.dtype in INDEX_DTYPES and type_.rank == 1,
            lambda d, earlier: TensorType(
                d.choice(INDEX_DTYPES), (draw_dim(d, MAX_ELEMENTS * min(earlier[0].shape) // earlier[0].size),)
            ),
            least,
        ),
        Slot(_accepts_rows, _fresh_rows),
    ),
    _index_add_type, _index_add, attrs={"axis": _row_axis},
    torch="torch.index_add({0}, {axis}, {1}, {2})", tensorflow="index_add({0}, {axis}, {1}, {2})",
    jax=_jax_index_add, relax="index_add({0}, {axis}, {1}, {2})",
    onnx="index_add(g, {0}, {axis}, {1}, {2}, {shape2})",
)  # fmt: skip


def _segment_type(operands: Types, attrs: Attrs) -> TensorType:
    segments = int_of(attrs, "segments")
    if segments < CLASSES:
        raise TypeRuleError(f"indices below {CLASSES} need as many segments, not {segments}")
    return TensorType(operands[0].dtype, (segments, *operands[0].shape[1:]))


def _segment_sum(args: Sequence[Bounded], call: Call) -> Bounded:
    data, indices = args
    dtype = np.float64 if data.floating else data.dtype
    nothing = Bounded(np.zeros(call.result.shape, dtype), np.zeros(call.result.shape), data.dtype)
    return summed_at(nothing, data, (indices.value,))


segment_sum = OpSpec(
    "segment_sum", "indexing",
    (
        numeric(min_rank=1),
        Slot(
            lambda type_, earlier: type_.dtype in INDEX_DTYPES and type_.shape == earlier[0].shape[:1],
            lambda d, earlier: TensorType(d.choice(INDEX_DTYPES), earlier[0].shape[:1]),
            lambda earlier: (0, CLASSES - 1),
        ),
    ),
    _segment_type, _segment_sum, attrs={"segments": lambda d, operands, attrs: d.choice((CLASSES, 5, 9))},
    torch="torch.index_add(torch.zeros({shape}, dtype={dtype}), 0, {1}, {0})",
    tensorflow="tf.math.unsorted_segment_sum({0}, {1}, {segments})",
    jax="jax.ops.segment_sum({0}, {1}, num_segments={segments})",
    relax="index_add(relax.op.zeros({shape}, {name}), 0, {1}, {0})",
    onnx="segment_sum(g, {0}, {1}, {shape}, {name})",
)  # fmt: skip

SCATTER: tuple[OpSpec, ...] = (slice_update, scatter_add, scatter_max, scatter_min, index_add, segment_sum)
