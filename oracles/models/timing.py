"""What can be said of execution times: ratios of medians with a confidence interval, and whether several variants
differ at all. Runs are interleaved: run number i of each variant was made in round i, so what slows a whole round
(another process, heat) is in all of them, and rounds are resampled, not single times. Seconds; none of this is a
correctness verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # which imports its parts when they are used: statistics take half a second

Times = Sequence[float] | np.ndarray
LEVEL = 0.95
RESAMPLES = 4000
MARGIN = 0.05
"""A variant is slower (or faster) where the whole interval of its ratio is more than this part away from 1."""
SIGNIFICANT = 0.05
LEAST = 5
"""Rounds below which no interval is given: the median of fewer has hardly any other values to be resampled to."""


@dataclass(frozen=True)
class Ratio:
    """ratio: of the medians; low, high: ends of the bootstrap confidence interval (percentile method; B. Efron, R.
    Tibshirani, An Introduction to the Bootstrap, 1993, section 13.3)."""

    ratio: float
    low: float
    high: float

    @property
    def slower(self) -> bool:
        """By more than the margin, for sure."""
        return self.low > 1 + MARGIN

    @property
    def faster(self) -> bool:
        return self.high < 1 / (1 + MARGIN)


def ratio(times: Times, base: Times, seed: int, level: float = LEVEL) -> Ratio:
    """Median of times by the median of base, of the same rounds. Raises ValueError for unequal numbers, times that are
    not positive numbers, or fewer rounds than LEAST."""
    a, b = np.asarray(times, float), np.asarray(base, float)
    if a.shape != b.shape:
        raise ValueError(f"{a.size} and {b.size} rounds are not interleaved")
    if a.size < LEAST:
        raise ValueError(f"{a.size} rounds are too few for an interval: {LEAST} at least")
    if not (np.isfinite(a).all() and np.isfinite(b).all() and (a > 0).all() and (b > 0).all()):
        raise ValueError("times are positive numbers")
    rounds = np.random.default_rng(seed).integers(a.size, size=(RESAMPLES, a.size))
    found = np.median(a[rounds], axis=1) / np.median(b[rounds], axis=1)
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
    return Ratio(float(np.median(a) / np.median(b)), float(low), float(high))


@dataclass(frozen=True)
class Difference:
    """test: which one was made, and why; statistic, p: its result; rejected: equality, at SIGNIFICANT."""

    test: str
    why: str
    statistic: float
    p: float

    @property
    def rejected(self) -> bool:
        return self.p < SIGNIFICANT


def difference(groups: Mapping[str, Times]) -> Difference:
    """Do the variants' times differ? One-way ANOVA where neither normality (Shapiro-Wilk of each group, at SIGNIFICANT
    by the number of groups) nor equal variances (Brown-Forsythe) are rejected, else Kruskal-Wallis. Raises ValueError
    for fewer than two groups or times."""
    samples = [np.asarray(times, float) for times in groups.values()]
    if len(samples) < 2 or min(sample.size for sample in samples) < 2:
        raise ValueError("two groups of two times at least")
    if np.ptp(np.concatenate(samples)) == 0:
        return Difference("none", "all times are equal", 0.0, 1.0)
    why = _not_for_anova(list(groups), samples)
    if why:
        found = scipy.stats.kruskal(*samples)
        return Difference("Kruskal-Wallis", why, float(found.statistic), float(found.pvalue))
    found = scipy.stats.f_oneway(*samples)
    return Difference("one-way ANOVA", "normal, of equal variance", float(found.statistic), float(found.pvalue))


def _not_for_anova(names: Sequence[str], samples: Sequence[np.ndarray]) -> str:
    """Which assumption fails; empty where none is rejected."""
    for name, sample in zip(names, samples, strict=True):
        if sample.size < 3:
            return f"too few times of {name} to test for normality"
        if np.ptp(sample) == 0:
            return f"times of {name} are constant"
        p = float(scipy.stats.shapiro(sample).pvalue)
        if p < SIGNIFICANT / len(samples):
            return f"times of {name} are not normal (Shapiro-Wilk, p = {p:.2g})"
    p = float(scipy.stats.levene(*samples, center="median").pvalue)
    return f"variances differ (Brown-Forsythe, p = {p:.2g})" if p < SIGNIFICANT else ""
