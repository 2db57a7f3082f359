"""Reductions of JAX by a function that the program gives, the exclusive or of integers, and the greatest k by way of
the approximate search with a recall of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import Bounded, exact
from generators.graph import FLOATS, INTEGERS, TensorType
from generators.ops.composed import compute
from generators.ops.reduce.norms import OPERATORS as NORMS
from generators.ops.reduce.records import along
from generators.ops.reduce.sorting import topk
from generators.ops.slots import axes_of, flag, normalized, reduced, tensor
from generators.ops.spec import Attrs, Call, OpSpec, TypeRuleError, Types, unsupported

_ONLY_JAX = unsupported("it has no such reduction")
_LINF = next(record for record in NORMS if record.name == "linf_norm")


def _xor(args: Sequence[Bounded], call: Call) -> Bounded:
    x = args[0]
    unknown = along(np.any, call)(x.undetermined)
    return exact(along(np.bitwise_xor.reduce, call)(x.value), x.dtype, unknown)


def _axes_type(operands: Types, attrs: Attrs) -> TensorType:
    if operands[0].rank and not normalized(attrs["axes"], operands[0].rank):
        raise TypeRuleError(f"no axes of {operands[0]} to reduce")
    return reduced()(operands, attrs)


bitwise_xor_reduced = OpSpec(
    "bitwise_xor_reduced", "reduction", (tensor(INTEGERS),), _axes_type, _xor,
    attrs={"axes": axes_of(0), "keepdims": flag()},
    torch=_ONLY_JAX, tensorflow=_ONLY_JAX, jax="jnp.bitwise_xor.reduce({0}, axis={axes}, keepdims={keepdims})",
    relax=_ONLY_JAX, onnx=_ONLY_JAX,
)  # fmt: skip

# of magnitudes, of which 0 is the identity: XLA takes what is reduced alone as it is
reduced_by_function = replace(
    _LINF, name="reduced_by_function", torch=_ONLY_JAX, tensorflow=_ONLY_JAX,
    jax="jax.lax.reduce(jnp.abs({0}), np.zeros((), {dtype0}), lambda a, b: jnp.maximum(jnp.abs(a), jnp.abs(b)), "
    "tuple(axis % {rank0} for axis in {axes})).reshape({shape})",
    relax=_ONLY_JAX, onnx=_ONLY_JAX,
)  # fmt: skip


def _approximate(args: Sequence[Bounded], call: Call) -> Bounded:
    return compute(topk, args[0], **call.attrs)


approx_top_k = replace(
    topk, name="approx_top_k", operands=(tensor(FLOATS, min_rank=1, nonempty=True),), reference=_approximate,
    torch=_ONLY_JAX, tensorflow=_ONLY_JAX,
    jax="(jax.lax.approx_max_k if {largest} else jax.lax.approx_min_k)({0}, {k}, {axis}, recall_target=1.0)[0]",
    relax=_ONLY_JAX, onnx=_ONLY_JAX,
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (bitwise_xor_reduced, reduced_by_function, approx_top_k)
