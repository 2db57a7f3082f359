"""What a person sees on the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from harness.hunt import Options, Tally
from harness.laboratory import Examination
from oracles.forward import STATUSES

_STYLES = {"agree": "green", "within_bound_only": "green", "unsupported": "dim", "undetermined": "dim"}
_HEADINGS = {
    "within_bound_only": "bound",
    "undetermined": "undet.",
    "unsupported": "unsup.",
    "rejected": "reject.",
    "timeout": "hang",
    "mismatch": "mismatch",
}


def hunt_table(options: Options, tally: Tally, seconds: float) -> Group:
    """Outcomes by target, then findings and the rest of the counts."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("target", no_wrap=True)
    for status in STATUSES:
        heading = _HEADINGS.get(status, status)
        table.add_column(heading, justify="right", style=_STYLES.get(status, "red"), no_wrap=True)
    for target in options.targets:
        counts = tally.statuses.get(target.name, {})
        table.add_row(target.name, *(str(counts.get(status, 0) or "·") for status in STATUSES))
    rate = tally.cases / seconds if seconds else 0.0
    total = max(1, tally.elements)
    lines = [
        f"{tally.cases} cases in {seconds:.0f} s ({rate:.1f}/s), "
        f"{tally.elements - tally.undetermined} elements compared, "
        f"{100 * tally.undetermined / total:.2g} % undetermined",
        f"{len(tally.findings)} findings ({sum(tally.counts.values())} times), "
        f"{sum(tally.excused.values())} excused by {len(tally.excused)} known issues, "
        f"{tally.restarts} workers started, {tally.unconfirmed} deaths not repeated",
    ]
    found = [
        f"  {name}: {finding.nodes} node{'s' * (finding.nodes != 1)}, {tally.counts[name]} times"
        for name, finding in sorted(tally.findings.items())
    ]
    return Group(table, *(Text(line) for line in [*lines, *found]))


def replay_lines(examination: Examination) -> Iterator[str]:
    """The graph, then one line a target."""
    yield escape(str(examination.case.graph))
    yield ""
    for name, verdict in examination.verdicts.items():
        style = _STYLES.get(verdict.status, "red")
        detail = f"  {escape(verdict.discrepancy.message)}" if verdict.discrepancy else ""
        yield f"{name:18}[{style}]{verdict.status}[/]{detail}"
