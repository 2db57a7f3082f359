"""The same nodes on leaves of other types: types inferred anew, attributes kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

import numpy as np

from generators.graph import FLOATS, Graph, GraphError, Leaf, Node
from generators.graphs import Case
from generators.ops import OPS, check

Typed = TypeVar("Typed", Leaf, Node)


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
        except (ValueError, IndexError):  # some rules unpack a shape of another rank
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


_WIDE = {"complex64": "complex128", **dict.fromkeys(set(FLOATS) - {"float64"}, "float64")}


def float64_twin(case: Case) -> Case | None:
    """The case with float64 (and complex128) in place of narrower dtypes everywhere; None where that changes nothing or
    is not valid."""
    graph, narrow = case.graph, _WIDE
    if all(t.dtype not in narrow for t in graph.types.values()):
        return None

    def wide(item: Typed) -> Typed:
        if item.type.dtype not in narrow:
            return item
        return replace(item, type=replace(item.type, dtype=narrow[item.type.dtype]))

    nodes = []
    for node in map(wide, graph.nodes):
        attrs = tuple((k, narrow[v] if isinstance(v, str) and v in narrow else v) for k, v in node.attrs)
        nodes.append(replace(node, attrs=attrs))
    twin = Graph(tuple(map(wide, graph.leaves)), tuple(nodes), graph.outputs)
    try:
        check(twin)
    except GraphError:  # an operator that is float32 by definition
        return None
    arrays = {name: a.astype(narrow.get(str(a.dtype), a.dtype)) for name, a in case.arrays.items()}
    return Case(twin, arrays)
