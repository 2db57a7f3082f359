"""Activation functions, by the formulas of their function bodies; defaults are float32, as the schemas hold them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oracles.onnx.operators.arguments import refuse, single
from oracles.onnx.operators.elementwise.functions import erf, sigmoid, softplus
from oracles.onnx.rule import Call, Rule, Value


def _activation(function: Callable[..., Any], **defaults: float) -> Rule:
    """A function of the first input and of attributes by name."""

    def rule(call: Call) -> list[Value]:
        settings = {name: call.get(name, default) for name, default in defaults.items()}
        return [np.asarray(function(call.input(0), **settings)).astype(call.input(0).dtype)]

    return rule


def _celu(x: np.ndarray, alpha: float) -> np.ndarray:
    return np.maximum(0, x) + np.minimum(0, alpha * np.expm1(x / alpha))


def _elu(x: np.ndarray, alpha: float) -> np.ndarray:
    return np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x)


def _selu(x: np.ndarray, alpha: float, gamma: float) -> np.ndarray:
    return gamma * _elu(x, alpha)


def _hard_sigmoid(x: np.ndarray, alpha: float, beta: float) -> np.ndarray:
    return np.maximum(0, np.minimum(1, alpha * x + beta))


def _shrink(x: np.ndarray, lambd: float, bias: float) -> np.ndarray:
    return np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0))


def _swish(x: np.ndarray, alpha: float) -> np.ndarray:
    return x * sigmoid(alpha * x)


def _gated(call: Call) -> list[Value]:
    """SwiGLU."""
    return [_swish(call.input(0), call.get("alpha", 1.0)) * call.input(1)]


def _gelu(call: Call) -> list[Value]:
    x, how = call.input(0), call.get("approximate", "none")
    if how == "none":
        return [0.5 * x * (1 + erf(x / np.sqrt(2.0)))]
    if how != "tanh":
        raise refuse(call, f"approximate {how!r}")
    return [0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))]


def _clip(call: Call) -> list[Value]:
    """The bounds are attributes, with the greatest float32 as their default, before version 11. The lower one comes
    first, so that the upper one holds where they are the wrong way round (the function body of version 13)."""
    x = call.input(0)
    greatest = float(np.finfo(np.float32).max)
    if call.version < 11:
        low, high = call.get("min", -greatest), call.get("max", greatest)
    else:
        low, high = call.input(1), call.input(2)
    if low is not None:
        x = np.where(x < low, low, x).astype(x.dtype)
    if high is not None:
        x = np.where(x > high, high, x).astype(x.dtype)
    return [x]


def _parametric(call: Call) -> list[Value]:
    """PRelu; the slope is broadcast to the input alone. Before version 7 a vector of slopes lies along the channels."""
    x, slope = call.input(0), call.input(1)
    if call.version < 7 and slope.ndim == 1 and slope.size > 1:
        slope = slope.reshape(-1, *[1] * (x.ndim - 2))
    return [np.where(x < 0, x * slope, x).astype(x.dtype)]


RULES = {
    "Celu": _activation(_celu, alpha=1.0),
    "Clip": _clip,
    "Elu": _activation(_elu, alpha=1.0),
    "Gelu": _gelu,
    "HardSigmoid": _activation(_hard_sigmoid, alpha=single(0.2), beta=0.5),
    "HardSwish": _activation(lambda x: x * _hard_sigmoid(x, 1 / 6, 0.5)),
    "LeakyRelu": _activation(lambda x, alpha: np.where(x < 0, alpha * x, x), alpha=single(0.01)),
    "Mish": _activation(lambda x: x * np.tanh(softplus(x))),
    "PRelu": _parametric,
    "Relu": _activation(lambda x: np.maximum(x, 0)),
    "Selu": _activation(_selu, alpha=1.67326319217681884765625, gamma=1.05070102214813232421875),
    "Shrink": _activation(_shrink, lambd=0.5, bias=0.0),
    "SwiGLU": _gated,
    "Swish": _activation(_swish, alpha=1.0),
    "ThresholdedRelu": _activation(lambda x, alpha: np.where(x > alpha, x, 0), alpha=1.0),
}
