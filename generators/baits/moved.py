"""Baits with one attribute moved. A matcher that leaves something out of what it compares (the axis of a softmax, the
order of a transposition) rewrites these, too, and wrongly: inductor did so in several patterns of 2.13
(https://github.com/pytorch/pytorch/issues/196468, 195320)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from generators.baits.bait import Drawn
from generators.graph import Attr, Graph, GraphError, TensorType
from generators.graphs import SeededDraw
from generators.ops import OPS, check
from generators.ops.spec import TypeRuleError

EQUAL = 4
"""The size of all dimensions but those of one, where a pattern's own sizes let few attributes be others."""
ATTEMPTS, MOST = 8, 3
"""Draws of an attribute, and how many of its other values are taken."""


def moved(one: Drawn) -> list[Drawn]:
    """The pattern, and the same of equal sizes, each with one attribute of one node as a drawn graph may have it,
    wherever the whole still types."""
    found: dict[str, Drawn] = {}
    for base in (one, _of_equal_sizes(one)):
        if base:
            found |= {str(graph): replace(base, graph=graph) for graph in _moved(base.graph)}
    return [other for text, other in found.items() if text != str(one.graph)]


def _moved(graph: Graph) -> Iterator[Graph]:
    for number, node in enumerate(graph.nodes):
        operands = tuple(graph.types[name] for name in node.operands)
        for key, rule in OPS[node.op].attrs.items():
            values: dict[str, Attr] = {}
            for attempt in range(ATTEMPTS):
                drawn = rule(SeededDraw(f"{number}/{key}/{attempt}"), operands, node.attributes)
                if drawn != node.attributes[key]:
                    values[repr(drawn)] = drawn
            others = (_with(graph, number, {**node.attributes, key: value}) for value in values.values())
            yield from [other for other in others if other][:MOST]


def _with(graph: Graph, number: int, attributes: Mapping[str, Attr]) -> Graph | None:
    """The graph with these attributes of a node, and the types that follow; None where they do not fit."""
    types = {leaf.name: leaf.type for leaf in graph.leaves}
    nodes = []
    try:
        for i, node in enumerate(graph.nodes):
            given = attributes if i == number else node.attributes
            types[node.name] = OPS[node.op].result(tuple(types[name] for name in node.operands), given)
            nodes.append(replace(node, attrs=tuple(given.items()), type=types[node.name]))
        return check(replace(graph, nodes=tuple(nodes)))
    except (GraphError, TypeRuleError):
        return None


def _of_equal_sizes(one: Drawn) -> Drawn | None:
    """None where it is none of these sizes, or its constants have others."""

    def equal(type_: TensorType) -> TensorType:
        return replace(type_, shape=tuple(min(size, EQUAL) if size < 2 else EQUAL for size in type_.shape))

    if any(equal(leaf.type) != leaf.type for leaf in one.graph.leaves if leaf.name in one.fixed):
        return None
    leaves = tuple(replace(leaf, type=equal(leaf.type)) for leaf in one.graph.leaves)
    graph = _with(replace(one.graph, leaves=leaves), -1, {})
    return replace(one, graph=graph) if graph else None
