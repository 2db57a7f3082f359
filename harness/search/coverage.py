"""What has been tested: operator x dtype x target x outcome, undetermined elements by operator, and which operator's
result went into which. Runs add it to the store (`harness/findings/database/`)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct
from sqlalchemy import func, select

from generators.graph import Graph, Node
from harness.execute.reading import FileError, read_json
from harness.findings.database import opened
from harness.findings.database.recorder import Recorder
from harness.findings.database.tables import CELL, ELEMENT, PAIR
from oracles.judge.compare import Expected
from oracles.judge.verdict import Verdict

FILE = "coverage.json"
"""What Dissent kept it in before there was a store."""


class CoverageError(FileError):
    """A coverage file that cannot be used; the message names it."""


Counts = dict[str, Annotated[int, Meta(ge=0)]]


class CoverageFile(Struct, frozen=True, forbid_unknown_fields=True):
    """The counts of one question as the file has them."""

    cells: dict[str, dict[str, dict[str, Counts]]]
    elements: Counts
    undetermined: Counts
    pairs: dict[str, Counts]


@dataclass
class Coverage:
    """cells:        (operator, dtype, target, status) -> how many nodes in cases with that status
    elements:     operator -> elements of outputs that it computed
    undetermined: operator -> those of them that a correct back end may set to anything
    pairs:        (first, second) -> how often the second took a result of the first"""

    cells: Counter[tuple[str, ...]] = field(default_factory=Counter)
    elements: Counter[str] = field(default_factory=Counter)
    undetermined: Counter[str] = field(default_factory=Counter)
    pairs: Counter[tuple[str, ...]] = field(default_factory=Counter)

    def add(self, graph: Graph, expected: Expected, verdicts: Mapping[str, Verdict]) -> None:
        """Count one examined case."""
        nodes = {node.name: node for node in graph.nodes}
        for node in graph.nodes:
            dtype = dtype_of(graph, node)
            for target, verdict in verdicts.items():
                self.cells[node.op, dtype, target, verdict.status] += 1
            for operand in node.operands:
                if operand in nodes:
                    self.pairs[nodes[operand].op, node.op] += 1
        for name, value in zip(expected.names, expected.values, strict=True):
            if name in nodes:
                self.elements[nodes[name].op] += value.value.size
                self.undetermined[nodes[name].op] += int(value.undetermined.sum())

    def refuse(self, graph: Graph, nodes: Iterable[Node], target: str) -> None:
        """Count nodes of a graph that a target refuses."""
        for node in nodes:
            self.cells[node.op, dtype_of(graph, node), target, "unsupported"] += 1

    def merge(self, other: Coverage) -> None:
        """Add the counts of another."""
        self.cells.update(other.cells)
        self.elements.update(other.elements)
        self.undetermined.update(other.undetermined)
        self.pairs.update(other.pairs)

    def to_json(self) -> dict:
        """Plain JSON: counts as nested objects, key by key."""
        return {
            "cells": _nested(self.cells),
            "elements": dict(self.elements),
            "undetermined": dict(self.undetermined),
            "pairs": _nested(self.pairs),
        }


def dtype_of(graph: Graph, node: Node) -> str:
    """The dtype by which a node is counted: that of its first operand."""
    return graph.types[node.operands[0]].dtype if node.operands else node.type.dtype


def save(record: Recorder, counted: Mapping[str, Coverage]) -> None:
    """Add these counts, by question, to a run of the store."""
    for question, one in counted.items():
        record.covered(question, one.cells, one.pairs, one.elements, one.undetermined)


def load(folder: Path) -> dict[str, Coverage]:
    """What all runs of the store of a findings folder covered, by question; nothing where there is none yet. Raises
    FileError."""
    url, total = opened.url_of(folder), defaultdict[str, Coverage](Coverage)
    if (folder / FILE).exists():  # until a run takes it over
        total.update(load_file(folder / FILE))
    if not opened.there(url):
        return dict(total)
    with opened.asking(url) as connection:
        for table in (CELL, PAIR, ELEMENT):
            keys = [column for column in table.primary_key if column.name != "run"]
            asked = select(*keys, func.sum(table.c.count)).group_by(*keys).order_by(*keys)
            for row in connection.execute(asked):
                one, key, count = total[row[0]], tuple(row[1:-1]), int(row[-1])
                if table is ELEMENT:
                    (one.elements if key[1] == "computed" else one.undetermined)[key[0]] += count
                else:
                    (one.cells if table is CELL else one.pairs)[key] += count
    return dict(total)


def load_file(path: Path) -> dict[str, Coverage]:
    """What a file of an earlier Dissent has, by question. Raises CoverageError naming it."""
    try:
        counted = read_json(path, dict[str, CoverageFile])
    except FileError as error:
        raise CoverageError(str(error)) from error
    return {
        question: Coverage(
            Counter(dict(_flat(counts.cells, 4))),
            Counter(counts.elements),
            Counter(counts.undetermined),
            Counter(dict(_flat(counts.pairs, 2))),
        )
        for question, counts in counted.items()
    }


def _nested(counts: Counter[tuple[str, ...]]) -> dict:
    root: dict = {}
    for key, count in sorted(counts.items()):
        place = root
        for part in key[:-1]:
            place = place.setdefault(part, {})
        place[key[-1]] = count
    return root


def _flat(tree: Mapping, depth: int) -> Iterable[tuple[tuple[str, ...], int]]:
    for key, value in tree.items():
        if depth == 1:
            yield (key,), int(value)
        else:
            for rest, count in _flat(value, depth - 1):
                yield (key, *rest), count
