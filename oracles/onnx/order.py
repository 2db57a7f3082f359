"""Nodes in an order in which each comes after what it takes. ONNX asks for that of a file; ONNX Runtime takes any."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from graphlib import CycleError, TopologicalSorter

import onnx


def graphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs inside of a node."""
    return (one.g for one in node.attribute if one.type == onnx.AttributeProto.GRAPH)


def operands(node: onnx.NodeProto) -> list[str]:
    """What a node takes, and the graphs inside of it take of the values outside of them."""
    found = list(node.input)
    for graph in graphs(node):
        inside = {one.name for one in (*graph.input, *graph.initializer)}
        inside.update(name for inner in graph.node for name in inner.output)
        for inner in graph.node:
            found += [name for name in operands(inner) if name not in inside]
        found += [one.name for one in graph.output if one.name not in inside]
    return found


def sorted_nodes(nodes: Iterable[onnx.NodeProto]) -> Sequence[onnx.NodeProto]:
    """As they stand where that is such an order. Raises ValueError, naming a value, where there is none."""
    nodes = list(nodes)
    makers = {name: place for place, node in enumerate(nodes) for name in node.output if name}
    before = [{makers[name] for name in operands(node) if name in makers} for node in nodes]
    if all(place > max(some, default=-1) for place, some in enumerate(before)):
        return nodes
    try:
        return [nodes[place] for place in TopologicalSorter(dict(enumerate(before))).static_order()]
    except CycleError as error:
        names = [name for name in nodes[error.args[1][0]].output if name]
        raise ValueError(f"the graph is no order of nodes: {names[0]} is made of itself") from error
