"""Linear models, support vectors, and what scales their features."""

from __future__ import annotations

import numpy as np

from oracles.onnx.operators.arguments import refuse
from oracles.onnx.operators.ml.scores import best, transformed
from oracles.onnx.rule import Call, Value


def _matrix(x: np.ndarray) -> np.ndarray:
    """One row for each sample, in float64."""
    return (x.reshape(1, -1) if x.ndim == 1 else x).astype(np.float64)


def _linear(call: Call, count: int) -> np.ndarray:
    x = _matrix(call.input(0))
    weights = np.array(call.get("coefficients", ()), np.float64).reshape(count, -1)
    if weights.shape[1] != x.shape[1]:
        raise refuse(call, f"coefficients of {weights.shape[1]} for {x.shape[1]} features")
    return x @ weights.T + np.array(call.get("intercepts", None) or [0.0] * count)


def _classifier(call: Call) -> list[Value]:
    names = ("classlabels_strings", "classlabels_ints")
    count = len(call.get("intercepts", None) or call.get(names[0], None) or call.get(names[1], ()))
    scores = _linear(call, count)
    return [best(call, scores, *names), transformed(call, scores)]


def _regressor(call: Call) -> list[Value]:
    return [transformed(call, _linear(call, call.get("targets", 1)))]


def _kernel(call: Call, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    gamma, offset, degree = (*call.get("kernel_params", ()), 0.0, 0.0, 0.0)[:3]
    how = call.get("kernel_type", "LINEAR")
    if how == "RBF":
        return np.exp(-gamma * ((x[:, None] - y[None]) ** 2).sum(-1))
    products = x @ y.T
    if how == "LINEAR":
        return products
    if how == "POLY":
        return (gamma * products + offset) ** degree
    if how == "SIGMOID":
        return np.tanh(gamma * products + offset)
    raise refuse(call, f"kernel_type {how!r}")


def _support_regressor(call: Call) -> list[Value]:
    """The weighted kernels of all support vectors, or of one of them with weights by feature where none is stated."""
    x, count = _matrix(call.input(0)), call.get("n_supports", 0)
    coefficients = np.array(call.get("coefficients", ()), np.float64)
    (rho,) = call.get("rho", (0.0,))
    if count:
        scores = _kernel(call, x, np.array(call.get("support_vectors", ())).reshape(count, -1)) @ coefficients + rho
    elif call.get("kernel_type", "LINEAR") == "LINEAR":
        scores = x @ coefficients + rho
    else:
        raise refuse(call, "a kernel without support vectors")
    if call.get("one_class", 0):
        scores = np.where(scores > 0, 1.0, -1.0)
    return [transformed(call, scores[:, None])]


def _support_classifier(call: Call) -> list[Value]:
    raise refuse(call, "the text does not say how pairs of classes vote")


def _scaler(call: Call) -> list[Value]:
    x = call.input(0).astype(np.float64)
    return [(x - np.array(call.get("offset", (0.0,)))) * np.array(call.get("scale", (1.0,)))]


def _normalizer(call: Call) -> list[Value]:
    """By row. The text's formulas for sums hold for what is not negative; the norms that it names, and the package's
    reference implementation (onnx/reference/ops/aionnxml/op_normalizer.py), keep the signs."""
    x, how = call.input(0).astype(np.float64), call.get("norm", "MAX")
    if how == "MAX":
        norm = x.max(-1, keepdims=True)
        if (np.abs(x).max(-1, keepdims=True) > norm).any():
            raise refuse(call, "the greatest of negative numbers, which the text and its reference read differently")
    elif how in ("L1", "L2"):
        norm = np.abs(x).sum(-1, keepdims=True) if how == "L1" else np.sqrt((x * x).sum(-1, keepdims=True))
    else:
        raise refuse(call, f"norm {how!r}")
    return [np.where(norm == 0, x, x / np.where(norm == 0, 1, norm))]


RULES = {
    "ai.onnx.ml:LinearClassifier": _classifier,
    "ai.onnx.ml:LinearRegressor": _regressor,
    "ai.onnx.ml:Normalizer": _normalizer,
    "ai.onnx.ml:SVMClassifier": _support_classifier,
    "ai.onnx.ml:SVMRegressor": _support_regressor,
    "ai.onnx.ml:Scaler": _scaler,
}
