"""Rules for which ONNX Runtime has no kernel or another result, and cases that rules leave alone."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from examples.onnx_cases import one_node
from examples.onnx_runtime_nodes import RuntimeNode, bytes_of, drawn, ml, ms, node, scalar

from oracles.onnx.evaluate import evaluate
from oracles.onnx.kinds import kind_of, widened
from oracles.onnx.rule import Call, NoRule, Value
from oracles.onnx.rules import rules

F, L = np.float32, np.int64


def results(one: RuntimeNode) -> list[Value]:
    """What the rule gives; of the call alone, since no shapes are inferred for some of these operators."""
    domain, _, operator = one.operator.rpartition(":")
    inputs = tuple(None if x is None else widened(x) for x in one.inputs)
    outputs = tuple(f"y{place}" for place in range(one.outputs))
    kinds = tuple(0 if x is None else kind_of(x) for x in one.inputs)
    return list(rules()[one.operator](Call(operator, domain, one.version, one.attributes, inputs, outputs, 0, kinds)))


def first(one: RuntimeNode) -> Any:
    return results(one)[0]


def close(found: Any, right: Any) -> bool:
    return np.shape(found) == np.shape(right) and bool(np.allclose(found, right, rtol=1e-12, atol=1e-12))


X = drawn("x", 2, 3, 8)
WIDE = X.astype(np.float64)


def test_fused_activations_are_their_parts() -> None:
    bias, w = drawn("bias", 8), drawn("w", 8, 4)
    halves = np.split(WIDE + bias.astype(np.float64), 2, -1)
    gelu = first(ms("Gelu", halves[1].astype(F)))
    assert np.abs(first(ms("BiasSplitGelu", X, bias)) - halves[0] * gelu).max() < 1e-6
    product = WIDE @ w.astype(np.float64)
    assert close(first(ms("GemmFastGelu", X, w)), first(ms("FastGelu", product)))
    assert close(first(ms("BiasAdd", X, bias, X)), 2 * WIDE + bias)
    assert close(first(ms("BiasDropout", X, bias, X)), 2 * WIDE + bias)


def test_a_biased_softmax_takes_all_axes_from_its_own_on() -> None:
    x, bias = drawn("x", 2, 3, 4), drawn("bias", 2, 1, 4)
    y = first(ms("BiasSoftmax", x, bias, axis=1))
    powers = np.exp(x.astype(np.float64) + bias)
    assert close(y, powers / powers.sum((1, 2), keepdims=True))
    with pytest.raises(NoRule, match="a bias of"):
        results(ms("BiasSoftmax", x, bias[0], axis=1))


def test_groups_of_channels_in_the_last_place() -> None:
    x, scale, shift, skip = drawn("x", 2, 3, 3, 4), drawn("g", 4), drawn("b", 4), drawn("skip", 2, 4)
    moved = np.moveaxis(x, -1, 1).copy()
    parts = moved.astype(np.float64).reshape(2, 2, -1)
    parts = (parts - parts.mean(2, keepdims=True)) / np.sqrt(parts.var(2, keepdims=True) + 0.01)
    right = parts.reshape(moved.shape) * scale.reshape(-1, 1, 1) + shift.reshape(-1, 1, 1)
    assert close(first(ms("GroupNorm", x, scale, shift, groups=2, epsilon=0.01)), np.moveaxis(right, 1, -1))
    assert close(first(ms("GroupNorm", moved, scale, shift, groups=2, epsilon=0.01, channels_last=0)), right)
    active = first(ms("GroupNorm", x, scale, shift, groups=2, epsilon=0.01, activation=1))
    assert close(active, np.moveaxis(right / (1 + np.exp(-right)), 1, -1))
    total = results(ms("SkipGroupNorm", x, scale, shift, skip, scale, groups=2, outputs=2))[1]
    assert close(total, x.astype(np.float64) + skip[:, None, None].astype(np.float64) + scale.astype(np.float64))


def test_packed_heads_are_the_same_attention() -> None:
    q, k, v = drawn("q", 2, 3, 8), drawn("k", 2, 3, 8), drawn("v", 2, 3, 8)
    right = first(ms("MultiHeadAttention", q, k, v, num_heads=2))
    whole = np.stack([part.reshape(2, 3, 2, 4) for part in (q, k, v)], 3)
    assert close(first(ms("MultiHeadAttention", whole, num_heads=2)), right)
    assert close(first(ms("MultiHeadAttention", q, whole[:, :, :, 1:].copy(), num_heads=2)), right)


def test_channels_last_are_the_same_convolution() -> None:
    image, w = drawn("image", 1, 3, 5, 5), drawn("w", 2, 3, 3, 3)
    right = first(node("Conv", 11, image, w, pads=[1, 0, 1, 0]))
    found = first(ms("NhwcConv", np.moveaxis(image, 1, -1).copy(), w, pads=[1, 0, 1, 0]))
    assert close(found, np.moveaxis(right, 1, -1))


def test_whole_numbers_are_added_multiplied_and_averaged() -> None:
    a, zero = bytes_of("a", 3, 4), scalar(7, np.uint8)
    wide = a.astype(L)
    assert np.array_equal(first(ms("MulInteger", a, zero, a, None)), (wide - 7) * wide)
    assert np.array_equal(first(ms("ReduceSumInteger", a, axes=[1], keepdims=0)), wide.sum(1))
    mean = first(ms("QLinearReduceMean", a, scalar(0.5), zero, scalar(0.25), zero, axes=[0], keepdims=0))
    assert np.array_equal(mean, np.clip(np.rint((wide - 7).mean(0) * 2) + 7, 0, 255))


def test_a_table_of_four_bits_is_the_same_as_a_packed_one() -> None:
    numbers, places, scales = bytes_of("n", 4, 32, bits=4), np.array([[1, 3]], L), np.abs(drawn("s", 4, 2))
    packed = numbers[:, 0::2] | numbers[:, 1::2] << 4
    zeros = np.full((4, 2), 8, ml_dtypes.uint4)
    right = first(ms("GatherBlockQuantized", packed, places, scales, block_size=16))
    small = numbers.astype(ml_dtypes.uint4)
    assert close(first(ms("GatherBlockQuantized", small, places, scales, zeros, block_size=16)), right)
    plain = first(ms("GatherBlockQuantized", small, places, scales, block_size=16))
    assert close(plain, right + 8 * np.repeat(scales[places].astype(np.float64), 16, -1))
    beyond = first(ms("GatherBlockQuantized", small, np.array([4, -5], L), scales, block_size=16))
    assert not beyond.any()
    by_column = first(ms("GatherBlockQuantized", small, np.array([0, 31], L), scales, block_size=16, gather_axis=1))
    assert close(by_column, numbers[:, [0, 31]] * scales.astype(np.float64))


def test_numbers_are_finite_or_not() -> None:
    bad = np.array([1, np.inf], F)
    assert not first(ms("IsAllFinite", X, bad))
    assert first(ms("IsAllFinite", X))
    assert first(ms("IsAllFinite", bad, isnan_only=1))
    assert not first(ms("IsAllFinite", bad, isinf_only=1))
    assert np.array_equal(first(ms("TorchEmbedding", X[0], np.array([2, 0], L))), WIDE[0][[2, 0]])


def test_the_last_activation_of_a_cell_is_clipped() -> None:
    """ONNX Runtime 1.31.1 clips the inputs of the other activations alone."""
    x, w, r = np.full((1, 1, 1), 1, F), np.full((1, 4, 1), 9, F), np.zeros((1, 4, 1), F)
    start, cell = np.zeros((1, 1, 1), F), np.full((1, 1, 1), 5, F)
    y = first(node("LSTM", 14, x, w, r, None, None, start, cell, hidden_size=1, clip=0.5))
    assert y.item() == pytest.approx(np.tanh(0.5) / (1 + np.exp(-0.5)), rel=1e-12)


def test_one_target_is_transformed_as_well() -> None:
    """ONNX Runtime 1.31.1 returns the score as it is."""
    y = first(ml("LinearRegressor", 1, np.ones((1, 2), F), coefficients=[1.0, -3.0], post_transform="LOGISTIC"))
    assert y.item() == pytest.approx(1 / (1 + np.exp(2)), rel=1e-12)


def test_a_class_without_votes_has_a_score_of_zero() -> None:
    """ONNX Runtime 1.31.1 gives the label of the best class that has votes."""
    tree = {
        "nodes_treeids": [0],
        "nodes_nodeids": [0],
        "nodes_featureids": [0],
        "nodes_modes": ["LEAF"],
        "nodes_values": [0.0],
        "nodes_truenodeids": [0],
        "nodes_falsenodeids": [0],
        "class_treeids": [0, 0],
        "class_nodeids": [0, 0],
        "class_ids": [0, 1],
        "class_weights": [-1.0, -2.0],
    }
    one = ml("TreeEnsembleClassifier", 1, np.ones((1, 1), F), classlabels_int64s=[5, 6, 7], outputs=2, **tree)
    label, scores = results(one)
    assert np.array_equal(np.asarray(label), [7])
    assert np.array_equal(np.asarray(scores), [[-1, -2, 0]])


def test_missing_features_go_where_they_are_told() -> None:
    tree: dict[str, Any] = {
        "nodes_treeids": [0] * 3,
        "nodes_nodeids": [0, 1, 2],
        "nodes_featureids": [0] * 3,
        "nodes_modes": ["BRANCH_NEQ", "LEAF", "LEAF"],
        "nodes_values": [1.0, 0.0, 0.0],
        "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0],
        "n_targets": 1,
        "target_treeids": [0, 0],
        "target_nodeids": [1, 2],
        "target_ids": [0, 0],
        "target_weights": [10.0, 20.0],
    }
    x = np.array([[np.nan], [1], [2]], F)
    for tracks, right in ((0, [20, 20, 10]), (1, [10, 20, 10])):
        one = ml("TreeEnsembleRegressor", 1, x, nodes_missing_value_tracks_true=[tracks, 0, 0], **tree)
        assert first(one).ravel().tolist() == right


def test_maps_become_vectors() -> None:
    call = Call("DictVectorizer", "ai.onnx.ml", 1, {"string_vocabulary": ["a", "c", "b"]}, ({"a": 4, "b": 8},), ("y",))
    assert np.array_equal(np.asarray(rules()["ai.onnx.ml:DictVectorizer"](call)[0]), [4, 0, 8])


LEFT_ALONE = (
    node("RandomNormal", 1, shape=[3]),
    node("Bernoulli", 15, X),
    node("Multinomial", 7, X[0]),
    node("MaxRoiPool", 1, X[None], np.zeros((1, 5), F), pooled_shape=[1, 1]),
    node("Resize", 10, X, np.array([1, 1, 0.7], F)),
    node("Resize", 13, bytes_of("x", 1, 4), None, np.array([1, 2], F), mode="linear"),
    node("RNN", 14, X, drawn("w", 1, 4, 8), drawn("r", 1, 4, 4), activations=["Affine"], hidden_size=4),
    node("DynamicQuantizeLinear", 11, np.zeros(3, F), outputs=3),
    node("HannWindow", 17, scalar(1, L), periodic=0),
    node("RegexFullMatch", 20, np.array(["a"], object), pattern="(?=a)a"),
    ml("SVMClassifier", 1, X[0]),
    ml("Normalizer", 1, np.array([[-3.0, 1.0]], F), norm="MAX"),
    ml("LinearClassifier", 1, X[0], coefficients=[0.5] * 8, intercepts=[0.0], classlabels_ints=[0, 1], outputs=2),
    ms("GroupQueryAttention", X, X, X, None, None, np.array([2, 1], np.int32), scalar(3), num_heads=2, kv_num_heads=2),
    ms("CDist", X[0], X[0], metric="cosine"),
)


@pytest.mark.parametrize("one", LEFT_ALONE, ids=lambda one: one.label)
def test_what_the_text_leaves_open_has_no_rule(one: RuntimeNode) -> None:
    with pytest.raises(NoRule, match=one.operator.rpartition(":")[2]):
        results(one)


def test_a_random_node_is_refused_in_a_model() -> None:
    with pytest.raises(NoRule, match="is random"):
        evaluate(one_node("RandomNormal", (), 1, shape=[3]), {})
