"""Slopes of the nodes of a graph, which several accumulations share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from generators.bounds.bounded import Bounded
from generators.graph import Graph
from generators.ops import OPS, call_of
from oracles.derivatives.rounding.matrices_first import shift
from oracles.derivatives.slopes.complex_blocks import slopes_of_parts
from oracles.derivatives.slopes.slopes import Slopes, function_of, slopes

Measured = Callable[[int, int], Slopes]
"""Number of a node, position of an operand -> its slopes."""


def measured(graph: Graph, values: Mapping[str, Bounded]) -> Measured:
    """The slopes of a graph's nodes, each of them measured once, when it is asked for. Of `values`, complex ones are
    pairs."""

    @cache
    def local(index: int, position: int) -> Slopes:
        node = graph.nodes[index]
        operands = [values[name] for name in node.operands]
        call = call_of(graph, index)
        f = function_of(OPS[node.op], operands, call)
        result = values[node.name]
        if operands[position].complex or result.complex:
            return slopes_of_parts(f, operands, position, result)
        return slopes(f, operands, position, result, shift(node.op, operands, call))

    return local
