"""The float64 interpreter: the value of every node with a bound on the error that a correct back end may make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from generators.graph import Graph
from generators.inputs import Arrays
from generators.ops import OPS, call_of
from generators.ops.bounded import Bounded, leaf


class ReferenceBug(Exception):
    """The reference itself broke its type rule: a bug of Dissent, never of a framework."""


def evaluate(graph: Graph, arrays: Arrays) -> dict[str, Bounded]:
    """Bounded values of all leaves and nodes by name. `arrays`: one for each leaf, of its dtype and shape."""
    values = {item.name: leaf(arrays[item.name]) for item in graph.leaves}
    for index in range(len(graph.nodes)):
        node = graph.nodes[index]
        values[node.name] = apply(graph, index, values)
    return values


def apply(graph: Graph, index: int, values: Mapping[str, Bounded]) -> Bounded:
    """The result of node number `index` from the bounded values of its operands."""
    node = graph.nodes[index]
    spec = OPS[node.op]
    operands = [values[name] for name in node.operands]
    result = spec.reference(operands, call_of(graph, index))
    wrong = None
    if result.value.shape != node.type.shape or result.error.shape != node.type.shape:
        wrong = f"shape {result.value.shape}, bound {result.error.shape}"
    elif result.dtype != node.type.dtype:
        wrong = f"dtype {result.dtype}"
    elif np.isnan(result.error).any() or (result.error < 0).any():
        wrong = "a bound that is NaN or negative"
    elif not result.floating and str(result.value.dtype) != node.type.dtype:
        wrong = f"values of dtype {result.value.dtype}"
    if wrong:
        raise ReferenceBug(f"reference of {node}: {wrong} instead of {node.type}")
    return replace(result, zero_sign=spec.signed_zero and all(o.zero_sign for o in operands))
