"""Operators that write elements, or their sums, maxima or minima, at places which a tensor of indices gives.

Indices may name a place more than once. Sums are bounded for any order; what is written to one place twice is
undetermined, since no framework says which comes last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from generators.bounds.bounded import Bounded, ends, exact, spread
from generators.bounds.extremes import beside_zero, near_zero
from generators.bounds.sums import summed
from generators.graph import TensorType
from generators.ops.index.gather import ALONG, along, along_axis, gather_nd
from generators.ops.shape.layout import Array
from generators.ops.slots import CLASSES, INDEX_DTYPES, axis_in, computed, int_of, numeric, one_of
from generators.ops.spec import Attrs, Call, OpSpec, Slot, Spelling, TypeRuleError, Types

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


def extremes(f: np.ufunc, x: Bounded, update: Bounded, places: Places) -> Bounded:
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
        partial(extremes, f),
        f'torch.scatter_reduce({{0}}, {{axis}}, {{1}}.long(), {{2}}, "a{word}")',
        word,
    )
    for word, f in (("max", np.maximum), ("min", np.minimum))
)


def segment_type(operands: Types, attrs: Attrs) -> TensorType:
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
    segment_type, _segment_sum, attrs={"segments": lambda d, operands, attrs: d.choice((CLASSES, 5, 9))},
    torch="torch.index_add(torch.zeros({shape}, dtype={dtype}, device={0}.device), 0, {1}, {0})",
    tensorflow="tf.math.unsorted_segment_sum({0}, {1}, {segments})",
    jax="jax.ops.segment_sum({0}, {1}, num_segments={segments})",
    relax="index_add(relax.op.zeros({shape}, {name}), 0, {1}, {0})",
    onnx="segment_sum(g, {0}, {1}, {shape}, {name})",
)  # fmt: skip


def written(x: Bounded, update: Bounded, places: Any) -> Bounded:
    value, error, hits = x.value.copy(), x.error.copy(), np.zeros(x.value.shape, np.int64)
    value[places], error[places] = update.value, update.error
    np.add.at(hits, places, 1)
    return Bounded(value, np.where(hits > 1, np.inf, error), x.dtype)


def _write(args: Sequence[Bounded], call: Call) -> Bounded:
    x, indices, update = args
    grid: list[Array] = list(np.indices(indices.value.shape, sparse=True))
    grid[axis_in(call.attrs, x.value.ndim)] = indices.value
    return written(x, update, tuple(grid))


scatter = replace(
    scatter_add, name="scatter", reference=_write, signed_zero=True,
    torch="torch.scatter({0}, {axis}, {1}.long(), {2})",
    tensorflow="tf.tensor_scatter_nd_update({0}, coordinates({1}, {axis}), {2})",
    jax="at_elements({0}, {1}, {axis}).set({2})",
    relax='relax.op.scatter_elements({0}, {1}, {2}, axis={axis}, reduction="update")',
    onnx='g.op("ScatterElements", {0}, {1}, {2}, axis={axis})',
)  # fmt: skip


def _rows(operands: Types) -> TensorType:
    """What a tensor of coordinates picks."""
    return gather_nd.result(operands[:2], {})


def _scatter_nd_type(operands: Types, attrs: Attrs) -> TensorType:
    if operands[2] != _rows(operands):
        raise TypeRuleError(f"{operands[2]} does not go with the coordinates {operands[1]}")
    if attrs["reduction"] not in ("none", "add"):
        raise TypeRuleError(f"no reduction {attrs['reduction']!r}")
    return operands[0]


def _scatter_nd(args: Sequence[Bounded], call: Call) -> Bounded:
    x, coordinates, update = args
    places = tuple(np.moveaxis(coordinates.value, -1, 0))
    return summed_at(x, update, places) if call.attrs["reduction"] == "add" else written(x, update, places)


def _reducing(none: str, add: str) -> Spelling:
    return lambda call: add if call.attrs["reduction"] == "add" else none


scatter_nd = OpSpec(
    "scatter_nd", "indexing", (numeric(min_rank=1, nonempty=True), gather_nd.operands[1], computed(_rows)),
    _scatter_nd_type, _scatter_nd, attrs={"reduction": one_of("none", "add")},
    torch=_reducing("torch.index_put({0}, torch.unbind({1}, -1), {2})",
                    "torch.index_put({0}, torch.unbind({1}, -1), {2}, accumulate=True)"),
    tensorflow=_reducing("tf.tensor_scatter_nd_update({0}, {1}, {2})", "tf.tensor_scatter_nd_add({0}, {1}, {2})"),
    jax=_reducing("{0}.at[tuple(jnp.moveaxis({1}, -1, 0))].set({2})",
                  "{0}.at[tuple(jnp.moveaxis({1}, -1, 0))].add({2})"),
    relax=_reducing("relax.op.scatter_nd({0}, {1}, {2})", 'relax.op.scatter_nd({0}, {1}, {2}, "add")'),
    onnx='g.op("ScatterND", {0}, {1}, {2}, reduction={reduction})',
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (scatter, scatter_nd, scatter_add, scatter_max, scatter_min, segment_sum)
