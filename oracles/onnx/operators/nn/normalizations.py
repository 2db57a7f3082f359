"""Normalizations and dropout; defaults are float32, as the schemas hold them."""

from __future__ import annotations

import numpy as np

from oracles.onnx.operators.arguments import along, positive, refuse, single
from oracles.onnx.rule import Call, Value


def _moments(x: np.ndarray, axes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the population."""
    mean = np.mean(x, axes, keepdims=True)
    centred = x - mean
    return mean, np.mean(centred * centred, axes, keepdims=True)


def _epsilon(call: Call) -> float:
    return call.get("epsilon", single(1e-5))


def _batch(call: Call) -> list[Value]:
    """Training is an attribute since version 14, and before it that more outputs than one are asked for; without
    `spatial` (before version 9) every place of a sample has statistics of its own."""
    x, scale, bias, mean, variance = call.inputs[:5]
    x = np.asarray(x)
    if x.ndim == 1:  # one channel
        return _one_channel(call)
    spatial = bool(call.get("spatial", 1)) or call.version >= 9
    parts = [np.asarray(part) for part in (scale, bias, mean, variance)]
    shape = (1, -1, *[1] * (x.ndim - 2)) if spatial else (1, *x.shape[1:])
    scale, bias, mean, variance = (part.reshape(shape) for part in parts)
    asked = sum(1 for name in call.outputs if name)
    training = bool(call.get("training_mode", 0)) if call.version >= 14 else asked > 1
    if call.version < 7:
        training = not call.get("is_test", 0) and asked > 1
    if not training:
        return [(x - mean) / np.sqrt(variance + _epsilon(call)) * scale + bias]
    momentum = call.get("momentum", single(0.9))
    own = _moments(x, (0, *range(2, x.ndim)) if spatial else (0,))
    y = (x - own[0]) / np.sqrt(own[1] + _epsilon(call)) * scale + bias
    running = [old * momentum + new * (1 - momentum) for old, new in zip((mean, variance), own, strict=True)]
    return [y, *(part.reshape(parts[0].shape) for part in (*running, *own))]


def _one_channel(call: Call) -> list[Value]:
    """Of a vector, whose elements are samples of one channel."""
    x = np.asarray(call.input(0))
    inputs = (x[:, None], *call.inputs[1:])
    y, *rest = _batch(Call(call.operator, call.domain, call.version, call.attributes, inputs, call.outputs))
    return [np.asarray(y)[:, 0], *rest]


def _instance(call: Call) -> list[Value]:
    x, scale, bias = call.inputs[:3]
    x = np.asarray(x)
    mean, variance = _moments(x, tuple(range(2, x.ndim)))
    y = (x - mean) / np.sqrt(variance + _epsilon(call))
    return [y * along(np.asarray(scale), x.ndim) + along(np.asarray(bias), x.ndim)]


def _layer(call: Call) -> list[Value]:
    """Y, mean, inverse standard deviation, over all axes from `axis` on."""
    x, scale, bias = call.input(0), call.input(1), call.input(2)
    axes = tuple(range(positive(call.get("axis", -1), x.ndim), x.ndim))
    mean, variance = _moments(x, axes)
    inverse = 1 / np.sqrt(variance + _epsilon(call))
    y = (x - mean) * inverse * scale
    return [y if bias is None else y + bias, mean, inverse]


def _root_mean_square(call: Call) -> list[Value]:
    x, scale = call.input(0), call.input(1)
    axes = tuple(range(positive(call.get("axis", -1), x.ndim), x.ndim))
    return [x / np.sqrt(np.mean(x * x, axes, keepdims=True) + _epsilon(call)) * scale]


def _group(call: Call) -> list[Value]:
    """Scale and bias are of groups before version 21, then of channels."""
    x, scale, bias, groups = call.input(0), call.input(1), call.input(2), call.get("num_groups", 1)
    parts = x.reshape(x.shape[0], groups, -1)
    mean, variance = _moments(parts, (2,))
    y = ((parts - mean) / np.sqrt(variance + _epsilon(call))).reshape(x.shape)
    if call.version < 21:
        scale, bias = (np.repeat(part, x.shape[1] // groups) for part in (scale, bias))
    return [y * along(scale, x.ndim) + along(bias, x.ndim)]


def _mean_variance(call: Call) -> list[Value]:
    """Its function body has an epsilon of 1e-9 beside the deviation."""
    x = call.input(0)
    axes = tuple(positive(axis, x.ndim) for axis in call.get("axes", [0, 2, 3]))
    mean, variance = _moments(x, axes)
    return [(x - mean) / (np.sqrt(variance) + single(1e-9))]


def _local_response(call: Call) -> list[Value]:
    """LRN: by the squares of the channels from floor((size - 1) / 2) before to ceil((size - 1) / 2) behind."""
    x, size = call.input(0), call.get("size", 1)
    before, behind = (size - 1) // 2, size // 2
    squares = np.zeros_like(x)
    for step in range(-before, behind + 1):
        low, high = max(0, -step), min(x.shape[1], x.shape[1] - step)
        if low < high:
            squares[:, low:high] += x[:, low + step : high + step] ** 2
    factor = call.get("alpha", single(0.0001)) / size
    return [x / (call.get("bias", 1.0) + factor * squares) ** call.get("beta", 0.75)]


def _dropout(call: Call) -> list[Value]:
    """The input, and a mask of ones, unless it trains with a ratio that is not 0: that draws."""
    x = call.input(0)
    if call.version >= 12:
        ratio = 0.5 if call.input(1) is None else float(call.input(1))
        draws = call.input(2) is not None and bool(call.input(2)) and ratio != 0
    else:
        draws = call.version < 7 and not call.get("is_test", 0) and len(call.outputs) > 1
    if draws:
        raise refuse(call, "it draws what it drops")
    if call.version < 12 and any(call.outputs[1:]):
        raise refuse(call, "what the mask is where nothing is dropped is said since version 12")
    return [x, np.ones(x.shape, bool)]


RULES = {
    "BatchNormalization": _batch,
    "Dropout": _dropout,
    "GroupNormalization": _group,
    "InstanceNormalization": _instance,
    "LRN": _local_response,
    "LayerNormalization": _layer,
    "MeanVarianceNormalization": _mean_variance,
    "RMSNormalization": _root_mean_square,
}
