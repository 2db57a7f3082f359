"""A Hypothesis test of one question: draw, examine, shrink, then minimise, store and explain what failed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings

from generators import caseio
from generators.graphs import Case, cases
from harness.backends import Target
from harness.execute.reading import read_by
from harness.findings.store import failure_text
from harness.questions.question import Question
from harness.search.campaign import Campaign, operators_for
from oracles.judge.discrepancy import SYMPTOMS, Discrepancy


@dataclass(frozen=True)
class Failure:
    """A discrepancy that no known issue explains, with the target that shows it."""

    target: Target
    case: Case
    discrepancy: Discrepancy


Examine = Callable[[Case], "Failure | None"]
Record = Callable[[str, object], None]


@dataclass
class Trial:
    """One test: the campaign that it belongs to, and how it draws. replay: a stored case instead of drawn ones;
    share: it draws one in so many of the profile's examples, and of a slow target fewer still."""

    campaign: Campaign
    max_nodes: int
    replay: Path | None
    record: Record
    share: int = 1

    def with_question(self, question: Question, share: int = 1) -> Trial:
        """The same test with another question."""
        return replace(self, campaign=self.campaign.with_question(question), share=share)

    def run(self, targets: Sequence[Target], examine: Examine) -> None:
        """Examine cases that at least one of the targets can express, until one fails or the profile's number
        is reached. Raises the exception class of the symptom, with the text that a person reads."""
        last: list[Failure] = []

        def check(case: Case) -> None:
            prepared = case if self.replay else self.campaign.lab.question.prepare(case)
            failure = self._recorded(examine, prepared, targets)
            if failure:
                last.append(failure)  # Hypothesis runs the smallest one last
                raise SYMPTOMS[failure.discrepancy.symptom](failure.discrepancy.message)

        # minimising is the reducer's work; shrinking first pays only where a run costs milliseconds
        fast = all(target.sample_every == 1 for target in targets)
        phases = settings().phases if fast else (Phase.explicit, Phase.reuse, Phase.generate)
        try:
            if self.replay:
                check(read_by(self.replay, caseio.loads))
            else:
                question = self.campaign.lab.question
                operators = operators_for(targets[0], question.drawn)
                drawn = given(cases(self.max_nodes, operators, question.style))(check)
                examples = settings().max_examples
                if self.share > 1:  # the first example is always the simplest one
                    examples = max(2, examples // (self.share * min(target.sample_every for target in targets)))
                settings(phases=phases, report_multiple_bugs=False, max_examples=examples)(drawn)()
        except tuple(SYMPTOMS.values()):
            self._report(last[-1])

    def run_listed(self, listed: Iterable[Case], examine: Examine) -> None:
        """Examine cases one after the other until one fails."""
        for case in listed:
            failure = self._recorded(examine, case, ())
            if failure:
                self._report(failure)

    def _recorded(self, examine: Examine, case: Case, targets: Sequence[Target]) -> Failure | None:
        """Examine a case, and tell the store what came of it."""
        started = time.monotonic()
        failure = examine(case)
        came = failure.discrepancy.symptom if failure else "right"
        asked, names = self.campaign.lab.question.name, ", ".join(target.name for target in targets)
        self.campaign.store.record.case(asked, {came: 1}, time.monotonic() - started, subject=names)
        return failure

    def examine_on(self, target: Target) -> Examine:
        """Is a case right on one target, known issues apart?"""

        def examine(case: Case) -> Failure | None:
            discrepancy = self.campaign.lab.examine(case, [target]).verdicts[target.name].discrepancy
            rest = self.campaign.unexplained(target, case, discrepancy) if discrepancy else None
            return Failure(target, *rest) if rest else None

        return examine

    def _report(self, failure: Failure) -> None:
        """Make a finding of it and fail with its text."""
        finding = self.campaign.investigate(failure.target, failure.case, failure.discrepancy)
        if finding is None:  # known, as its reduction showed
            return
        self.record("target", failure.target.name)
        self.record("fingerprint", finding.fingerprint)
        self.record("reproducer", f"{finding.path}/reproducer.py")
        stored = caseio.loads((Path(finding.path) / "graph.json").read_text(encoding="utf-8"))
        pytest.fail(f"{failure_text(finding, stored)}", pytrace=False)
