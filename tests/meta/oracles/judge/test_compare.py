"""Comparison: each way of being wrong is seen, and what a correct back end may return is accepted."""

from __future__ import annotations

import numpy as np
import pytest
from examples.small_graphs import chain_case

from generators.bounds.bounded import Bounded
from generators.graph import TensorType
from oracles.judge import verdict
from oracles.judge.compare import Expected, compare, compare_all
from oracles.judge.discrepancy import Discrepancy
from oracles.judge.outcome import Crash, Rejected, Timeout, Unsupported, Value
from oracles.questions import forward, levels

F3 = TensorType("float32", (3,))


def bounded(value: list, error: list, zero_sign: bool = False) -> Bounded:
    return Bounded(np.array(value, np.float64), np.array(error, np.float64), "float32", zero_sign)


EXPECTED = bounded([1.0, np.nan, np.inf], [1e-6, 0, 0])
RIGHT = np.array([1.0, np.nan, np.inf], np.float32)


def test_a_correct_result_is_accepted() -> None:
    assert compare(RIGHT, F3, EXPECTED) is None
    assert compare(np.array([1 + 5e-7, np.nan, np.inf], np.float32), F3, EXPECTED) is None


@pytest.mark.parametrize(
    ("got", "symptom"),
    [
        ([1.00001, np.nan, np.inf], "value"),
        ([np.nan, np.nan, np.inf], "special"),
        ([np.inf, np.nan, np.inf], "special"),
        ([1.0, 0.0, np.inf], "special"),
        ([1.0, np.inf, np.inf], "special"),
        ([1.0, np.nan, -np.inf], "special"),
        ([1.0, np.nan, 3e38], "special"),
    ],
)
def test_a_wrong_element_is_seen(got: list, symptom: str) -> None:
    found = compare(np.array(got, np.float32), F3, EXPECTED)
    assert found is not None
    assert found.symptom == symptom
    assert found.message.startswith("mismatched 1 of 3 (33.3 %)")


@pytest.mark.parametrize("got", [RIGHT.astype(np.float64), RIGHT.reshape(1, 3), RIGHT[:2], np.array([1, 2, 3])])
def test_a_wrong_type_is_seen(got: np.ndarray) -> None:
    found = compare(got, F3, EXPECTED)
    assert found is not None
    assert found.symptom == "type"


def test_undetermined_elements_are_excused_and_counted() -> None:
    loose = bounded([1.0, 2.0, 3.0], [np.inf, 1e-6, 1e-6])
    result = compare_all([np.array([np.nan, 2, 3], np.float32)], Expected(("v0",), (F3,), (loose,)))
    assert (result.discrepancy, result.elements, result.undetermined, result.wasted) == (None, 3, 1, False)
    nothing = bounded([1.0, 2.0, 3.0], [np.inf] * 3)
    assert compare_all([RIGHT], Expected(("v0",), (F3,), (nothing,))).wasted


def test_signs_of_zeros_count_only_where_the_standard_fixes_them() -> None:
    got = np.array([-0.0, 0.0, 0.0], np.float32)
    assert compare(got, F3, bounded([0.0, 0.0, 0.0], [0, 0, 0])) is None
    found = compare(got, F3, bounded([0.0, 0.0, 0.0], [0, 0, 0], zero_sign=True))
    assert found is not None
    assert found.symptom == "special"


def test_integers_compare_exactly() -> None:
    reference = Bounded(np.array([2**62 + 1, 5], np.int64), np.array([0, np.inf]), "int64")
    type_ = TensorType("int64", (2,))
    assert compare(np.array([2**62 + 1, 9]), type_, reference) is None
    found = compare(np.array([2**62, 5]), type_, reference)
    assert found is not None
    assert found.symptom == "value"


def test_wrong_number_of_outputs_is_seen() -> None:
    for outputs in ([], [RIGHT, RIGHT]):
        found = compare_all(outputs, Expected(("v0",), (F3,), (EXPECTED,))).discrepancy
        assert found is not None
        assert found.symptom == "outputs"


def test_zero_comparisons_are_an_error() -> None:
    with pytest.raises(ValueError, match="nothing to compare"):
        compare_all([], Expected((), (), ()))


def test_every_outcome_is_judged() -> None:
    case = chain_case()
    expected = forward.expect(case)
    right = Value(tuple(bound.value.astype(np.float32) for bound in expected.values))
    assert verdict.judge(expected, right).status == "agree"
    assert verdict.judge(expected, Unsupported("why")).discrepancy is None
    for outcome, status, symptom in (
        (Value(right.outputs[:1]), "mismatch", "outputs"),
        (Rejected("ValueError", "no"), "rejected", "rejected"),
        (Crash("signal SIGSEGV"), "crash", "crash"),
        (Timeout(3.0), "timeout", "timeout"),
    ):
        judged = verdict.judge(expected, outcome)
        assert judged.status == status
        assert judged.discrepancy is not None
        assert judged.discrepancy.symptom == symptom


def test_levels_of_a_compiler() -> None:
    case = chain_case()
    expected = forward.expect(case)
    low = [bound.value.astype(np.float32) for bound in expected.values]
    assert levels.judge(expected, low, low).agreement == "identical"
    near = [np.nextafter(a, np.float32(np.inf)) for a in low]
    assert levels.judge(expected, low, near).agreement == "within_bound"
    far = [a * np.float32(1.001) for a in low]
    judgement = levels.judge(expected, low, far)
    assert judgement.agreement == "different"
    assert judgement.discrepancy is not None
    assert judgement.discrepancy.symptom == "level"
    assert levels.judge(expected, low, low[:1]).agreement == "different"
    shorter = [a[..., :1] for a in low]
    for first, second in ((low, shorter), (shorter, low)):  # a lower level may be the one that is wrong
        judgement = levels.judge(expected, first, second)
        assert judgement.discrepancy is not None
        assert "instead of" in judgement.discrepancy.message


def test_identical_tells_zero_signs_apart_and_nans_not() -> None:
    a = np.array([0.0, np.nan], np.float32)
    assert levels.identical(a, a.copy())
    assert not levels.identical(a, np.array([-0.0, np.nan], np.float32))
    assert not levels.identical(a, np.array([0.0, 1.0], np.float32))


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("cannot bind t12_0 at 0x7f01", "cannot bind t3_0 at 0x11ab", True),
        ("shape [2, 3] is odd", "shape [17] is odd", True),
        ("no kernel for Conv", "no kernel for Pool", False),
        ("detected in __inference_step_35806 by XLA", "detected in __inference_step_71 by XLA", True),
        ("no kernel conv_2d", "no kernel conv_3d", False),
    ],
)
def test_messages_are_normalised_for_grouping(first: str, second: str, same: bool) -> None:
    texts = [verdict.normalized(Discrepancy("rejected", text)) for text in (first, second)]
    assert (texts[0] == texts[1]) is same
