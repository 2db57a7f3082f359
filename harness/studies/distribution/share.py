"""Cases of a D3 study one after the other: all of them, or the share of one of several processes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from generators.training.d3 import study_arrays
from generators.training.runs import Training
from harness.execute.isolation.jobs import Share
from harness.execute.pool import OutOfTime
from harness.execute.ranks import RankLimits, RankPools
from harness.findings.database.recorder import NOTHING, Recorder
from harness.findings.known.deviations import load
from harness.search.reduce import within
from harness.strategies import Strategy
from harness.studies.distribution.protocol import Study, StudyCase, run_case
from harness.studies.distribution.store import Result, Store
from harness.training.findings import investigate, text_of
from harness.training.judge import Judgement, TrainingJudge

REDUCTION = 90
"""Seconds that one deviation may take to be made small."""

Kind = tuple[str, str, str]
"""Of a deviation: the strategy, the symptom, what of the results it is in."""


@dataclass(frozen=True)
class Way:
    """How cases are run. folder: of the study, whose findings lie below it; minimise: is the first deviation of each
    kind made small? timeout: seconds that one run may take; until: no case is begun later (`time.monotonic`)."""

    plan: Study
    folder: Path
    minimise: bool
    timeout: float
    until: float


@dataclass
class Done:
    """Of so many cases, what was told of the deviations, by kind, and failures that did not come again, by what
    failed."""

    cases: int = 0
    deviations: dict[Kind, str] = field(default_factory=dict)
    unconfirmed: Counter[str] = field(default_factory=Counter)


def run_cases(
    way: Way, cases: Iterable[StudyCase], keep: Callable[[Result], None], done: Done, log: Recorder = NOTHING
) -> None:
    """Run them until it is too late. keep: is given each result at once; done: what is done is added to it; log: keeps
    findings, too. Raises HarnessError, KnownFileError, OSError and StoreError."""
    with RankPools(RankLimits(seconds=way.timeout), until=way.until) as pools:
        judge = TrainingJudge(pools, load(), study_arrays)

        def found(training: Training, strategy: Strategy, world: int, judgement: Judgement) -> None:
            """Make the first deviation of a strategy in each kind of what it returns small, and store it."""
            assert judgement.discrepancy is not None
            kind = strategy.name, judgement.discrepancy.symptom, judgement.part.split(".")[0]
            if kind not in done.deviations:
                budget = within(way.until, REDUCTION)
                small = investigate(judge, way.folder / "findings", training, strategy, world, judgement, budget, log)
                done.deviations[kind] = text_of(small)

        try:
            for case in cases:
                if time.monotonic() >= way.until:
                    break
                result = run_case(judge, way.plan, case, found if way.minimise else None)
                done.cases += 1
                keep(result)
        except OutOfTime:  # the case under way is run again when this is gone on with
            pass
        finally:
            done.unconfirmed.update(judge.unconfirmed)


def do_share(way: Way, about: Mapping[str, str], cases: Sequence[StudyCase], share: Share[Done]) -> Done:
    """The cases that this job is given, without those that one that was lost has kept in the study's file; what it has
    told is gone on from. about: of `Store`."""
    store, done = Store(way.folder / "study.sqlite", about, alone=False), share.before or Done()
    there = {(one.model, one.input, one.setting) for one in store.results()} if share.before else set()

    mine = (cases[number] for number in share.numbers("case", len(cases)))
    left = (case for case in mine if (case[0], case[1], case[2].name) not in there)

    def keep(result: Result) -> None:
        store.add(result)
        share.tell(done)

    run_cases(way, left, keep, done)
    store.close()
    return done


def together(parts: Mapping[int, Done]) -> Done:
    """What all shares have done."""
    whole = Done()
    for part in parts.values():
        whole.cases += part.cases
        whole.deviations = {**part.deviations, **whole.deviations}
        whole.unconfirmed += part.unconfirmed
    return whole
