"""Runs with one seed and runs with different seeds, and what they come to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.studies.runs.first import kept_difference
from harness.studies.runs.history import History
from harness.studies.runs.plan import Run
from oracles.determinism import Difference
from oracles.spread import Estimate, estimate
from oracles.statistics import LEVEL, RESAMPLES, Test, brown_forsythe

SAME, DIFFERENT = "same", "different"
GROUPS = {SAME: "one seed for all runs", DIFFERENT: "a seed of its own for each run"}


def runs_of(frameworks: tuple[str, ...], count: int, seed: int, threads: int, deterministic: bool) -> list[Run]:
    """Run after run, of both groups and all frameworks. Processes have 1 to `threads` threads in turn, in both groups
    the same ones; deterministic: in the framework's deterministic mode, and then one thread."""
    return [
        Run(framework, group, number, own, own, deterministic, 1 if deterministic else 1 + number % threads)
        for number in range(count)
        for framework in frameworks
        for group, own in ((SAME, seed), (DIFFERENT, seed + 1 + number))
    ]


@dataclass(frozen=True)
class Checked:
    """Is something the same in all runs of a group? what: initial models, training data or batches; first: of the first
    run where it is not."""

    what: str
    same: bool
    first: Difference | None


@dataclass(frozen=True)
class Group:
    """Of a framework. accuracies, losses: of the test samples, one a run, and their standard deviations; differences:
    of each run that is not bit for bit run 0, the first one."""

    framework: str
    name: str
    accuracies: tuple[float, ...]
    losses: tuple[float, ...]
    accuracy_sd: Estimate
    loss_sd: Estimate
    checked: tuple[Checked, ...]
    differences: tuple[Difference, ...]


def group_of(framework: str, name: str, histories: Sequence[History], seed: int) -> Group:
    """At least two runs, run 0 first. seed: of intervals."""
    accuracies, losses = ([float(getattr(h, key)[-1]) for h in histories] for key in ("test_accuracy", "test_loss"))
    found = [kept_difference(number, histories[0], h) for number, h in enumerate(histories[1:], 1)]
    return Group(
        framework, name, tuple(accuracies), tuple(losses), estimate(accuracies, "sd", seed),
        estimate(losses, "sd", seed), _checked(histories), tuple(one for one in found if one),
    )  # fmt: skip


def _checked(histories: Sequence[History]) -> tuple[Checked, ...]:
    """Each alone: batches are compared where initial models differ, too."""
    base, found = histories[0], []
    same = {
        "initial models": lambda h: np.array_equal(base.digests[0], h.digests[0]),
        "training data": lambda h: base.data == h.data,
        "batches of every epoch": lambda h: np.array_equal(base.batches, h.batches),
    }
    kinds = {"initial models": ("initial",), "training data": ("data",), "batches of every epoch": ("batch",)}
    for what, is_same in same.items():
        other = next((number for number, h in enumerate(histories) if not is_same(h)), None)
        first = kept_difference(other, base, histories[other], kinds[what]) if other is not None else None
        found.append(Checked(what, other is None, first))
    return tuple(found)


@dataclass(frozen=True)
class Share:
    """Of the spread between seeds, how much runs of one seed show already: a ratio of standard deviations, and a test
    of whether the spreads are the same. None where runs of different seeds have no spread."""

    measure: str
    ratio: Estimate | None
    test: Test


def share_of(measure: str, same: Sequence[float], different: Sequence[float], seed: int) -> Share:
    """The interval is by percentiles of both groups drawn again (B. Efron, Bootstrap methods, Annals of Statistics 7,
    1979); draws in which runs of different seeds have no spread are left out."""
    one, other = (np.asarray(values, np.float64) for values in (same, different))
    test = brown_forsythe(one, other)
    if not np.ptp(other):
        return Share(measure, None, test)
    if not np.ptp(one):  # whose mean may be rounded, so that deviations are not 0
        return Share(measure, Estimate(0.0, 0.0, 0.0), test)
    rng = np.random.default_rng(seed)
    drawn = [rng.choice(v, (RESAMPLES, len(v))).std(1, ddof=1) for v in (one, other)]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = drawn[0] / drawn[1]
    ratios = ratios[np.isfinite(ratios)]
    ends = np.quantile(ratios, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]) if len(ratios) else (np.nan, np.nan)
    value = float(one.std(ddof=1) / other.std(ddof=1))
    return Share(measure, Estimate(value, float(ends[0]), float(ends[1])), test)


def shares(groups: Mapping[str, Group], seed: int) -> tuple[Share, ...]:
    """Of accuracy and loss; nothing where a group is missing."""
    if set(groups) != set(GROUPS):
        return ()
    same, different = groups[SAME], groups[DIFFERENT]
    return (
        share_of("accuracy", same.accuracies, different.accuracies, seed),
        share_of("loss", same.losses, different.losses, seed),
    )
