"""Rows written into a cache along one axis, each part of a batch from a place of its own on: what attention does with
keys and values from step to step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import EVERY, TensorType
from generators.ops.slots import INDEX_DTYPES, axis_in, draw_dim, tensor
from generators.ops.spec import Attrs, Call, Domain, Draw, OpSpec, Slot, Spelling, TypeRuleError, Types

Array = np.ndarray


def _axes(cache: TensorType, update: TensorType) -> list[int]:
    """Along which of the axes the update may be written: that in which it is shorter, or any but the first one."""
    if update.dtype != cache.dtype or update.rank != cache.rank:
        return []
    differ = [axis for axis in range(cache.rank) if cache.shape[axis] != update.shape[axis]]
    if not differ:
        return list(range(1, cache.rank))
    (axis, *more) = differ
    return [axis] if axis and not more and 0 < update.shape[axis] < cache.shape[axis] else []


def _fresh_update(d: Draw, earlier: Types) -> TensorType:
    cache = earlier[0]
    axis = d.choice((cache.rank - 2, *(axis for axis in range(1, cache.rank) if axis != cache.rank - 2)))
    size = draw_dim(d, cache.shape[axis], zero=False)
    return TensorType(cache.dtype, (*cache.shape[:axis], size, *cache.shape[axis + 1 :]))


def _places(circular: bool) -> Slot:
    def type_of(d: Draw, earlier: Types) -> TensorType:
        return TensorType(d.choice(INDEX_DTYPES), earlier[0].shape[:1])

    def domain(earlier: Types) -> Domain:
        """All that fit along every axis that may be drawn."""
        cache, update = earlier[:2]
        sizes = [(cache.shape[axis], update.shape[axis]) for axis in _axes(cache, update)]
        return 0, min((size if circular else size - length for size, length in sizes), default=0)

    return Slot(lambda t, earlier: t.dtype in INDEX_DTYPES and t.shape == earlier[0].shape[:1], type_of, domain)


def _type(operands: Types, attrs: Attrs) -> TensorType:
    cache, update, places = operands
    if axis_in(attrs, cache.rank) not in _axes(cache, update) or places.shape != cache.shape[:1]:
        raise TypeRuleError(f"{update} cannot be written into {cache} from {places} on")
    return cache


def _written(circular: bool, args: Sequence[Bounded], call: Call) -> Bounded:
    cache, update, places = args
    axis = axis_in(call.attrs, cache.value.ndim)

    def write(into: Array, rows: Array) -> Array:
        result = np.moveaxis(into, axis, 1).copy()
        for number, first in enumerate(places.value.astype(np.int64)):
            where = first + np.arange(rows.shape[axis])
            result[number, where % result.shape[1] if circular else where] = np.moveaxis(rows, axis, 1)[number]
        return np.moveaxis(result, 1, axis)

    return Bounded(write(cache.value, update.value), write(cache.error, update.error), cache.dtype)


def _axis(d: Draw, operands: Types, attrs: Attrs) -> int:
    """The last axis but one, as models have it, first."""
    rank = operands[0].rank
    axes = sorted(_axes(*operands[:2]), key=lambda axis: axis != rank - 2)
    return d.choice((*(axis - rank for axis in axes), *axes))


def _onnx(circular: bool) -> Spelling:
    def spell(call: Call) -> str:
        axis = "" if call.attrs["axis"] == -2 else ", axis={axis}"
        mode = ', mode="circular"' if circular else ""
        places = "{2}" if call.operands[2].dtype == "int64" else 'g.op("Cast", {2}, to=TensorProto.INT64)'
        return f'g.op("TensorScatter", {{0}}, {{1}}, {places}{axis}{mode})'

    return spell


def _record(name: str, circular: bool) -> OpSpec:
    text = f"{{0}}, {{1}}, {{2}}, {{axis}}, {circular}"
    return OpSpec(
        name, "indexing",
        (tensor(EVERY, min_rank=3, nonempty=True),
         Slot(lambda t, earlier: bool(_axes(earlier[0], t)), _fresh_update), _places(circular)),
        _type, lambda args, call: _written(circular, args, call), attrs={"axis": _axis}, signed_zero=True,
        torch=f"write_cache({text})", tensorflow=f"write_cache({text})", jax=f"write_cache({text})",
        relax=f"write_cache(bb, {text}, {{shape0}}, {{shape1}}, {{name2}})", onnx=_onnx(circular),
    )  # fmt: skip


OPERATORS: tuple[OpSpec, ...] = (_record("write_cache", False), _record("write_cache_circular", True))
