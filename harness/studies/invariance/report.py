"""What the study of invariance shows: CSV, JSON, and a page with a table of operators and targets."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from harness.execute.templates import render
from harness.models.report.words import short
from harness.studies.invariance.batches import SIZES
from harness.studies.invariance.examine import (
    BEYOND,
    EQUAL,
    NONE,
    SEQUENCES,
    STATES,
    VARIATIONS,
    VARIES,
    WITHIN,
    Cell,
    table,
)
from harness.studies.invariance.network import NETWORK

MARKS = {EQUAL: ("=", "s0"), WITHIN: ("~", "s2"), VARIES: ("~", "s3"), BEYOND: ("!", "s6"), NONE: ("", "s-2")}
"""How a cell of the page shows a state: its sign, and its shade."""
"""How the names of whole networks begin."""
COLUMNS = ("operator", "target", "variation", "state", "largest_ulps", "sizes", "why")


def csv_of(cells: Sequence[Cell]) -> str:
    """A line a cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for c in cells:
        writer.writerow(
            [c.operator, c.target, c.variation, c.state, c.largest, " ".join(map(str, c.sizes)), c.why]
        )  # fmt: skip
    return out.getvalue()


def counts(cells: Sequence[Cell]) -> dict[tuple[str, str], Counter[str]]:
    """How many operators are in each state, by target and variation."""
    found: dict[tuple[str, str], Counter[str]] = {}
    for (operator, target), own in table(cells).items():
        if operator.startswith(NETWORK):
            continue
        for name, cell in own.items():
            found.setdefault((target, name), Counter())[cell.state] += 1
    return found


def ran(cells: Sequence[Cell]) -> dict[str, int]:
    """Of how many operators there is any result, by target."""
    found = {(c.operator, c.target) for c in cells if c.state != NONE and not c.operator.startswith(NETWORK)}
    return Counter(target for _, target in found)


def as_json(cells: Sequence[Cell], versions: Mapping[str, str]) -> dict[str, object]:
    """All of it."""
    return {"sizes": list(SIZES), "versions": dict(versions), "cells": [asdict(cell) for cell in cells]}


def varying(cells: Sequence[Cell]) -> list[Cell]:
    """What is not bit for bit the same, the worst first."""
    own = [cell for cell in cells if cell.state in (WITHIN, VARIES, BEYOND)]
    return sorted(own, key=lambda c: (c.state != BEYOND, -c.largest, c.operator, c.target))


def page(cells: Sequence[Cell], versions: Mapping[str, str]) -> str:
    """The report as one file of HTML, without scripts and without a network."""
    rows, by_network = table(cells), {}
    for cell in cells:
        if cell.operator.startswith(NETWORK):
            by_network.setdefault((cell.operator, cell.target), []).append(cell)
    return render(
        "studies/invariance/page.html.j2",
        title="Does a row's result depend on its batch?",
        rows=rows,
        operators=list(dict.fromkeys(c.operator for c in cells if not c.operator.startswith(NETWORK))),
        targets=list(dict.fromkeys(cell.target for cell in cells)),
        variations=VARIATIONS,
        states=STATES,
        marks=MARKS,
        counts=counts(cells),
        ran=ran(cells),
        varying=varying(cells),
        networks=[cell for cell in cells if cell.operator.startswith(NETWORK)],
        by_network=by_network,
        sequences=SEQUENCES,
        versions=versions,
        sizes=SIZES,
        short=short,
        beyond=BEYOND,
        equal=EQUAL,
        missing=NONE,
    )
