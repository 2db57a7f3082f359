"""Nodes of ONNX Runtime's own operators."""

from __future__ import annotations

import numpy as np
from examples.onnx_runtime_nodes import RuntimeNode, bytes_of, drawn, ms, node, scalar

U, S = np.uint8, np.int8
Q = (scalar(0.03141), scalar(117, U))
R = (scalar(0.04327), scalar(3, U))
X3, X4, BIAS = drawn("x", 2, 3, 8), drawn("x", 2, 6, 5, 5), drawn("bias", 8)
GAMMA, BETA = drawn("gamma", 8), drawn("beta", 8)
A, B = bytes_of("a", 4, 6), bytes_of("b", 6, 5, kind=S)
COS, SIN = np.cos(drawn("angles", 10, 4)), np.sin(drawn("angles", 10, 4))


def _attention() -> list[RuntimeNode]:
    x, w, b = drawn("a", 2, 3, 8), drawn("w", 8, 24), drawn("b", 24)
    past, extra = drawn("past", 2, 2, 2, 4, 4), drawn("extra", 2, 2, 3, 3)
    ends, mask = np.array([3, 2], np.int32), np.array([[1, 1, 0], [1, 0, 1]], np.int32)
    q, k, v = drawn("q", 2, 3, 8), drawn("k", 2, 5, 8), drawn("v", 2, 5, 8)
    pk, pv = drawn("pk", 2, 2, 4, 4), drawn("pv", 2, 2, 4, 4)
    places, starts = np.array([[3, 4, 5], [0, 7, 2]], np.int64), np.array([2], np.int64)
    gq, gk, gv = drawn("gq", 2, 3, 64), drawn("gk", 2, 3, 32), drawn("gv", 2, 3, 32)
    gpk, gpv = drawn("gpk", 2, 2, 4, 16), drawn("gpv", 2, 2, 4, 16)
    cos, sin = np.cos(drawn("angles", 10, 8)), np.sin(drawn("angles", 10, 8))
    fresh, total = np.array([2, 2], np.int32), scalar(3, np.int32)
    later, more = np.array([4, 4], np.int32), scalar(5, np.int32)
    one = (drawn("gq1", 2, 1, 64), drawn("gk1", 2, 1, 32), drawn("gv1", 2, 1, 32))
    groups = {"num_heads": 4, "kv_num_heads": 2}
    return [
        ms("Attention", x, w, b, num_heads=2),
        ms("Attention", x, w, b, None, past, num_heads=2, outputs=2),
        ms("Attention", x, w, b, None, past, num_heads=2, unidirectional=1, outputs=2),
        ms("Attention", x, w, b, ends, num_heads=2),
        ms("Attention", x, w, b, mask, num_heads=2, scale=0.3),
        ms("Attention", x, w, b, np.repeat(mask[:, None], 3, 1), num_heads=2),
        ms("Attention", x, w, b, np.array([3, 3, 0, 1], np.int32), num_heads=2),
        ms("Attention", x, w, b, None, None, extra, num_heads=2),
        ms("Attention", x, drawn("w", 8, 28), drawn("b", 28), num_heads=2, qkv_hidden_sizes=[8, 8, 12]),
        ms("MultiHeadAttention", q, k, v, num_heads=2),
        ms("MultiHeadAttention", q, k, v, drawn("b", 24), num_heads=2),
        ms("MultiHeadAttention", q, k, v, None, np.array([[1, 1, 0, 1, 1], [1] * 5], np.int32), num_heads=2),
        ms("MultiHeadAttention", q, k, v, None, np.array([4, 2], np.int32), num_heads=2),
        ms("MultiHeadAttention", q, k, v, None, None, drawn("extra", 1, 2, 3, 5), num_heads=2),
        ms("MultiHeadAttention", q, q, q, None, None, None, pk, pv, num_heads=2, unidirectional=1, outputs=3),
        ms("MultiHeadAttention", q, drawn("k4", 2, 2, 5, 4), drawn("v4", 2, 2, 5, 4), num_heads=2),
        ms("GroupQueryAttention", gq, gk, gv, None, None, fresh, total, outputs=3, **groups),
        ms("GroupQueryAttention", drawn("gp", 2, 3, 128), None, None, None, None, fresh, total, outputs=3, **groups),
        ms("GroupQueryAttention", gq, gk, gv, None, None, fresh, total, cos, sin, do_rotary=1, outputs=3, **groups),
        ms("GroupQueryAttention", *one, gpk, gpv, later, more, cos, sin, do_rotary=1, outputs=3, **groups),
        ms(
            *("GroupQueryAttention", gq, gk, gv, None, None, fresh, total, cos, sin),
            **{"do_rotary": 1, "rotary_interleaved": 1, "outputs": 3, **groups},
        ),
        ms("GroupQueryAttention", *one, gpk, gpv, later, more, local_window_size=2, outputs=3, **groups),
        ms("GroupQueryAttention", gq, gk, gv, None, None, fresh, total, local_window_size=1, outputs=3, **groups),
        ms("GroupQueryAttention", gq, gk, gv, None, None, fresh, total, softcap=0.7, outputs=3, **groups),
        ms("GroupQueryAttention", gq, gk, gv, None, None, fresh, total, smooth_softmax=1, outputs=3, **groups),
        ms("GroupQueryAttention", gq, gk, gv, None, None, fresh, total, scale=0.4, outputs=3, **groups),
        ms(
            *("GroupQueryAttention", gq, gk, gv, None, None, fresh, total, None, None, None),
            *(drawn("extra", 1, 4, 3, 3), drawn("sink", 4)),
            **{"softcap": 0.9, "outputs": 3, **groups},
        ),
        ms(
            *("QAttention", bytes_of("x", 2, 3, 8), bytes_of("w", 8, 24, kind=S), b, scalar(0.02), scalar(0.01), None),
            *(scalar(120, U), scalar(3, S)),
            num_heads=2,
        ),
        ms("RotaryEmbedding", drawn("x", 2, 3, 16), places, COS, SIN),
        ms("RotaryEmbedding", drawn("x", 2, 3, 16), starts, COS, SIN, interleaved=1),
        ms("RotaryEmbedding", drawn("x", 2, 2, 3, 8), places, COS, SIN),
        ms("RotaryEmbedding", drawn("x", 2, 3, 24), places, COS, SIN, num_heads=2, rotary_embedding_dim=8),
        ms(
            *(
                "EmbedLayerNormalization",
                np.array([[1, 4, 2], [0, 3, 3]], np.int32),
                np.array([[0, 1, 1]] * 2, np.int32),
            ),
            *(drawn("words", 5, 8), drawn("places", 4, 8), drawn("kinds", 2, 8), GAMMA, BETA),
            np.array([[1, 1, 0], [1, 1, 1]], np.int32),
            outputs=2,
        ),
    ]


def _states() -> list[RuntimeNode]:
    q, k, v = drawn("q", 2, 3, 16), drawn("k", 2, 3, 8) / 4, drawn("v", 2, 3, 12)
    state, decay, beta = drawn("state", 2, 2, 4, 6), -np.abs(drawn("decay", 2, 3, 8)), np.abs(drawn("beta", 2, 3, 2))
    groups = {"q_num_heads": 4, "kv_num_heads": 2}
    x, w, past = drawn("x", 2, 4, 5), drawn("w", 4, 1, 3), drawn("past", 2, 4, 2)
    return [
        ms("LinearAttention", q, k, v, update_rule="linear", outputs=2, **groups),
        ms("LinearAttention", q, k, v, state, decay, update_rule="gated", outputs=2, **groups),
        ms("LinearAttention", q, k, v, state, None, beta, update_rule="delta", outputs=2, scale=0.7, **groups),
        ms("LinearAttention", q, k, v, state, decay, beta, outputs=2, **groups),
        ms("LinearAttention", q, k, v, None, decay[..., :2].copy(), beta[..., :1].copy(), outputs=2, **groups),
        ms("CausalConvWithState", x, w, outputs=2),
        ms("CausalConvWithState", x, w, drawn("b", 4), past, activation="silu", outputs=2),
    ]


def _layers() -> list[RuntimeNode]:
    skip = drawn("skip", 2, 3, 8)
    return [
        *(ms(name, X3) for name in ("Gelu", "FastGelu", "QuickGelu")),
        ms("FastGelu", X3, BIAS),
        ms("QuickGelu", X3, alpha=0.6),
        ms("BiasGelu", X3, BIAS),
        ms("SkipLayerNormalization", X3, skip, GAMMA, BETA),
        ms("SkipLayerNormalization", X3, skip, GAMMA, BETA, BIAS, epsilon=0.1),
        ms("SkipSimplifiedLayerNormalization", X3, skip, GAMMA),
        ms("SkipSimplifiedLayerNormalization", X3, skip, GAMMA, BIAS, epsilon=0.1),
        node("SimplifiedLayerNormalization", 13, X3, GAMMA, epsilon=0.01),
    ]


def _products() -> list[RuntimeNode]:
    a, b, w = drawn("a", 3, 2, 4), drawn("b", 3, 4, 5), drawn("w", 4, 3, 3, 3)
    image = drawn("image", 2, 3, 6, 6)
    return [
        ms("FusedMatMul", a, b, alpha=0.5),
        ms("FusedMatMul", a.swapaxes(1, 2).copy(), b.swapaxes(1, 2).copy(), transA=1, transB=1),
        ms("FusedMatMul", drawn("a", 2, 3, 4), b, transBatchA=1),
        ms("FusedMatMul", drawn("a", 2, 4, 3, 5), drawn("b", 4, 3, 5, 6), transBatchA=1),
        ms("TransposeMatMul", a, b.swapaxes(1, 2).copy(), transB=1),
        ms("FusedGemm", a[0], b[0], drawn("c", 5), activation="Relu", alpha=0.5),
        ms("FusedGemm", a[0], b[0], drawn("c", 5), activation="LeakyRelu", activation_alpha=0.2),
        ms("FusedConv", image, w, drawn("c", 4), activation="Relu", pads=[1, 1, 1, 1]),
        ms("FusedConv", image, w, drawn("c", 4), activation="HardSigmoid", activation_params=[0.3, 0.4]),
        ms("FusedConv", image, w, None, drawn("z", 2, 4, 4, 4), activation="Tanh"),
        ms("ConvTransposeWithDynamicPads", image, drawn("w", 3, 4, 3, 3), np.array([1, 0, 1, 1], np.int64)),
        ms("NhwcMaxPool", bytes_of("image", 1, 5, 5, 3), kernel_shape=[2, 2], strides=[2, 2]),
        ms("ExpandDims", a, scalar(1, np.int32)),
        ms("GatherND", a, np.array([[0, 1], [2, 0]], np.int64)),
        ms("Inverse", drawn("square", 2, 3, 3) + 3 * np.eye(3, dtype=np.float32)),
        ms("Pad", a, np.array([0, 1, 2, 0, 0, 1], np.int64), scalar(1.5)),
        ms("Range", scalar(1.0), scalar(4.6), scalar(0.7)),
        ms("Trilu", a, scalar(1, np.int64), upper=0),
        ms("Unique", np.array([2, 1, 1, 3, 4, 3], np.float32), outputs=3),
        ms("CDist", drawn("a", 4, 3), drawn("b", 5, 3), metric="euclidean"),
    ]


def _quantised() -> list[RuntimeNode]:
    image, other = bytes_of("image", 2, 3, 6, 6), bytes_of("other", 2, 3, 6, 6)
    packed, scales = bytes_of("packed", 5, 3, 8), np.abs(drawn("scales", 5, 3)) / 8
    column = np.abs(drawn("scale", 5)) / 64
    return [
        ms("QLinearAdd", image, *Q, other, *R, scalar(0.06171), scalar(90, U)),
        ms("QLinearMul", image, *Q, other, *R, scalar(0.2), scalar(90, U)),
        ms("QLinearLeakyRelu", image, *Q, scalar(0.04), scalar(30, U), alpha=0.1),
        ms("QLinearSigmoid", image, *Q, scalar(1 / 256), scalar(0, U)),
        ms("QLinearGlobalAveragePool", image, *Q, *R),
        ms("QLinearGlobalAveragePool", image, *Q, *R, channels_last=1),
        ms("QLinearAveragePool", image, *Q, *R, kernel_shape=[2, 3], pads=[0, 1, 1, 1], strides=[1, 2]),
        ms("QLinearAveragePool", image, *Q, *R, kernel_shape=[2, 2], pads=[1, 1, 1, 1], count_include_pad=1),
        ms("QLinearConcat", scalar(0.05137), scalar(99, U), image, *Q, other, *R, axis=1),
        ms("QLinearSoftmax", image, *Q, scalar(1 / 256), scalar(0, U), axis=-1, opset=13),
        ms("QLinearSoftmax", image, *Q, scalar(1 / 256), scalar(0, U), axis=2, opset=12),
        ms("QLinearWhere", image > 100, image, *Q, other, *R, scalar(0.05), scalar(40, U)),
        ms("QGemm", A, scalar(0.03), scalar(120, U), B, scalar(0.02), scalar(2, S), None, scalar(0.1), scalar(9, U)),
        ms("QGemm", A, scalar(0.03), scalar(120, U), B, scalar(0.02), scalar(2, S), np.arange(5, dtype=np.int32)),
        ms("DynamicQuantizeMatMul", drawn("a", 4, 6), B, scalar(0.02), scalar(2, S), drawn("c", 5)),
        ms("DynamicQuantizeMatMul", drawn("a", 4, 6), B, column),
        ms("MatMulIntegerToFloat", A, B, scalar(0.03), column, scalar(120, U), None, drawn("c", 5)),
        ms("MatMulNBits", drawn("a", 2, 40), packed, scales, K=40, N=5, bits=4, block_size=16),
        ms("MatMulNBits", drawn("a", 2, 40), packed, scales, bytes_of("z", 5, 2), K=40, N=5, bits=4, block_size=16),
        ms("MatMulNBits", drawn("a", 2, 48), bytes_of("p8", 5, 3, 16), scales, K=48, N=5, bits=8, block_size=16),
        ms("DequantizeLinear", image, np.array([0.1, 0.2, 0.3], np.float32), np.array([1, 2, 3], U), axis=1),
        ms("QuantizeLinear", X4, *R),
    ]


def _gathered() -> list[RuntimeNode]:
    boxes = np.array([[0.1, 0.0, 0.8, 0.7], [-0.2, 0.3, 0.5, 1.3], [0.6, 0.9, 0.2, 0.1]], np.float32)
    batch, size = np.array([0, 1, 1], np.int32), np.array([3, 4], np.int32)
    places, scales = np.array([[1, 4], [0, -1]], np.int64), np.abs(drawn("scales", 5, 2))
    return [
        ms("CropAndResize", X4, boxes, batch, size, extrapolation_value=2.5),
        ms("CropAndResize", X4, boxes, batch, np.array([1, 1], np.int32)),
        ms("GatherBlockQuantized", bytes_of("table", 5, 16), places, scales, block_size=16),
        ms("GatherBlockQuantized", bytes_of("table", 5, 16), places, scales, bytes_of("z", 5, 1), block_size=16),
        ms("GatherBlockQuantized", bytes_of("table", 5, 32), places, scales, block_size=16, bits=8),
    ]


NODES = (*_attention(), *_states(), *_layers(), *_products(), *_quantised(), *_gathered())
