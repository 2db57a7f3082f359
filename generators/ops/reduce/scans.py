"""Running sums and products from either end, with or without each element itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import TensorType
from generators.ops.composed import compute
from generators.ops.reduce.cumulative import cumprod, cumsum
from generators.ops.slots import NUMBERS, axis_of, flag, normalized, tensor
from generators.ops.spec import Attrs, Call, OpSpec, Spelling, TypeRuleError, Types

Array = np.ndarray


def _type(operands: Types, attrs: Attrs) -> TensorType:
    (axis,) = normalized(attrs["axis"], operands[0].rank)
    if not operands[0].shape[axis]:
        raise TypeRuleError(f"nothing along axis {axis} of {operands[0]}")
    return operands[0]


def _running(scan: OpSpec, start: int, args: Sequence[Bounded], call: Call) -> Bounded:
    """The scan of the elements, moved by one behind the number to start with where each is without itself."""
    (axis,) = normalized(call.attrs["axis"], call.result.rank)

    def turned(a: Array) -> Array:
        return np.flip(a, axis) if call.attrs["reverse"] else a

    result = compute(scan, args[0].map(turned), axis=axis)
    if call.attrs["exclusive"]:
        last = [np.delete(part, -1, axis) for part in (result.value, result.error)]
        row = np.take(result.value, [0], axis)
        value = np.concatenate([np.full_like(row, start), last[0]], axis)
        result = Bounded(value, np.concatenate([np.zeros(row.shape), last[1]], axis), result.dtype)
    return result.map(turned)


def _relax(name: str) -> Spelling:
    def spell(call: Call) -> str:
        x = "relax.op.flip({0}, axis={axis})" if call.attrs["reverse"] else "{0}"
        text = f"relax.op.{name}({x}, axis={{axis}}, dtype={{dtype}}, exclusive={{exclusive}})"
        return f"relax.op.flip({text}, axis={{axis}})" if call.attrs["reverse"] else text

    return spell


def _record(name: str, scan: OpSpec, start: int, tensorflow: str, onnx: str) -> OpSpec:
    slot = tensor(NUMBERS, min_rank=1, nonempty=True)
    return OpSpec(
        name, "scan", (slot,), _type, lambda args, call: _running(scan, start, args, call),
        attrs={"axis": axis_of(0), "exclusive": flag(), "reverse": flag()},
        torch=f"running(torch.{scan.name}, {{0}}, {{axis}}, {{exclusive}}, {{reverse}}, {start})",
        tensorflow=f"{tensorflow}({{0}}, {{axis}}, exclusive={{exclusive}}, reverse={{reverse}})",
        jax=f"running(jax.lax.{scan.name}, {{0}}, {{axis}} % {{rank}}, {{exclusive}}, {{reverse}}, {start})",
        relax=_relax(scan.name),
        onnx=f'g.op("{onnx}", {{0}}, g.const({{axis}}, "int64"), exclusive=int({{exclusive}}), '
        "reverse=int({reverse}))",
    )  # fmt: skip


OPERATORS: tuple[OpSpec, ...] = (
    _record("running_sum", cumsum, 0, "tf.cumsum", "CumSum"),
    _record("running_product", cumprod, 1, "tf.math.cumprod", "CumProd"),
)
