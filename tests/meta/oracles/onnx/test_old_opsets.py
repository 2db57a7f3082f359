"""Old operator sets: against ONNX Runtime, and by hand where onnx's own evaluator is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from examples.onnx_cases import apart, one_node
from examples.onnx_old_opsets import CASES

from oracles.onnx.evaluate import evaluate
from oracles.onnx.rule import NoRule


def test_old_versions_agree_with_onnx_runtime() -> None:
    wrong = []
    for version, operator, inputs, attributes in CASES:
        settings = dict(attributes)
        model = one_node(operator, inputs, version, settings.pop("outputs", 1), **settings)
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        given = {f"x{place}": x for place, x in enumerate(inputs) if x is not None}
        try:
            session = ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
            expected = session.run(None, given)
        except Exception as error:
            wrong.append((version, operator, attributes, str(error)[:150]))
            continue
        told = apart(model, given, expected)
        if told:
            wrong.append((version, operator, attributes, told))
    assert wrong == []


def value_of(operator: str, inputs: tuple[np.ndarray, ...], version: int, **attributes: Any) -> np.ndarray:
    (found,) = evaluate(one_node(operator, inputs, version, **attributes), inputs)
    assert isinstance(found, np.ndarray)
    return found


def test_batch_normalization_of_version_9_scales_channels() -> None:
    """The evaluator of onnx 1.23 returns other numbers for versions 9 to 13, and none for 7."""
    x = np.array([[[1.0, 2.0], [3.0, 5.0]]], np.float32)  # two channels of two places
    scale, bias, mean, variance = (np.array(pair, np.float32) for pair in ([1, 2], [0, 1], [1, 3], [4, 1]))
    right = [[[0.0, 0.5], [1.0, 5.0]]]
    for version in (7, 9, 13, 14, 15):
        found = value_of("BatchNormalization", (x, scale, bias, mean, variance), version, epsilon=0.0)
        assert found.tolist() == right


def test_batch_normalization_without_spatial_has_statistics_of_every_place() -> None:
    x = np.array([[[1.0, 2.0], [3.0, 5.0]]], np.float32)
    ones, mean = np.ones((2, 2), np.float32), np.array([[1, 1], [1, 1]], np.float32)
    found = value_of("BatchNormalization", (x, 2 * ones, ones, mean, ones), 7, epsilon=0.0, spatial=0)
    assert found.tolist() == [[[1.0, 3.0], [5.0, 9.0]]]


def test_batch_normalization_that_trains_returns_running_statistics() -> None:
    x = np.array([[[0.0], [2.0]], [[4.0], [2.0]]], np.float32)
    one, zero = np.ones(2, np.float32), np.zeros(2, np.float32)
    cases: tuple[tuple[int, dict[str, Any], int], ...] = ((7, {}, 5), (9, {}, 5), (14, {"training_mode": 1}, 3))
    for version, attributes, outputs in cases:
        model = one_node(
            "BatchNormalization",
            (x, one, zero, one, one),
            version,
            outputs,
            momentum=0.75,
            epsilon=0.0,
            **attributes,
        )
        y, mean, variance, *_ = evaluate(model, (x, one, zero, one, one))
        assert np.array_equal(np.asarray(y)[:, 0], [[-1.0], [1.0]])
        assert np.array_equal(np.asarray(mean), [1.25, 1.25])
        assert np.array_equal(np.asarray(variance), [1.75, 0.75])


def test_global_pools_of_rank_3_pool_the_last_axis() -> None:
    """The evaluator of onnx 1.23 takes the channels for a spatial axis."""
    x = np.array([[[1.0, 5.0, 2.0], [-4.0, -2.0, -3.0]]], np.float32)
    assert value_of("GlobalMaxPool", (x,), 13).tolist() == [[[5.0], [-2.0]]]
    assert value_of("GlobalMaxPool", (x[..., None],), 1).tolist() == [[[[5.0]], [[-2.0]]]]
    assert value_of("GlobalAveragePool", (x,), 22)[0, 1].tolist() == [-3.0]


def test_even_windows_of_local_responses_reach_behind() -> None:
    x = np.array([[[1.0], [2.0], [3.0]]], np.float32)
    found = value_of("LRN", (x,), 13, size=2, alpha=2.0, beta=1.0, bias=0.0)
    assert np.allclose(found.ravel(), [1 / 5, 2 / 13, 3 / 9], rtol=1e-15)


def test_broadcasting_of_version_6_is_along_an_axis() -> None:
    a, b = np.zeros((2, 3, 4), np.float32), np.array([1, 2, 3], np.float32)
    assert value_of("Add", (a, b), 6, broadcast=1, axis=1)[0, :, 0].tolist() == [1.0, 2.0, 3.0]


def test_empty_tensors_reduce_to_the_neutral_element() -> None:
    x = np.zeros((2, 0), np.float32)
    axes = np.array([1])
    for kind, right in (("Sum", 0), ("Prod", 1), ("Max", -np.inf), ("Min", np.inf), ("LogSum", -np.inf)):
        version = 20
        inputs = (x, axes)
        assert value_of(f"Reduce{kind}", inputs, version).tolist() == [[right], [right]]
    assert value_of("ReduceMin", (x.astype(np.int32), axes), 20).tolist() == [[2**31 - 1]] * 2


def test_what_a_version_does_not_say_has_no_rule() -> None:
    x = np.ones(3, np.float32)
    with pytest.raises(NoRule, match="said since version 12"):
        evaluate(one_node("Dropout", (x,), 10, 2), (x,))
    inputs = (x, np.array(0.5, np.float32), np.array(True))
    model = one_node("Dropout", inputs, 13)
    with pytest.raises(NoRule, match="Dropout y0: Dropout of version 13: it draws"):
        evaluate(model, inputs)
