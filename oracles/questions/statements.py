"""What a program that writes does around one of its statements, for known issues of such programs: what an operator is
given does not say it."""

from __future__ import annotations

from collections.abc import Mapping

from generators.graph import Graph, Node
from oracles.questions import cells, memory

FACTS = ("part", "written", "overwritten", "through", "changed", "copied", "overlaps")
"""Names, besides operands and attributes, that `where` of an entry of these questions may mention."""


def facts(graph: Graph, node: Node) -> Mapping[str, bool]:
    """part: the node's first operand is a part of what shares its memory. Of later statements, the last write through
    an output among them (`written` alone counts that): written: one writes to the memory of the first operand or of the
    result; overwritten: to all of the operand; through: it does so through the result, or a view of that; changed: one
    writes to the memory of the last operand; copied: before one of `written` a copy is made of that memory. overlaps:
    the node writes a copy of what shares memory with what is written to."""
    found, later = cells.layout(graph), graph.nodes[graph.nodes.index(node) + 1 :]
    first, last = node.operands[0], node.operands[-1]
    made = next((other for other in graph.nodes if other.name == last), None)

    def mine(name: str) -> bool:
        return not (found.apart(name, node.name) and found.apart(name, first))

    writes = [other for other in later if other.op == cells.WRITE]
    to_mine = [other for other in writes if mine(other.operands[0])]
    poke = memory.poked(graph)
    derived = {node.name}
    for other in later:
        if other.operands[0] in derived and (other.name in found.views or other.op == cells.WRITE):
            derived.add(other.name)
    before = later[: later.index(to_mine[-1])] if to_mine else ()
    size = graph.types[first].size
    return {
        "part": any(cell.size > size and not found.apart(name, first) for name, cell in found.cells.items()),
        "written": bool(to_mine) or (poke is not None and mine(graph.outputs[poke])),
        "overwritten": any(not found.apart(o.operands[0], first) and o.type.size >= size for o in to_mine),
        "through": any(other.operands[0] in derived for other in writes),
        "changed": any(not found.apart(other.operands[0], last) for other in writes),
        "copied": any(other.op == "identity" and mine(other.operands[0]) for other in before),
        "overlaps": made is not None and made.op == "identity" and not found.apart(made.operands[0], first),
    }
