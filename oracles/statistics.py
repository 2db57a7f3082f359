"""Statistics that studies report: intervals, and tests of the hypothesis that samples are of one distribution. Thin
functions on SciPy; none of them is a verdict. All raise ValueError where there are too few values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # which imports its parts when they are used

LEVEL = 0.95
"""Confidence of intervals."""
RESAMPLES = 9999
"""Of a bootstrap or a permutation test (at most; all permutations where they are fewer)."""
EXPECTED = 5.0
"""Counts that each cell of a table is expected to have before chi-square is near enough (W. G. Cochran, Some methods
for strengthening the common chi-square tests, Biometrics 10(4), 1954)."""

Values = Sequence[float] | np.ndarray
"""A sample: numbers in one dimension."""
Statistic = Callable[[np.ndarray], float]
"""Of one sample."""


@dataclass(frozen=True)
class Interval:
    """A confidence interval."""

    low: float
    high: float


@dataclass(frozen=True)
class Test:
    """name: of the test; statistic: its own; p: two-sided, the probability of one so extreme where nothing differs."""

    __test__ = False  # pytest takes classes of this name for tests

    name: str
    statistic: float
    p: float


def wilson(successes: int, trials: int, level: float = LEVEL) -> Interval:
    """Of a share (E. B. Wilson, Probable inference, the law of succession, and statistical inference, JASA 22, 1927).
    Nothing is known of no trials: 0 to 1."""
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} of {trials}")
    if not trials:
        return Interval(0.0, 1.0)
    found = scipy.stats.binomtest(successes, trials).proportion_ci(level, method="wilson")
    return Interval(float(found.low), float(found.high))


def bootstrap(values: Values, statistic: Statistic, seed: int, level: float = LEVEL) -> Interval:
    """Of a statistic of a sample, bias-corrected and accelerated (B. Efron, Better bootstrap confidence intervals, JASA
    82, 1987). A statistic that no resample moves is its own interval; NaN where the acceleration is not defined."""
    sample = _sample(values, 2)
    if np.all(sample == sample[0]):
        only = float(statistic(sample))
        return Interval(only, only)
    with np.errstate(all="ignore"):
        found = scipy.stats.bootstrap(
            (sample,), statistic, n_resamples=RESAMPLES, vectorized=False, confidence_level=level, method="BCa",
            rng=np.random.default_rng(seed),
        )  # fmt: skip
    return Interval(float(found.confidence_interval.low), float(found.confidence_interval.high))


def welch(first: Values, second: Values) -> Test:
    """Are the means of two samples the same? Variances may differ (B. L. Welch, The generalization of "Student's"
    problem when several different population variances are involved, Biometrika 34, 1947)."""
    one, other = _sample(first, 2), _sample(second, 2)
    if one.std() == 0 == other.std():
        same = one[0] == other[0]
        return Test("Welch", 0.0 if same else np.inf, 1.0 if same else 0.0)
    found = scipy.stats.ttest_ind(one, other, equal_var=False)
    return Test("Welch", float(found.statistic), float(found.pvalue))


def permutation(first: Values, second: Values, statistic: Statistic, seed: int) -> Test:
    """Is a statistic of two samples the same? Against all ways to deal their values out again, or RESAMPLES of them."""
    found = scipy.stats.permutation_test(
        (_sample(first, 1), _sample(second, 1)), lambda a, b: statistic(a) - statistic(b), vectorized=False,
        n_resamples=RESAMPLES, rng=np.random.default_rng(seed),
    )  # fmt: skip
    return Test("permutation", float(found.statistic), float(found.pvalue))


def brown_forsythe(*samples: Values) -> Test:
    """Are the spreads of samples the same? Distances from medians are compared (M. B. Brown, A. B. Forsythe, Robust
    tests for the equality of variances, JASA 69, 1974)."""
    each = [_sample(values, 2) for values in samples]
    if len(each) < 2:
        raise ValueError("fewer than two samples")
    gaps = [np.abs(values - np.median(values)) for values in each]
    if all(gap.std() == 0 for gap in gaps):
        same = len({float(gap[0]) for gap in gaps}) == 1
        return Test("Brown-Forsythe", 0.0 if same else np.inf, 1.0 if same else 0.0)
    found = scipy.stats.levene(*each, center="median")
    return Test("Brown-Forsythe", float(found.statistic), float(found.pvalue))


def independence(counts: Sequence[Sequence[int]], seed: int = 0) -> Test:
    """Are the rows of a table of counts of one distribution? Chi-square without a correction where each cell is
    expected to have EXPECTED counts; otherwise Fisher's exact test, of 2 x 2 by enumeration, of others by random tables
    of the same margins. Rows and columns of zeros are left out."""
    table = np.asarray(counts, dtype=np.int64)
    table = table[table.sum(1) > 0][:, table.sum(0) > 0]
    if min(table.shape) < 2:
        return Test("none: one row or column", 0.0, 1.0)
    found = scipy.stats.chi2_contingency(table, correction=False)
    if found.expected_freq.min() >= EXPECTED:
        return Test("chi-square", float(found.statistic), float(found.pvalue))
    method = None
    if table.shape != (2, 2):
        method = scipy.stats.MonteCarloMethod(n_resamples=RESAMPLES, rng=np.random.default_rng(seed))
    exact = scipy.stats.fisher_exact(table, method=method)
    return Test("Fisher", float(exact.statistic), float(exact.pvalue))


def holm(probabilities: Sequence[float]) -> list[float]:
    """Of several tests, each multiplied so that the chance of any false one is kept (S. Holm, A simple sequentially
    rejective multiple test procedure, Scandinavian Journal of Statistics 6(2), 1979), in the order given."""
    order = np.argsort(probabilities, kind="stable")
    adjusted, greatest = [0.0] * len(order), 0.0
    for place, index in enumerate(order):
        greatest = max(greatest, min(1.0, (len(order) - place) * float(probabilities[index])))
        adjusted[index] = greatest
    return adjusted


def _sample(values: Values, least: int) -> np.ndarray:
    sample = np.asarray(values, dtype=np.float64)
    if sample.ndim != 1 or len(sample) < least:
        raise ValueError(f"{sample.shape}: not a sample of at least {least}")
    return sample
