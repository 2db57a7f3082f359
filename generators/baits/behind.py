"""Baits of which operands come of an operator that does nothing. One rule takes it away while another rewrites what
stands behind it: ONNX Runtime's fusion of (1 / y) x left a name that nothing makes where x was an Identity, a Cast to
its own type or a Dropout, and its fusion of a product took a transposition that turns nothing for one that does
(https://github.com/microsoft/onnxruntime/issues/32413, 32414, 32416, 32417, 32418)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from generators.baits.bait import Drawn
from generators.graph import Attr, Graph, GraphError, Node, TensorType
from generators.ops import OPS, TypeRuleError, check

_NOTHING: Mapping[str, Callable[[TensorType], Mapping[str, Attr]]] = {
    "identity": lambda type_: {},
    "dropout_off": lambda type_: {"rate": 0.5},
    "cast": lambda type_: {"to": type_.dtype},
    "transpose": lambda type_: {"perm": tuple(range(type_.rank))},
    "reshape": lambda type_: {"shape": type_.shape},
    "broadcast_to": lambda type_: {"shape": type_.shape},
    "slice": lambda type_: {"starts": (0,) * type_.rank, "stops": type_.shape, "steps": (1,) * type_.rank},
}
"""Attributes with which an operator returns its operand, by its type."""


def behind(one: Drawn) -> list[Drawn]:
    """The pattern with each of these operators behind all its inputs, and with one of them in turn behind each of its
    values that something takes; wherever the whole still types."""
    taken = dict.fromkeys(name for node in one.graph.nodes for name in node.operands)
    inputs = [leaf.name for leaf in one.graph.inputs]
    operators = list(_NOTHING)
    graphs = [_with(one.graph, operator, inputs) for operator in operators]
    graphs += [_with(one.graph, operators[i % len(operators)], (name,)) for i, name in enumerate(taken)]
    return [replace(one, graph=graph) for graph in {str(graph): graph for graph in graphs if graph}.values()]


def _with(graph: Graph, operator: str, names: Collection[str]) -> Graph | None:
    """With the operator behind these values, for all that takes them; None where it does not fit."""
    renamed: dict[str, str] = {}
    nodes: list[Node] = []
    try:
        for value in (*graph.leaves, *graph.nodes):
            if isinstance(value, Node):
                nodes.append(replace(value, operands=tuple(renamed.get(name, name) for name in value.operands)))
            if value.name in names:
                attributes = _NOTHING[operator](value.type)
                same = OPS[operator].result((value.type,), attributes)
                renamed[value.name] = f"{value.name}n"
                nodes.append(Node(renamed[value.name], operator, (value.name,), tuple(attributes.items()), same))
        return check(replace(graph, nodes=tuple(nodes))) if renamed else None
    except (GraphError, TypeRuleError):
        return None
