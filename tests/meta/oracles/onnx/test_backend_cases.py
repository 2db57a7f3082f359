"""The rules of operators against the cases that come with onnx."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from examples.onnx_cases import apart, backend_cases, one_node

from oracles.onnx.evaluate import evaluate
from oracles.onnx.rule import NoRule

BATCHES = 8
LEAST = 1990
"""Cases whose nodes all have a rule here, and not a function body."""
NEVER = {
    "ImageDecoder": "it decodes files",
    "ai.onnx.preview.training:Gradient": "it differentiates a graph",
    "Dropout": "it draws what it drops",
    "Bernoulli": "it is random",
    "RandomUniformLike": "it is random",
}
DIGITS = {
    "test_averagepool_2d_ceil_last_window_starts_on_pad": 4,
    "test_gridsample_bicubic": 4,
    "test_gridsample_bicubic_align_corners_1_additional_1": 6,
    "test_roialign_aligned_false": 4,
    "test_roialign_aligned_true": 4,
    "test_blackmanwindow_symmetric": 6,
}
"""Cases whose inputs and expected values are written down with so many digits behind the point: both are off by half of
the last one. (The angles of the window are float32: 2 pi is off by 2.4e-7, and its cosines are half as large.)"""
AGAINST = {
    "test_dynamicquantizelinear_expanded": "a tie of 127.5 steps in exact numbers, which float32 breaks before it",
    "test_resize_downsample_scales_cubic_align_corners": "length_resized is 3.2 in them, no length of the output",
    "test_resize_downsample_scales_linear_align_corners": "length_resized is 1.2 and 2.4 in it",
    "test_roialign_mode_max": "the greatest of weighted elements, none of which is a sampled value",
}
"""Cases whose expected values the specification does not give."""


@pytest.mark.slow(one_in=8)
@pytest.mark.parametrize("batch", range(BATCHES))
def test_cases_of_onnx_agree(batch: int) -> None:
    wrong: dict[str, str] = {}
    without: Counter[str] = Counter()
    for case in backend_cases()[batch::BATCHES]:
        for inputs, outputs in case.sets:
            try:
                told = apart(case.model, inputs, outputs)
            except NoRule as error:
                without[str(error).split()[0].rstrip(":")] += 1
                continue
            if case.name in DIGITS:
                told = beyond(case.model, inputs, outputs, 10.0 ** -DIGITS[case.name])
            if bool(told) != (case.name in AGAINST):
                wrong[case.name] = told or "it agrees by now"
    assert wrong == {}
    assert set(without) <= set(NEVER)


def beyond(model: onnx.ModelProto, inputs: Sequence[Any], outputs: Sequence[Any], allowed: float) -> str:
    """Where a result is further away than that, beside two roundings."""
    for found, right in zip(evaluate(model, inputs), outputs, strict=True):
        assert isinstance(found, np.ndarray)
        if found.shape != right.shape or (np.abs(found - right) > allowed + 2**-23 * np.abs(right)).any():
            return f"{found} is not {right}"
    return ""


def test_the_greatest_of_sampled_values_is_pooled() -> None:
    """onnx's case of RoiAlign's mode max has the greatest of four products of an element and its weight instead."""
    x = np.array([[[[1.0, 2.0], [3.0, 4.0]]]], np.float32)
    rois, batch = np.array([[0.0, 0.0, 2.0, 2.0]], np.float32), np.array([0], np.int64)
    model = one_node("RoiAlign", (x, rois, batch), 16, mode="max", sampling_ratio=1)
    (found,) = evaluate(model, (x, rois, batch))
    assert isinstance(found, np.ndarray)
    assert found.ravel().tolist() == [2.5]  # the middle of four elements, whose weights are a quarter


def test_corners_are_aligned_in_the_length_of_the_output() -> None:
    """onnx's cases have the last element at 3 / 1.4 of four instead of at 3."""
    x = np.arange(1, 9, dtype=np.float32).reshape(1, 1, 2, 4)
    scales = np.array([1, 1, 0.6, 0.6], np.float32)
    settings: dict[str, Any] = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
    (found,) = evaluate(one_node("Resize", (x, None, scales), 19, **settings), {"x0": x, "x2": scales})
    assert isinstance(found, np.ndarray)
    assert found.ravel().tolist() == [1.0, 4.0]


def test_most_cases_have_rules() -> None:
    from oracles.onnx.model import read
    from oracles.onnx.rules import rules

    covered = sum(
        all(node.operator in rules() or node.bodies for node in read(case.model).nodes) for case in backend_cases()
    )
    assert covered >= LEAST
