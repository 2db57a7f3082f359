"""Activations and normalisations that ONNX Runtime fuses, by its documentation (docs/ContribOperators.md)."""

from __future__ import annotations

import numpy as np

from oracles.onnx.operators.arguments import along, positive, refuse, single
from oracles.onnx.operators.elementwise.functions import erf, sigmoid
from oracles.onnx.operators.reducing.softmax import softmax
from oracles.onnx.rule import Call, Value


def _normal(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + erf(x / np.sqrt(2)))


def _fast(x: np.ndarray) -> np.ndarray:
    """By tanh; the documentation gives six digits of these factors."""
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _gelu(call: Call) -> list[Value]:
    return [_normal(call.input(0))]


def _bias_gelu(call: Call) -> list[Value]:
    return [_normal(call.input(0) + call.input(1))]


def _fast_gelu(call: Call) -> list[Value]:
    bias = call.input(1)
    return [_fast(call.input(0) if bias is None else call.input(0) + bias)]


def _product_gelu(call: Call) -> list[Value]:
    x, bias = np.matmul(call.input(0), call.input(1)), call.input(2)
    return [_fast(x if bias is None else x + bias)]


def _quick_gelu(call: Call) -> list[Value]:
    x = call.input(0)
    return [x * sigmoid(call.get("alpha", single(1.702)) * x)]


def _split_gelu(call: Call) -> list[Value]:
    left, right = np.split(call.input(0) + call.input(1), 2, -1)
    return [left * _normal(right)]


def _bias_softmax(call: Call) -> list[Value]:
    """Over all axes from `axis` on, where the shapes say by themselves how the bias is broadcast."""
    x, bias = call.input(0), call.input(1)
    if x.ndim != bias.ndim:
        raise refuse(call, f"a bias of {bias.shape} for {x.shape}")
    axis = positive(call.get("axis", 1), x.ndim)
    total = x + bias
    return [softmax(total.reshape(*total.shape[:axis], -1), axis).reshape(total.shape)]


def _bias_add(call: Call) -> list[Value]:
    return [call.input(0) + call.input(1) + call.input(2)]


def _bias_dropout(call: Call) -> list[Value]:
    """Where nothing is dropped."""
    x, residual, ratio, training = call.input(0) + call.input(1), call.input(2), call.input(3), call.input(4)
    if training is not None and bool(np.all(training)) and (ratio is None or float(ratio) != 0):
        raise refuse(call, "it draws what it drops")
    return [x if residual is None else x + residual, np.ones(x.shape, bool)]


def _moments(x: np.ndarray, axes: tuple[int, ...], epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean and inverse deviation."""
    mean = x.mean(axes, keepdims=True)
    return mean, 1 / np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + epsilon)


def _skip_layer(call: Call) -> list[Value]:
    """The last output is the sum that is normalised."""
    x, skip, scale, shift, bias = (call.input(place) for place in range(5))
    total = x + skip if bias is None else x + skip + bias
    mean, inverse = _moments(total, (-1,), call.get("epsilon", single(1e-12)))
    y = (total - mean) * inverse * scale
    return [y if shift is None else y + shift, mean, inverse, total]


def _root_mean_square(x: np.ndarray, axes: tuple[int, ...], epsilon: float) -> np.ndarray:
    return 1 / np.sqrt((x * x).mean(axes, keepdims=True) + epsilon)


def _simplified(call: Call) -> list[Value]:
    x, scale = call.input(0), call.input(1)
    axes = tuple(range(positive(call.get("axis", -1), x.ndim), x.ndim))
    inverse = _root_mean_square(x, axes, call.get("epsilon", single(1e-5)))
    return [x * inverse * scale, inverse]


def _skip_simplified(call: Call) -> list[Value]:
    x, skip, scale, bias = (call.input(place) for place in range(4))
    total = x + skip if bias is None else x + skip + bias
    inverse = _root_mean_square(total, (-1,), call.get("epsilon", single(1e-12)))
    return [total * inverse * scale, None, inverse, total]


def _group(call: Call) -> list[Value]:
    """GroupNorm, and SkipGroupNorm, whose last output is the sum that is normalised."""
    x, scale, shift, skip, bias = (call.input(place) for place in range(5))
    if skip is not None:
        skip = skip.reshape(skip.shape[0], 1, 1, -1) if skip.ndim == 2 else skip
        if not call.get("channels_last", 1) and skip.shape != x.shape:
            raise refuse(call, "a skip of another shape with channels in the second place")
        x = x + skip
    last = bool(call.get("channels_last", 1))
    whole = np.moveaxis(x, -1, 1) if last else x
    whole = whole if bias is None else whole + along(bias, whole.ndim)
    parts = whole.reshape(whole.shape[0], call.get("groups", 1), -1)
    mean, inverse = _moments(parts, (2,), call.get("epsilon", single(1e-5)))
    y = ((parts - mean) * inverse).reshape(whole.shape) * along(scale, whole.ndim) + along(shift, whole.ndim)
    y = y * sigmoid(y) if call.get("activation", 0) else y
    return [np.moveaxis(part, 1, -1) if last else part for part in (y, whole)]


RULES = {
    "SimplifiedLayerNormalization": _simplified,  # of ONNX Runtime, in ONNX's own domain
    "com.microsoft:BiasAdd": _bias_add,
    "com.microsoft:BiasDropout": _bias_dropout,
    "com.microsoft:BiasGelu": _bias_gelu,
    "com.microsoft:BiasSoftmax": _bias_softmax,
    "com.microsoft:BiasSplitGelu": _split_gelu,
    "com.microsoft:FastGelu": _fast_gelu,
    "com.microsoft:Gelu": _gelu,
    "com.microsoft:GemmFastGelu": _product_gelu,
    "com.microsoft:GroupNorm": _group,
    "com.microsoft:QuickGelu": _quick_gelu,
    "com.microsoft:SkipGroupNorm": _group,
    "com.microsoft:SkipLayerNormalization": _skip_layer,
    "com.microsoft:SkipSimplifiedLayerNormalization": _skip_simplified,
}
