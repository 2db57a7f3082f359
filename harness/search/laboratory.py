"""Cases on targets: prints programs, runs them, judges what comes back. Everything above works through this."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from generators.graphs import Case
from generators.inputs import Arrays
from harness.backends import Target
from harness.execute.pool import Job, Pool
from harness.questions.forward import FORWARD
from harness.questions.question import Question
from harness.search.coverage import Coverage
from oracles.judge.compare import Expected
from oracles.judge.discrepancy import SILENT
from oracles.judge.outcome import Outcome, Rejected, Unsupported, Value
from oracles.judge.verdict import Verdict
from oracles.questions import levels


@dataclass(frozen=True)
class Examination:
    """One case on several targets: what was expected, what came, and the judgement, by target name."""

    case: Case
    expected: Expected
    outcomes: Mapping[str, Outcome]
    verdicts: Mapping[str, Verdict]


@dataclass
class Laboratory:
    """A pool, a question and a clock.

    coverage: what was examined, by question
    seconds:  processor time of this process by activity, and of programs by target under `run:<target>`"""

    pool: Pool
    question: Question = FORWARD
    coverage: dict[str, Coverage] = field(default_factory=lambda: defaultdict(Coverage))
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    @contextmanager
    def clock(self, activity: str) -> Iterator[None]:
        started = time.process_time()
        try:
            yield
        finally:
            self.seconds[activity] += time.process_time() - started

    def outcomes(self, runs: Sequence[tuple[Target, Case]], confirm: bool = True) -> list[Outcome]:
        """The outcome of each target on its case, in order."""
        results: dict[int, Outcome] = {}
        jobs: list[tuple[int, Job]] = []
        given: dict[int, Arrays] = {}  # by identity: one case on many targets is the usual run
        with self.clock("print"):
            for index, (target, case) in enumerate(runs):
                why = self.question.why_not(target, case.graph)
                if why:
                    results[index] = Unsupported(why)
                else:
                    program = self.question.program(target, case.graph)
                    if id(case) not in given:
                        given[id(case)] = self.question.arrays(case)
                    job = Job(
                        target.framework, target.modules, program, given[id(case)], target.environment, target.foreign
                    )
                    jobs.append((index, job))
        with self.clock("transfer"):
            answers = self.pool.run((job for _, job in jobs), confirm)
        for (index, _), outcome in zip(jobs, answers, strict=True):
            results[index] = outcome
            if isinstance(outcome, Rejected):
                target = runs[index][0]
                why = self.question.refusal(target, outcome) or target.declined(outcome)
                results[index] = Unsupported(why, refusal=outcome) if why else outcome
            self.seconds[f"run:{runs[index][0].whole}"] += outcome.cpu
        return [results[i] for i in range(len(runs))]

    def returned(self, target: Target, case: Case, symptom: str) -> Outcome | None:
        """What a run returns, for a question that judges by it; None for others, and where the symptom is that nothing
        was returned."""
        if not self.question.observe or symptom in SILENT:
            return None
        return self.outcomes([(target, case)], confirm=False)[0]

    def examine(self, case: Case, targets: Sequence[Target]) -> Examination:
        """A drawn case on all targets: judged and counted."""
        examination = self.judge(case, targets)
        labelled = {target.label: examination.verdicts[target.name] for target in targets}
        self.coverage[self.question.name].add(case.graph, examination.expected, labelled)
        return examination

    def judge(self, case: Case, targets: Sequence[Target], confirm: bool = True) -> Examination:
        """Run one case on all targets and judge each result, then the levels of each compiler against its
        lowest one that returned a value."""
        with self.clock("reference"):
            expected = self.question.expect(case)
        answers = self.outcomes([(target, case) for target in targets], confirm)
        outcomes = {target.name: answer for target, answer in zip(targets, answers, strict=True)}
        with self.clock("judge"):
            verdicts = {t.name: self.question.judge(t, self._of(t, case, expected), outcomes[t.name]) for t in targets}
            for high, low in level_pairs(targets, outcomes):
                if (verdicts[high.name].status, verdicts[low.name].status) != ("agree", "agree"):
                    continue  # a wrong one is reported as such, and may be of another shape
                first, second = outcomes[low.name], outcomes[high.name]
                assert isinstance(first, Value)
                assert isinstance(second, Value)
                judgement = levels.judge(expected, first.outputs, second.outputs)
                if judgement.agreement != "identical":
                    old = verdicts[high.name]
                    verdicts[high.name] = Verdict("within_bound_only", None, old.elements, old.undetermined)
        return Examination(case, expected, outcomes, verdicts)

    def _of(self, target: Target, case: Case, expected: Expected) -> Expected:
        """What is expected of this target: the same of all that have no rules of their own."""
        return self.question.expected(target, case) if target.arithmetic else expected


def level_pairs(targets: Sequence[Target], outcomes: Mapping[str, Outcome]) -> list[tuple[Target, Target]]:
    """(higher level, lowest level) of each compiler, among the targets that returned a value."""
    lowest: dict[str, Target] = {}
    pairs = []
    for target in sorted(targets, key=lambda t: t.level.number):
        if not isinstance(outcomes[target.name], Value):
            continue
        if target.level.compiler in lowest:
            pairs.append((target, lowest[target.level.compiler]))
        else:
            lowest[target.level.compiler] = target
    return pairs
