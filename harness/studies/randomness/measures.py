"""What the models of a setting have come to, and whether two settings differ."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from harness.studies.datasets.dataset import DataSet
from harness.studies.runs.first import kept_difference
from harness.studies.runs.history import History
from harness.studies.runs.plan import Run
from oracles.determinism import Difference
from oracles.spread import Estimate, churn, differ, distance, estimate, estimate_of_pairs, pairs, rates_by_group
from oracles.statistics import Test, brown_forsythe, holm, welch

FEWEST = 2
"""Models of a setting whose spread can be measured."""


@dataclass(frozen=True)
class GroupRates:
    """Of a class or subgroup of so many test samples: means over models and standard deviations of both rates."""

    name: str
    samples: int
    fpr: float
    fpr_sd: Estimate
    fnr: float
    fnr_sd: Estimate


@dataclass(frozen=True)
class Measured:
    """A setting of a framework. accuracies, losses: of the test samples, one a model; accuracy, accuracy_sd, loss_sd:
    their mean and standard deviations; churn, distance: means over pairs of models; differences: the first one of each
    model that is not bit for bit model 0; cpu: seconds of all its models."""

    framework: str
    setting: str
    accuracies: tuple[float, ...]
    losses: tuple[float, ...]
    accuracy: Estimate
    accuracy_sd: Estimate
    loss_sd: Estimate
    churn: Estimate
    distance: Estimate
    groups: tuple[GroupRates, ...]
    differences: tuple[Difference, ...]
    cpu: float

    @property
    def zero(self) -> bool:
        """Is every measure exactly 0, and every model bit for bit the same?"""
        spreads = [self.accuracy_sd, self.loss_sd, self.churn, self.distance]
        spreads += [sd for group in self.groups for sd in (group.fpr_sd, group.fnr_sd)]
        return not self.differences and all(one.value == 0 or np.isnan(one.value) for one in spreads)


def weights(history: History) -> np.ndarray:
    """All parameters in one vector."""
    found = [array.reshape(-1) for name, array in history.state.items() if name.startswith("parameter.")]
    return np.concatenate(found)


def tables(histories: Sequence[History]) -> tuple[np.ndarray, np.ndarray]:
    """Churn and distance of all pairs."""
    predicted = pairs([history.predictions for history in histories], churn)
    return predicted, pairs([weights(history) for history in histories], distance)


def measure(framework: str, setting: str, histories: Sequence[History], data: DataSet, seed: int) -> Measured:
    """At least FEWEST models. seed: of the intervals."""
    predicted, apart = tables(histories)
    accuracies = [float(history.test_accuracy[-1]) for history in histories]
    losses = [float(history.test_loss[-1]) for history in histories]
    marked = [kept_difference(number, histories[0], history) for number, history in enumerate(histories[1:], 1)]
    return Measured(
        framework, setting, tuple(accuracies), tuple(losses), estimate(accuracies, "mean", seed),
        estimate(accuracies, "sd", seed), estimate(losses, "sd", seed), estimate_of_pairs(predicted, seed),
        estimate_of_pairs(apart, seed), _groups(histories, data, seed), tuple(one for one in marked if one),
        sum(float(history.cpu) for history in histories),
    )  # fmt: skip


def _groups(histories: Sequence[History], data: DataSet, seed: int) -> tuple[GroupRates, ...]:
    each = [rates_by_group(h.predictions, data.test_labels, data.classes, data.subgroups) for h in histories]
    sizes = {f"class {name}": int((data.test_labels == i).sum()) for i, name in enumerate(data.classes)}
    sizes |= {f"subgroup {name}": int(mask.sum()) for name, mask in data.subgroups.items()}
    found = []
    for name in each[0]:
        fprs, fnrs = ([getattr(one[name], key) for one in each] for key in ("fpr", "fnr"))
        found.append(GroupRates(name, sizes[name], *_spread(fprs, seed), *_spread(fnrs, seed)))
    return tuple(found)


def _spread(values: Sequence[float], seed: int) -> tuple[float, Estimate]:
    if any(np.isnan(value) for value in values):
        nan = float("nan")
        return nan, Estimate(nan, nan, nan)
    return float(np.mean(values)), estimate(values, "sd", seed)


@dataclass(frozen=True)
class Compared:
    """Two settings of a framework. test: whether they have the same `measure`; p: of the test, corrected by Holm for
    all that the study asks about this framework."""

    framework: str
    first: str
    second: str
    measure: str
    test: Test
    p: float


def comparisons(
    framework: str, settings: Mapping[str, Sequence[History]], measured: Mapping[str, Measured], seed: int
) -> list[Compared]:
    """Every two settings: means and spreads of accuracy, mean churn, mean distance."""
    found: list[tuple[str, str, str, Test]] = []
    for one, other in combinations(settings, 2):
        values = [measured[name].accuracies for name in (one, other)]
        with warnings.catch_warnings():  # of models that are all alike
            warnings.simplefilter("ignore", RuntimeWarning)
            found.append((one, other, "accuracy, mean", welch(*values)))
            found.append((one, other, "accuracy, spread", brown_forsythe(*values)))
        both = tables([*settings[one], *settings[other]])
        for name, table in zip(("churn", "L2 of weights"), both, strict=True):
            found.append((one, other, name, differ(table, len(settings[one]), seed)))
    adjusted = holm([test.p for *_, test in found])
    return [Compared(framework, *one, p) for one, p in zip(found, adjusted, strict=True)]


def by_setting(finished: Mapping[Run, History], framework: str) -> dict[str, list[History]]:
    """Histories of a framework's settings, in the order of the models; settings of fewer than FEWEST are left out."""
    found: dict[str, list[tuple[int, History]]] = {}
    for run, history in finished.items():
        if run.framework == framework:
            found.setdefault(run.group, []).append((run.number, history))
    ordered = {name: [h for _, h in sorted(each, key=lambda pair: pair[0])] for name, each in found.items()}
    return {name: each for name, each in ordered.items() if len(each) >= FEWEST}
