"""Many independent cases as one graph, so that one compilation serves them all."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from generators.graph import Graph
from generators.graphs import Case
from generators.inputs import Arrays

_NAME = re.compile(r"(|[a-z]+_)c(\d+)_(.*)")
"""Made of a union's name, as a whole."""
_MENTIONED = re.compile(r"(?<![A-Za-z0-9])c(\d{1,4})_")
"""Begins such a name, in a text."""


@dataclass(frozen=True)
class Filled:
    """A graph with several sets of arrays, on each of which it runs once it is compiled. Parameters have the same
    values in all of them, since compilers may fold these."""

    graph: Graph
    fills: tuple[Arrays, ...]

    def case(self, fill: int) -> Case:
        """The graph with one set of arrays."""
        return Case(self.graph, self.fills[fill])


def union(members: Sequence[Filled]) -> Filled:
    """The graphs side by side: a value of graph 3 is called c3_NAME, and its outputs stand after those of graph 2. Set
    k of arrays is that of each member; of one that has fewer, its last. Raises ValueError for no members."""
    if not members:
        raise ValueError("nothing to join")
    graphs = [prefixed(member.graph, f"c{number}_") for number, member in enumerate(members)]
    joined = Graph(
        tuple(leaf for graph in graphs for leaf in graph.leaves),
        tuple(node for graph in graphs for node in graph.nodes),
        tuple(name for graph in graphs for name in graph.outputs),
    )
    fills = []
    for k in range(max(len(member.fills) for member in members)):
        fill: dict = {}
        for number, member in enumerate(members):
            arrays = member.fills[min(k, len(member.fills) - 1)]
            fill.update((f"c{number}_{name}", array) for name, array in arrays.items())
        fills.append(fill)
    return Filled(joined, tuple(fills))


def place(name: str) -> tuple[int, str]:
    """The member that a name made of a union's (c3_v0, d_c3_x1) is about, and the name without it. Raises ValueError
    for another name."""
    found = _NAME.fullmatch(name)
    if not found:
        raise ValueError(f"{name!r} is of no member of a union")
    return int(found[2]), found[1] + found[3]


def mentions(text: str) -> list[tuple[int, str]]:
    """The members of a union whose names stand in a text, such as a program or what a compiler says, each with what
    follows up to the next name."""
    _, *found = _MENTIONED.split(text)
    return [(int(number), rest) for number, rest in zip(found[::2], found[1::2], strict=True)]


def numbered(names: Iterable[str]) -> list[int]:
    """The number of each name among those of its member; where there are no members, among all."""
    seen: Counter[int | None] = Counter()
    numbers = []
    for name in names:
        member = int(found[2]) if (found := _NAME.fullmatch(name)) else None
        numbers.append(seen[member])
        seen[member] += 1
    return numbers


def prefixed(graph: Graph, prefix: str) -> Graph:
    """The graph with other names, so that it may stand beside others."""
    return Graph(
        tuple(replace(leaf, name=prefix + leaf.name) for leaf in graph.leaves),
        tuple(
            replace(node, name=prefix + node.name, operands=tuple(prefix + operand for operand in node.operands))
            for node in graph.nodes
        ),
        tuple(prefix + name for name in graph.outputs),
    )
