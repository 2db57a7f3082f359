"""What divides by a norm or a sum along an axis."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oracles.onnx.operators.arguments import positive, refuse
from oracles.onnx.rule import Call, Rule, Value


def _flattened(function: Callable[[np.ndarray, int], np.ndarray]) -> Rule:
    """Before version 13 the input is a matrix whose rows are all axes from `axis` (1) on; then it is one axis, the
    last one unless another is stated."""

    def rule(call: Call) -> list[Value]:
        x = call.input(0)
        if call.version >= 13:
            return [function(x, positive(call.get("axis", -1), x.ndim))]
        axis = call.get("axis", 1)
        axis = axis + x.ndim if axis < 0 else axis
        rows = x.reshape(int(np.prod(x.shape[:axis])), int(np.prod(x.shape[axis:])))
        return [function(rows, 1).reshape(x.shape)]

    return rule


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    """exp(x) by its sum."""
    powers = np.exp(x - np.max(x, axis, keepdims=True, initial=-np.inf))
    return powers / np.sum(powers, axis, keepdims=True)


def _log_softmax(x: np.ndarray, axis: int) -> np.ndarray:
    below = x - np.max(x, axis, keepdims=True, initial=-np.inf)
    return below - np.log(np.sum(np.exp(below), axis, keepdims=True))


def _hardmax(x: np.ndarray, axis: int) -> np.ndarray:
    """1 for the first of the greatest elements."""
    if not x.size:
        return x
    places = np.expand_dims(np.argmax(x, axis), axis)
    return (np.arange(x.shape[axis]).reshape([-1 if k == axis else 1 for k in range(x.ndim)]) == places).astype(x.dtype)


def _by_norm(call: Call) -> list[Value]:
    """LpNormalization; 0 where the norm is 0."""
    x, p = call.input(0), call.get("p", 2)
    axis = positive(call.get("axis", -1), x.ndim)
    if p not in (1, 2):
        raise refuse(call, f"p {p}")
    norm = np.sum(np.abs(x), axis, keepdims=True) if p == 1 else np.sqrt(np.sum(x * x, axis, keepdims=True))
    return [np.where(norm == 0, 0.0, x / norm)]


RULES = {
    "Hardmax": _flattened(_hardmax),
    "LogSoftmax": _flattened(_log_softmax),
    "LpNormalization": _by_norm,
    "Softmax": _flattened(softmax),
}
