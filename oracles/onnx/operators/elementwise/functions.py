"""Functions of one element."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import special

from oracles.onnx.rule import Call, Rule, Value


def erf(x: np.ndarray) -> np.ndarray:
    """The error function; of integers as well, in their own dtype."""
    return np.asarray(special.erf(x.astype(np.float64))).astype(x.dtype)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)) without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)


def softplus(x: np.ndarray) -> np.ndarray:
    """log(1 + exp(x))."""
    return np.logaddexp(x, 0.0)


def _unary(function: Callable[[np.ndarray], np.ndarray]) -> Rule:
    def rule(call: Call) -> list[Value]:
        return [np.asarray(function(call.input(0)))]

    return rule


def _is_infinite(call: Call) -> list[Value]:
    """Of either sign, or of the one that is asked for."""
    x = call.input(0)
    x = x.astype(np.float64)
    found = np.isposinf(x) & bool(call.get("detect_positive", 1)) | np.isneginf(x) & bool(
        call.get("detect_negative", 1)
    )
    return [np.asarray(found)]


def _identity(call: Call) -> list[Value]:
    return [call.input(0)]


RULES = {
    "Abs": _unary(np.abs),
    "Acos": _unary(np.arccos),
    "Acosh": _unary(np.arccosh),
    "Asin": _unary(np.arcsin),
    "Asinh": _unary(np.arcsinh),
    "Atan": _unary(np.arctan),
    "Atanh": _unary(np.arctanh),
    "BitwiseNot": _unary(np.invert),
    "Ceil": _unary(np.ceil),
    "Cos": _unary(np.cos),
    "Cosh": _unary(np.cosh),
    "Erf": _unary(erf),
    "Exp": _unary(np.exp),
    "Floor": _unary(np.floor),
    "Identity": _identity,
    "IsInf": _is_infinite,
    "IsNaN": _unary(lambda x: np.isnan(x.astype(np.float64))),
    "Log": _unary(np.log),
    "Neg": _unary(np.negative),
    "Not": _unary(np.logical_not),
    "Reciprocal": _unary(lambda x: 1.0 / x),
    "Round": _unary(np.rint),  # halves to even
    "Sigmoid": _unary(sigmoid),
    "Sign": _unary(np.sign),
    "Sin": _unary(np.sin),
    "Sinh": _unary(np.sinh),
    "Softplus": _unary(softplus),
    "Softsign": _unary(lambda x: x / (1 + np.abs(x))),
    "Sqrt": _unary(np.sqrt),
    "Tan": _unary(np.tan),
    "Tanh": _unary(np.tanh),
}
