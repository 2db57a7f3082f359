"""Models whose linear layers torchao's `quantize_` has quantised: are weights the nearest levels by scales of their
rows' ranges, and do the layers compute what their levels say?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from generators.bounds.bounded import Bounded
from oracles.quantised.dense import (
    affine_rows,
    check_scale,
    check_weight,
    check_zero,
    of_reals,
    of_rows,
    of_weights,
    symmetric_rows,
)
from oracles.quantised.integers import UNIT
from oracles.quantised.model import (
    Judgement,
    Operation,
    Real,
    RecordedModel,
    Values,
    check_called,
    follow,
    loss,
    skipped,
)
from oracles.quantised.reference_operators import fixed, number
from oracles.quantised.torch.integers import computer
from oracles.quantised.torch.quantiser import parameters

_GROUP = "converted"
_SMALLEST = {"Int8Tensor": 2.0**-23, "IntxUnpackedToInt8Tensor": 2.0**-126}
"""The least scale: the float32 epsilon, the smallest normal number."""


def judge(record: RecordedModel) -> Judgement:
    """All nodes, then the weights, then that a plain call of the model returns the same."""
    found = Judgement()
    values, nodes = record.groups[_GROUP], record.nodes[_GROUP]
    done = follow(found, record, _GROUP, compute(computer({}, "x86")))
    skipped(found, nodes, values, done)
    for node in nodes:
        if node.op in LAYERS:
            _weight(found, record, node)
    last = check_called(found, record, _GROUP)
    found.loss = loss(record.groups["float"], last)
    return found


def compute(others: Callable) -> Callable:
    """What a node returns (`quantised_model.Compute`): a quantised layer, or one of the others."""

    def one(node: Operation, operands: Sequence[Real | None], index: int, seen: Values) -> Real:
        return (LAYERS[node.op] if node.op in LAYERS else lambda *_: others(node, operands, index, seen))(
            node, operands
        )

    return one


def _layer(node: Operation, operands: Sequence[Real | None]) -> Bounded:
    """x, levels, scales and zero points of rows (or of one group a row), a bias or None."""
    x, weight, scale, zero = number(operands[0]), *(fixed(o) for o in operands[1:4])
    bias = number(operands[4]).value if operands[4] is not None else np.zeros(())
    how, unit = node.attrs["activation"], scale.reshape(-1)
    if how == "symmetric":
        rows = symmetric_rows(x, 127, 127.5, _SMALLEST[node.op])
        return of_rows(rows, weight, unit, bias)
    if how == "affine":
        rows = affine_rows(x, (-128, 127), _SMALLEST[node.op])
        middle, reach = (rows.low + rows.high) / 2, (rows.high - rows.low) / 2
        value = middle * rows.unit
        x = Bounded(value, reach * rows.unit + (rows.slack + 2 * UNIT) * np.abs(value), "float32")
        return of_weights(x, weight, zero, scale, bias)
    if node.op == "Int8Tensor":
        return of_reals(x, weight, unit, bias)
    return of_weights(x, weight, zero, scale, bias)


def _weight(found: Judgement, record: RecordedModel, node: Operation) -> None:
    """Scales by each row's greatest magnitude, zero points 0, the nearest levels."""
    values, name = record.groups[_GROUP], node.operands[1]
    real = record.groups["weights"][node.results[0]].astype(np.float64)
    got, scale, zero = (values[operand].astype(np.float64) for operand in node.operands[1:4])
    least, most = node.attrs["limits"]
    low, high = real.min(1, keepdims=True), real.max(1, keepdims=True)
    right, position = parameters(low, high, (least, most), True, _SMALLEST[node.op])
    check_scale(found, name, scale, right)
    check_zero(found, name, values[node.operands[3]], position, most)
    check_weight(found, name, got.astype(values[name].dtype), real, scale, zero, (least, most))


LAYERS = {"Int8Tensor": _layer, "IntxUnpackedToInt8Tensor": _layer}
"""By the class of the weight."""
