"""Are faults found by the question that is there to find them, how soon, and how small?
`PYTHONPATH=.:tests/meta python tests/meta/planted/question_sensitivity.py` prints a table."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

from planted.faults.modes import MODE_FAULTS
from planted.faults.questions import QUESTION_FAULTS, QuestionFault
from planted.sensitivity import CASES, Detection, FaultFinding, exit_statuses
from planted.targets import planted

from generators import caseio
from generators.graphs import PLAIN, Case, seeded_case
from harness.backends import TARGETS, Target
from harness.execute.pool import Pool
from harness.findings.known import issues as known_issues
from harness.findings.store import Store
from harness.questions import QUESTIONS
from harness.search.campaign import Campaign
from harness.search.laboratory import Laboratory
from harness.search.reduce import Budget

SEED = 30


@cache
def drawn(question: str, index: int) -> Case:
    """Case number `index` of a hunt with this question."""
    chosen = QUESTIONS[question]
    operators = None if chosen.style is PLAIN else chosen.drawn
    return chosen.prepare(seeded_case(SEED, index, operators=operators, style=chosen.style))


def search(planted_fault: QuestionFault, target: Target, pool: Pool, folder: Path) -> Campaign:
    """A campaign on the planted target, to which PyTorch's own known issues are known."""
    issues = [replace(i, targets=(target.name,)) for i in known_issues.load() if i.names("torch-eager")]
    lab = Laboratory(pool, planted_fault.question)
    reduction = lambda: Budget(runs=150, seconds=30)  # noqa: E731
    return Campaign(lab, [TARGETS["torch-eager"]], Store(folder), issues, reduction=reduction, confirmations=0)


def detect(planted_fault: QuestionFault, pool: Pool, folder: Path) -> Detection | None:
    """Hunt on the planted target until a case fails. Those without the faulty operator are counted, not run."""
    target = planted(planted_fault.fault.operator, planted_fault.fault.text)
    campaign = search(planted_fault, target, pool, folder)
    for index in range(CASES):
        case = drawn(planted_fault.question.name, index)
        if planted_fault.fault.operator in case.graph.operators:
            discrepancy = campaign.verdict(target, case).discrepancy
            rest = campaign.unexplained(target, case, discrepancy) if discrepancy else None
            if rest:
                return Detection(index + 1, *rest)
    return None


def investigate_fault(planted_fault: QuestionFault, seen: Detection, pool: Pool, folder: Path) -> FaultFinding | None:
    """The finding made of a detection."""
    target = planted(planted_fault.fault.operator, planted_fault.fault.text)
    finding = search(planted_fault, target, pool, folder).investigate(target, seen.case, seen.discrepancy)
    return FaultFinding(planted_fault.fault, finding) if finding else None


def statuses(planted_fault: QuestionFault, caught: FaultFinding) -> list[int]:
    """Exit statuses of the reproducer with the fault, and with the correct spelling in its place."""
    path = Path(caught.finding.path) / "reproducer.py"
    graph = caseio.loads(path.with_name("graph.json").read_text()).graph
    text = path.read_text()
    wrong = planted_fault.question.program(planted(planted_fault.fault.operator, planted_fault.fault.text), graph)
    assert wrong in text
    repaired = path.with_name("repaired.py")
    repaired.write_text(text.replace(wrong, planted_fault.question.program(TARGETS["torch-eager"], graph)))
    return exit_statuses([path, repaired])


def main() -> None:
    """All faults, as lines."""
    missed = 0
    with tempfile.TemporaryDirectory() as folder, Pool() as pool:
        for i, planted_fault in enumerate((*QUESTION_FAULTS, *MODE_FAULTS)):
            if not all(word in str(planted_fault) for word in sys.argv[1:]):
                continue
            place = Path(folder) / str(i)
            seen = detect(planted_fault, pool, place)
            caught = investigate_fault(planted_fault, seen, pool, place) if seen else None
            if seen is None or caught is None:
                missed += 1
                print(f"{planted_fault}: missed", flush=True)
                continue
            finding = caught.finding
            row = (seen.number, finding.symptom, finding.nodes, *statuses(planted_fault, caught))
            print(f"{planted_fault}:", *row, flush=True)
    print(f"{missed} missed")


if __name__ == "__main__":
    main()
