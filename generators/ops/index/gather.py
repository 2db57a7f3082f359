"""Operators that read elements at places which a tensor of indices gives: take, gather, embedding, one-hot.

Indices are leaves whose elements lie between 0 and the end of the axis. The domain of a leaf is settled before
the attributes are, so that where an axis is an attribute, indices stay below the least dimension."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from generators.bounds.bounded import Bounded, exact
from generators.graph import FLOATS, Attr, TensorType
from generators.ops.shape.join_split import joinable
from generators.ops.shape.reshape import Array, Attrs, axis_in, int_of
from generators.ops.slots import MAX_ELEMENTS, MAX_RANK, draw_dim, size_of, tensor
from generators.ops.spec import (
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

INDEX_DTYPES = ("int64", "int64", "int32")
SOURCE = tensor(min_rank=1, nonempty=True)


def least(earlier: Types) -> Domain:
    """Places that exist on every axis of operand 0."""
    return 0, min(earlier[0].shape) - 1


def rows(earlier: Types) -> Domain:
    """Places on the first axis of operand 0."""
    return 0, earlier[0].shape[0] - 1


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


# ---- take, embedding ----------------------------------------------------------------------------------


def index_slot(
    min_rank: int, max_rank: int, domain: Callable[[Types], Domain], dtypes: Sequence[str] = INDEX_DTYPES
) -> Slot:
    """A tensor of indices of any shape, as large as the result may become."""

    def accepts(type_: TensorType, earlier: Types) -> bool:
        return type_.dtype in dtypes and min_rank <= type_.rank <= max_rank

    def fresh(d: Draw, earlier: Types) -> TensorType:
        shape, room = [], MAX_ELEMENTS // max((1, *(t.size for t in earlier)))
        for _ in range(d.choice(range(min_rank, max_rank + 1))):
            shape.append(draw_dim(d, room))
            room //= max(1, shape[-1])
        return TensorType(d.choice(dtypes), tuple(shape))

    return Slot(accepts, fresh, domain)


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

embedding = indexing(
    "embedding", (tensor(FLOATS, 2, 2, nonempty=True), index_slot(0, 3, rows)),
    lambda operands, attrs: TensorType(operands[0].dtype, (*operands[1].shape, operands[0].shape[1])),
    read(lambda x, indices, call: x[indices]),
    torch="torch.nn.functional.embedding({1}, {0})", tensorflow="tf.nn.embedding_lookup({0}, {1})",
    jax="{0}[{1}]", relax="relax.op.take({0}, {1}, axis=0)", onnx='g.op("Gather", {0}, {1}, axis=0)',
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


# ---- one-hot ------------------------------------------------------------------------------------------

CLASSES = 4
"""Indices of classes lie below it, and the depth is at least that: an attribute is drawn after its operands."""


def _one_hot_axis(d: Draw, operands: Types, attrs: Attrs) -> int:
    return d.choice((-1, *range(operands[0].rank + 1)))


def _one_hot_type(operands: Types, attrs: Attrs) -> TensorType:
    depth, axis, shape = int_of(attrs, "depth"), int_of(attrs, "axis"), list(operands[0].shape)
    if depth < CLASSES or not -1 <= axis <= len(shape):
        raise TypeRuleError(f"no one-hot of depth {depth} along axis {axis} for {operands[0]}")
    shape.insert(len(shape) if axis == -1 else axis, depth)
    return TensorType("float32", tuple(shape))


def _one_hot(args: Sequence[Bounded], call: Call) -> Bounded:
    indices, axis = args[0].value, axis_in(call.attrs, call.result.rank)
    classes = np.arange(int_of(call.attrs, "depth")).reshape((-1,) + (1,) * (indices.ndim - axis))
    return exact((np.expand_dims(indices, axis) == classes).astype(np.float64), "float32")


def _torch_one_hot(call: Call) -> str:
    text = "torch.nn.functional.one_hot({0}.long(), {depth}).to({dtype})"
    return text if call.attrs["axis"] in (-1, call.operands[0].rank) else f"torch.movedim({text}, -1, {{axis}})"


one_hot = indexing(
    "one_hot", (index_slot(1, MAX_RANK - 1, lambda earlier: (0, CLASSES - 1)),), _one_hot_type, _one_hot,
    attrs={"depth": lambda d, operands, attrs: d.choice((CLASSES, 5, 9, 17)), "axis": _one_hot_axis},
    torch=_torch_one_hot, tensorflow="tf.one_hot({0}, {depth}, axis={axis})",
    jax="jax.nn.one_hot({0}, {depth}, axis={axis}, dtype={dtype})",
    relax='relax.op.one_hot({0}, tvm.tirx.FloatImm({name}, 1.0), tvm.tirx.FloatImm({name}, 0.0), {depth}, '
    "axis={axis})",
    onnx='g.op("OneHot", {0}, g.const({depth}, {name0}), g.const([0, 1], {name}), axis={axis})',
)  # fmt: skip

INDEXING: tuple[OpSpec, ...] = (take, embedding, gather, gather_nd, one_hot)
