"""Operators that read elements at places which a tensor of indices gives: take, gather, gather_nd.

Indices are leaves whose elements lie between 0 and the end of the axis. The domain of a leaf is settled before
the attributes are, so that where an axis is an attribute, indices stay below the least dimension."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import Attr, TensorType
from generators.ops.shape.layout import Array, joinable
from generators.ops.slots import INDEX_DTYPES, MAX_ELEMENTS, axis_in, draw_dim, index_slot, int_of, size_of, tensor
from generators.ops.spec import (
    Attrs,
    Call,
    Domain,
    Draw,
    OpSpec,
    Reference,
    Slot,
    Spelling,
    TypeRuleError,
    Types,
    Unsupported,
)

SOURCE = tensor(min_rank=1, nonempty=True)


def least(earlier: Types) -> Domain:
    """Places that exist on every axis of operand 0."""
    return 0, min(earlier[0].shape) - 1


def read(place: Callable[[Array, Array, Call], Array]) -> Reference:
    """The reference of an operator that reads from operand 0 where operand 1 says."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x, indices = args
        return x.map(lambda array: place(array, indices.value, call))

    return reference


def indexing(
    name: str,
    operands: tuple[Slot, ...],
    result: Callable[[Types, Attrs], TensorType],
    reference: Reference,
    *,
    torch: Spelling,
    tensorflow: Spelling,
    jax: Spelling,
    relax: Spelling,
    onnx: Spelling,
    attrs: Mapping[str, Callable[[Draw, Types, Attrs], Attr]] | None = None,
) -> OpSpec:
    """A record of an operator that only copies: the signs of zeros stay."""
    return OpSpec(
        name, "indexing", operands, result, reference, attrs=attrs or {}, signed_zero=True,
        torch=torch, tensorflow=tensorflow, jax=jax, relax=relax, onnx=onnx,
    )  # fmt: skip


# ---- take ---------------------------------------------------------------------------------------------


def _take_axis(d: Draw, operands: Types, attrs: Attrs) -> int:
    """An axis of the least dimension mostly, where indices reach the end."""
    shape = operands[0].shape
    short = [axis for axis, dim in enumerate(shape) if dim == min(shape)]
    return d.choice((*short, *range(len(shape)), *short, *range(-len(shape), 0)))


def _take_type(operands: Types, attrs: Attrs) -> TensorType:
    x, indices = operands
    axis = axis_in(attrs, x.rank)
    return TensorType(x.dtype, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))


def _torch_take(call: Call) -> str:
    if call.operands[1].rank == 1:
        return "torch.index_select({0}, {axis}, {1})"
    return f"{{0}}[{':, ' * axis_in(call.attrs, call.operands[0].rank)}{{1}}]"


take = indexing(
    "take", (SOURCE, index_slot(1, 2, least)), _take_type,
    read(lambda x, indices, call: np.take(x, indices, axis=int_of(call.attrs, "axis"))),
    attrs={"axis": _take_axis},
    torch=_torch_take, tensorflow="tf.gather({0}, {1}, axis={axis})",
    jax="jnp.take({0}, {1}, axis={axis})", relax="relax.op.take({0}, {1}, axis={axis})",
    onnx='g.op("Gather", {0}, {1}, axis={axis})',
)  # fmt: skip

# ---- gather along an axis -----------------------------------------------------------------------------


def _accepts_along(type_: TensorType, earlier: Types) -> bool:
    return type_.dtype in INDEX_DTYPES and bool(joinable([earlier[0].shape, type_.shape]))


def _fresh_along(d: Draw, earlier: Types) -> TensorType:
    """The operand's shape, with any dimension in place of one of its own."""
    shape = list(earlier[0].shape)
    axis = d.integer(0, len(shape) - 1)
    shape[axis] = 1
    shape[axis] = draw_dim(d, MAX_ELEMENTS // max(1, size_of(shape)))
    return TensorType(d.choice(INDEX_DTYPES), tuple(shape))


ALONG = Slot(_accepts_along, _fresh_along, least)
"""Indices along one axis for every element on the other ones."""


def along_axis(d: Draw, operands: Types, attrs: Attrs) -> int:
    axes, rank = joinable([t.shape for t in operands[:2]]), operands[0].rank
    return d.choice((*axes, *(axis - rank for axis in axes)))


def along(operands: Types, attrs: Attrs) -> int:
    """The axis, which is the only one where operand and indices may differ; raises TypeRuleError."""
    axis = axis_in(attrs, operands[0].rank)
    if axis not in joinable([t.shape for t in operands[:2]]):
        raise TypeRuleError(f"{operands[1]} is no index of {operands[0]} along axis {axis}")
    return axis


def _gather_type(operands: Types, attrs: Attrs) -> TensorType:
    along(operands, attrs)
    return TensorType(operands[0].dtype, operands[1].shape)


def _relax_gather(call: Call) -> str | Unsupported:
    if call.result.size == 0:
        return Unsupported("relax.op.gather_elements checks that there are indices on every axis")
    return "relax.op.gather_elements({0}, {1}, axis={axis})"


gather = indexing(
    "gather", (SOURCE, ALONG), _gather_type,
    read(lambda x, indices, call: np.take_along_axis(x, indices, int_of(call.attrs, "axis"))),
    attrs={"axis": along_axis},
    torch="torch.gather({0}, {axis}, {1}.long())", tensorflow="take_along_axis({0}, {1}, {axis})",
    jax="jnp.take_along_axis({0}, {1}, axis={axis})",
    relax=_relax_gather,
    onnx='g.op("GatherElements", {0}, {1}, axis={axis})',
)  # fmt: skip

# ---- gather by coordinates ----------------------------------------------------------------------------


def _accepts_coordinates(type_: TensorType, earlier: Types) -> bool:
    return type_.dtype == "int64" and 2 <= type_.rank <= 3 and 1 <= type_.shape[-1] <= earlier[0].rank


def _fresh_coordinates(d: Draw, earlier: Types) -> TensorType:
    count = d.integer(1, earlier[0].rank)
    room = MAX_ELEMENTS // max(count, size_of(earlier[0].shape[count:]))
    first = draw_dim(d, room)
    rest = (draw_dim(d, room // max(1, first)),) if d.boolean() else ()
    return TensorType("int64", (first, *rest, count))


def _gather_nd_type(operands: Types, attrs: Attrs) -> TensorType:
    x, places = operands
    if not 1 <= places.shape[-1] <= x.rank:
        raise TypeRuleError(f"{places} holds no coordinates of {x}")
    return TensorType(x.dtype, (*places.shape[:-1], *x.shape[places.shape[-1] :]))


gather_nd = indexing(
    "gather_nd", (SOURCE, Slot(_accepts_coordinates, _fresh_coordinates, least)), _gather_nd_type,
    read(lambda x, places, call: x[tuple(np.moveaxis(places, -1, 0))]),
    torch="{0}[torch.unbind({1}, -1)]", tensorflow="tf.gather_nd({0}, {1})",
    jax="{0}[tuple(jnp.moveaxis({1}, -1, 0))]", relax="relax.op.gather_nd({0}, {1})",
    onnx='g.op("GatherND", {0}, {1})',
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (take, gather, gather_nd)
