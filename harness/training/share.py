"""Training runs one after another: what a command that trains does, or one of its processes."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from harness.execute.pool import OutOfTime
from harness.execute.ranks import RankLimits, RankPools
from harness.findings.database.recorder import Recorder
from harness.findings.known.deviations import load
from harness.search.reduce import within
from harness.strategies import STRATEGIES
from harness.training.findings import investigate
from harness.training.judge import TrainingJudge, drawn_for
from harness.training.table import Cell, Run, run_of

Job = tuple[int, str, int, str | None]
"""The number of a drawn run, the strategy, on how many ranks, in which dtype (None: as it is drawn)."""


def train_each(
    jobs: Iterable[Job], keep: Callable[[Sequence[Run]], None], *, seed: int, blocks: int, timeout: float,
    until: float, findings: Path, record: Recorder,
) -> None:  # fmt: skip
    """Until all are judged, or the time (`time.monotonic`) is over: each line is kept when it is known, what deviates
    is made small and stored. timeout: seconds of one run; record: the command's run in the store."""
    with contextlib.suppress(OutOfTime), RankPools(RankLimits(seconds=timeout), until=until) as pools:
        judge = TrainingJudge(pools, load())
        for number, name, world, dtype in jobs:
            if time.monotonic() >= until:
                break
            strategy, before = STRATEGIES[name], Counter(judge.unconfirmed)
            run = drawn_for(seed, number, blocks, dtype, strategy, world)
            judgement, finding = judge.examine(run, strategy, world), ""
            record.known(Counter(judgement.excused))
            if judgement.discrepancy:
                small = within(until, 90)
                finding = investigate(judge, findings, run, strategy, world, judgement, small, record).fingerprint
            line = run_of(Cell(name, world, run.settings.dtype), number, judgement)
            keep([replace(line, finding=finding, unconfirmed=tuple((judge.unconfirmed - before).elements()))])


def untrained(job: Job, lines: Sequence[Run]) -> Job | None:
    """A run that is not among these lines; None where it is."""
    number, name, world, dtype = job
    there = any(
        (line.number, line.strategy, line.world_size) == (number, name, world) and dtype in (None, line.dtype)
        for line in lines
    )
    return None if there else job
