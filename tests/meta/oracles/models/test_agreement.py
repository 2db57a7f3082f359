"""Measures of agreement against values worked out by hand or by other means, and what must count against agreement."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from oracles.models import agreement as measures
from oracles.models.agreement import (
    Agreement,
    Failure,
    agreement,
    divergence,
    kendall,
    offset_of,
    overlap,
    ranks,
    table,
    top,
)

RNG = np.random.default_rng(5)
LOGITS = RNG.normal(size=(6, 40)).astype(np.float32)


def measured(first: np.ndarray, second: np.ndarray, allowed: np.ndarray | None = None) -> Agreement:
    found = agreement(first, second, allowed)
    assert isinstance(found, Agreement), found
    return found


def of(first: str, second: str, p: float = 0.9) -> float:
    """Rank-biased overlap of two rankings of the same letters."""
    letters = sorted(first)
    a, b = (np.array([[word.index(letter) for letter in letters]]) for word in (first, second))
    return float(overlap(a, b, p)[0])


@pytest.mark.parametrize(
    ("first", "second", "p", "value"),
    [
        ("abc", "abc", 0.9, 1.0),
        ("abc", "bac", 0.9, 0.9),  # 0.729 + (0.1 / 0.9) (0 + 0.81 + 0.729)
        ("abc", "acb", 0.9, 0.955),  # 0.729 + (0.1 / 0.9) (0.9 + 0.81 / 2 + 0.729)
        ("abcd", "dcba", 0.5, 0.0625 + 0.125 / 3 * 2 + 0.0625),  # agreements 0, 0, 2/3, 1
        ("ab", "ba", 0.5, 0.5),
    ],
)
def test_overlap_by_hand(first: str, second: str, p: float, value: float) -> None:
    assert of(first, second, p) == pytest.approx(value, rel=1e-12)


def test_overlap_weighs_the_top_more_is_symmetric_and_decreases() -> None:
    assert of("abcdef", "bacdef") < of("abcdef", "abcdfe") < 1
    assert of("abcdef", "cabfde") == of("cabfde", "abcdef")
    distances = [of("abcdefgh", "abcdefgh"), of("abcdefgh", "bacdefgh"), of("abcdefgh", "hgfedcba")]
    assert distances == sorted(distances, reverse=True)
    assert 0 < distances[-1] < 0.7


def test_overlap_against_the_definition_element_by_element() -> None:
    a, b = ranks(LOGITS), ranks(-LOGITS[:, ::-1])
    n, p = LOGITS.shape[1], measures.P
    for row in range(len(a)):
        first, second = np.argsort(a[row]), np.argsort(b[row])
        shares = [len(set(first[:d]) & set(second[:d])) / d for d in range(1, n + 1)]
        value = p**n + (1 - p) / p * sum(share * p**d for d, share in enumerate(shares, 1))
        assert overlap(a, b)[row] == pytest.approx(value, rel=1e-12)


def test_top_of_known_rows() -> None:
    first = np.array([[9, 8, 7, 6, 5, 4], [1, 2, 3, 4, 5, 6]], np.float32)
    second = np.array([[8, 9, 7, 6, 4, 5], [1, 2, 3, 4, 5, 6]], np.float32)
    assert list(top(ranks(first), ranks(second), 1)) == [0, 1]
    assert list(top(ranks(first), ranks(second), 5)) == [0.8, 1]
    found = measured(first, second)
    assert (found.top1, found.top5) == (0.5, 0.9)
    assert list(top(ranks(first[:, :3]), ranks(second[:, :3]), 5)) == [1, 1]  # three classes have no first five


def test_ties_are_broken_by_class_id() -> None:
    assert ranks(np.array([[1.0, 2.0, 2.0, 0.0]])).tolist() == [[2, 0, 1, 3]]


def test_kendall_by_hand_and_without_an_order() -> None:
    assert kendall(np.array([1.0, 2, 3, 4]), np.array([1.0, 2, 4, 3])) == pytest.approx(4 / 6)  # 5 of 6 pairs agree
    assert kendall(LOGITS[0], LOGITS[1]) == pytest.approx(stats.kendalltau(LOGITS[0], LOGITS[1])[0])
    assert kendall(np.ones(4), np.arange(4.0)) is None


def test_divergence_of_logits_and_of_distributions() -> None:
    p, q = special.softmax(LOGITS[:3].astype(float), axis=1), special.softmax(LOGITS[3:].astype(float), axis=1)
    value = stats.entropy(p, q, axis=1)
    softmaxed, told = divergence(LOGITS[:3], LOGITS[3:])
    assert told == measures.SOFTMAXED
    assert softmaxed == pytest.approx(value, rel=1e-6)
    plain, told = divergence(p.astype(np.float32), q.astype(np.float32))
    assert told == measures.PLAIN
    assert plain == pytest.approx(value, rel=1e-5)
    mixed, told = divergence(p, LOGITS[3:])
    assert told == measures.MIXED
    assert mixed == pytest.approx(value, rel=1e-6)
    by_hand, _ = divergence(np.array([[0.5, 0.5]]), np.array([[0.25, 0.75]]))
    assert by_hand[0] == pytest.approx(0.5 * math.log(2) + 0.5 * math.log(2 / 3))


def test_equal_outputs_agree_in_everything() -> None:
    found = measured(LOGITS, LOGITS.copy())
    assert (found.top1, found.top5, found.rbo, found.kendall, found.kl) == pytest.approx((1, 1, 1, 1, 0))
    assert (found.largest, found.mean, found.largest_relative, found.special, found.offset) == (0, 0, 0, 0, 0)


def test_errors_by_hand() -> None:
    found = measured(np.array([1.0, -4.0, 0.0]), np.array([1.5, -4.0, 0.25]), np.array([1.0, 1.0, 0.125]))
    assert (found.largest, found.mean) == (0.5, 0.25)
    assert (found.largest_relative, found.excess, found.top1) == (math.inf, 2.0, None)
    assert measured(np.array([2.0, 4.0]), np.array([1.0, 4.0])).mean_relative == 0.25


def test_nan_and_infinities_count_against_agreement() -> None:
    lost = LOGITS.copy()
    lost[2, 7] = np.nan
    found = measured(LOGITS, lost)
    assert (found.special, found.largest, found.kl) == (1, math.inf, math.inf)
    assert found.top1 == pytest.approx(5 / 6)
    both = measured(lost, lost.copy())
    assert (both.special, both.largest, both.kl, both.top1) == (0, 0, 0, 1)
    assert measured(np.array([np.inf, 1.0]), np.array([-np.inf, 1.0])).special == 1
    assert measured(np.array([np.inf, 1.0]), np.array([3.0, 1.0]), np.ones(2)).excess == math.inf


@pytest.mark.parametrize("shift", [-2, -1, 0, 1, 2])
def test_an_offset_of_class_ids_is_detected(shift: int) -> None:
    noisy = LOGITS + RNG.normal(scale=1e-3, size=LOGITS.shape).astype(np.float32)
    moved = np.roll(noisy, shift, axis=1)
    assert offset_of(LOGITS, moved) == shift
    assert measured(LOGITS, moved).offset == shift
    assert measured(LOGITS, moved).top1 == 1  # of the classes that both have


def test_a_background_class_in_front_and_one_behind() -> None:
    background = np.full((6, 1), -3, np.float32)
    front, behind = (np.concatenate(parts, axis=1) for parts in ((background, LOGITS), (LOGITS, background)))
    assert measured(LOGITS, front).offset == 1
    assert measured(LOGITS, front).top1 == 1
    assert (measured(LOGITS, behind).offset, measured(LOGITS, behind).largest) == (0, 0)


def test_an_offset_that_is_not_clear_is_not_assumed() -> None:
    other = RNG.normal(size=LOGITS.shape)
    assert offset_of(LOGITS, other) == 0
    assert offset_of(np.ones((2, 8)), np.full((2, 8), 2.0)) == 0
    assert offset_of(np.ones((2, 8)), np.ones((2, 9))) is None
    assert agreement(LOGITS, RNG.normal(size=(6, 41))) == Failure("shapes (6, 40) and (6, 41)")


def test_missing_results_are_failures() -> None:
    found = table({"a": LOGITS, "b": None, "c": LOGITS + 1})
    close = found["a", "c"]
    assert len(found) == 9
    assert found["a", "b"] == Failure("no result of b")
    assert found["b", "b"] == Failure("no result of b")
    assert isinstance(close, Agreement)
    assert close.largest == pytest.approx(1)
    assert agreement(LOGITS[:2], LOGITS[:3]) == Failure("shapes (2, 40) and (3, 40)")
    with pytest.raises(ValueError, match="nothing to compare"):
        table({})
    assert agreement(LOGITS[:0], LOGITS[:0]) == Failure("no elements in (0, 40)")
    assert agreement(LOGITS[:0], LOGITS[:1]) == Failure("shapes (0, 40) and (1, 40)")


def test_text_whole_and_complex_numbers() -> None:
    words = np.array(["a", "b"])
    assert measured(words, np.array(["a", "b"], "U9")).largest == 0
    assert measured(words, np.array(["a", "longer"])).largest == math.inf
    assert agreement(words, np.ones(2)) == Failure("<U1 and float64")
    assert measured(np.array([2**60]), np.array([2**60 + 1])).largest == math.inf  # one and the same in float64
    assert measured(np.array([1 + 2j]), np.array([1 + 3j])).largest == 1
    assert measured(np.array(True), np.array(False)).largest == 1
    assert measures.spread_of([words, np.array(["a", "b"], "U9")]) == 0
    assert measures.spread_of([words, np.ones(2)]) == math.inf


def test_two_that_may_each_be_off_may_be_twice_as_far_apart() -> None:
    found = table({"a": LOGITS, "b": LOGITS + np.float32(0.5)}, np.full(LOGITS.shape, 0.25))["a", "b"]
    assert isinstance(found, Agreement)
    assert found.excess == pytest.approx(1, rel=1e-5)


def test_repeated_runs() -> None:
    assert measures.spread_of([LOGITS, LOGITS, LOGITS]) == 0
    assert measures.spread_of([LOGITS, LOGITS, LOGITS + 2]) == pytest.approx(2)
    assert measures.spread_of([LOGITS, LOGITS[:2]]) == math.inf
    with pytest.raises(ValueError, match="nothing to compare"):
        measures.spread_of([LOGITS])
