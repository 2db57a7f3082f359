"""Slow targets run some of the drawn cases: as many of every job's, and of each other's."""

from __future__ import annotations

from collections import Counter

import pytest

from harness.backends import TARGETS
from harness.search.hunting.turns import turn_of

EVERY = tuple(TARGETS.values())


@pytest.mark.parametrize("jobs", [1, 2, 3, 4, 7])
def test_every_job_has_its_share_of_slow_targets(jobs: int) -> None:
    cases = 16 * 16 * jobs
    counts = [Counter(t.name for i in range(job, cases, jobs) for t in turn_of(EVERY, i)) for job in range(jobs)]
    for target in EVERY:
        own = cases / jobs / target.sample_every
        assert all(0.6 * own <= count[target.name] <= 1.4 * own for count in counts if target.sample_every <= 16)


def test_a_slower_target_runs_cases_of_the_faster_ones() -> None:
    for index in range(1000):
        chosen = {target.sample_every for target in turn_of(EVERY, index)}
        assert 1 in chosen
        assert all(every // 2 in chosen for every in chosen - {1} if every <= 16)
    assert set(turn_of(EVERY, 0)) == set(EVERY)


def test_targets_that_are_all_slow_run_every_case() -> None:
    slow = [target for target in EVERY if target.sample_every == 16]
    assert all(turn_of(slow, index) == slow for index in range(100))
