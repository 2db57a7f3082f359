"""How long a program takes to compile and to run once, against a plain program of the same target and as many nodes.
A ratio of processor times within one process, so that neither the machine's speed nor what else it does counts."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import Case
from oracles.judge.compare import Expected

NAME = "compile_time"
LIMIT = 20.0
"""Times as long as the plain program: no operator of a library is that much harder to compile than another without a
compiler that unrolls what it should not, or tries what grows faster than the program."""
LEAST = 1.0
"""Processor seconds below which nobody waits: the ratio counts as 0."""


def plain(graph: Graph) -> Graph:
    """As many nodes, each the negative of the one before, of the graph's greatest size, in float32."""
    greatest = max((node.type for node in graph.nodes), key=lambda one: one.size)
    type_ = TensorType("float32", greatest.shape)
    names = ["x", *(f"v{number}" for number in range(len(graph.nodes)))]
    nodes = tuple(Node(name, "neg", (before,), (), type_) for before, name in pairwise(names))
    return Graph((Leaf("x", type_),), nodes, (names[-1],))


def expect(case: Case) -> Expected:
    """One number, float64: how many times as long it takes, 0 to LIMIT."""
    return Expected(
        ("times_as_long",), (TensorType("float64", ()),), (Bounded(np.array(0.0), np.array(LIMIT), "float64"),)
    )
