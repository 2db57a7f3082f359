"""Cases on targets: prints programs, runs them, judges what comes back. Everything above works through this."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from generators.graphs import Case
from generators.ops.bounded import Bounded
from harness.backends import Target
from harness.pool import Job, Pool
from oracles import forward, levels
from oracles.forward import Verdict
from oracles.outcome import Outcome, Unsupported, Value


@dataclass(frozen=True)
class Examination:
    """One case on several targets: what was expected, what came, and the judgement, by target name."""

    case: Case
    expected: Mapping[str, Bounded]
    outcomes: Mapping[str, Outcome]
    verdicts: Mapping[str, Verdict]


@dataclass
class Laboratory:
    """A pool and a clock. `seconds` holds processor time of this process by activity, and of programs by
    target under `run:<target>`."""

    pool: Pool
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
        with self.clock("print"):
            for index, (target, case) in enumerate(runs):
                why = target.unsupported(case.graph)
                if why:
                    results[index] = Unsupported(why)
                else:
                    jobs.append((index, Job(target.framework, target.modules, target.program(case.graph), case.arrays)))
        with self.clock("transfer"):
            answers = self.pool.run((job for _, job in jobs), confirm)
        for (index, _), outcome in zip(jobs, answers, strict=True):
            results[index] = outcome
            self.seconds[f"run:{runs[index][0].name}"] += outcome.cpu
        return [results[i] for i in range(len(runs))]

    def examine(self, case: Case, targets: Sequence[Target], confirm: bool = True) -> Examination:
        """Run one case on all targets and judge each result, then the levels of each compiler against its
        lowest one that returned a value."""
        with self.clock("reference"):
            expected = forward.plan(case)
        answers = self.outcomes([(target, case) for target in targets], confirm)
        outcomes = {target.name: answer for target, answer in zip(targets, answers, strict=True)}
        with self.clock("judge"):
            verdicts = {name: forward.judge(case.graph, expected, outcome) for name, outcome in outcomes.items()}
            for high, low in level_pairs(targets, outcomes):
                if verdicts[high.name].status != "agree":
                    continue
                first, second = outcomes[low.name], outcomes[high.name]
                assert isinstance(first, Value)
                assert isinstance(second, Value)
                judgement = levels.judge(case.graph, expected, first.outputs, second.outputs)
                if judgement.agreement != "identical" and verdicts[low.name].status == "agree":
                    old = verdicts[high.name]
                    verdicts[high.name] = Verdict("within_bound_only", None, old.elements, old.undetermined)
        return Examination(case, expected, outcomes, verdicts)


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
