"""When a reference is in doubt, and when it is not: who counts as independent, and what as agreement."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from oracles.judge.compare import Expected
from oracles.models import noise
from oracles.models.doubt import Opinion, against, together

EXACT = np.random.default_rng(6).normal(size=(2, 5))
RNG = np.random.default_rng(7)


def expected(exact: np.ndarray = EXACT, dtype: str = "float32") -> tuple[Expected, ...]:
    """With 8 times a noise of about 1e-6."""
    noisy = np.stack([exact] * noise.RUNS)
    if dtype == "float32":
        noisy = noisy + 1e-6 * np.random.default_rng(8).choice([-1.0, 1.0], size=noisy.shape)
    return (noise.expect(["y"], [dtype], [exact], [noisy]),)


def opinion(owner: str, value: np.ndarray, agrees: bool = False, through: Sequence[str] = ()) -> Opinion:
    return Opinion(owner.lower(), owner, frozenset(through), [[value]], agrees)


def value(shift: float) -> np.ndarray:
    """With errors that a correct run has."""
    return (EXACT + shift + 1e-6 * RNG.uniform(-1, 1, EXACT.shape)).astype(np.float32)


def owners(*opinions: Opinion, **more: Sequence[str]) -> list[str]:
    return [one.owner for one in against(expected(), opinions, **more)]


def test_two_owners_that_agree_with_each_other_alone_put_it_in_doubt() -> None:
    assert owners(opinion("A", value(1)), opinion("B", value(1))) == ["A", "B"]
    assert owners(opinion("A", value(1)), opinion("B", value(1)), opinion("C", value(2))) == ["A", "B"]
    assert owners(opinion("C", value(2)), opinion("A", value(1)), opinion("B", value(1))) == ["A", "B"]
    assert owners(opinion("A", value(1)), opinion("A", value(1)), opinion("B", value(1))) == ["A", "B"]


@pytest.mark.parametrize(
    "opinions",
    [
        [],
        [opinion("A", value(1))],
        [opinion("A", value(1)), opinion("A", value(1))],  # two front ends of one
        [opinion("A", value(1)), opinion("B", value(1 + 1e-4))],  # each is wrong in its own way
        [opinion("A", value(1)), opinion("B", value(1)), opinion("C", value(0), True)],  # somebody agrees
        [opinion("A", value(1)), opinion("B", value(1)), opinion("A", value(0), True)],  # the same owner among them
        [opinion("A", value(1), through=["e"]), opinion("B", value(1), through=["e", "f"])],  # one conversion's fault
    ],
)
def test_else_it_is_not_in_doubt(opinions: list[Opinion]) -> None:
    assert owners(*opinions) == []


def test_what_shares_the_faults_of_the_reference_is_no_witness_for_it() -> None:
    two = opinion("A", value(1)), opinion("B", value(1))
    assert owners(*two, opinion("ONNX", value(0), True)) == ["A", "B"]
    assert owners(*two, opinion("ONNX", value(0), True), akin=()) == []
    converted = opinion("C", value(0), True, ["e"])
    assert owners(*two, converted, through=["e"]) == ["A", "B"]
    assert owners(*two, converted, through=["f"]) == []


def test_agreement_is_what_two_correct_runs_may_be_apart() -> None:
    (bound,) = expected()
    allowed = bound.values[0].error
    first = (EXACT + 1).astype(np.float64)
    assert together([bound], [[first]], [[first + 1.9 * allowed]])
    assert not together([bound], [[first]], [[first + 2.1 * allowed]])
    assert not together([bound], [[first]], [[first, first]])
    assert not together([bound], [[first]], [[]])


def test_agreement_in_another_shape_than_the_reference_has() -> None:
    sums = np.ones((2, 1), np.float32)
    assert together(expected(), [[sums]], [[sums + np.float32(1e-6)]])
    assert not together(expected(), [[sums]], [[sums + np.float32(1e-3)]])
    assert not together(expected(), [[sums]], [[sums[:1]]])


def test_whole_numbers_text_and_special_values_agree_where_they_are_the_same() -> None:
    whole = expected(np.array([1, 2]), "int64")
    assert together(whole, [[np.array([5, 6])]], [[np.array([5, 6])]])
    assert not together(whole, [[np.array([5, 6])]], [[np.array([5, 7])]])
    words = expected(np.array(["a", "b"]), "string")
    assert together(words, [[np.array(["x", "y"])]], [[np.array(["x", "y"])]])
    assert not together(words, [[np.array(["x", "y"])]], [[np.array(["x", "z"])]])
    special = np.array([[np.nan, np.inf, -np.inf, 1, 2]] * 2)
    assert together(expected(), [[special]], [[special]])
    assert not together(expected(), [[special]], [[np.abs(special)]])
