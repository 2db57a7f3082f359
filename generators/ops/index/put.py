"""Operators that write elements at places without reducing: what is written to one place twice is undetermined, since
no framework says which comes last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import TensorType
from generators.ops.index.gather import gather_nd
from generators.ops.index.scatter import scatter_add, summed_at
from generators.ops.shape.reshape import Array, Attrs, axis_in
from generators.ops.slots import computed, numeric, one_of
from generators.ops.spec import Call, OpSpec, Spelling, TypeRuleError, Types


def _written(x: Bounded, update: Bounded, places: Any) -> Bounded:
    value, error, hits = x.value.copy(), x.error.copy(), np.zeros(x.value.shape, np.int64)
    value[places], error[places] = update.value, update.error
    np.add.at(hits, places, 1)
    return Bounded(value, np.where(hits > 1, np.inf, error), x.dtype)


def _scatter(args: Sequence[Bounded], call: Call) -> Bounded:
    x, indices, update = args
    grid: list[Array] = list(np.indices(indices.value.shape, sparse=True))
    grid[axis_in(call.attrs, x.value.ndim)] = indices.value
    return _written(x, update, tuple(grid))


scatter = replace(
    scatter_add, name="scatter", reference=_scatter, signed_zero=True,
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
    return summed_at(x, update, places) if call.attrs["reduction"] == "add" else _written(x, update, places)


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

WRITES: tuple[OpSpec, ...] = (scatter, scatter_nd)
