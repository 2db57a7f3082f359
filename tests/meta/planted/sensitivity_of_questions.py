"""Are faults found by the question that is there to find them, how soon, and how small?
`PYTHONPATH=.:tests/meta python tests/meta/planted/sensitivity_of_questions.py` prints a table."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

from planted.faults.modes import MODES
from planted.faults.questions import ASKED, Asked
from planted.sensitivity import CASES, Catch, Sight, exit_statuses
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
    asked = QUESTIONS[question]
    operators = None if asked.style is PLAIN else asked.drawn
    return asked.prepare(seeded_case(SEED, index, operators=operators, style=asked.style))


def search(asked: Asked, target: Target, pool: Pool, folder: Path) -> Campaign:
    """A campaign on the planted target, to which PyTorch's own known issues are known."""
    issues = [replace(i, targets=(target.name,)) for i in known_issues.load() if i.names("torch-eager")]
    lab = Laboratory(pool, asked.question)
    reduction = lambda: Budget(runs=150, seconds=30)  # noqa: E731
    return Campaign(lab, [TARGETS["torch-eager"]], Store(folder), issues, reduction=reduction, confirmations=0)


def sight(asked: Asked, pool: Pool, folder: Path) -> Sight | None:
    """Hunt on the planted target until a case fails. Those without the faulty operator are counted, not run."""
    target = planted(asked.fault.operator, asked.fault.text)
    campaign = search(asked, target, pool, folder)
    for index in range(CASES):
        case = drawn(asked.question.name, index)
        if asked.fault.operator in case.graph.operators:
            discrepancy = campaign.verdict(target, case).discrepancy
            rest = campaign.unexplained(target, case, discrepancy) if discrepancy else None
            if rest:
                return Sight(index + 1, *rest)
    return None


def catch(asked: Asked, seen: Sight, pool: Pool, folder: Path) -> Catch | None:
    """The finding made of a sight."""
    target = planted(asked.fault.operator, asked.fault.text)
    finding = search(asked, target, pool, folder).investigate(target, seen.case, seen.discrepancy)
    return Catch(asked.fault, finding) if finding else None


def statuses(asked: Asked, caught: Catch) -> list[int]:
    """Exit statuses of the reproducer with the fault, and with the correct spelling in its place."""
    path = Path(caught.finding.path) / "reproducer.py"
    graph = caseio.loads(path.with_name("graph.json").read_text()).graph
    text = path.read_text()
    wrong = asked.question.program(planted(asked.fault.operator, asked.fault.text), graph)
    assert wrong in text
    repaired = path.with_name("repaired.py")
    repaired.write_text(text.replace(wrong, asked.question.program(TARGETS["torch-eager"], graph)))
    return exit_statuses([path, repaired])


def main() -> None:
    """All faults, as lines."""
    missed = 0
    with tempfile.TemporaryDirectory() as folder, Pool() as pool:
        for i, asked in enumerate((*ASKED, *MODES)):
            if not all(word in str(asked) for word in sys.argv[1:]):
                continue
            place = Path(folder) / str(i)
            seen = sight(asked, pool, place)
            caught = catch(asked, seen, pool, place) if seen else None
            if seen is None or caught is None:
                missed += 1
                print(f"{asked}: missed", flush=True)
                continue
            finding = caught.finding
            row = (seen.number, finding.symptom, finding.nodes, *statuses(asked, caught))
            print(f"{asked}:", *row, flush=True)
    print(f"{missed} missed")


if __name__ == "__main__":
    main()
