"""The float64 interpreter: the value of every node with a bound on the error that a correct back end may make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    taken = dict(values)
    for index, node in enumerate(graph.nodes):
        values[node.name] = apply(graph, index, taken)
        taken[node.name] = as_taken(values[node.name], [taken[name] for name in node.operands])
    return values


def as_taken(result: Bounded, operands: Sequence[Bounded]) -> Bounded:
    """A result as the nodes after it may find it. Back ends without a kernel for float16, or with a fused one, keep it
    in float32 in between (ONNX Runtime inserts casts and takes pairs of them out again; torch.compile documents
    `emulate_precision_casts`, which is off): what overflows float16 may still be finite."""
    if result.dtype != "float16":
        return result
    if any(o.floating and not np.isfinite(o.value).all() for o in operands):
        return result  # infinities may be those of the operands
    overflow = np.isinf(result.value)
    return replace(result, error=np.where(overflow, np.inf, result.error)) if overflow.any() else result


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
    elif str(result.value.dtype) != (
        "complex128" if result.complex else "float64" if result.floating else result.dtype
    ):
        wrong = f"values of dtype {result.value.dtype}"
    if wrong:
        raise ReferenceBug(f"reference of {node}: {wrong} instead of {node.type}")
    return replace(result, zero_sign=spec.signed_zero and all(o.zero_sign for o in operands))
