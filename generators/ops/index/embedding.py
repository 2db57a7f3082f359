"""Rows of a table that indices name: embedding, with or without padding among the indices, and bags of embeddings, the
sum, the mean or the greatest of the rows of a bag at a time. Rows at the padding index do not count, and nothing makes
a row of zeros."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from generators.bounds.bounded import Bounded
from generators.bounds.extremes import highest
from generators.bounds.products import bilinear
from generators.bounds.sums import average, summed
from generators.graph import FLOATS, TensorType
from generators.ops.composed import given, shared
from generators.ops.index.gather import indexing, read
from generators.ops.slots import computed, draw_dim, index_slot, one_of, tensor
from generators.ops.spec import Attrs, Call, Domain, Draw, OpSpec, Slot, TypeRuleError, Types

Array = np.ndarray

MODES = ("sum", "mean", "max")

# ---- references ---------------------------------------------------------------------------------------


def _bag(chosen_rows: Bounded, mode: str) -> Bounded:
    """Of (count, features) rows."""
    count = chosen_rows.value.shape[0]
    if count == 0:
        return given(np.zeros(chosen_rows.value.shape[1:]), chosen_rows.dtype)
    if mode == "max":
        return highest(chosen_rows, partial(np.max, axis=0))
    total = summed(chosen_rows, partial(np.sum, axis=0), count, overflows=mode == "sum")
    return total if mode == "sum" else average(total, count)


def _bags(table: Bounded, groups: Sequence[Array], call: Call) -> Bounded:
    """groups: the indices of each bag, without padding."""
    parts = [_bag(table.map(lambda a, g=group: a[g]), str(call.attrs["mode"])) for group in groups]
    value, error = (
        np.stack([getattr(part, name) for part in parts]) if parts else np.zeros(call.result.shape)
        for name in ("value", "error")
    )
    return Bounded(value, error, table.dtype)


def _embedding_bag(args: Sequence[Bounded], call: Call) -> Bounded:
    table, indices = args
    return _bags(table, [row[row != call.attrs["padding"]] for row in indices.value], call)


def _embedding_bag_offsets(args: Sequence[Bounded], call: Call) -> Bounded:
    table, indices = args
    pieces = np.split(indices.value, _offsets(call.attrs)[1:])
    return _bags(table, [row[row != call.attrs["padding"]] for row in pieces], call)


def _embedding_bag_weighted(args: Sequence[Bounded], call: Call) -> Bounded:
    """The sum of rows by weights of their own. Padding is zero by zero."""
    table, indices, weights = args
    there = indices.value != call.attrs["padding"]
    found = table.map(lambda a: np.where(there[..., np.newaxis], a[indices.value], 0.0))
    weights = weights.map(lambda a: np.where(there, a, 0.0))
    return bilinear(partial(np.einsum, "bif,bi->bf"), found, weights, indices.value.shape[1])


# ---- operands, attributes and types -------------------------------------------------------------------


def _offsets(attrs: Attrs) -> tuple[int, ...]:
    """Where each bag begins."""
    offsets = attrs["offsets"]
    if not isinstance(offsets, tuple) or not offsets or offsets[0] != 0:
        raise TypeRuleError(f"offsets {offsets!r} do not begin with 0")
    numbers = tuple(o for o in offsets if isinstance(o, int) and not isinstance(o, bool))
    if len(numbers) != len(offsets) or list(numbers) != sorted(numbers):
        raise TypeRuleError(f"offsets {offsets!r} do not increase")
    return numbers


def _draw_offsets(d: Draw, operands: Types, attrs: Attrs) -> tuple[int, ...]:
    """Bags of any size, empty ones too."""
    offsets, size = [0], operands[1].shape[0]
    for _ in range(d.integer(0, 3)):
        offsets.append(min(size, offsets[-1] + d.choice((2, 1, 0, 3))))
    return tuple(offsets)


def _bag_type(operands: Types, attrs: Attrs) -> TensorType:
    table, indices = operands[:2]
    if table.rank != 2 or indices.rank not in (1, 2) or table.size == 0:
        raise TypeRuleError(f"no bags of {indices} in {table}")
    if attrs.get("mode", "sum") not in MODES:
        raise TypeRuleError(f"{attrs['mode']!r} is no mode")
    padding = attrs["padding"]
    if padding is not None and (not isinstance(padding, int) or not 0 <= padding < table.shape[0]):
        raise TypeRuleError(f"there is no row {padding!r}")
    if indices.rank == 2:
        return TensorType(table.dtype, (indices.shape[0], table.shape[1]))
    offsets = _offsets(attrs)
    if offsets[-1] > indices.shape[0]:
        raise TypeRuleError(f"offsets {offsets} reach beyond {indices}")
    return TensorType(table.dtype, (len(offsets), table.shape[1]))


def _padded_type(operands: Types, attrs: Attrs) -> TensorType:
    padding = attrs["padding"]
    if not isinstance(padding, int) or not 0 <= padding < operands[0].shape[0]:
        raise TypeRuleError(f"there is no row {padding!r}")
    return embedding.result(operands, {})


def _padding(d: Draw, operands: Types, attrs: Attrs) -> int | None:
    return d.choice((None, *range(min(3, operands[0].shape[0]))))


def _fresh_row(d: Draw, earlier: Types) -> TensorType:
    return TensorType(d.choice(("int64", "int32")), (draw_dim(d, 17),))


def _fresh_rows(d: Draw, earlier: Types) -> TensorType:
    return TensorType(d.choice(("int64", "int32")), (draw_dim(d, 8), draw_dim(d, 9, zero=False)))


def _indices(rank: int) -> Slot:
    def accepts(type_: TensorType, earlier: Types) -> bool:
        return type_.dtype in ("int32", "int64") and type_.rank == rank and (rank == 1 or type_.shape[1] > 0)

    return Slot(accepts, _fresh_row if rank == 1 else _fresh_rows, rows)


TABLE = tensor(FLOATS, 2, 2, nonempty=True)


def _groups(call: Call) -> list[list[int]]:
    """The places of each bag in a row of indices."""
    offsets = (*_offsets(call.attrs), call.operands[1].shape[0])
    return [list(range(*pair)) for pair in pairwise(offsets)]


_CALL = "torch.nn.functional.embedding_bag({1}, {0}"
_TORCH = {
    "embedding_bag": f"{_CALL}, mode={{mode}}, padding_idx={{padding}})",
    "embedding_bag_offsets": f"{_CALL}, torch.tensor({{offsets}}, dtype={{dtype1}}, device={{1}}.device), "
    "mode={mode}, padding_idx={padding})",
    "embedding_bag_weighted": f'{_CALL}, per_sample_weights={{2}}, mode="sum", padding_idx={{padding}})',
}


def rows(earlier: Types) -> Domain:
    """Places on the first axis of operand 0."""
    return 0, earlier[0].shape[0] - 1


# ---- single rows --------------------------------------------------------------------------------------

embedding = indexing(
    "embedding", (tensor(FLOATS, 2, 2, nonempty=True), index_slot(0, 3, rows)),
    lambda operands, attrs: TensorType(operands[0].dtype, (*operands[1].shape, operands[0].shape[1])),
    read(lambda x, indices, call: x[indices]),
    torch="torch.nn.functional.embedding({1}, {0})", tensorflow="tf.nn.embedding_lookup({0}, {1})",
    jax="{0}[{1}]", relax="relax.op.take({0}, {1}, axis=0)", onnx='g.op("Gather", {0}, {1}, axis=0)',
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (
    embedding,
    OpSpec(
        "embedding_padded", "indexing", (TABLE, index_slot(1, 3, rows)), _padded_type, embedding.reference,
        attrs={"padding": lambda d, operands, attrs: d.integer(0, operands[0].shape[0] - 1)}, signed_zero=True,
        torch="torch.nn.functional.embedding({1}, {0}, padding_idx={padding})", tensorflow=embedding.tensorflow,
        jax=embedding.jax, relax=embedding.relax, onnx=embedding.onnx,
    ),
    OpSpec(
        "embedding_bag", "indexing", (TABLE, _indices(2)), _bag_type, _embedding_bag,
        attrs={"mode": one_of(*MODES), "padding": _padding},
        **{**shared("embedding_bag"), "torch": _TORCH["embedding_bag"]},
    ),
    OpSpec(
        "embedding_bag_offsets", "indexing", (TABLE, _indices(1)), _bag_type, _embedding_bag_offsets,
        attrs={"offsets": _draw_offsets, "mode": one_of(*MODES), "padding": _padding},
        **{**shared("embedding_bag_offsets", groups=_groups), "torch": _TORCH["embedding_bag_offsets"]},
    ),
    OpSpec(
        "embedding_bag_weighted", "indexing",
        (TABLE, _indices(2), computed(lambda earlier: TensorType(earlier[0].dtype, earlier[1].shape))),
        _bag_type, _embedding_bag_weighted, attrs={"padding": _padding},
        **{**shared("embedding_bag_weighted"), "torch": _TORCH["embedding_bag_weighted"]},
    ),
)  # fmt: skip
