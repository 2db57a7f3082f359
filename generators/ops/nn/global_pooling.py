"""The greatest element, and the norm, of each channel of (N, C, height, width)."""

from __future__ import annotations

from collections.abc import Sequence

from generators.bounds.bounded import Bounded
from generators.graph import TensorType
from generators.ops.composed import compute, magnitude
from generators.ops.nn.windows import activations
from generators.ops.reduce.norms import l2_norm, vector_norm
from generators.ops.reduce.reductions import max_, sum_
from generators.ops.slots import int_of, one_of
from generators.ops.spec import Attrs, Call, OpSpec, Spelling, TypeRuleError, Types

_AXES = {"axes": (2, 3), "keepdims": True}


def _type(operands: Types, attrs: Attrs) -> TensorType:
    x = operands[0]
    if x.rank != 4 or 0 in x.shape[1:]:
        raise TypeRuleError(f"cannot pool {x} over 2 dimensions")
    if "p" in attrs and int_of(attrs, "p") not in (1, 2, 3):
        raise TypeRuleError(f"no norm of order {attrs['p']}")
    return TensorType(x.dtype, (*x.shape[:2], 1, 1))


def _norm(args: Sequence[Bounded], call: Call) -> Bounded:
    p = int_of(call.attrs, "p")
    if p == 1:
        return compute(sum_, magnitude(args[0]), **_AXES)
    if p == 2 or not args[0].value.size:  # of no samples, too
        return compute(l2_norm, args[0], **_AXES)
    return compute(vector_norm, args[0], ord="3", **_AXES)


def _pooled(native: str, other: str) -> Spelling:
    """ONNX Runtime's own kernels take float only; it casts float16 around them."""
    return lambda call: native if call.result.dtype in ("float32", "float16") else other


def _onnx_norm(call: Call) -> str:
    p = int_of(call.attrs, "p")
    if call.result.dtype in ("float32", "float16"):
        return 'g.op("GlobalLpPool", {0}, p={p})'
    if p < 3:
        return f'g.op("ReduceL{p}", {{0}}, g.const([2, 3], "int64"), keepdims=1)'
    cubes = 'g.op("Pow", g.op("Abs", {0}), g.const(3, {name}))'
    total = f'g.op("ReduceSum", {cubes}, g.const([2, 3], "int64"), keepdims=1)'
    return f'g.op("Pow", {total}, g.const(1 / 3, {{name}}))'


def _by_order(one: str, two: str, three: str) -> Spelling:
    return lambda call: (one, two, three)[int_of(call.attrs, "p") - 1]


_TF_AXES = "axis=[2, 3], keepdims=True"
_RELAX_AXES = "axis=[2, 3], keepdims=True"

OPERATORS: tuple[OpSpec, ...] = (
    OpSpec(
        "global_max_pool", "pooling", (activations(2),), _type,
        lambda args, call: compute(max_, args[0], **_AXES),
        torch="torch.nn.functional.adaptive_max_pool2d({0}, 1)",
        tensorflow=f"tf.reduce_max({{0}}, {_TF_AXES})",
        jax="jnp.max({0}, axis=(2, 3), keepdims=True)",
        relax=f"relax.op.max({{0}}, {_RELAX_AXES})",
        onnx=_pooled('g.op("GlobalMaxPool", {0})', 'g.op("ReduceMax", {0}, g.const([2, 3], "int64"), keepdims=1)'),
    ),
    OpSpec(
        "global_lp_pool", "pooling", (activations(2),), _type, _norm, attrs={"p": one_of(2, 1, 3)},
        torch="torch.linalg.vector_norm({0}, ord={p}, dim=(2, 3), keepdim=True)",
        tensorflow=_by_order(
            f"tf.reduce_sum(tf.abs({{0}}), {_TF_AXES})",
            f"tf.sqrt(tf.reduce_sum(tf.square({{0}}), {_TF_AXES}))",
            f"tf.pow(tf.reduce_sum(tf.pow(tf.abs({{0}}), 3), {_TF_AXES}), 1 / 3)",
        ),
        jax="jnp.linalg.vector_norm({0}, ord={p}, axis=(2, 3), keepdims=True)",
        relax=_by_order(
            f"relax.op.sum(relax.op.abs({{0}}), {_RELAX_AXES})",
            f"relax.op.sqrt(relax.op.sum(relax.op.multiply({{0}}, {{0}}), {_RELAX_AXES}))",
            "relax.op.power(relax.op.sum(relax.op.power(relax.op.abs({0}), relax.const(3, {dtype0})), "
            f"{_RELAX_AXES}), relax.const(1 / 3, {{dtype0}}))",
        ),
        onnx=_onnx_norm,
    ),
)  # fmt: skip
