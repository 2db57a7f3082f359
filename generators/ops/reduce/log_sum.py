"""The logarithm of a sum, and vectors divided by their norm, or by a least one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import Bounded, divide, monotone
from generators.graph import Attr, TensorType
from generators.ops.composed import compute, magnitude, undetermined
from generators.ops.elementwise.exponential import log
from generators.ops.reduce.norms import l2_norm
from generators.ops.reduce.records import onnx_reduction, reducible, reduction
from generators.ops.reduce.reductions import sum_
from generators.ops.slots import axis_of, floating, int_of, normalized, one_of, tensor
from generators.ops.spec import Attrs, Call, OpSpec, Spelling, TypeRuleError, Types

_LEAST = 1e-10
"""Beside a smaller norm PyTorch divides by its least one, 1e-12, which half precision does not hold."""


def _log_sum(args: Sequence[Bounded], call: Call) -> Bounded:
    return compute(log, compute(sum_, args[0], **call.attrs))


def _normalized_type(operands: Types, attrs: Attrs) -> TensorType:
    x = operands[0]
    normalized(attrs["axis"], x.rank)
    if x.size == 0 or int_of(attrs, "p") not in (1, 2):
        raise TypeRuleError(f"no norm of order {attrs['p']} of {x}")
    return x


def _lp_normalize(args: Sequence[Bounded], call: Call) -> Bounded:
    """One division. Undetermined where the norm may be next to nothing, or where squares overflow."""
    x, along = args[0], {"axes": normalized(call.attrs["axis"], args[0].value.ndim), "keepdims": True}
    first = int_of(call.attrs, "p") == 1
    size = compute(sum_, magnitude(x), **along) if first else compute(l2_norm, x, **along)
    with np.errstate(all="ignore"):
        small = ~(size.value - size.error > _LEAST) & ~np.isnan(size.value)
        result = divide(x, size)
    return undetermined(result, np.broadcast_to(small, result.value.shape))


LEAST_NORMS = (1e-6, 2.0**-10)
"""The usual one of TensorFlow, whose square is 1e-12, and one that elements come near."""


def _least(attrs: Attrs) -> float:
    eps: Attr = attrs["eps"]
    if not isinstance(eps, float) or not 1e-7 < eps < 1e7:
        raise TypeRuleError(f"{eps!r} is no least norm whose square is an ordinary number")
    return eps


def _floored_type(operands: Types, attrs: Attrs) -> TensorType:
    _least(attrs)
    return _normalized_type(operands, {"axis": attrs["axis"], "p": 2})


def _l2_normalize(args: Sequence[Bounded], call: Call) -> Bounded:
    """The least norm may come from its square, or the square's root: four ulp with the root's own."""
    x, along = args[0], {"axes": normalized(call.attrs["axis"], args[0].value.ndim), "keepdims": True}
    least = _least(call.attrs)
    return divide(x, monotone(lambda norm: np.maximum(norm, least), compute(l2_norm, x, **along), 4))


def _by_order(one: str, two: str) -> Spelling:
    return lambda call: (one, two)[int_of(call.attrs, "p") - 1]


_ALONG = "axis={axis}, keepdims=True"

OPERATORS: tuple[OpSpec, ...] = (
    reduction(
        "log_sum", reducible(("float32", "float64", "float16", "bfloat16")), _log_sum, empty=False,
        torch="torch.log(torch.sum({0}, dim={axes}, keepdim={keepdims}))",
        tensorflow="tf.math.log(tf.reduce_sum({0}, axis={axes}, keepdims={keepdims}))",
        jax="jnp.log(jnp.sum({0}, axis={axes}, keepdims={keepdims}))",
        relax="relax.op.log(relax.op.sum({0}, axis=list({axes}), keepdims={keepdims}))",
        onnx=onnx_reduction("ReduceLogSum"),
    ),
    OpSpec(
        "lp_normalize", "norms", (floating(1, nonempty=True),), _normalized_type, _lp_normalize,
        attrs={"axis": axis_of(0), "p": one_of(2, 1)},
        torch="torch.nn.functional.normalize({0}, p={p}, dim={axis})",
        tensorflow=_by_order(
            f"{{0}} / tf.reduce_sum(tf.abs({{0}}), {_ALONG})",
            f"{{0}} / tf.sqrt(tf.reduce_sum(tf.square({{0}}), {_ALONG}))",
        ),
        jax=f"{{0}} / jnp.linalg.norm({{0}}, ord={{p}}, {_ALONG})",
        relax=_by_order(
            f"relax.op.divide({{0}}, relax.op.sum(relax.op.abs({{0}}), {_ALONG}))",
            f"relax.op.divide({{0}}, relax.op.sqrt(relax.op.sum(relax.op.multiply({{0}}, {{0}}), {_ALONG})))",
        ),
        onnx='g.op("LpNormalization", {0}, axis={axis}, p={p})',
    ),
    OpSpec(
        "l2_normalize", "norms", (tensor(("float32", "float64"), min_rank=1, nonempty=True),), _floored_type,
        _l2_normalize, attrs={"axis": axis_of(0), "eps": one_of(*LEAST_NORMS)}, thresholds=LEAST_NORMS,
        torch="torch.nn.functional.normalize({0}, dim={axis}, eps={eps})",
        tensorflow=lambda call: f"tf.math.l2_normalize({{0}}, axis={{axis}}, epsilon={_least(call.attrs) ** 2!r})",
        jax=f"{{0}} / jnp.maximum(jnp.linalg.norm({{0}}, {_ALONG}), {{eps}})",
        relax=f"relax.op.divide({{0}}, relax.op.maximum(relax.op.sqrt(relax.op.sum(relax.op.multiply({{0}}, {{0}}), "
        f"{_ALONG})), relax.const({{eps}}, {{dtype}})))",
        onnx='g.op("Div", {0}, g.op("Max", g.op("ReduceL2", {0}, g.const([{axis}], "int64"), keepdims=1), '
        "g.const({eps}, {name})))",
    ),
)  # fmt: skip
