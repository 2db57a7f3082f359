"""Order along an axis: sorting, and the greatest or least k elements.

Where NaN stands in the order differs among frameworks: an axis that holds one is undetermined. Zeros of either sign
are equal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded, ends, exact
from generators.bounds.extremes import flushable
from generators.graph import TensorType
from generators.ops.slots import axis_in, axis_of, flag, int_of, numeric
from generators.ops.spec import AttrRule, Attrs, Call, Draw, OpSpec, Spelling, TypeRuleError, Types

Array = np.ndarray

# ---- what sorting tells -------------------------------------------------------------------------------


def ordered(x: Bounded, axis: int, descending: bool) -> Bounded:
    """The elements in order. Each place holds an order statistic, which is monotone in every element: the ends of the
    intervals, sorted, enclose it. Subnormals that compare equal when flushed may stand in any order among each other
    and zeros, so that one of them is off by at most `tiny` and its own magnitude."""

    def sort(array: Array) -> Array:
        rising = np.sort(array, axis)
        return np.flip(rising, axis) if descending else rising

    value = sort(x.value)
    unknown = x.undetermined
    if x.floating:
        low, high = ends(x)
        unknown = unknown | np.isnan(x.value)
        with np.errstate(all="ignore"):
            error = np.maximum(np.abs(sort(high) - value), np.abs(value - sort(low)))
            error = np.where(np.isnan(error), 0.0, error)  # infinities, which are exact
            tiny = PRECISION[x.dtype].tiny
            flushed = np.any((np.abs(x.value) < tiny) & (x.error > 0), axis, keepdims=True)
            near = flushed & (np.abs(value) < tiny)
            error = np.where(near, np.maximum(error, np.abs(value) + tiny), error)
    else:
        error = np.zeros(value.shape)
    return Bounded(value, np.where(np.any(unknown, axis, keepdims=True), np.inf, error), x.dtype)


def places(x: Bounded, axis: int, descending: bool, stable: bool) -> Bounded:
    """Where the elements in order come from, the earlier of equals first. An element's place is certain if every
    other one's interval lies on one side, or both are exact and equal (where equals stay in order: `stable`)."""
    last = Bounded(np.moveaxis(x.value, axis, -1), np.moveaxis(x.error, axis, -1), x.dtype)
    low, high = ends(last) if x.floating else (last.value, last.value)
    key = last.value[..., ::-1] if descending else last.value
    order = np.argsort(key, axis=-1, kind="stable")
    if descending:
        order = (last.value.shape[-1] - 1 - order)[..., ::-1]
    sharp = (last.error == 0) & ~flushable(last)
    mine, other = np.s_[..., :, np.newaxis], np.s_[..., np.newaxis, :]
    apart = (low[mine] > high[other]) | (high[mine] < low[other])
    if stable:
        apart |= (last.value[mine] == last.value[other]) & sharp[mine] & sharp[other]
    certain = np.all(apart | np.eye(order.shape[-1], dtype=bool), axis=-1)
    unknown = last.undetermined | (np.isnan(last.value) if x.floating else False)
    certain &= ~np.any(unknown, axis=-1, keepdims=True)
    found = np.take_along_axis(certain, order, -1)
    return exact(np.moveaxis(order, -1, axis), "int64", np.moveaxis(~found, -1, axis))


# ---- sort and argsort ---------------------------------------------------------------------------------


def _sort_type(dtype: str | None = None) -> Callable[[Types, Attrs], TensorType]:
    def rule(operands: Types, attrs: Attrs) -> TensorType:
        axis_in(attrs, operands[0].rank)
        return TensorType(dtype or operands[0].dtype, operands[0].shape)

    return rule


def _sort(args: Sequence[Bounded], call: Call) -> Bounded:
    return ordered(args[0], axis_in(call.attrs, args[0].value.ndim), bool(call.attrs["descending"]))


def _argsort(args: Sequence[Bounded], call: Call) -> Bounded:
    return places(args[0], axis_in(call.attrs, args[0].value.ndim), bool(call.attrs["descending"]), stable=True)


def _topk_onnx(pick: int, count: str, largest: str) -> str:
    return (
        f'g.op("TopK", {{0}}, g.const([{count}], "int64"), outputs=2, pick={pick}, axis={{axis}}, '
        f"largest=int({largest}))"
    )


def _whole(pick: int) -> Spelling:
    """TopK of all elements."""

    def spell(call: Call) -> str:
        size = call.operands[0].shape[axis_in(call.attrs, call.operands[0].rank)]
        return _topk_onnx(pick, str(size), "{descending}")

    return spell


_ORDER: dict[str, AttrRule] = {"axis": axis_of(0), "descending": flag()}

sort = OpSpec(
    "sort", "sorting", (numeric(min_rank=1),), _sort_type(), _sort, attrs=_ORDER,
    torch="torch.sort({0}, dim={axis}, descending={descending}).values",
    tensorflow='tf.sort({0}, axis={axis}, direction="DESCENDING" if {descending} else "ASCENDING")',
    jax="jnp.sort({0}, axis={axis}, descending={descending})",
    relax="relax.op.sort({0}, {axis}, {descending})", onnx=_whole(0),
)  # fmt: skip

argsort = OpSpec(
    "argsort", "sorting", (numeric(min_rank=1),), _sort_type("int64"), _argsort, attrs=_ORDER,
    torch="torch.argsort({0}, dim={axis}, descending={descending}, stable=True)",
    tensorflow='tf.cast(tf.argsort({0}, axis={axis}, direction="DESCENDING" if {descending} else "ASCENDING", '
    "stable=True), tf.int64)",
    jax="jnp.argsort({0}, axis={axis}, descending={descending}, stable=True).astype(jnp.int64)",
    relax='relax.op.argsort({0}, {axis}, {descending}, "int64")', onnx=_whole(1),
)  # fmt: skip

# ---- the first k --------------------------------------------------------------------------------------


def _count(d: Draw, operands: Types, attrs: Attrs) -> int:
    size = operands[0].shape[axis_in(attrs, operands[0].rank)]
    return min(size, d.choice((1, 2, 3, size, max(1, size - 1))))


def _topk_type(dtype: str | None = None) -> Callable[[Types, Attrs], TensorType]:
    def rule(operands: Types, attrs: Attrs) -> TensorType:
        axis, k = axis_in(attrs, operands[0].rank), int_of(attrs, "k")
        shape = list(operands[0].shape)
        if not 1 <= k <= shape[axis]:
            raise TypeRuleError(f"cannot take {k} of {shape[axis]} elements")
        shape[axis] = k
        return TensorType(dtype or operands[0].dtype, tuple(shape))

    return rule


def _first(x: Bounded, call: Call) -> Bounded:
    axis, k = axis_in(call.attrs, x.value.ndim), int_of(call.attrs, "k")
    return x.map(lambda array: np.take(array, range(k), axis))


def _topk(args: Sequence[Bounded], call: Call) -> Bounded:
    axis = axis_in(call.attrs, args[0].value.ndim)
    return _first(ordered(args[0], axis, bool(call.attrs["largest"])), call)


def _topk_indices(args: Sequence[Bounded], call: Call) -> Bounded:
    """Of equal elements, any may come first: PyTorch promises no order."""
    axis = axis_in(call.attrs, args[0].value.ndim)
    return _first(places(args[0], axis, bool(call.attrs["largest"]), stable=False), call)


_TOPK: dict[str, AttrRule] = {"axis": axis_of(0), "k": _count, "largest": flag()}

topk = OpSpec(
    "topk", "sorting", (numeric(min_rank=1, nonempty=True),), _topk_type(), _topk, attrs=_TOPK,
    torch="torch.topk({0}, {k}, dim={axis}, largest={largest}).values",
    tensorflow="topk({0}, {k}, {axis}, {largest})", jax="topk({0}, {k}, {axis}, {largest})",
    relax='relax.op.topk({0}, {k}, {axis}, "values", {largest})', onnx=_topk_onnx(0, "{k}", "{largest}"),
)  # fmt: skip

topk_indices = OpSpec(
    "topk_indices", "sorting", (numeric(min_rank=1, nonempty=True),), _topk_type("int64"), _topk_indices, attrs=_TOPK,
    torch="torch.topk({0}, {k}, dim={axis}, largest={largest}).indices",
    tensorflow="topk_indices({0}, {k}, {axis}, {largest})", jax="topk_indices({0}, {k}, {axis}, {largest})",
    relax='relax.op.topk({0}, {k}, {axis}, "indices", {largest}, "int64")', onnx=_topk_onnx(1, "{k}", "{largest}"),
)  # fmt: skip


def _kth_type(operands: Types, attrs: Attrs) -> TensorType:
    axis, k, shape = axis_in(attrs, operands[0].rank), int_of(attrs, "k"), operands[0].shape
    if not 1 <= k <= shape[axis]:
        raise TypeRuleError(f"there is no element number {k} of {shape[axis]}")
    return TensorType(operands[0].dtype, (*shape[:axis], *shape[axis + 1 :]))


def _kth(args: Sequence[Bounded], call: Call) -> Bounded:
    axis, k = axis_in(call.attrs, args[0].value.ndim), int_of(call.attrs, "k")
    return ordered(args[0], axis, descending=False).map(lambda array: np.take(array, k - 1, axis))


kth_value = OpSpec(
    "kth_value", "sorting", (numeric(min_rank=1, nonempty=True),), _kth_type, _kth,
    attrs={"axis": axis_of(0), "k": _count},
    torch="torch.kthvalue({0}, {k}, dim={axis}).values",
    tensorflow="tf.gather(tf.sort({0}, axis={axis}), {k} - 1, axis={axis})",
    jax="jnp.take(jnp.sort({0}, axis={axis}), {k} - 1, axis={axis})",
    relax='relax.op.take(relax.op.sort({0}, {axis}, False), relax.const({k} - 1, "int64"), axis={axis})',
    onnx='g.op("Gather", ' + _topk_onnx(0, "{k}", "False") + ', g.const({k} - 1, "int64"), axis={axis})',
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (sort, argsort, topk, topk_indices, kth_value)
