"""The same nodes on leaves of other types: types inferred anew, attributes kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from generators.graph import Graph, Node
from generators.graphs import Case
from generators.ops import OPS
from generators.ops.spec import TypeRuleError


def retyped_graph(graph: Graph) -> Graph | None:
    """Node types inferred anew from the leaves; leaf domains as the slots now demand; None where invalid."""
    types = {leaf.name: leaf.type for leaf in graph.leaves}
    domains: dict[str, tuple[int, int]] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        operands = tuple(types[o] for o in node.operands)
        try:
            result = OPS[node.op].result(operands, node.attributes)
            for position, name in enumerate(node.operands):
                wanted = OPS[node.op].slot(position).domain(operands[:position])
                if wanted is not None:
                    domains[name] = wanted
        except (TypeRuleError, IndexError):
            return None
        types[node.name] = result
        nodes.append(replace(node, type=result))
    leaves = tuple(replace(i, domain=i.domain and domains.get(i.name, i.domain)) for i in graph.leaves)
    if any(leaf.domain and leaf.domain[1] < leaf.domain[0] for leaf in leaves):
        return None
    return Graph(leaves, tuple(nodes), graph.outputs)


def retyped(graph: Graph, arrays: Mapping[str, np.ndarray]) -> Case | None:
    """`retyped_graph`, with arrays clipped to the domains that leaves now have."""
    new = retyped_graph(graph)
    return Case(new, confined(new, arrays)) if new else None


def confined(graph: Graph, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays, those of leaves with a domain clipped to it."""
    kept = dict(arrays)
    for leaf in graph.leaves:
        if leaf.domain:
            kept[leaf.name] = np.clip(kept[leaf.name], *leaf.domain).astype(leaf.type.dtype)
    return kept
