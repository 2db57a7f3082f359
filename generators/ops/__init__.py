"""Every operator: one record each, found in the files of the folders below; and the check of a graph against them."""

from __future__ import annotations

from dataclasses import replace

from generators.discovery import collected
from generators.graph import Graph, GraphError
from generators.ops.attributes import OTHERWISE, check_attributes
from generators.ops.drawing import LISTED, OFTEN, ON_REQUEST, SELDOM, STEPPED
from generators.ops.elementwise.thresholds import THRESHOLDS
from generators.ops.spec import Call, OpSpec, TypeRuleError, Value

_FOUND: dict[str, OpSpec] = collected(__name__, "OPERATORS")
_UNLISTED = tuple(sorted(set(_FOUND) - set(LISTED)))


def _complete(spec: OpSpec) -> OpSpec:
    """The record with its own thresholds and those of the table."""
    return replace(spec, thresholds=(*spec.thresholds, *THRESHOLDS.get(spec.name.removesuffix(OTHERWISE), ())))


OPS: dict[str, OpSpec] = {name: _complete(_FOUND[name]) for name in (*LISTED, *_UNLISTED)}
DRAWN: tuple[str, ...] = (*OFTEN, *SELDOM, *STEPPED, *_UNLISTED)
"""What is drawn unless operators are asked for; `ON_REQUEST` is not."""
DRAWN_SELDOM: frozenset[str] = frozenset((*SELDOM, *STEPPED, *_UNLISTED))
STEPPED_OPS: frozenset[str] = frozenset((*STEPPED, *ON_REQUEST, *_UNLISTED))
SAID_OTHERWISE: frozenset[str] = frozenset(name for name in OPS if name.endswith(OTHERWISE))
"""Operators that are others, said in other functions of a framework."""


def check(graph: Graph) -> Graph:
    """Check every node against its operator's record; raise GraphError naming the node, else return `graph`."""
    graph.validate()
    values = {leaf.name: Value(leaf.type, leaf.domain) for leaf in graph.leaves}
    for node in graph.nodes:
        spec = OPS.get(node.op)
        if spec is None:
            raise GraphError(f"node {node.name}: unknown operator {node.op!r}")
        least, most = len(spec.operands), len(spec.operands) - 1 + spec.variadic
        if not least <= len(node.operands) <= most:
            raise GraphError(f"node {node.name}: {node.op} takes {least} operands, not {len(node.operands)}")
        check_attributes(node, spec.attrs)
        types = tuple(values[operand].type for operand in node.operands)
        for position, operand in enumerate(node.operands):
            if not spec.slot(position).fits(values[operand], types[:position]):
                raise GraphError(f"node {node.name}: operand {position} ({types[position]}) does not fit {node.op}")
        try:
            result = spec.result(types, node.attributes)
        except TypeRuleError as error:
            raise GraphError(f"node {node.name}: {error}") from error
        if result != node.type:
            raise GraphError(f"node {node.name}: the type is {result}, not {node.type}")
        values[node.name] = Value(node.type)
    return graph


def call_of(graph: Graph, index: int) -> Call:
    """Types and attributes of the graph's node number `index`."""
    node = graph.nodes[index]
    return Call(tuple(graph.types[o] for o in node.operands), node.attributes, node.type)


def valid(graph: Graph) -> bool:
    """Does it pass `check`?"""
    try:
        check(graph)
    except GraphError:
        return False
    return True


__all__ = [
    "DRAWN",
    "DRAWN_SELDOM",
    "ON_REQUEST",
    "OPS",
    "SAID_OTHERWISE",
    "STEPPED_OPS",
    "Call",
    "OpSpec",
    "call_of",
    "check",
    "valid",
]
