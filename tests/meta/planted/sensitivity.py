"""Are planted faults found, how soon, and how small?
`PYTHONPATH=.:tests/meta python tests/meta/planted/sensitivity.py` prints a table."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import median

from planted.faults.forward import FAULTS, Fault
from planted.targets import planted
from rich.console import Console
from rich.table import Table

from generators import caseio
from generators.graphs import Case, seeded_case
from harness.backends import TARGETS
from harness.execute.pool import Pool
from harness.findings.known import issues as known_issues
from harness.findings.store import Finding, Store
from harness.questions.forward import FORWARD
from harness.questions.question import Question
from harness.search.campaign import Campaign
from harness.search.laboratory import Laboratory
from oracles.judge.discrepancy import Discrepancy

CASES = 300
SEEDS = (20, 21, 22, 23, 24)
"""Five hunts of 300 cases: whether a fault is found in one of them is a matter of luck, too."""


@cache
def drawn(seed: int, question: Question = FORWARD) -> tuple[Case, ...]:
    """The cases of one hunt: the same generator and size as a real one's."""
    return tuple(seeded_case(seed, index, operators=question.drawn, style=question.style) for index in range(CASES))


@dataclass(frozen=True)
class Detection:
    """The first case of a hunt that shows a fault: its number, counted from 1, and what it shows."""

    number: int
    case: Case
    discrepancy: Discrepancy


@dataclass(frozen=True)
class FaultFinding:
    """A fault that was found, and the finding made of it."""

    fault: Fault
    finding: Finding


def search(fault: Fault, lab: Laboratory, folder: Path) -> Campaign:
    """A campaign on the planted target, to which PyTorch's own known issues are known."""
    name = planted(fault.operator, fault.text).name
    issues = [replace(i, targets=(name,)) for i in known_issues.load() if i.names("torch-eager")]
    return Campaign(lab, [TARGETS["torch-eager"]], Store(folder), issues, confirmations=0)


def detect(fault: Fault, lab: Laboratory, folder: Path, seed: int) -> Detection | None:
    """Run one hunt on the planted target until a case fails. Those without the faulty operator are counted but
    not run: their program is the correct one, letter for letter."""
    target, campaign = planted(fault.operator, fault.text), search(fault, lab, folder)
    for number, case in enumerate(drawn(seed, lab.question), start=1):
        if fault.operator in case.graph.operators:
            discrepancy = lab.examine(case, [target]).verdicts[target.name].discrepancy
            rest = campaign.unexplained(target, case, discrepancy) if discrepancy else None
            if rest:
                return Detection(number, *rest)
    return None


def investigate_fault(fault: Fault, lab: Laboratory, folder: Path, seeds: Sequence[int] = SEEDS) -> FaultFinding | None:
    """The finding made of the first detection of a fault in any of the hunts."""
    target, campaign = planted(fault.operator, fault.text), search(fault, lab, folder)
    for seed in seeds:
        if seen := detect(fault, lab, folder, seed):
            finding = campaign.investigate(target, seen.case, seen.discrepancy)
            return FaultFinding(fault, finding) if finding else None
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


def repaired(caught: FaultFinding, question: Question = FORWARD) -> Path:
    """The reproducer with the correct spelling in place of the fault."""
    path = Path(caught.finding.path) / "reproducer.py"
    graph = caseio.loads(path.with_name("graph.json").read_text()).graph
    wrong = question.program(planted(caught.fault.operator, caught.fault.text), graph)
    text = path.read_text()
    assert wrong in text
    fixed = path.with_name("repaired.py")
    fixed.write_text(text.replace(wrong, question.program(TARGETS["torch-eager"], graph)))
    return fixed


def main() -> None:
    """All faults, as a table."""
    table = Table("fault", "operator", "found after, in each of the hunts", "symptom", "nodes", "with fault", "without")
    detections: list[int | None] = []
    nodes: list[int] = []
    with tempfile.TemporaryDirectory() as folder, Pool() as pool:
        for i, fault in enumerate(FAULTS):
            lab = Laboratory(pool)
            place = Path(folder) / str(i)
            numbers = [seen.number if (seen := detect(fault, lab, place, seed)) else None for seed in SEEDS]
            detections += numbers
            after = " ".join("never" if n is None else str(n) for n in numbers)
            caught = investigate_fault(fault, lab, place)
            if caught is None:
                table.add_row(fault.name, fault.operator, after, style="red")
                continue
            nodes.append(caught.finding.nodes)
            statuses = exit_statuses([Path(caught.finding.path) / "reproducer.py", repaired(caught)])
            row = (after, caught.finding.symptom, caught.finding.nodes, *statuses)
            table.add_row(fault.name, fault.operator, *map(str, row))
    found = [n for n in detections if n is not None]
    console = Console(width=130)
    console.print(table)
    console.print(f"{len(found)} of {len(detections)} found within {CASES} cases: {len(found) / len(detections):.1%}")
    console.print(f"medians: {median(nodes)} nodes, after {median(found)} cases")


if __name__ == "__main__":
    main()
