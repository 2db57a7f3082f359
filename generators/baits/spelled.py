"""Baits of which one node, or each that can be, is said otherwise. A matcher knows a pattern by one function, layout or
order of arguments, and passes over what another one means: TVM folds a batch normalisation into the convolution before
it whatever the axis of its channels is."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from generators.baits.bait import Drawn
from generators.graph import Graph
from generators.ops import OPS, SAID_OTHERWISE, call_of, check
from generators.ops.attributes import OTHERWISE
from generators.ops.spec import Unsupported, said

DIALECTS = ("torch", "tensorflow", "jax", "relax")
"""Those that have further spellings."""
MOST = 6
"""Spellings of one operator that are looked for."""


def spelled(one: Drawn) -> list[Drawn]:
    """The pattern with each node in turn, then with all, in each further spelling that some dialect has for them."""
    found = {str(graph): replace(one, graph=graph) for graph in _graphs(one.graph)}
    return list(found.values())


def _graphs(graph: Graph) -> Iterator[Graph]:
    there = [i for i, node in enumerate(graph.nodes) if f"{node.op}{OTHERWISE}" in SAID_OTHERWISE]
    for number in range(MOST):
        for chosen in (*((i,) for i in there), there if len(there) > 1 else ()):
            other = _with(graph, chosen, number)
            if other:
                yield other


def _with(graph: Graph, chosen: Collection[int], number: int) -> Graph | None:
    """None where no dialect says one of the nodes so."""
    nodes = [
        replace(node, op=f"{node.op}{OTHERWISE}", attrs=(("spelling", number), *node.attrs)) if i in chosen else node
        for i, node in enumerate(graph.nodes)
    ]
    new = check(replace(graph, nodes=tuple(nodes)))
    return new if chosen and all(_there(new, i) for i in chosen) else None


def _there(graph: Graph, place: int) -> bool:
    spec, call = OPS[graph.nodes[place].op], call_of(graph, place)
    return any(not isinstance(said(getattr(spec, name), call), Unsupported) for name in DIALECTS)
