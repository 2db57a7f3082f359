"""Does the gradient of an elementwise operator depend on where an element stands, where the reference allows anything?
Vectors and what is left over are code of their own, which may differ at NaN, infinities and overflows."""

from __future__ import annotations

import numpy as np

from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import Case
from oracles.derivatives import gradient
from oracles.judge.compare import Expected
from oracles.questions import consistency

NAME = "gradient_consistency"
CHECKS = ("lanes",)
"""What each gradient is compared with, of those of `consistency`."""


def concerns(operator: str) -> bool:
    """Is it worth asking?"""
    return consistency.concerns(operator) and consistency.elementwise(operator)


def alike(graph: Graph, node: Node) -> bool:
    """Are all operands of the shape of the result, so that each element of a gradient is of one place alone?"""
    return all(graph.types[name].shape == node.type.shape for name in node.operands)


def longer(graph: Graph) -> Graph | None:
    """The nodes whose gradients are compared, of longer tensors; None where there is none."""
    return consistency.longer(graph, alike)


def compared(graph: Graph) -> tuple[Leaf, ...]:
    """The leaves by which gradients are compared: those of such nodes."""
    longest = longer(graph)
    names = {leaf.name for leaf in gradient.differentiable_leaves(longest)} if longest else set()
    return tuple(leaf for leaf in gradient.differentiable_leaves(graph) if leaf.name in names)


def expect(case: Case) -> Expected:
    """No difference in kind, where any gradient is allowed and nothing leaves it open."""
    one = gradient.expect(case)
    users = {name: node for node in case.graph.nodes for name in node.operands}
    asked = {leaf.name for leaf in compared(case.graph)}
    names, types, values = [], [], []
    for leaf, bound in zip(gradient.differentiable_leaves(case.graph), one.values, strict=True):
        open_ = leaf.name not in asked or consistency.left_open(case, users[leaf.name], "lanes")
        names.append(f"lanes_{leaf.name}")
        types.append(TensorType("uint8", leaf.type.shape))
        free = np.broadcast_to(~bound.undetermined | open_, leaf.type.shape)
        values.append(consistency.no_difference(free))
    return Expected(tuple(names), tuple(types), tuple(values), consistency.said)


def worth(case: Case) -> bool:
    """Is there an element whose gradient may be anything, and no document leaves it open?"""
    return consistency.asks(expect(case))
