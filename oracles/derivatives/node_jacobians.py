"""Jacobians of the nodes of a graph, which several accumulations share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from generators.bounds.bounded import Bounded
from generators.graph import Graph
from generators.ops import OPS, call_of
from oracles.derivatives.jacobians.complex_blocks import jacobian_of_parts
from oracles.derivatives.jacobians.jacobian import Jacobian, function_of, jacobian
from oracles.derivatives.rounding.formulas import known
from oracles.derivatives.rounding.matrix_first_derivatives import shift

NodeJacobians = Callable[[int, int], Jacobian]
"""Number of a node, position of an operand -> its slopes."""


def node_jacobians(graph: Graph, values: Mapping[str, Bounded], backwards: bool = False) -> NodeJacobians:
    """The slopes of a graph's nodes, each of them measured once, when it is asked for. Of `values`, complex ones are
    pairs. backwards: with what is known of the formulas of gradients."""

    @cache
    def local(index: int, position: int) -> Jacobian:
        node = graph.nodes[index]
        operands = [values[name] for name in node.operands]
        call = call_of(graph, index)
        f = function_of(OPS[node.op], operands, call)
        result = values[node.name]
        if operands[position].complex or result.complex:
            return jacobian_of_parts(f, operands, position, result)
        formula = known(node.op, operands, position, result, call) if backwards else None
        return jacobian(f, operands, position, result, shift(node.op, operands, call), formula)

    return local
