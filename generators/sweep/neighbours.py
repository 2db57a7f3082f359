"""Ordinary cases with an operand that compilers have rewrites and loops of their own for: one that is stored in another
order of its axes, so that memory is walked through otherwise than places are, one that is computed, which is fused with
what takes it, or computed anew for a gradient, and stacks of rows or columns; and of pooling wide windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, lru_cache, partial

import numpy as np

from generators.graph import FLOATS, Graph, Leaf, Node, TensorType
from generators.graphs import SeededDraw, Style, build_graph
from generators.ops import OPS
from generators.ops.spec import Shape, TypeRuleError

WAYS = ("stored", "computed", "stored and computed", "thin")
"""What an operand is."""
ORDERS = ("reversed", "swapped", "channels last")
"""Of the axes in memory; each with a case of its own. Of stacks they say which axis has one place: the last but one,
the last or the first."""
THIN = (-2, -1, 0)
COUNT = len(WAYS) * len(ORDERS)
ATTEMPTS = 60
"""Draws before there is said to be no such operand."""
FUNCTIONS = ("sin", "neg", "logical_not")
"""An operand is computed by the first of these that takes its dtype: one that is computed anew to other bits first."""
SINGLE = ("mul", "div", "zeros_like")
"""By what one without dimensions is computed, each with a case of its own: of the leaf, or of it twice. Compilers have
patterns of products before a reduction, whose axis it has not, and make a constant at once."""
WIDE: Mapping[int, tuple[Shape, Mapping[str, Shape]]] = {
    3: ((2, 2, 64), {"kernel": (32,), "output": (2,)}),
    4: ((2, 2, 10, 12), {"kernel": (5, 6), "output": (2, 2)}),
    5: ((2, 2, 4, 6, 6), {"kernel": (4, 3, 3), "output": (2, 2, 2)}),
}
"""By rank: an image, and windows that divide it, so that pooling to a given size is pooling with a stride, too. Windows
of more than 24 elements are no longer written out one by one, but are loops, whose order follows memory (inductor's
`max_pool2d_with_indices`)."""
WINDOWS = ("plain", *ORDERS)
"""How an image with wide windows is stored."""


@cache
def near(operator: str, dtype: str, number: int) -> Graph | None:
    """Case `number` of them, of a dtype. None where the operator does not take the dtype, or no such operand."""
    way, order = WAYS[number % len(WAYS)], ORDERS[number // len(WAYS)]
    least = 1 if way == "computed" else 3 if order == "channels last" else 2
    for attempt in range(ATTEMPTS):
        graph = _drawn(operator, dtype, (number * ATTEMPTS // COUNT + attempt) % ATTEMPTS)
        if graph is None:
            continue
        if way == "thin":
            if any(_thin(leaf.type.shape, THIN[ORDERS.index(order)]) for leaf in graph.leaves) and _stacks(graph):
                return graph
            continue
        fit = [leaf for leaf in graph.leaves if not leaf.domain and sum(n > 1 for n in leaf.type.shape) >= least]
        if fit:
            leaf = fit[attempt % len(fit)]
            stored = graph if way == "computed" else _stored(graph, leaf, order)
            return stored if way == "stored" else _computed(stored, leaf)
    singles = map(partial(_drawn, operator, dtype), range(ATTEMPTS if way == "computed" else 0))
    found = (_of_single(graph, SINGLE[number // len(WAYS)]) for graph in singles if graph)
    return next((graph for graph in found if graph), None)


@cache
def squared(operator: str, dtype: str) -> Graph | None:
    """What the operator returns is squared: of an operator that is linear only such a case has a second derivative.
    None where it does not take the dtype, or returns no floating numbers."""
    kept = None
    for attempt in range(ATTEMPTS):
        graph = _drawn(operator, dtype, attempt)
        last = graph.nodes[-1] if graph else None
        if graph and last and last.type.dtype in FLOATS and all(leaf.type.size > 1 for leaf in graph.leaves):
            square = Node("u1", "square", (last.name,), (), last.type)
            found = replace(graph, nodes=(*graph.nodes, square), outputs=(square.name,))
            if not graph.parameters and all(min(leaf.type.shape) > 1 for leaf in graph.leaves):
                return found
            kept = kept or found
    return kept


@lru_cache(2 * ATTEMPTS)
def _drawn(operator: str, dtype: str, attempt: int) -> Graph | None:
    """The operator alone; None where it does not take the dtype. All cases look among the same, each from another one
    on, since drawing takes longer than looking."""
    drawn = SeededDraw(f"near/{operator}/{dtype}/{attempt}")
    graph = build_graph(drawn, 1, (operator,), style=Style((dtype,), apart=True))
    fits = [node.op for node in graph.nodes] == [operator] and any(t.dtype == dtype for t in graph.types.values())
    return graph if fits else None


@cache
def windowed(operator: str, dtype: str, number: int) -> Graph | None:
    """Case `number` of `WINDOWS`, of a dtype. None where the operator has no windows, or does not take the dtype."""
    spec = OPS[operator]
    if spec.family != "pooling" or len(spec.operands) != 1:
        return None
    for shape, given in WIDE.values():
        own, draw, attrs = TensorType(dtype, shape), SeededDraw(f"windowed/{operator}/{dtype}/{number}"), {}
        if not spec.slot(0).accepts(own, ()) or not given.keys() & spec.attrs.keys():
            continue
        try:
            for key, rule in spec.attrs.items():
                attrs[key] = given[key] if key in given else rule(draw, (own,), attrs)
            node = Node("v0", operator, ("x0",), tuple(attrs.items()), spec.result((own,), attrs))
        except TypeRuleError:
            continue
        leaf = Leaf("x0", own)
        graph = Graph((leaf,), (node,), ("v0",))
        return graph if WINDOWS[number] == "plain" else _stored(graph, leaf, WINDOWS[number])
    return None


def _thin(shape: Shape, axis: int) -> bool:
    """One place along that axis, several along all others."""
    return len(shape) > 2 and shape[axis] == 1 and sum(n > 1 for n in shape) == len(shape) - 1


def _stacks(graph: Graph) -> bool:
    """Are operands of two dimensions or more stacks?"""
    return all(leaf.type.rank != 2 for leaf in graph.leaves)


def _stored(graph: Graph, leaf: Leaf, order: str) -> Graph:
    """The leaf is a transposition of what is given."""
    axes = list(range(leaf.type.rank))
    if order == "reversed":
        axes.reverse()
    elif order == "swapped" or leaf.type.rank < 3:
        axes[-2:] = axes[:-3:-1]
    else:
        axes.append(axes.pop(1))
    given = replace(leaf, type=TensorType(leaf.type.dtype, tuple(leaf.type.shape[axis] for axis in axes)))
    perm = tuple(int(place) for place in np.argsort(axes))
    turn = Node("u0", "transpose", (leaf.name,), (("perm", perm),), leaf.type)
    return _behind(replace(graph, leaves=tuple(given if one is leaf else one for one in graph.leaves)), turn, leaf.name)


def _of_single(graph: Graph, operator: str) -> Graph | None:
    """The first operand is that function of a leaf; None where anything has dimensions."""
    node, spec = graph.nodes[0], OPS[operator]
    leaf = next((one for one in graph.leaves if one.name == node.operands[0] and not one.domain), None)
    if leaf is None or any(one.type.rank for one in graph.leaves) or not spec.slot(0).accepts(leaf.type, ()):
        return None
    made = Node("u1", operator, (leaf.name,) * len(spec.operands), (), leaf.type)
    return _behind(graph, made, leaf.name)


def _computed(graph: Graph, leaf: Leaf) -> Graph | None:
    """What the operator takes in place of the leaf, or of its transposition, is a function of it."""
    name = graph.nodes[0].name if len(graph.nodes) > 1 else leaf.name
    for operator in FUNCTIONS:
        try:
            if OPS[operator].slot(0).accepts(leaf.type, ()) and OPS[operator].result((leaf.type,), {}) == leaf.type:
                return _behind(graph, Node("u1", operator, (name,), (), leaf.type), name)
        except TypeRuleError:
            continue
    return None


def _behind(graph: Graph, node: Node, name: str) -> Graph:
    """That node takes the place of a value for the last one."""
    last = graph.nodes[-1]
    operands = tuple(node.name if operand == name else operand for operand in last.operands)
    return Graph(graph.leaves, (*graph.nodes[:-1], node, replace(last, operands=operands)), graph.outputs)
