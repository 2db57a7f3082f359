"""Models that Keras has quantised (`Model.quantize`): are kernels the nearest levels by scales of their ranges, and do
the Dense layers compute what their levels say, eagerly and as a graph?"""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np

from generators.bounds.bounded import Bounded
from oracles.quantised.dense import check_scale, check_weight, check_zero, of_reals, of_rows, of_weights, symmetric_rows
from oracles.quantised.integers import UNIT
from oracles.quantised.model import Judgement, NotRecomputed, Operation, Real, RecordedModel, Values, follow, loss
from oracles.quantised.reference_operators import applied, fixed, number

_EPSILON = 1e-7
"""keras.backend.epsilon(), which is added to every range."""
GROUPS = ("eager", "graph")


def judge(record: RecordedModel) -> Judgement:
    """Each Dense layer given the operand that was observed, then the kernels. Other operators are not recomputed."""
    found = Judgement()
    for group in GROUPS:
        follow(found, record, group, compute)
    for node in record.nodes[GROUPS[0]]:
        if node.op != "float8":
            _kernel(found, record, node)
    names = record.groups["float"]
    found.loss = loss(names, {name: record.groups[GROUPS[0]][name] for name in names})
    return found


def compute(node: Operation, operands: Sequence[Real | None], index: int, seen: Values) -> Real:
    """x, kernel (in x out, as levels), its scales and zero points (or None), a bias or None. Scales are levels a real
    number, but for blocks, where they are real numbers a level."""
    x, kernel, scale = number(operands[0]), *(fixed(o) for o in operands[1:3])
    if not np.isfinite(x.value).all():
        raise NotRecomputed("a layer of infinities")
    zero = fixed(operands[3]) if operands[3] is not None else None
    bias = number(operands[4]).value if operands[4] is not None else np.zeros(())
    if node.op == "float8":
        return _float8(x, kernel, scale, bias)
    if zero is not None:
        blocks = np.arange(kernel.shape[0]) // node.attrs["block"]
        return of_weights(x, kernel.T, zero[blocks].T, scale[blocks].T, bias)
    if node.attrs["activation"]:
        return of_rows(symmetric_rows(x, 127, 127, added=_EPSILON), kernel.T, 1 / scale, bias)
    return of_reals(x, kernel.T, 1 / scale, bias)


def _float8(x: Bounded, kernel: np.ndarray, scales: np.ndarray, bias: np.ndarray) -> Bounded:
    """Both operands as float8_e4m3fn has them, saturated, by scales that only training changes; a bias of bfloat16."""
    most = float(ml_dtypes.finfo(ml_dtypes.float8_e4m3fn).max)

    def held(values: np.ndarray, scale: float) -> np.ndarray:
        quotient = np.clip(values.astype(np.float32) / np.float32(scale), -most, most)
        return quotient.astype(ml_dtypes.float8_e4m3fn).astype(np.float64) * scale

    left, right = (Bounded(v, 2 * UNIT * np.abs(v), "float32") for v in (held(x.value, scales[0]),
                                                                       held(kernel, scales[1])))  # fmt: skip
    product = applied("matmul", (left, right))
    value = product.value + bias.astype(ml_dtypes.bfloat16).astype(np.float64)
    return Bounded(value, product.error + 2 * UNIT * np.abs(value), "float32")


def _kernel(found: Judgement, record: RecordedModel, node: Operation) -> None:
    """Scales of columns, or of blocks of rows in them, and the nearest levels."""
    values, name = record.groups[GROUPS[0]], node.operands[1]
    real = record.groups["weights"][node.results[0]].astype(np.float64)
    got, scale = values[name], values[node.operands[2]].astype(np.float64)
    least, most = node.attrs["limits"]
    if not node.operands[3]:
        check_scale(found, name, scale, most / (np.abs(real).max(0) + _EPSILON))
        check_weight(found, name, got, real, 1 / scale, np.zeros(()), (least, most))
        return
    zero, block = values[node.operands[3]].astype(np.float64), node.attrs["block"]
    whole = np.zeros((-(-real.shape[0] // block) * block, real.shape[1]))
    whole[: real.shape[0]] = real  # what is missing of the last block is filled with zeros
    parts = whole.reshape(-1, block, real.shape[1])
    low, high = parts.min(1), parts.max(1)
    check_scale(found, name, scale, (high - low + _EPSILON) / (most - least))
    place = record.places[GROUPS[0], node.operands[3]]
    check_zero(found, name, values[node.operands[3]], least - low / scale, most, place)
    blocks = np.arange(real.shape[0]) // block
    check_weight(found, name, got, real, scale[blocks], zero[blocks], (least, most))
