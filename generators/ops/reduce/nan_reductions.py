"""Reductions that leave NaN out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded, divide, exact
from generators.graph import TensorType
from generators.ops.composed import compute, given, undetermined
from generators.ops.reduce.reductions import max_, sum_
from generators.ops.reduce.sorting import ordered
from generators.ops.slots import axes_of, axis_in, axis_of, flag, floating, reduced
from generators.ops.spec import Attrs, Call, OpSpec, Reference, Spelling, TypeRuleError, Types

Array = np.ndarray

# ---- medians ------------------------------------------------------------------------------------------


def _nanmedian_type(operands: Types, attrs: Attrs) -> TensorType:
    x = operands[0]
    axis = axis_in(attrs, x.rank)
    if x.size == 0:
        raise TypeRuleError(f"no medians of {x}")
    return TensorType(x.dtype, (*x.shape[:axis], *x.shape[axis + 1 :]))


def _nanmedian(args: Sequence[Bounded], call: Call) -> Bounded:
    """Of those that are numbers, the lower one of two in the middle; NaN where there is none."""
    x, axis = args[0], axis_in(call.attrs, args[0].value.ndim)
    missing = np.isnan(x.value) & (x.error == 0)
    there = ordered(Bounded(np.where(missing, np.inf, x.value), x.error, x.dtype), axis, descending=False)
    count = np.sum(~missing, axis=axis, keepdims=True)
    place = np.maximum((count - 1) // 2, 0)
    found = there.map(lambda array: np.take_along_axis(array, place, axis).squeeze(axis))
    none = count.squeeze(axis) == 0
    return Bounded(np.where(none, np.nan, found.value), np.where(none, 0.0, found.error), x.dtype)


nanmedian = OpSpec(
    "nanmedian", "statistics", (floating(1, nonempty=True),), _nanmedian_type, _nanmedian, attrs={"axis": axis_of(0)},
    torch="torch.nanmedian({0}, dim={axis}).values", tensorflow="nanmedian({0}, {axis})",
    jax='jnp.nanquantile({0}, 0.5, axis={axis}, method="lower")', relax="nanmedian(bb, {0}, {axis}, {name})",
    onnx="nanmedian(g, {0}, {axis}, {shape0}, {name})",
)  # fmt: skip


_AXES = "axis={axes}, keepdims={keepdims}"
_RELAX_AXES = "axis=list({axes}), keepdims={keepdims}"
_ONNX_AXES = 'g.const({axes}, "int64"), keepdims=int({keepdims})'

# ---- sums and means -----------------------------------------------------------------------------------


def replaced(x: Bounded, number: float) -> tuple[Bounded, Array]:
    """NaN replaced by a number, and where it stood; what may be NaN or not stays open."""
    nan = np.isnan(x.value) & (x.error == 0)
    return Bounded(np.where(nan, number, x.value), np.where(np.isnan(x.value) & ~nan, np.inf, x.error), x.dtype), nan


def _nansum(args: Sequence[Bounded], call: Call) -> Bounded:
    return sum_.reference([replaced(args[0], 0.0)[0]], call)


def _nanmean(args: Sequence[Bounded], call: Call) -> Bounded:
    """The sum by the count, which the dtype may have to round. A sum that overflows decides nothing."""
    x, nan = replaced(args[0], 0.0)
    total = sum_.reference([x], call)
    counts = compute(sum_, exact(~nan, "int64"), **call.attrs).value.astype(np.float64)
    unit = PRECISION[x.dtype].unit
    count = replace(given(counts, x.dtype), error=np.where(counts * unit > 1, counts * unit, 0.0))
    result = divide(total, replace(count, zero_sign=True))
    result = replace(result, error=np.where(counts == 0, 0.0, result.error))
    special = compute(max_, exact(np.isinf(x.value), "int32"), **call.attrs).value > 0
    return undetermined(result, np.isinf(total.value) & ~special)


def _without_nan(name: str, reference: Reference, relax: Spelling, onnx: Spelling, tensorflow: Spelling) -> OpSpec:
    return OpSpec(
        name, "norms", (floating(1, nonempty=True),), reduced(), reference,
        attrs={"axes": axes_of(0), "keepdims": flag()},
        torch=f"torch.{name}({{0}}, dim={{axes}}, keepdim={{keepdims}})", tensorflow=tensorflow,
        jax=f"jnp.{name}({{0}}, {_AXES})", relax=relax, onnx=onnx,
    )  # fmt: skip


_RELAX_NUMBERS = "relax.op.where(relax.op.isnan({0}), relax.const(0, {dtype0}), {0})"
_RELAX_SUM = f"relax.op.sum({_RELAX_NUMBERS}, {_RELAX_AXES})"
_RELAX_COUNT = f"relax.op.sum(relax.op.astype(relax.op.logical_not(relax.op.isnan({{0}})), {{dtype0}}), {_RELAX_AXES})"
_ONNX_SUM = f'g.op("ReduceSum", g.op("Where", g.op("IsNaN", {{0}}), g.const(0, {{name0}}), {{0}}), {_ONNX_AXES})'
_ONNX_ONES = 'g.op("Where", g.op("IsNaN", {0}), g.const(0, {name0}), g.const(1, {name0}))'
_TF_SUM = f"tf.experimental.numpy.nansum({{0}}, {_AXES})"

OPERATORS: tuple[OpSpec, ...] = (
    _without_nan("nansum", _nansum, _RELAX_SUM, _ONNX_SUM, _TF_SUM),
    _without_nan(
        "nanmean", _nanmean, f"relax.op.divide({_RELAX_SUM}, {_RELAX_COUNT})",
        f'g.op("Div", {_ONNX_SUM}, g.op("ReduceSum", {_ONNX_ONES}, {_ONNX_AXES}))',
        f"tf.experimental.numpy.nanmean({{0}}, {_AXES})",
    ),
    nanmedian,
)  # fmt: skip
