"""What came of all tests, as tables: by runner, by operator and runner, line by line."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

from rich.table import Table

from harness.studies.conformance.examine import STATUSES, Judged
from harness.studies.conformance.targets import REFERENCE

COLOURS = {"wrong": "red", "crash": "red", "hang": "red"}


def counts(results: Sequence[Judged]) -> dict[str, Counter[str]]:
    """Numbers of tests by status, by runner in the order in which they ran."""
    found: dict[str, Counter[str]] = {}
    for one in results:
        found.setdefault(one.runner, Counter())[one.status] += 1
    return found


def table_of(results: Sequence[Judged]) -> Table:
    """A line a runner."""
    table = Table("runner", *STATUSES, "tests")
    for column in table.columns[1:]:
        column.justify = "right"
    for runner, statuses in counts(results).items():
        cells = [
            f"[{COLOURS[name]}]{statuses[name]}[/]" if name in COLOURS and statuses[name] else str(statuses[name])
            for name in STATUSES
        ]
        table.add_row(runner, *cells, str(statuses.total()))
    return table


def csv_of(results: Sequence[Judged]) -> str:
    """A line a test and runner."""
    text = io.StringIO()
    names = [field.name for field in fields(Judged)]
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(one) for one in results)
    return text.getvalue()


def as_json(results: Sequence[Judged]) -> dict[str, Any]:
    """Counts by runner, and every test that is no pass."""
    return {
        "runners": [
            {"runner": runner, **{name: found[name] for name in STATUSES}, "tests": found.total()}
            for runner, found in counts(results).items()
        ],
        "others": [asdict(one) for one in results if one.status != "pass"],
    }


def by_operator(results: Sequence[Judged]) -> list[tuple[str, str, list[tuple[str, str, str]]]]:
    """For each operator its opsets and, by runner, how bad the worst of its tests is, how many passed of how many, and
    the tests that did not, with the reasons."""
    runners = list(counts(results))
    groups: dict[str, list[Judged]] = {}
    for one in results:
        groups.setdefault(one.operator, []).append(one)
    found = []
    for operator, members in sorted(groups.items(), key=lambda item: item[0].casefold()):
        opsets = ", ".join(str(number) for number in sorted({one.opset for one in members}))
        found.append((operator, opsets, [_cell([one for one in members if one.runner == r]) for r in runners]))
    return found


def _cell(members: Sequence[Judged]) -> tuple[str, str, str]:
    if not members:
        return "none", "", ""
    statuses = Counter(one.status for one in members)
    order = ("crash", "hang", "wrong", "refused", "not judged")
    worst = next((name for name in order if statuses[name]), "pass")
    told = [f"{one.test}: {one.status}: {one.why}" for one in members if one.status != "pass"]
    more = [f"and {len(told) - 8} more"] if len(told) > 8 else []
    return worst, f"{statuses['pass']}/{len(members)}", "\n".join([*told[:8], *more])


def failed_claims(results: Sequence[Judged]) -> list[Judged]:
    """Tests that the reference has rules for and does not pass."""
    return [one for one in results if one.runner == REFERENCE and one.status in ("wrong", "crash", "hang")]
