"""Statistics against values computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from oracles import statistics


def test_wilson_by_its_formula() -> None:
    z = 1.959963984540054
    for k, n in ((0, 10), (3, 10), (10, 10), (7, 400)):
        p = k / n
        middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        found = statistics.wilson(k, n)
        assert found.low == pytest.approx((middle - half) / (1 + z * z / n), abs=1e-12)
        assert found.high == pytest.approx((middle + half) / (1 + z * z / n), abs=1e-12)
    assert statistics.wilson(0, 10).high == pytest.approx(0.2775328, abs=1e-6)  # z^2 / (n + z^2)
    assert statistics.wilson(0, 0) == statistics.Interval(0.0, 1.0)
    with pytest.raises(ValueError, match="5 of 4"):
        statistics.wilson(5, 4)


def test_bootstrap_covers_and_repeats() -> None:
    values = np.random.default_rng(3).normal(5.0, 2.0, 200)
    found = statistics.bootstrap(values, np.mean, seed=1)
    half = 1.96 * values.std(ddof=1) / math.sqrt(200)  # of the normal approximation
    assert found.low == pytest.approx(values.mean() - half, abs=0.05)
    assert found.high == pytest.approx(values.mean() + half, abs=0.05)
    assert statistics.bootstrap(values, np.mean, seed=1) == found
    assert statistics.bootstrap(values, np.mean, seed=2) != found
    assert statistics.bootstrap([2.0, 2.0, 2.0], np.std, seed=0) == statistics.Interval(0.0, 0.0)
    with pytest.raises(ValueError, match="not a sample of at least 2"):
        statistics.bootstrap([1.0], np.mean, seed=0)


def test_welch_by_hand() -> None:
    found = statistics.welch([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])
    assert found.statistic == pytest.approx(-2 / math.sqrt(1 / 3 + 4 / 3))  # variances 1 and 4
    even = statistics.welch([0.0, 2.0], [3.0, 5.0])
    assert even.statistic == pytest.approx(-3 / math.sqrt(2))
    assert even.p == pytest.approx(1 - math.sqrt(4.5 / 6.5))  # 1 - t / sqrt(2 + t^2): two degrees of freedom
    assert statistics.welch([1.0, 1.0], [1.0, 1.0]).p == 1.0
    assert statistics.welch([1.0, 1.0], [2.0, 2.0]).p == 0.0


def test_permutation_counts_all_deals() -> None:
    found = statistics.permutation([1.0, 2.0, 3.0], [4.0, 5.0, 6.0], np.mean, seed=0)
    assert found.statistic == -3.0
    assert found.p == pytest.approx(2 / 20)  # of C(6, 3) deals two are so extreme
    assert statistics.permutation([1.0, 2.0], [1.0, 2.0], np.std, seed=0).p == 1.0


def test_brown_forsythe_by_hand() -> None:
    # distances from the medians: 1 0 1 and 10 0 10, an analysis of variance of which gives F = 54 / (101 / 3 * 2 / 2)
    found = statistics.brown_forsythe([1.0, 2.0, 3.0], [10.0, 20.0, 30.0])
    assert found.statistic == pytest.approx(6 * 3.0**2 / ((2 / 3 + 200 / 3) / 4))
    assert 0.0 < found.p < 1.0
    assert statistics.brown_forsythe([1.0, 1.0], [2.0, 2.0]).p == 1.0
    assert statistics.brown_forsythe([0.0, 0.0, 0.0], [1.0, 3.0]).p == 0.0
    with pytest.raises(ValueError, match="fewer than two samples"):
        statistics.brown_forsythe([1.0, 2.0])


def test_independence_by_hand() -> None:
    plain = statistics.independence([[10, 20], [20, 10]])
    assert plain.name == "chi-square"
    assert plain.statistic == pytest.approx(4 * 25 / 15)  # expected 15 in each cell
    assert plain.p == pytest.approx(math.erfc(math.sqrt(100 / 15 / 2)))  # one degree of freedom
    tea = statistics.independence([[3, 1], [1, 3]])  # the lady tasting tea
    assert (tea.name, tea.p) == ("Fisher", pytest.approx(34 / 70))
    wide = statistics.independence([[5, 0, 0], [0, 5, 0], [0, 0, 5]])
    assert wide.name == "Fisher"
    assert wide.p < 1e-3
    assert statistics.independence([[1, 2, 3], [2, 1, 3]]).p > 0.5
    assert statistics.independence([[3, 0], [4, 0]]).p == 1.0


def test_holm_by_hand() -> None:
    assert statistics.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert statistics.holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    assert statistics.holm([]) == []
