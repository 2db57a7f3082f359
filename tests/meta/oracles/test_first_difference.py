"""The oracle of determinism: what is the same, what differs first, and by how much."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from oracles.determinism import BROKEN, SAME, VARIES, Moment, Trace, judge, same, ulps


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_ulps(dtype: type) -> None:
    one = np.array([1.0, 0.0, -1.0, 2.0, np.nan, np.nan, 1.0], dtype)
    near = np.nextafter(one, np.array(np.inf, dtype))
    near[1], near[3], near[4], near[5], near[6] = -0.0, 2.0, np.nan, 1.0, -1.0
    found = ulps(one, near)
    assert found[:6].tolist() == [1, 1, 1, 0, 0, np.inf]
    bits = {np.float16: 15, np.float32: 127, np.float64: 1023, ml_dtypes.bfloat16: 127}[dtype]
    mantissa = {np.float16: 10, np.float32: 23, np.float64: 52, ml_dtypes.bfloat16: 7}[dtype]
    assert float(found[6]) == 2.0 * bits * 2.0**mantissa + 1  # all numbers between -1 and 1, and both zeros


def test_ulps_of_whole_numbers() -> None:
    assert ulps(np.array([1, 2]), np.array([1, 5])).tolist() == [0, 3]
    assert ulps(np.array([True]), np.array([False])).tolist() == [1]


def test_same() -> None:
    zero = np.zeros(2, np.float32)
    assert same(zero, zero.copy())
    assert not same(zero, -zero)
    assert not same(zero, zero.astype(np.float64))
    assert same(np.array([np.nan]), np.array([-np.nan]))
    assert same(np.zeros(0), np.zeros(0))


def trace(change: tuple[int, str, int] | None = None) -> Trace:
    """Two epochs of three steps with two arrays. change: moment, array and element that are one ulp off."""
    moments = [Moment("initial"), *(Moment("state", epoch, step) for epoch in range(2) for step in range(3))]
    found = []
    for number, moment in enumerate(moments):
        arrays = {"parameter.l0.weight": np.ones((2, 3), np.float32), "parameter.l1.bias": np.ones(4, np.float32)}
        if change and number >= change[0]:
            flat = arrays[change[1]].reshape(-1)
            flat[change[2]] = np.nextafter(np.float32(1), np.float32(2))
        found.append((moment, arrays))
    return found


@pytest.mark.parametrize("moment", range(7))
@pytest.mark.parametrize(
    ("array", "element", "place"), [("parameter.l0.weight", 4, (1, 1)), ("parameter.l1.bias", 2, (2,))]
)
def test_the_first_difference_is_named(moment: int, array: str, element: int, place: tuple[int, ...]) -> None:
    judged = judge([trace(), trace(), trace((moment, array, element))], promised=True)
    assert judged.verdict == BROKEN
    (found,) = judged.differences
    assert (found.run, found.array, found.element, found.ulps) == (2, array, place, 1)
    assert found.layer == array.split(".")[1]
    assert found.moment == trace()[moment][0]
    assert found.differing == 1


def test_verdicts() -> None:
    assert judge([trace(), trace()], True).verdict == SAME
    assert judge([trace(), trace((3, "parameter.l1.bias", 0))], False).verdict == VARIES
    for runs in ([], [trace()], [[], []], [[(Moment("state"), {})]] * 2):
        with pytest.raises(ValueError, match="nothing to compare"):
            judge(runs, True)


def test_what_cannot_be_compared_differs() -> None:
    base: Trace = [(Moment("state", 0, 0), {"a": np.zeros(2)})]
    others: list[tuple[Trace, str]] = [
        ([(Moment("state", 0, 0), {"a": np.zeros(3)})], "float64 (3,) for float64 (2,)"),
        ([(Moment("state", 0, 0), {})], "not there"),
        ([(Moment("state", 0, 0), {"a": np.zeros(2), "b": np.zeros(2)})], "not there in run 0"),
        ([], "0 moments for 1"),
        ([(Moment("state", 0, 1), {"a": np.zeros(2)})], "epoch 0, step 1, state for epoch 0, step 0, state"),
    ]
    for other, why in others:
        (found,) = judge([base, other], True).differences
        assert found.why == why


def test_its_words() -> None:
    (found,) = judge([trace(), trace((5, "parameter.l0.weight", 4))], True).differences
    assert str(found) == (
        "run 1, epoch 1, step 1, state, layer l0, array parameter.l0.weight, element [1, 1]: 1.0000001192092896"
        " for 1.0, 1 ulps (1 of 6 elements differ, by at most 1 ulps)"
    )
