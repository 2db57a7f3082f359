"""Are planted faults found, how soon, and how small? `PYTHONPATH=. python tests/meta/sensitivity.py` prints a table."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median

from faults import FAULTS, Fault
from planted import planted
from rich.console import Console
from rich.table import Table

from generators import caseio
from generators.graphs import Case, seeded_case
from harness.backends import TARGETS
from harness.campaign import Campaign
from harness.findings import Finding, Store
from harness.laboratory import Laboratory
from harness.pool import Pool

CASES = 300
SEED = 20


@cache
def drawn() -> tuple[Case, ...]:
    """The cases that every fault has to be found in: the same generator and size as a hunt's."""
    return tuple(seeded_case(SEED, index) for index in range(CASES))


@dataclass(frozen=True)
class Catch:
    """A fault that was found: after how many cases, and as what."""

    fault: Fault
    after: int
    finding: Finding


def catch(fault: Fault, lab: Laboratory, folder: Path) -> Catch | None:
    """Run the cases on the planted target until one fails. Those without the faulty operator are counted but
    not run: their program is the correct one, letter for letter."""
    target = planted(fault.operator, fault.text)
    campaign = Campaign(lab, [TARGETS["torch-eager"]], Store(folder), confirmations=0)
    for number, case in enumerate(drawn(), start=1):
        if fault.operator not in case.graph.operators:
            continue
        verdict = lab.examine(case, [target]).verdicts[target.name]
        if verdict.discrepancy:
            finding = campaign.investigate(target, case, verdict.discrepancy)
            return Catch(fault, number, finding) if finding else None
    return None


def exit_statuses(reproducers: Sequence[Path]) -> list[int]:
    """Run reproducers, one after the other in one new process (a new interpreter each would import torch each
    time)."""
    script = (
        "import runpy, sys\n"
        "for path in sys.argv[1:]:\n"
        "    try:\n"
        "        runpy.run_path(path, run_name='__main__')\n"
        "    except SystemExit as end:\n"
        "        print('status', end.code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, reproducers)], capture_output=True, text=True, timeout=300, check=True
    )
    return [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("status ")]


def repaired(caught: Catch) -> Path:
    """The reproducer with the correct spelling in place of the fault."""
    path = Path(caught.finding.path) / "reproducer.py"
    graph = caseio.loads(path.with_name("graph.json").read_text()).graph
    wrong = planted(caught.fault.operator, caught.fault.text).program(graph)
    text = path.read_text()
    assert wrong in text
    fixed = path.with_name("repaired.py")
    fixed.write_text(text.replace(wrong, TARGETS["torch-eager"].program(graph)))
    return fixed


def main() -> None:
    """All faults, as a table."""
    table = Table("fault", "operator", "found after", "symptom", "nodes", "with fault", "without")
    caught: list[Catch] = []
    with tempfile.TemporaryDirectory() as folder, Pool() as pool:
        for i, fault in enumerate(FAULTS):
            found = catch(fault, Laboratory(pool), Path(folder) / str(i))
            if found is None:
                table.add_row(fault.name, fault.operator, "never", style="red")
                continue
            caught.append(found)
            statuses = exit_statuses([Path(found.finding.path) / "reproducer.py", repaired(found)])
            row = (found.after, found.finding.symptom, found.finding.nodes, *statuses)
            table.add_row(fault.name, fault.operator, *map(str, row))
    console = Console(width=120)
    console.print(table)
    console.print(f"{len(caught)} of {len(FAULTS)} faults found within {CASES} cases")
    console.print(
        f"medians: {median(c.finding.nodes for c in caught)} nodes, after {median(c.after for c in caught)} cases"
    )


if __name__ == "__main__":
    main()
