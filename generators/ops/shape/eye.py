"""Ones on a diagonal of a matrix of the same shape, zeros beside it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import EVERY, TensorType
from generators.ops.slots import int_of, one_of, tensor
from generators.ops.spec import Attrs, Call, OpSpec, TypeRuleError, Types, Unsupported


def _type(operands: Types, attrs: Attrs) -> TensorType:
    int_of(attrs, "k")
    if operands[0].rank != 2:
        raise TypeRuleError(f"{operands[0]} is no matrix")
    return operands[0]


def _eye(args: Sequence[Bounded], call: Call) -> Bounded:
    shape = call.result.shape
    value = np.eye(*shape, k=int_of(call.attrs, "k")).astype(args[0].value.dtype)
    return Bounded(value, np.zeros(shape), call.result.dtype)


def _onnx(call: Call) -> str | Unsupported:
    if call.operands[0].dtype == "bool":
        return Unsupported("ONNX Runtime has no EyeLike of booleans")
    return 'g.op("EyeLike", {0}, k={k})'


eye_like = OpSpec(
    "eye_like", "grids", (tensor(EVERY, min_rank=2, max_rank=2),), _type, _eye, attrs={"k": one_of(0, 1, -1, 5)},
    torch="(torch.arange({shape}[1], device={0}.device) - torch.arange({shape}[0], device={0}.device)[:, None] "
          "== {k}).to({dtype})",
    tensorflow="tf.cast(tf.equal(tf.range({shape}[1]) - tf.range({shape}[0])[:, None], {k}), {dtype})",
    jax="jnp.eye(*{shape}, k={k}, dtype={dtype})",
    relax="relax.op.eye_like({0}, {k})",
    onnx=_onnx, signed_zero=True,
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (eye_like,)
