"""Ratios, intervals and tests of times that are made up: no clock is read here."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from oracles.models.timing import LEAST, MARGIN, difference, ratio


def drawn(seed: int, centre: float, rounds: int = 30, scale: float = 0.02) -> np.ndarray:
    return np.random.default_rng(seed).normal(centre, scale * centre, rounds)


def test_the_ratio_is_of_medians() -> None:
    assert ratio([1, 2, 3, 4, 100], [1, 1, 2, 5, 5], 0).ratio == 1.5


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    found = [ratio(drawn(2 * k, 1.3), drawn(2 * k + 1, 1.0), k) for k in range(60)]
    covered = sum(one.low <= 1.3 <= one.high for one in found)
    assert 52 <= covered <= 60  # 57 of 60 are expected; the median's interval is slightly too wide


def test_a_slower_variant_is_found_and_an_equal_one_is_not() -> None:
    assert ratio(drawn(1, 1.3), drawn(2, 1.0), 0).slower
    assert ratio(drawn(1, 1.0), drawn(2, 1.3), 0).faster
    equal = [ratio(drawn(100 + k, 1.0), drawn(200 + k, 1.0), 0) for k in range(40)]
    assert not any(one.slower or one.faster for one in equal)
    within = ratio(drawn(3, 1 + 0.8 * MARGIN, scale=1e-3), drawn(4, 1.0, scale=1e-3), 0)
    assert within.low > 1
    assert not within.slower


def test_rounds_are_resampled_together() -> None:
    """What slows whole rounds widens no interval."""
    load = np.exp(np.random.default_rng(7).normal(0, 0.5, 40))
    together = ratio(1.2 * load, load, 0)
    assert (together.low, together.high) == pytest.approx((1.2, 1.2))


def test_the_same_seed_gives_the_same_interval() -> None:
    times = (drawn(1, 1.3), drawn(2, 1.0))
    assert ratio(*times, 3) == ratio(*times, 3) != ratio(*times, 4)


@pytest.mark.parametrize(
    ("times", "base", "told"),
    [
        ([1.0] * 6, [1.0] * 5, "not interleaved"),
        ([1.0] * (LEAST - 1), [1.0] * (LEAST - 1), "too few"),
        ([1.0, 1, 1, 1, 0], [1.0] * 5, "positive"),
        ([1.0, 1, 1, 1, np.nan], [1.0] * 5, "positive"),
    ],
)
def test_what_is_no_measurement_is_refused(times: list[float], base: list[float], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        ratio(times, base, 0)


def test_anova_where_its_assumptions_hold() -> None:
    groups = {
        name: drawn(k, centre, scale=0.05) for k, (name, centre) in enumerate([("a", 1.0), ("b", 1.0), ("c", 1.1)])
    }
    found = difference(groups)
    value = stats.f_oneway(*groups.values())
    assert found.test == "one-way ANOVA"
    assert (found.statistic, found.p) == pytest.approx((value.statistic, value.pvalue))
    assert found.rejected


def test_kruskal_wallis_where_they_do_not() -> None:
    skewed = np.exp(np.random.default_rng(1).normal(0, 1.5, 30))
    found = difference({"a": skewed, "b": drawn(2, 1.0)})
    assert found.test == "Kruskal-Wallis"
    assert found.why.startswith("times of a are not normal")
    assert found.p == pytest.approx(stats.kruskal(skewed, drawn(2, 1.0)).pvalue)
    wider = difference({"a": drawn(1, 1.0, 60), "b": drawn(2, 1.0, 60, scale=0.3)})
    assert wider.test == "Kruskal-Wallis"
    assert wider.why.startswith("variances differ")
    assert difference({"a": [1.0, 2.0], "b": [1.0, 2.0]}).why == "too few times of a to test for normality"
    assert difference({"a": [1.0, 1, 1], "b": [2.0, 1, 3]}).why == "times of a are constant"


def test_equal_groups_do_not_differ() -> None:
    assert difference({"a": [1.0] * 5, "b": [1.0] * 5}).p == 1
    rejected = sum(difference({"a": drawn(k, 1.0), "b": drawn(k + 500, 1.0)}).rejected for k in range(60))
    assert rejected <= 8  # 3 are expected
    with pytest.raises(ValueError, match="two groups"):
        difference({"a": [1.0, 2.0]})
