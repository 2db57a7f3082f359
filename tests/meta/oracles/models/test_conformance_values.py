"""What a test of onnx expects, beside what came."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from oracles.models.conformance import around, judge

RIGHT = np.array([1.0, -2.0, 0.5], np.float32)
NOISE = 2.0**-24 * np.array([1.0, -1.0, 0.5])
RUNS = [[RIGHT.astype(np.float64) + step * NOISE] for step in (0, 1, -1, 0.5)]
TEXTS = np.array(["a", "b"], object)
INTEGERS = np.array([1, 2], np.int64)
NARROW = np.array([1, np.nan, -2]).astype(ml_dtypes.float8_e4m3fn)

SAME = {
    "tensor": RIGHT,
    "integers": INTEGERS,
    "strings": TEXTS,
    "sequence": [RIGHT, INTEGERS],
    "map": {"a": RIGHT},
    "absent": None,
    "8 bits with NaN": NARROW,
    "empty": np.zeros((0, 2), np.float32),
}
WRONG: dict[str, tuple[Any, Any, str]] = {
    "a value": (RIGHT * np.float32(1 + 1e-5), RIGHT, "value"),
    "NaN": (np.array([1, np.nan, 0.5], np.float32), RIGHT, "special"),
    "a dtype": (RIGHT.astype(np.float64), RIGHT, "type"),
    "a shape": (RIGHT[None], RIGHT, "type"),
    "an empty output": (RIGHT[:0], RIGHT, "type"),
    "an integer": (INTEGERS + 1, INTEGERS, "instead of"),
    "an integer's dtype": (INTEGERS.astype(np.int32), INTEGERS, "int32"),
    "a boolean": (np.array(True), np.array(False), "instead of"),
    "a string": (np.array(["a", "B"], object), TEXTS, "instead of"),
    "one item less": ([RIGHT], [RIGHT, RIGHT], "a sequence of 1 instead of 2"),
    "an item": ([RIGHT, RIGHT + 1], [RIGHT, RIGHT], "item 1"),
    "a key": ({"b": RIGHT}, {"a": RIGHT}, "a map"),
    "something for nothing": (RIGHT, None, "a tensor instead of nothing"),
    "nothing for something": (None, RIGHT, "nothing instead of a tensor"),
    "8 bits": (NARROW[::-1], NARROW, "instead of"),
}


@pytest.mark.parametrize("name", SAME)
def test_what_is_expected_passes(name: str) -> None:
    assert judge([SAME[name]], [SAME[name]], None).why == ""


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_is_told(name: str) -> None:
    given, right, told = WRONG[name]
    assert told in judge([given], [right], None).why


def test_no_output_is_wrong_and_none_expected_is_an_error() -> None:
    assert judge([], [RIGHT], None).why == "0 outputs instead of 1"
    with pytest.raises(ValueError, match="nothing to compare"):
        judge([], [], None)


def test_measured_noise_is_allowed_and_no_more() -> None:
    assert judge([RIGHT + np.float32(3e-7)], [RIGHT], RUNS).why == ""
    assert "value" in judge([RIGHT + np.float32(3e-6)], [RIGHT], RUNS).why


def test_what_lies_beside_the_reference_is_told_though_it_is_expected() -> None:
    other = RIGHT + np.float32(0.1)
    assert judge([other], [other], None).why == ""
    assert "value" in judge([other], [other], RUNS).why
    assert judge([other + np.float32(3e-7)], [other], around([other], RUNS)).why == ""
    assert "value" in judge([RIGHT], [other], around([other], RUNS)).why


def test_what_noise_decides_is_no_pass() -> None:
    told = judge([INTEGERS], [INTEGERS], [[INTEGERS], [INTEGERS + 1]])
    assert (told.why, told.wasted) == ("", True)


def test_narrower_arithmetic_is_allowed_where_it_is_documented() -> None:
    wide = np.array([1.0, 3.0])
    runs = [[wide], [wide * (1 + 2**-53)]]
    near, far = wide * (1 + 1e-7), wide * (1 + 1e-5)
    assert "value" in judge([near], [wide], runs).why
    assert judge([near], [wide], runs, {"float64": "float32"}).why == ""
    assert "value" in judge([far], [wide], runs, {"float64": "float32"}).why


def test_types_without_a_name_in_numpy_may_come_as_bits() -> None:
    right = RIGHT.astype(ml_dtypes.bfloat16)
    assert judge([right.view(np.float16)], [right], None).why == ""
    assert "value" in judge([(2 * RIGHT).astype(ml_dtypes.bfloat16).view(np.uint16)], [right], None).why
    assert "value" in judge([RIGHT.astype(np.float16)], [right], None).why
    assert judge([NARROW.view(np.uint8)], [NARROW], None).why == ""
    assert judge([NARROW[::-1].view(np.uint8)], [NARROW], None).why != ""
