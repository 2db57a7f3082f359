"""The float64 interpreter: the value of every node with a bound on the error that a correct back end may make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded, leaf
from generators.graph import Graph, TensorType
from generators.inputs import Arrays
from generators.ops import OPS, Call, call_of


class ReferenceBug(Exception):
    """The reference itself broke its type rule: a bug of Dissent, never of a framework."""


def evaluate(graph: Graph, arrays: Arrays) -> dict[str, Bounded]:
    """Bounded values of all leaves and nodes by name. `arrays`: one for each leaf, of its dtype and shape."""
    values = {item.name: leaf(arrays[item.name]) for item in graph.leaves}
    taken = dict(values)
    for index, node in enumerate(graph.nodes):
        result = apply(graph, index, taken)
        wide = _kept_wide(graph, index, result, taken)
        values[node.name], taken[node.name] = result, result
        if wide is not None:
            values[node.name] = _within(result, wide)
            taken[node.name] = _between(values[node.name], wide)
    return values


def as_taken(graph: Graph, index: int, result: Bounded, values: Mapping[str, Bounded]) -> Bounded:
    """The result of node number `index` as the nodes after it may find it."""
    wide = _kept_wide(graph, index, result, values)
    return result if wide is None else _between(_within(result, wide), wide)


def _kept_wide(graph: Graph, index: int, result: Bounded, values: Mapping[str, Bounded]) -> Bounded | None:
    """What a node of float16 computes in float32, where it is not all finite. Back ends without a kernel for float16,
    or with a fused one, keep it in float32 within an operator and between several (ONNX Runtime inserts casts and takes
    pairs of them out again; torch.compile documents `emulate_precision_casts`, which is off)."""
    node = graph.nodes[index]
    if result.dtype != "float16" or np.isfinite(result.value).all() or node.op == "bitcast":  # which computes nothing
        return None
    call = call_of(graph, index)
    given = (values[name] for name in node.operands)
    operands = [replace(x, dtype="float32") if x.dtype == "float16" else x for x in given]
    types = tuple(TensorType(x.dtype, type_.shape) for x, type_ in zip(operands, call.operands, strict=True))
    return OPS[node.op].reference(operands, Call(types, call.attrs, TensorType("float32", node.type.shape)))


def _within(result: Bounded, wide: Bounded) -> Bounded:
    """The result with what only a step in float16 makes infinite or NaN undetermined: neither is certain where the
    operator, computed in float32 and rounded once, gives a number, or the other."""
    special = ~np.isfinite(result.value)
    with np.errstate(all="ignore"):
        beyond = np.abs(wide.value) - wide.error > PRECISION["float16"].largest
    rounds = np.where(beyond, np.copysign(np.inf, wide.value), wide.value)
    same = (rounds == result.value) | np.isnan(rounds) & np.isnan(result.value)
    return replace(result, error=np.where(special & ~(same & np.isfinite(wide.error)), np.inf, result.error))


def _between(within: Bounded, wide: Bounded) -> Bounded:
    """The result as the nodes after it may find it: what overflows float16 may still be finite. Where it is infinite in
    float32, too, the infinity is one of an operand, a pole, or too large for that as well."""
    overflow = np.isinf(within.value) & (np.isfinite(wide.value) | np.isinf(wide.error))
    return replace(within, error=np.where(overflow, np.inf, within.error))


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
    return replace(result, zero_sign=spec.signed_zero and all(o.zero_sign or not o.floating for o in operands))
