"""Further reductions: sums, means and maxima of magnitudes, sums of squares, counts, ranges. Each is bounded as what
it is composed of, and takes the axes of that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import Bounded, add, exact, holds_zero, multiply
from generators.graph import FLOATS
from generators.ops.reduce.reductions import count, max_, mean, min_, reducible, sum_
from generators.ops.slots import floating, tensor
from generators.ops.spec import Call, OpSpec, Reference, Spelling, Unsupported

_SAME = "axis={axes}, keepdims={keepdims}"
_RELAX = "axis=list({axes}), keepdims={keepdims}"


def _of(reduction: OpSpec, f: Callable[[Bounded], Bounded]) -> Reference:
    """The reduction of f, elementwise."""
    return lambda args, call: reduction.reference([f(args[0])], call)


def magnitude(x: Bounded) -> Bounded:
    with np.errstate(all="ignore"):
        return Bounded(np.abs(x.value), x.error, x.dtype)


def _other_than_zero(x: Bounded) -> Bounded:
    """1 or 0. NaN is not 0; what may be a zero is undetermined."""
    unknown = x.undetermined | (holds_zero(x) if x.floating else False)
    return exact(x.value != 0, "int64", unknown)


def _range(x: Bounded, low: Bounded) -> Bounded:
    if x.floating:
        return add(x, low, -1.0)
    with np.errstate(all="ignore"):
        return exact(x.value - low.value, x.dtype, x.undetermined | low.undetermined)


def _composed(
    reduction: OpSpec,
    name: str,
    reference: Reference,
    *,
    torch: Spelling,
    tensorflow: Spelling,
    jax: Spelling,
    relax: Spelling,
    onnx: Spelling,
) -> OpSpec:
    """`reduction`: whose attributes and type rule it has, of floating numbers."""
    slot = floating() if reduction in (sum_, mean) else reducible(FLOATS)
    return replace(
        reduction, name=name, operands=(slot,), reference=reference, signed_zero=False,
        torch=torch, tensorflow=tensorflow, jax=jax, relax=relax, onnx=onnx,
    )  # fmt: skip


def _onnx(kind: str, operand: str = "{0}") -> str:
    return f'g.op("{kind}", {operand}, g.const({{axes}}, "int64"), keepdims=int({{keepdims}}))'


def _mean_abs(call: Call) -> str | Unsupported:
    if not count(call):
        return Unsupported("ONNX leaves ReduceMean of an empty set undefined")
    return _onnx("ReduceMean", 'g.op("Abs", {0})')


ptp = replace(
    max_, name="ptp",
    reference=lambda args, call: _range(*(record.reference(args, call) for record in (max_, min_))),
    torch="torch.amax({0}, dim={axes}, keepdim={keepdims}) - torch.amin({0}, dim={axes}, keepdim={keepdims})",
    tensorflow=f"tf.reduce_max({{0}}, {_SAME}) - tf.reduce_min({{0}}, {_SAME})", jax=f"jnp.ptp({{0}}, {_SAME})",
    relax=f"relax.op.subtract(relax.op.max({{0}}, {_RELAX}), relax.op.min({{0}}, {_RELAX}))",
    onnx=f'g.op("Sub", {_onnx("ReduceMax")}, {_onnx("ReduceMin")})',
)  # fmt: skip

count_nonzero = replace(
    sum_, name="count_nonzero", operands=(tensor(),),
    result=lambda operands, attrs: replace(sum_.result(operands, attrs), dtype="int64"),
    reference=_of(sum_, _other_than_zero), torch="count_nonzero({0}, {axes}, {keepdims})",
    tensorflow=f"tf.math.count_nonzero({{0}}, {_SAME}, dtype=tf.int64)",
    jax=f"jnp.count_nonzero({{0}}, {_SAME})",
    relax=lambda call: "relax.op.sum(relax.op.astype({counted}, 'int64'), axis=list({axes}), keepdims={keepdims})"
    .replace("{counted}", "{0}" if call.operands[0].dtype == "bool" else
             "relax.op.logical_not(relax.op.equal({0}, relax.const(0, {dtype0})))"),
    onnx=lambda call: _onnx("ReduceSum", 'g.op("Cast", {counted}, to=TensorProto.INT64)')
    .replace("{counted}", "{0}" if call.operands[0].dtype == "bool" else
             'g.op("Not", g.op("Equal", {0}, g.const(0, {name0})))'),
)  # fmt: skip

MAGNITUDES: tuple[OpSpec, ...] = (
    _composed(
        sum_, "l1_norm", _of(sum_, magnitude),
        torch="torch.linalg.vector_norm({0}, ord=1, dim={axes}, keepdim={keepdims})",
        tensorflow=f"tf.reduce_sum(tf.abs({{0}}), {_SAME})", jax=f"jnp.sum(jnp.abs({{0}}), {_SAME})",
        relax=f"relax.op.sum(relax.op.abs({{0}}), {_RELAX})", onnx=_onnx("ReduceL1"),
    ),
    _composed(
        max_, "linf_norm", _of(max_, magnitude),
        torch='torch.linalg.vector_norm({0}, ord=float("inf"), dim={axes}, keepdim={keepdims})',
        tensorflow=f"tf.reduce_max(tf.abs({{0}}), {_SAME})", jax=f"jnp.max(jnp.abs({{0}}), {_SAME})",
        relax=f"relax.op.max(relax.op.abs({{0}}), {_RELAX})", onnx=_onnx("ReduceMax", 'g.op("Abs", {0})'),
    ),
    _composed(
        sum_, "sum_of_squares", _of(sum_, lambda x: multiply(x, x)),
        torch="torch.sum(torch.square({0}), dim={axes}, keepdim={keepdims})",
        tensorflow=f"tf.reduce_sum(tf.square({{0}}), {_SAME})", jax=f"jnp.sum(jnp.square({{0}}), {_SAME})",
        relax=f"relax.op.sum(relax.op.square({{0}}), {_RELAX})", onnx=_onnx("ReduceSumSquare"),
    ),
    _composed(
        mean, "mean_abs", _of(mean, magnitude),
        torch="torch.mean(torch.abs({0}), dim={axes}, keepdim={keepdims})",
        tensorflow=f"tf.reduce_mean(tf.abs({{0}}), {_SAME})", jax=f"jnp.mean(jnp.abs({{0}}), {_SAME})",
        relax=f"relax.op.mean(relax.op.abs({{0}}), {_RELAX})", onnx=_mean_abs,
    ),
    ptp,
    count_nonzero,
)  # fmt: skip
