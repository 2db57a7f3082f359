"""Does a mixed-precision policy compute what it documents? The graph in the policy's compute dtype, its floating leaves
cast to it first, against the ordinary reference with that dtype's unit roundoff.

Keras, `keras.dtype_policies.DTypePolicy`: a layer with the policy mixed_float16 or mixed_bfloat16 has variables of
float32, computes in the 16-bit dtype, and casts floating inputs and variables to it; integers are left alone."""

from __future__ import annotations

from dataclasses import replace
from zlib import crc32

from generators.graph import FLOATS, Graph, GraphError, Node, TensorType
from generators.graphs import Case
from generators.ops import check
from generators.retype import retyped_graph
from oracles.judge.compare import Expected
from oracles.questions import forward

NAME = "policy"

DTYPES = ("float16", "bfloat16")


def dtype(graph: Graph) -> str:
    """The compute dtype: by the first operator and the size of its first operand, so that reduction mostly keeps it."""
    first = graph.nodes[0]
    return DTYPES[crc32(f"{first.op} {sum(graph.types[first.operands[0]].shape)}".encode()) % len(DTYPES)]


def narrowed(graph: Graph) -> Graph | None:
    """What the layer computes, from leaves that have been cast; None where an operator does not take the dtype."""
    low = dtype(graph)
    leaves = tuple(
        replace(leaf, type=TensorType(low, leaf.type.shape)) if leaf.type.dtype in FLOATS else leaf
        for leaf in graph.leaves
    )
    after = retyped_graph(Graph(leaves, graph.nodes, graph.outputs))
    try:
        return check(after) if after else None
    except GraphError:
        return None


def cast(graph: Graph) -> Graph | None:
    """The same with the casts, from the leaves as they are given."""
    after = narrowed(graph)
    if after is None:
        return None
    names = {a.name: f"{a.name}_{b.type.dtype}" for a, b in zip(graph.leaves, after.leaves, strict=True) if a != b}
    casts = tuple(
        Node(names[leaf.name], "cast", (leaf.name,), (("to", leaf.type.dtype),), leaf.type)
        for leaf in after.leaves
        if leaf.name in names
    )
    nodes = tuple(
        replace(node, operands=tuple(names.get(name, name) for name in node.operands)) for node in after.nodes
    )
    return Graph(graph.leaves, casts + nodes, graph.outputs).validate()


def expect(case: Case) -> Expected:
    """What the layer returns; nothing where it cannot be told, which no target is asked for."""
    graph = cast(case.graph)
    return forward.expect(Case(graph, case.arrays)) if graph else Expected((), (), ())
