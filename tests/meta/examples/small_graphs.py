"""Small graphs that several tests use."""

from __future__ import annotations

import numpy as np

from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import Case
from generators.ops import check

F23 = TensorType("float32", (2, 3))
F32 = TensorType("float32", (3, 2))
F22 = TensorType("float32", (2, 2))


def chain() -> Graph:
    """exp(x0 @ w0), negated; two outputs."""
    return check(
        Graph(
            (Leaf("x0", F23), Leaf("w0", F32, "parameter")),
            (
                Node("v0", "matmul", ("x0", "w0"), (), F22),
                Node("v1", "exp", ("v0",), (), F22),
                Node("v2", "neg", ("v1",), (), F22),
            ),
            ("v2", "v0"),
        )
    )


def chain_case() -> Case:
    x = np.array([[0.25, -1.5, 3.0], [1.0, 0.5, -0.125]], np.float32)
    return Case(chain(), {"x0": x, "w0": x.reshape(3, 2).copy()})


def layers() -> Case:
    """A linear layer with a bias, a sum, an activation with a fixed range: enough elements that a small error of a
    scale shows."""
    x, w, b, y = (TensorType("float32", shape) for shape in ((16, 24), (32, 24), (32,), (16, 32)))
    nodes = (
        Node("v0", "linear", ("x", "w", "b"), (), y),
        Node("v1", "add", ("v0", "d"), (), y),
        Node("v2", "sigmoid", ("v1",), (), y),
    )
    leaves = (Leaf("x", x), Leaf("d", y), Leaf("w", w, "parameter"), Leaf("b", b, "parameter"))
    graph = check(Graph(leaves, nodes, ("v1", "v2")))
    draw = np.random.default_rng(13)
    return Case(graph, {leaf.name: draw.normal(size=leaf.type.shape).astype(np.float32) for leaf in graph.leaves})


def several_outputs() -> Case:
    """Pads, a difference and a transposition of a square matrix, each one an output."""
    square, padded = TensorType("float32", (3, 3)), TensorType("float32", (4, 3))
    leaves = (Leaf("x0", square), Leaf("x1", square), Leaf("w2", square, "parameter"))
    nodes = (
        Node("v0", "sub", ("x0", "x1"), (), square),
        Node("v1", "transpose", ("v0",), (("perm", (1, 0)),), square),
        Node("v2", "pad", ("v1",), (("pads", (1, 0, 0, 0)), ("value", 0.0)), padded),
        Node("v3", "add", ("v0", "w2"), (), square),
    )
    graph = Graph(leaves, nodes, ("v3", "v2")).validate()
    check(graph)
    values = np.arange(27, dtype="float32").reshape(3, 3, 3)
    return Case(graph, {"x0": values[0], "x1": values[1] ** 2, "w2": values[2]})
