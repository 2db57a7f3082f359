"""Measures of spread, against what a hand works out."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.spread import (
    Rates,
    churn,
    differ,
    distance,
    estimate,
    estimate_of_pairs,
    mean_of_pairs,
    pairs,
    rates,
    rates_by_group,
)


def test_churn_is_disagreement() -> None:
    assert churn(np.array([1, 2, 3, 4]), np.array([1, 2, 0, 0])) == 0.5
    assert churn(np.array([1, 2]), np.array([1, 2])) == 0
    for other in (np.array([1]), np.zeros(0)):
        with pytest.raises(ValueError, match="samples"):
            churn(np.zeros(0), other)


def test_distance_is_of_directions() -> None:
    assert distance(np.array([3.0, 0.0]), np.array([0.0, 5.0])) == pytest.approx(2**0.5)
    assert distance(np.array([1.0, 1.0]), np.array([2.0, 2.0])) == pytest.approx(0, abs=1e-15)
    assert distance(np.array([np.nan]), np.array([np.nan])) == 0
    assert distance(np.array([np.nan]), np.array([1.0])) == np.inf


def test_rates_have_their_own_denominators() -> None:
    """Four of class 1, of which one is missed; six of others, of which three are taken for it."""
    labels = np.array([1, 1, 1, 1, 0, 0, 0, 0, 2, 2])
    predictions = np.array([1, 1, 1, 0, 1, 1, 0, 0, 1, 2])
    assert rates(predictions, labels, 1) == Rates(0.5, 0.25)
    assert np.isnan(rates(predictions, labels, 7).fnr)
    masks = {"first": np.arange(10) < 5}
    found = rates_by_group(np.minimum(predictions, 1), np.minimum(labels, 1), ("no", "yes"), masks)
    assert list(found) == ["class yes", "subgroup first"]
    assert found["subgroup first"] == Rates(1.0, 0.25)


def test_pairs() -> None:
    table = pairs([np.array([0, 0]), np.array([0, 1]), np.array([1, 1])], churn)
    assert table.tolist() == [[0, 0.5, 1], [0.5, 0, 0.5], [1, 0.5, 0]]
    assert mean_of_pairs(table) == pytest.approx(2 / 3)
    assert mean_of_pairs(table, np.array([0, 0, 1])) == 0.5  # a model with itself is no pair
    rng = np.random.default_rng(0)
    found = estimate_of_pairs(pairs(list(rng.integers(0, 2, (8, 50))), churn), 0)
    assert 0.3 < found.low <= found.value <= found.high < 0.7
    zero = estimate_of_pairs(np.zeros((4, 4)), 0)
    assert (zero.value, zero.low, zero.high) == (0, 0, 0)


def test_estimates() -> None:
    values = [1.0, 2.0, 3.0, 4.0, 7.0]
    assert estimate(values, "sd", 0).value == pytest.approx(np.sqrt(5.3))
    assert estimate(values, "mean", 0).value == pytest.approx(3.4)
    assert estimate([0.1] * 10, "sd", 0).high == 0  # exactly


def test_settings_that_differ() -> None:
    rng = np.random.default_rng(0)
    near, far = (rng.normal(0, scale, (8, 50)) for scale in (0.01, 1.0))
    table = pairs([*near, *far], lambda a, b: float(np.linalg.norm(a - b)))
    assert differ(table, 8, 0).p < 0.01
    alike = pairs([*far, *rng.normal(0, 1, (8, 50))], lambda a, b: float(np.linalg.norm(a - b)))
    assert differ(alike, 8, 0).p > 0.05
    assert differ(np.zeros((6, 6)), 3, 0).p == 1
