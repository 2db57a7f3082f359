"""Matrix products."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from generators.bounds.bounded import Bounded
from generators.bounds.products import bilinear, bilinear_integer
from generators.graph import Attr, TensorType
from generators.ops.slots import (
    MAX_ELEMENTS,
    MAX_RANK,
    broadcast_shape,
    computed,
    draw_dim,
    floating,
    numeric,
    size_of,
)
from generators.ops.spec import Call, Draw, OpSpec, Slot, TypeRuleError, Types


def _matmul_type(operands: Types, attrs: Mapping[str, Attr]) -> TensorType:
    a, b = operands
    if a.dtype != b.dtype:
        raise TypeRuleError(f"dtypes differ: {a.dtype}, {b.dtype}")
    if a.rank < 2 or b.rank < 2 or a.shape[-1] != b.shape[-2]:
        raise TypeRuleError(f"cannot multiply {a} by {b}")
    batch = broadcast_shape([a.shape[:-2], b.shape[:-2]])
    if batch is None:
        raise TypeRuleError(f"batch dimensions of {a} and {b} do not broadcast")
    return TensorType(a.dtype, (*batch, a.shape[-2], b.shape[-1]))


def _accepts_right(type_: TensorType, earlier: Types) -> bool:
    try:
        return _matmul_type((earlier[0], type_), {}).size <= MAX_ELEMENTS
    except TypeRuleError:
        return False


def _fresh_right(d: Draw, earlier: Types) -> TensorType:
    """Batch dimensions: those of the left operand, some of them left out at the front or 1, or more of them."""
    a = earlier[0]
    batch = list(a.shape[d.choice((a.rank - 2, *range(a.rank - 2))) : -2])
    kind = d.integer(0, 7)
    if kind == 7 and batch:
        batch[d.integer(0, len(batch) - 1)] = 1
    rows = size_of(a.shape[:-1])
    if kind == 6 and len(batch) == a.rank - 2 < MAX_RANK - 2:
        batch.insert(0, draw_dim(d, min(4, MAX_ELEMENTS // max(1, rows, size_of(batch) * a.shape[-1]))))
    largest = max(1, rows * (max(1, batch[0]) if len(batch) > a.rank - 2 else 1), size_of(batch) * a.shape[-1])
    return TensorType(a.dtype, (*batch, a.shape[-1], draw_dim(d, MAX_ELEMENTS // largest, like=a.shape[-1])))


def _matmul(args: Sequence[Bounded], call: Call) -> Bounded:
    a, b = args
    if not a.floating:
        return bilinear_integer(np.matmul, a, b)
    return bilinear(np.matmul, a, b, a.value.shape[-1])


matmul = OpSpec(
    "matmul",
    "linalg",
    operands=(numeric(min_rank=2), Slot(_accepts_right, _fresh_right)),
    result=_matmul_type,
    reference=_matmul,
    torch="torch.matmul({0}, {1})",
    tensorflow="tf.matmul({0}, {1})",
    jax="jnp.matmul({0}, {1})",
    relax="relax.op.matmul({0}, {1})",
    onnx='g.op("MatMul", {0}, {1})',
)


def _linear_type(operands: Types, attrs: Mapping[str, Attr]) -> TensorType:
    x, weight, bias = operands
    if len({t.dtype for t in operands}) > 1:
        raise TypeRuleError(f"dtypes differ: {', '.join(t.dtype for t in operands)}")
    if x.rank < 1 or weight.rank != 2 or x.shape[-1] != weight.shape[1]:
        raise TypeRuleError(f"a linear layer with weight {weight} does not take {x}")
    if bias.shape != weight.shape[:1]:
        raise TypeRuleError(f"bias {bias} does not fit weight {weight}")
    return TensorType(x.dtype, (*x.shape[:-1], weight.shape[0]))


def _accepts_weight(type_: TensorType, earlier: Types) -> bool:
    x = earlier[0]
    fits = type_.dtype == x.dtype and type_.rank == 2 and type_.shape[1] == x.shape[-1]
    return fits and size_of(x.shape[:-1]) * type_.shape[0] <= MAX_ELEMENTS


def _fresh_weight(d: Draw, earlier: Types) -> TensorType:
    x = earlier[0]
    most = MAX_ELEMENTS // max(1, size_of(x.shape[:-1]), x.shape[-1])
    return TensorType(x.dtype, (draw_dim(d, most, like=x.shape[-1]), x.shape[-1]))


def _linear(args: Sequence[Bounded], call: Call) -> Bounded:
    x, weight, bias = args
    return bilinear(np.matmul, x, weight.map(np.transpose), x.value.shape[-1] + 1, bias=bias)


def _linear_tensorflow(call: Call) -> str:
    if call.operands[0].rank == 1:  # tf.matmul takes no vectors
        return "tf.linalg.matvec({1}, {0}) + {2}"
    return "tf.matmul({0}, {1}, transpose_b=True) + {2}"


def _linear_onnx(call: Call) -> str:
    if call.operands[0].rank == 2:
        return 'g.op("Gemm", {0}, {1}, {2}, transB=1)'
    return 'g.op("Add", g.op("MatMul", {0}, g.op("Transpose", {1}, perm=[1, 0])), {2})'


linear = OpSpec(
    "linear",
    "linalg",
    operands=(
        floating(min_rank=1),
        Slot(_accepts_weight, _fresh_weight),
        computed(lambda earlier: TensorType(earlier[1].dtype, earlier[1].shape[:1])),
    ),
    result=_linear_type,
    reference=_linear,
    torch="torch.nn.functional.linear({0}, {1}, {2})",
    tensorflow=_linear_tensorflow,
    jax="jnp.matmul({0}, {1}.T) + {2}",
    relax="relax.op.linear({0}, {1}, {2})",
    onnx=_linear_onnx,
)

LINALG = (matmul, linear)
