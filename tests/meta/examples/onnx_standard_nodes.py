"""Nodes of ONNX operators in old and rare forms, which ONNX Runtime has too."""

from __future__ import annotations

from typing import Any

import numpy as np
from examples.onnx_runtime_nodes import RuntimeNode, bytes_of, drawn, ml, node, scalar

F, L = np.float32, np.int64
NONE = np.zeros(0, F)


def _recurrent() -> list[RuntimeNode]:
    found = []
    lengths = np.array([4, 2, 3], np.int32)
    for operator, gates, flags in (
        ("RNN", 1, {}),
        ("GRU", 3, {}),
        ("GRU", 3, {"linear_before_reset": 1}),
        ("LSTM", 4, {}),
    ):
        for how, count in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
            x, w, r = drawn("x", 4, 3, 5), drawn(operator, count, gates * 6, 5), drawn(operator, count, gates * 6, 6)
            b, start = drawn("b", count, 2 * gates * 6), drawn("h", count, 3, 6)
            states = (start, drawn("c", count, 3, 6)) if operator == "LSTM" else (start,)
            outputs = 3 if operator == "LSTM" else 2
            settings = {"hidden_size": 6, "direction": how, **flags}
            found += [
                node(operator, 14, x, w, r, outputs=outputs, **settings),
                node(operator, 14, x, w, r, b, lengths, *states, outputs=outputs, **settings),
            ]
            if operator != "LSTM":  # whose last activation ONNX Runtime does not clip
                found.append(node(operator, 7, x, w, r, b, None, *states, outputs=outputs, clip=0.4, **settings))
    x, w, r = drawn("x", 4, 3, 5), drawn("LSTM", 1, 24, 5), drawn("LSTM", 1, 24, 6)
    b, h, c, p = drawn("b", 1, 48), drawn("h", 1, 3, 6), drawn("c", 1, 3, 6), drawn("p", 1, 18)
    names = ["HardSigmoid", "LeakyRelu", "Affine"]
    return [
        *found,
        node("LSTM", 14, x, w, r, b, None, h, c, p, hidden_size=6, outputs=3),
        node("LSTM", 14, x, w, r, b, lengths, h, c, p, hidden_size=6, outputs=3, direction="reverse", input_forget=1),
        node(
            *("LSTM", 14, x, w, r, b, None, h, c),
            hidden_size=6,
            outputs=3,
            activations=names,
            activation_alpha=[0.3, 0.1, 0.7],
            activation_beta=[0.4, 0.2],
        ),
        *(
            node("RNN", 14, x, w[:, :6], r[:, :6], hidden_size=6, outputs=2, activations=[name])
            for name in ("Relu", "Sigmoid", "Softsign", "Softplus", "Elu", "LeakyRelu")
        ),
    ]


def _resized() -> list[RuntimeNode]:
    x, y = drawn("image", 1, 2, 5, 7), drawn("image", 1, 1, 6, 4)
    up, down = np.array([1, 1, 1.7, 2.3], F), np.array([1, 1, 0.63, 0.41], F)
    sizes = np.array([1, 2, 9, 5], L)
    found = []
    for how in ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"):
        version = 19 if how == "half_pixel_symmetric" else 13
        for mode in ("nearest", "linear", "cubic"):
            settings: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": how}
            found += [
                node("Resize", version, x, None, up, **settings),
                node("Resize", version, x, None, None, sizes, **settings),
            ]
            if how != "align_corners":
                found.append(node("Resize", version, x, None, down, **settings))
    for rounding in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
        settings: dict[str, Any] = {"nearest_mode": rounding, "coordinate_transformation_mode": "asymmetric"}
        found.append(node("Resize", 11, y, NONE, np.array([1, 1, 1.5, 2], F), **settings))
    roi = np.array([0, 0, 0.2, 0.1, 1, 1, 0.7, 1.2], F)
    crop: dict[str, Any] = {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 7.5}
    return [
        *found,
        node("Resize", 11, x, roi, NONE, sizes, mode="linear", **crop),
        node("Resize", 13, x, roi, None, sizes, mode="nearest", **crop),
        node("Resize", 11, x, NONE, up, mode="cubic", cubic_coeff_a=-0.5, exclude_outside=1),
        node("Resize", 11, x, NONE, up, coordinate_transformation_mode="tf_half_pixel_for_nn", nearest_mode="floor"),
        node("Resize", 10, x, np.array([1, 1, 2, 3], F)),
        node("Resize", 10, x, np.array([1, 1, 2, 3], F), mode="linear"),
        node("Resize", 18, x, None, None, np.array([9, 9], L), axes=[2, 3], keep_aspect_ratio_policy="not_larger"),
        node("Resize", 18, x, None, None, np.array([9, 9], L), axes=[3, 2], keep_aspect_ratio_policy="not_smaller"),
        node("Resize", 18, x, None, np.array([1.7, 2.3], F), axes=[3, 2], mode="linear"),
        node("Resize", 13, bytes_of("x", 1, 1, 4, 4), None, np.array([1, 1, 2, 2], F)),
    ]


def _sampled() -> list[RuntimeNode]:
    x, grid = drawn("x", 2, 3, 5, 6), drawn("grid", 2, 4, 3, 2)
    rois = np.array([[0.5, 1.2, 3.7, 4.1], [1, 0, 2.5, 3.3], [3.1, 2, 3.4, 2.2]], F)
    batch = np.array([0, 1, 1], L)
    found = []
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            for corners in (0, 1):
                settings = {"mode": mode, "padding_mode": padding, "align_corners": corners}
                found.append(node("GridSample", 16, x, grid, **settings))
    boxes, scores = np.abs(drawn("boxes", 2, 12, 4)), drawn("scores", 2, 3, 12)
    limits = (scalar(5, L), scalar(0.3), scalar(-0.2))
    return [
        *found,
        node("GridSample", 20, drawn("x", 1, 2, 3, 4, 5), drawn("grid", 1, 2, 3, 2, 3)),
        node("RoiAlign", 16, x, rois, batch, output_height=2, output_width=3, spatial_scale=0.9),
        node("RoiAlign", 16, x, rois, batch, output_height=2, output_width=2, sampling_ratio=2),
        node("RoiAlign", 10, x, rois, batch, output_height=2, output_width=2),
        node("NonMaxSuppression", 11, boxes, scores, *limits),
        node("NonMaxSuppression", 10, boxes, scores, *limits, center_point_box=1),
        node("NonMaxSuppression", 11, boxes, scores, scalar(3, L)),
    ]


def _quantised() -> list[RuntimeNode]:
    x, zeros = drawn("x", 4, 6, 5), bytes_of("z", 6)
    scales = np.abs(drawn("scale", 6)) + np.float32(0.01)
    image, w = bytes_of("image", 2, 4, 6, 6), bytes_of("w", 6, 2, 3, 3, kind=np.int8)
    one, two = (scalar(0.0317), scalar(119, np.uint8)), (scalar(0.0713), scalar(31, np.uint8))
    many = np.abs(drawn("scale", 6)) / 50
    blocks = np.abs(drawn("blocks", 4, 2, 5)) + np.float32(0.05)
    return [
        node("QuantizeLinear", 10, x, *one),
        node("QuantizeLinear", 13, x, scales, zeros, axis=1),
        node("QuantizeLinear", 21, x, blocks, axis=1, block_size=3, output_dtype=3),
        node("DequantizeLinear", 10, bytes_of("x", 4, 6), *one),
        node("DequantizeLinear", 13, bytes_of("x", 4, 6, 5), scales, zeros, axis=-2),
        node("DequantizeLinear", 21, bytes_of("x", 4, 6, 5), blocks, axis=1, block_size=3),
        node("DequantizeLinear", 13, np.array([[5, -3]], np.int32), scalar(0.5)),
        node("DynamicQuantizeLinear", 11, x, outputs=3),
        node("QLinearConv", 10, image, *one, w, many, np.zeros(6, np.int8), *two, group=2, pads=[1, 0, 1, 1]),
        node(
            *("QLinearConv", 10, image, *one, w, scalar(0.02), scalar(3, np.int8), *two, np.arange(6, dtype=np.int32)),
            group=2,
            strides=[2, 1],
        ),
        node("QLinearMatMul", 10, bytes_of("a", 3, 4), *one, bytes_of("b", 4, 5), *one, *two),
        node("MatMulInteger", 10, bytes_of("a", 3, 4), bytes_of("b", 4, 5, kind=np.int8), scalar(3, np.uint8)),
        node("MatMulInteger", 10, bytes_of("a", 2, 3, 4), bytes_of("b", 4, 5), scalar(9, np.uint8), bytes_of("z", 5)),
        node("ConvInteger", 10, image, bytes_of("w", 6, 4, 3, 3), scalar(7, np.uint8), pads=[1, 1, 1, 1]),
    ]


def _trees() -> list[RuntimeNode]:
    x = np.round(drawn("x", 20, 3), 1)
    x[3, 0] = np.nan
    nodes = {
        "nodes_treeids": [0, 0, 0, 0, 0, 1, 1, 1],
        "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2],
        "nodes_featureids": [0, 1, 0, 0, 0, 2, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "BRANCH_LT", "LEAF", "LEAF", "LEAF", "BRANCH_GT", "LEAF", "LEAF"],
        "nodes_values": [0.3, -0.2, 0, 0, 0, 0.1, 0, 0],
        "nodes_truenodeids": [1, 3, 0, 0, 0, 1, 0, 0],
        "nodes_falsenodeids": [2, 4, 0, 0, 0, 2, 0, 0],
        "nodes_missing_value_tracks_true": [1, 0, 0, 0, 0, 0, 0, 0],
    }
    places, trees = [2, 3, 4, 1, 2], [0, 0, 0, 1, 1]
    weights = [0.5, -1.5, 2.25, 0.75, -0.3]
    votes = {"target_nodeids": places, "target_treeids": trees, "target_weights": weights}
    found = [
        ml("TreeEnsembleRegressor", 1, x, target_ids=[0] * 5, n_targets=1, aggregate_function=how, **nodes, **votes)
        for how in ("SUM", "AVERAGE", "MIN", "MAX")
    ]
    classes = {"class_nodeids": places, "class_treeids": trees, "class_weights": weights, "class_ids": [0, 1, 2, 1, 0]}
    classes["class_weights"] = [0.5, 1.5, 2.25, 0.75, 0.3]
    for transform in ("NONE", "SOFTMAX", "LOGISTIC"):
        labels = {"classlabels_strings": ["a", "b", "c"], "post_transform": transform}
        found.append(ml("TreeEnsembleClassifier", 1, x, outputs=2, **nodes, **classes, **labels))
    for transform, some in (("NONE", classes["class_weights"]), ("LOGISTIC", weights)):  # votes for one class of two
        one = classes | {"class_ids": [0] * 5, "class_weights": some, "classlabels_int64s": [3, 7]}
        found.append(ml("TreeEnsembleClassifier", 1, x, outputs=2, **nodes, **one, post_transform=transform))
    base = {"base_values": [0.5, -0.25], "n_targets": 2, "target_ids": [0, 1, 1, 0, 1]}
    return [*found, ml("TreeEnsembleRegressor", 1, x, **nodes, **votes, **base)]


def _models() -> list[RuntimeNode]:
    x, weights = drawn("x", 6, 4), drawn("weights", 12).tolist()
    kernels = ("LINEAR", "RBF", "POLY", "SIGMOID")
    support = {"support_vectors": drawn("support", 20).tolist(), "coefficients": drawn("c", 5).tolist()}
    some = np.array([[1.0, np.nan, 3.0], [4.0, 5.0, np.nan]], F)
    texts, numbers = np.array(["a", "x", "b"]), np.array([3, 7, 5], L)
    return [
        ml("LinearRegressor", 1, x, coefficients=weights, targets=3, intercepts=[0.5, 1.0, -1.0]),
        ml("LinearRegressor", 1, x, coefficients=weights, targets=3, post_transform="SOFTMAX"),
        *(
            ml(
                *("LinearClassifier", 1, x),
                coefficients=weights,
                intercepts=[0.5, 1.0, -1.0],
                classlabels_ints=[4, 5, 9],
                outputs=2,
                post_transform=how,
            )
            for how in ("NONE", "SOFTMAX", "LOGISTIC")
        ),
        *(
            ml(
                "SVMRegressor",
                1,
                x,
                n_supports=5,
                kernel_type=kind,
                kernel_params=[0.3, 0.2, 2.0],
                rho=[0.4],
                **support,
            )
            for kind in kernels
        ),
        ml("Scaler", 1, x, offset=[0.5, 1, 2, 3], scale=[2, 3, 4, 0.1]),
        *(ml("Normalizer", 1, np.abs(x) if how == "MAX" else x, norm=how) for how in ("MAX", "L1", "L2")),
        ml("Imputer", 1, some, imputed_value_floats=[0.5, 1.5, 2.5], replaced_value_float=float("nan")),
        ml("Binarizer", 1, x, threshold=0.2),
        ml("OneHotEncoder", 1, numbers, cats_int64s=[5, 3]),
        ml("OneHotEncoder", 1, texts, cats_strings=["a", "b", "c"]),
        ml("LabelEncoder", 2, texts, keys_strings=["a", "b"], values_int64s=[4, 5], default_int64=9),
        ml("LabelEncoder", 2, numbers, keys_int64s=[3, 5], values_floats=[0.5, 1.5]),
        ml("LabelEncoder", 2, numbers, keys_int64s=[3, 5], values_strings=["a", "b"]),
        ml("CategoryMapper", 1, texts, cats_strings=["a", "b"], cats_int64s=[4, 5], default_int64=9),
        ml("ArrayFeatureExtractor", 1, x, np.array([2, 0], L)),
        ml("FeatureVectorizer", 1, x, drawn("y", 6, 2), inputdimensions=[4, 2]),
        ml("ZipMap", 1, x[:, :2].copy(), classlabels_strings=["a", "b"]),
    ]


def _others() -> list[RuntimeNode]:
    signal = drawn("signal", 1, 32, 1)
    return [
        node("DFT", 17, drawn("x", 2, 10, 1), axis=1, onesided=1),
        node("DFT", 17, drawn("x", 2, 10, 2), scalar(7, L), axis=1, inverse=1),
        node("DFT", 20, drawn("x", 2, 10, 1), scalar(16, L), scalar(1, L)),
        node("STFT", 17, signal, scalar(4, L), drawn("window", 8)),
        node("STFT", 17, signal, scalar(3, L), None, scalar(8, L), onesided=0),
        node("STFT", 17, drawn("signal", 2, 30), scalar(4, L), drawn("window", 8)),
        *(node(f"{name}Window", 17, scalar(9, L), periodic=flag) for name in ("Hann", "Hamming") for flag in (0, 1)),
        node("MelWeightMatrix", 17, *(scalar(n, L) for n in (6, 64, 8000)), scalar(20.0), scalar(3900.0)),
        node("StringNormalizer", 10, np.array(["Ab", "cd"]), stopwords=["cd"], is_case_sensitive=1),
        node("NegativeLogLikelihoodLoss", 13, drawn("x", 3, 5), np.array([1, 4, 0], L), drawn("w", 5) ** 2),
        node("SoftmaxCrossEntropyLoss", 13, drawn("x", 3, 5, 2), np.array([[1, 2], [4, 9], [0, 3]], L), ignore_index=9),
    ]


NODES = (*_recurrent(), *_resized(), *_sampled(), *_quantised(), *_trees(), *_models(), *_others())
