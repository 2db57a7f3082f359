"""Graphs side by side in one program, so that a compiler is asked once for many operators and sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from generators.graph import Graph

T = TypeVar("T")
OPERATORS = 12
"""Of a pack at most: with seven sizes each, 84 small functions for a compiler."""
ELEMENTS = 1 << 20
"""Of the leaves of a pack at most, unless one operator alone has more."""


def joined(graphs: Sequence[Graph]) -> Graph:
    """Their disjoint union: values of graph number n are named `gn_NAME`, outputs stand in the order of the graphs."""
    leaves, nodes, outputs = [], [], []
    for number, graph in enumerate(graphs):
        leaves += [replace(leaf, name=named(number, leaf.name)) for leaf in graph.leaves]
        nodes += [
            replace(node, name=named(number, node.name), operands=tuple(named(number, o) for o in node.operands))
            for node in graph.nodes
        ]
        outputs += [named(number, name) for name in graph.outputs]
    return Graph(tuple(leaves), tuple(nodes), tuple(outputs))


def named(number: int, name: str) -> str:
    """What a value of graph number `number` is called in the union."""
    return f"g{number}_{name}"


def packed(items: Sequence[T], size: Callable[[T], int]) -> list[list[T]]:
    """In their order, at most OPERATORS together, and no more than ELEMENTS unless one alone has more."""
    packs: list[list[T]] = []
    held = 0
    for item in items:
        if not packs or len(packs[-1]) == OPERATORS or held + size(item) > ELEMENTS:
            packs.append([])
            held = 0
        packs[-1].append(item)
        held += size(item)
    return packs
