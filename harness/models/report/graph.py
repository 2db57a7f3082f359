"""A model's graph as a drawing in layers: all of a small one, of a large one what is around the layer where an error
begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.models.report.glance import Node

WHOLE = 60
"""Most nodes of a graph that is drawn; of a larger one so many are, around what is marked."""
WIDE, HIGH = 150, 34
ACROSS, DOWN = 166, 56
"""Pixels of a box, and from one to the next."""
LONGEST = 22
"""Characters of a name in a box."""


@dataclass(frozen=True)
class Box:
    """One node. told: all that is known of it; marked: does an error begin there?"""

    x: int
    y: int
    op: str
    name: str
    told: str
    marked: bool


@dataclass(frozen=True)
class Drawing:
    """wires: each from the middle of one box's lower side to that of another's upper one, as x, y, x, y; left: so many
    nodes are not drawn before and after."""

    boxes: tuple[Box, ...]
    wires: tuple[tuple[int, int, int, int], ...]
    width: int
    height: int
    left: tuple[int, int]


def drawn(
    nodes: Sequence[Node], marked: frozenset[str] = frozenset(), told: Mapping[str, str] | None = None
) -> Drawing:
    """marked: names of values whose node an error begins at; told: what is known of a node, by a value that it makes.
    A large graph without one is drawn from its start."""
    start, end = _window(nodes, marked)
    chosen = nodes[start:end]
    depths = _depths(chosen)
    rows: dict[int, list[int]] = {}
    for place, depth in enumerate(depths):
        rows.setdefault(depth, []).append(place)
    columns = _columns(chosen, rows)
    width = 16 + ACROSS * max((len(row) for row in rows.values()), default=1)
    spots = {
        place: ((width - ACROSS * len(row)) // 2 + ACROSS * columns[place] + (ACROSS - WIDE) // 2, 8 + DOWN * depth)
        for depth, row in rows.items()
        for place in row
    }  # fmt: skip
    makers = {name: place for place, node in enumerate(chosen) for name in node.outputs}
    wires = tuple(
        (
            spots[makers[name]][0] + WIDE // 2,
            spots[makers[name]][1] + HIGH,
            spots[place][0] + WIDE // 2,
            spots[place][1],
        )
        for place, node in enumerate(chosen)
        for name in dict.fromkeys(node.inputs)
        if name in makers and makers[name] != place
    )
    words = told or {}
    boxes = []
    for place, node in enumerate(chosen):
        title = node.name or (node.outputs[0] if node.outputs else "")
        known = next((words[name] for name in node.outputs if name in words), f"{title} ({node.op})")
        short = title if len(title) <= LONGEST else f"…{title[1 - LONGEST :]}"
        boxes.append(Box(*spots[place], node.op, short, known, bool(marked.intersection(node.outputs))))
    return Drawing(tuple(boxes), wires, width, 16 + DOWN * len(rows), (start, len(nodes) - end))


def _window(nodes: Sequence[Node], marked: frozenset[str]) -> tuple[int, int]:
    """First and last place of what is drawn."""
    if len(nodes) <= WHOLE:
        return 0, len(nodes)
    centre = next((place for place, node in enumerate(nodes) if marked.intersection(node.outputs)), 0)
    start = min(max(0, centre - WHOLE // 2), len(nodes) - WHOLE)
    return start, start + WHOLE


def _depths(nodes: Sequence[Node]) -> list[int]:
    """Of each node the length of the longest way to it, among these; nodes are in an order in which they can run."""
    depths: dict[str, int] = {}
    found = []
    for node in nodes:
        depth = max((depths[name] + 1 for name in node.inputs if name in depths), default=0)
        depths |= dict.fromkeys(node.outputs, depth)
        found.append(depth)
    return found


def _columns(nodes: Sequence[Node], rows: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """The column of each node: near the mean of those that it takes values from."""
    makers = {name: place for place, node in enumerate(nodes) for name in node.outputs}
    columns: dict[int, int] = {}
    for depth in sorted(rows):

        def mean(place: int) -> float:
            found = [columns[makers[name]] for name in nodes[place].inputs if makers.get(name) in columns]
            return sum(found) / len(found) if found else 0.0

        for column, place in enumerate(sorted(rows[depth], key=lambda place: (mean(place), place))):
            columns[place] = column
    return columns
