"""Graphs in layers: every wire goes down, no boxes overlap, of a large graph what is marked is drawn."""

from __future__ import annotations

from harness.models.report.glance import Node
from harness.models.report.graph import ACROSS, DOWN, HIGH, WHOLE, WIDE, drawn

FORK = (
    Node("a", "Conv", ("x",), ("va",)),
    Node("b", "Relu", ("va",), ("vb",)),
    Node("c", "Tanh", ("va",), ("vc",)),
    Node("", "Add", ("vb", "vc"), ("sum",)),
)


def test_layers() -> None:
    found = drawn(FORK, frozenset({"vc"}), {"vc": "off by far"})
    assert len({(box.x, box.y) for box in found.boxes}) == 4
    assert [box.y for box in found.boxes] == [8, 8 + DOWN, 8 + DOWN, 8 + 2 * DOWN]
    assert abs(found.boxes[1].x - found.boxes[2].x) == ACROSS
    assert len(found.wires) == 4
    assert all(below > above for _, above, _, below in found.wires)
    assert all(0 <= box.x <= found.width - WIDE and box.y + HIGH <= found.height for box in found.boxes)
    assert [box.marked for box in found.boxes] == [False, False, True, False]
    assert (found.boxes[2].told, found.boxes[3].name) == ("off by far", "sum")


def test_of_a_large_graph_what_is_around_the_mark() -> None:
    nodes = [Node(f"n{i}", "Relu", (f"v{i - 1}",), (f"v{i}",)) for i in range(1000)]
    for place in (0, 500, 999):
        found = drawn(nodes, frozenset({f"v{place}"}))
        assert len(found.boxes) == WHOLE
        assert [box.name for box in found.boxes if box.marked] == [f"n{place}"]
        assert sum(found.left) == 1000 - WHOLE
    assert drawn(nodes).left == (0, 1000 - WHOLE)


def test_a_node_without_ends() -> None:
    found = drawn([Node("", "Print", (), ())])
    assert (len(found.boxes), found.wires) == (1, ())
