"""What TFLite's own kernels, and XNNPACK's for it, must return of levels. The question forward asks the same kernels to
compute with real numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from oracles.quantised.integers import Quantisation
from oracles.quantised.model import NotRecomputed, Operation, Real, Values
from oracles.quantised.tflite import integers
from oracles.quantised.tflite.call import Call, Kernels
from oracles.quantised.tflite.moves import MOVES


def computer(tensors: Mapping[str, Quantisation], kind: Kernels, values: Values | None = None) -> Callable:
    """What a node returns (`quantised_model.Compute`). tensors: how they are quantised; kind: whose kernels; values: of
    all tensors, for their dtypes and shapes, where not all are observed."""

    def compute(node: Operation, operands: Sequence[Real | None], index: int, seen: Values) -> Real:
        if index and node.op not in MOVES:
            raise NotRecomputed(node.op)
        name = node.results[index]
        given, made = [tensors.get(o) for o in node.operands], tensors.get(name)
        call = Call(node, operands, given, made, (values or seen)[name], kind, index)
        if node.op not in integers.OPERATORS:
            raise NotRecomputed(node.op)
        return integers.OPERATORS[node.op](call)

    return compute
