"""How far models that were trained alike are apart: churn, distance of weights, and rates of errors by class and
subgroup, as Zhuang et al. measure them (Randomness in Neural Network Training: Characterizing the Impact of Tooling,
MLSys 2022), with intervals over the models."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from oracles.statistics import RESAMPLES, Statistic, Test, bootstrap


@dataclass(frozen=True)
class Estimate:
    """A figure and its confidence interval, NaN where there is none (of a few values, nearly all alike)."""

    value: float
    low: float
    high: float


def churn(first: np.ndarray, second: np.ndarray) -> float:
    """The share of samples on which two models disagree. Their classes: integers, (n,). Raises ValueError where there
    are none, or not as many."""
    if first.shape != second.shape or not first.size:
        raise ValueError(f"predictions of {first.shape} and {second.shape} samples")
    return float(np.mean(first != second))


def distance(first: np.ndarray, second: np.ndarray) -> float:
    """L2 between the weights of two models, all in one vector, each vector divided by its length (0 to 2); infinite
    where one has a NaN or an infinity, unless they have the same bits."""
    if first.tobytes() == second.tobytes():
        return 0.0
    one, other = (vector.astype(np.float64) for vector in (first, second))
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        return float("inf")
    sizes = [np.linalg.norm(vector) for vector in (one, other)]
    return float(np.linalg.norm(one / (sizes[0] or 1.0) - other / (sizes[1] or 1.0)))


def pairs(values: Sequence[np.ndarray], measure: Callable[[np.ndarray, np.ndarray], float]) -> np.ndarray:
    """A measure of all pairs, symmetric, 0 on the diagonal: (models, models)."""
    found = np.zeros((len(values), len(values)))
    for i in range(len(values)):
        for j in range(i):
            found[i, j] = found[j, i] = measure(values[i], values[j])
    return found


def mean_of_pairs(table: np.ndarray, chosen: np.ndarray | None = None) -> float:
    """The mean over pairs of two different models. chosen: models, where some are taken more than once."""
    rows = np.arange(len(table)) if chosen is None else chosen.astype(np.int64)
    other = rows[:, None] != rows[None, :]
    return float(table[np.ix_(rows, rows)][other].mean()) if other.any() else 0.0


def estimate_of_pairs(table: np.ndarray, seed: int) -> Estimate:
    """With the interval that models drawn again give, not pairs, which are not independent."""
    value = mean_of_pairs(table)
    if np.all(table[~np.eye(len(table), dtype=bool)] == value):
        return Estimate(value, value, value)
    return _estimate(value, np.arange(len(table)), lambda chosen: mean_of_pairs(table, chosen), seed)


def estimate(values: Sequence[float], statistic: str, seed: int) -> Estimate:
    """The mean or the standard deviation (of a sample: n - 1) of numbers, one a model."""
    sample = np.asarray(values, np.float64)
    if np.ptp(sample) == 0:  # whose mean may be rounded, so that the deviation is not 0
        only = float(sample[0]) if statistic == "mean" else 0.0
        return Estimate(only, only, only)
    of = {"mean": lambda v: float(np.mean(v)), "sd": lambda v: float(np.std(v, ddof=1))}[statistic]
    return _estimate(of(sample), sample, of, seed)


def _estimate(value: float, sample: np.ndarray, statistic: Statistic, seed: int) -> Estimate:
    with warnings.catch_warnings():  # of few values the interval may not be defined, which NaN says
        warnings.simplefilter("ignore", RuntimeWarning)
        interval = bootstrap(sample, statistic, seed)
    return Estimate(value, interval.low, interval.high)


def differ(table: np.ndarray, first: int, seed: int) -> Test:
    """Is the mean over pairs the same within the first so many models as within the others? Models are dealt out again
    at random (RESAMPLES times). table: of all models of both groups."""
    count = len(table)
    groups = np.arange(count) < first

    def gap(mask: np.ndarray) -> float:
        within = [table[np.ix_(np.flatnonzero(one), np.flatnonzero(one))] for one in (mask, ~mask)]
        each = [one.sum() / (len(one) * (len(one) - 1)) for one in within]
        return float(each[0] - each[1])

    seen, rng = gap(groups), np.random.default_rng(seed)
    extreme = sum(abs(gap(rng.permutation(groups))) >= abs(seen) * (1 - 1e-12) for _ in range(RESAMPLES))
    return Test("permutation of models", seen, (extreme + 1) / (RESAMPLES + 1))


@dataclass(frozen=True)
class Rates:
    """fpr: of the samples that are not of a class, the share that is taken for it; fnr: of those that are, the share
    that is not. NaN where there are no such samples."""

    fpr: float
    fnr: float


def rates(predictions: np.ndarray, labels: np.ndarray, one: int) -> Rates:
    """Of a class, against all others."""
    taken, is_one = predictions == one, labels == one
    fpr = float(taken[~is_one].mean()) if (~is_one).any() else float("nan")
    fnr = float((~taken[is_one]).mean()) if is_one.any() else float("nan")
    return Rates(fpr, fnr)


def rates_by_group(
    predictions: np.ndarray, labels: np.ndarray, classes: Sequence[str], subgroups: Mapping[str, np.ndarray]
) -> dict[str, Rates]:
    """Of every class, and of every subgroup: of two classes those of the second, of more the means over all that the
    subgroup has. Two classes are one question: only the second is asked."""
    asked = range(1, 2) if len(classes) == 2 else range(len(classes))
    found = {f"class {classes[one]}": rates(predictions, labels, one) for one in asked}
    for name, mask in subgroups.items():
        each = [rates(predictions[mask], labels[mask], one) for one in asked]
        means = [_mean([getattr(one, key) for one in each]) for key in ("fpr", "fnr")]
        found[f"subgroup {name}"] = Rates(*means)
    return found


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else float("nan")
