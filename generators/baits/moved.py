"""Baits of which one attribute, one shape or the order of two operands is another. A matcher that leaves something out
of what it compares rewrites these, too, and wrongly: inductor did so with the axis of a softmax and the order of a
transposition (https://github.com/pytorch/pytorch/issues/196468, 195320), ONNX Runtime with means that drop their axis,
scales that have more elements than what they scale, and a scale that stands first, where it took the scaled for the
scale (https://github.com/microsoft/onnxruntime/issues/30513, 31980, 31147)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from generators.baits.bait import Drawn
from generators.graph import Attr, Graph, GraphError
from generators.graphs import SeededDraw
from generators.ops import OPS, check
from generators.retype import retyped_graph

Shape = tuple[int, ...]
SYMMETRIC = frozenset(
    ("add", "mul", "maximum", "minimum", "logical_and", "logical_or", "logical_xor", "equal", "not_equal")
)
"""Operators whose two operands may change places: matchers have to look for a pattern on both sides."""
EQUAL = 4
"""The size of all dimensions but those of one, where a pattern's own sizes let few attributes be others."""
ATTEMPTS, MOST = 8, 3
"""Draws of an attribute, and how many of its other values are taken."""
MOST_SHAPES = 5
"""Of the other shapes of a leaf."""
_CHANGES: tuple[Callable[[Shape], Shape], ...] = (
    lambda shape: (2, *shape),
    lambda shape: shape[1:],
    lambda shape: (*shape[:-1], 1),
    lambda shape: (*shape[:-1], 3) if shape[-1:] == (1,) else shape[-1:],
    lambda shape: (1, 1, *shape),
    lambda shape: (1, *shape[1:]),
    lambda shape: (),
    lambda shape: (*shape[:-2], 1, *shape[-1:]),
)


def moved(one: Drawn) -> list[Drawn]:
    """The pattern, and the same of equal sizes, each with one attribute of one node as a drawn graph may have it; and
    the pattern with other shapes of one leaf, or of all that have most dimensions; and with the operands of one node,
    and of all, that have no order, in the other one; wherever the whole still types."""
    found: dict[str, Drawn] = {}
    for base in (one, _of_equal_sizes(one)):
        if base:
            found |= {str(graph): replace(base, graph=graph) for graph in _attributes(base.graph)}
    found |= {str(graph): replace(one, graph=graph) for graph in (*_shapes(one), *_turned(one.graph))}
    return [other for text, other in found.items() if text != str(one.graph)]


def _shapes(one: Drawn) -> Iterator[Graph]:
    """With another shape of a leaf that is no constant: a dimension more or less, one of 1, one of another size."""
    leaves = one.graph.leaves
    rank = max((leaf.type.rank for leaf in leaves), default=0)
    greatest = [i for i, leaf in enumerate(leaves) if leaf.type.rank == rank]
    for chosen in (greatest, *([i] for i in range(len(leaves)))):
        if any(leaves[i].name in one.fixed for i in chosen):
            continue
        others = (_with_shapes(one.graph, chosen, change) for change in _CHANGES)
        yield from [other for other in others if other][:MOST_SHAPES]


def _with_shapes(graph: Graph, chosen: Collection[int], change: Callable[[Shape], Shape]) -> Graph | None:
    leaves = [
        replace(leaf, type=replace(leaf.type, shape=change(leaf.type.shape))) if i in chosen else leaf
        for i, leaf in enumerate(graph.leaves)
    ]
    return _fitting(replace(graph, leaves=tuple(leaves)))


def _turned(graph: Graph) -> Iterator[Graph]:
    """With the operands of one node, then of all nodes, turned round where they have no order."""
    free = [i for i, node in enumerate(graph.nodes) if node.op in SYMMETRIC and len(set(node.operands)) == 2]
    for chosen in (*((i,) for i in free), free):
        nodes = [
            replace(node, operands=node.operands[::-1]) if i in chosen else node for i, node in enumerate(graph.nodes)
        ]
        yield check(replace(graph, nodes=tuple(nodes)))


def _attributes(graph: Graph) -> Iterator[Graph]:
    for number, node in enumerate(graph.nodes):
        operands = tuple(graph.types[name] for name in node.operands)
        for key, rule in OPS[node.op].attrs.items():
            values: dict[str, Attr] = {}
            for attempt in range(ATTEMPTS):
                drawn = rule(SeededDraw(f"{number}/{key}/{attempt}"), operands, node.attributes)
                if drawn != node.attributes[key]:
                    values[repr(drawn)] = drawn
            others = (_with_attribute(graph, number, key, value) for value in values.values())
            yield from [other for other in others if other][:MOST]


def _with_attribute(graph: Graph, number: int, key: str, value: Attr) -> Graph | None:
    nodes = list(graph.nodes)
    nodes[number] = replace(nodes[number], attrs=tuple({**nodes[number].attributes, key: value}.items()))
    return _fitting(replace(graph, nodes=tuple(nodes)))


def _fitting(graph: Graph) -> Graph | None:
    """The graph with the types that follow; None where they do not fit. Elements stay in the domains that they had."""
    new = retyped_graph(graph)
    try:
        return check(replace(new, leaves=graph.leaves)) if new else None
    except GraphError:
        return None


def _of_equal_sizes(one: Drawn) -> Drawn | None:
    """None where it is none of these sizes, or its constants have others."""

    def equal(shape: Shape) -> Shape:
        return tuple(size if size < 2 else EQUAL for size in shape)

    leaves = one.graph.leaves
    if any(equal(leaf.type.shape) != leaf.type.shape for leaf in leaves if leaf.name in one.fixed):
        return None
    graph = _with_shapes(one.graph, range(len(leaves)), equal)
    return replace(one, graph=graph) if graph else None
