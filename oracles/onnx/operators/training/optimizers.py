"""One step of an optimiser for several tensors, by the pseudo code of the specification."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oracles.onnx.operators.arguments import integer, refuse, single
from oracles.onnx.rule import Call, Rule, Value

Step = Callable[..., tuple[np.ndarray, ...]]


def _optimizer(step: Step, states: int) -> Rule:
    """Inputs: the rate, the count, then all tensors, all gradients, and all of each state; outputs: all tensors and
    all of each state."""

    def rule(call: Call) -> list[Value]:
        rate, count = float(np.ravel(call.input(0))[0]), integer(call.input(1))
        given = call.inputs[2:]
        groups = states + 2
        if len(given) % groups:
            raise refuse(call, f"{len(given)} tensors in groups of {groups}")
        number = len(given) // groups
        found = [step(call, rate, count, *given[place::number]) for place in range(number)]
        return [part for parts in zip(*found, strict=True) for part in parts]

    return rule


def _adagrad(call: Call, rate: float, count: int, x: np.ndarray, g: np.ndarray, h: np.ndarray) -> tuple:
    rate = rate / (1 + count * call.get("decay_factor", 0.0))
    g = call.get("norm_coefficient", 0.0) * x + g
    h = h + g * g
    return x - rate * g / (np.sqrt(h) + call.get("epsilon", single(1e-6))), h


def _adam(call: Call, rate: float, count: int, x: np.ndarray, g: np.ndarray, v: np.ndarray, h: np.ndarray) -> tuple:
    alpha, beta = call.get("alpha", single(0.9)), call.get("beta", single(0.999))
    g = call.get("norm_coefficient", 0.0) * x + g
    v, h = alpha * v + (1 - alpha) * g, beta * h + (1 - beta) * g * g
    if count > 0:
        rate = rate * np.sqrt(1 - beta**count) / (1 - alpha**count)
    x = x - rate * v / (np.sqrt(h) + call.get("epsilon", single(1e-6)))
    return (1 - call.get("norm_coefficient_post", 0.0)) * x, v, h


def _momentum(call: Call, rate: float, count: int, x: np.ndarray, g: np.ndarray, v: np.ndarray) -> tuple:
    alpha, mode = call.get("alpha", 0.0), call.get("mode", "")
    if mode not in ("standard", "nesterov"):
        raise refuse(call, f"mode {mode!r}")
    g = call.get("norm_coefficient", 0.0) * x + g
    v = alpha * v + (call.get("beta", 1.0) if count > 0 else 1.0) * g
    return x - rate * (v if mode == "standard" else g + alpha * v), v


RULES = {
    "ai.onnx.preview.training:Adagrad": _optimizer(_adagrad, 1),
    "ai.onnx.preview.training:Adam": _optimizer(_adam, 2),
    "ai.onnx.preview.training:Momentum": _optimizer(_momentum, 1),
}
