"""The multiplier inside a kernel: right ones are accepted, one that is off in the fifth digit is found where the model
is right. An error of 1e-5 moves few levels, so that it takes some ten thousand."""

from __future__ import annotations

import numpy as np
import pytest

from generators.bounds.bounded import leaf
from oracles.quantised.integers import Levels, Quantisation
from oracles.quantised.model import Judgement, Operation, judge_tensor, observed
from oracles.quantised.onnx import integers as onnx_integers
from oracles.quantised.tflite import kernels as tflite_kernels
from oracles.quantised.torch import integers as torch_integers

Array = np.ndarray
WRONG = 1 + 1e-5
DRAW = np.random.default_rng(5)
X = DRAW.integers(-128, 128, (256, 2048)).astype(np.int8)
W = DRAW.integers(-127, 128, (64, 2048)).astype(np.int8)
SUMS = X.astype(np.int64) @ W.astype(np.int64).T
SCALES = (0.03, 0.02, float(SUMS.std()) * 0.03 * 0.02 / 60)
"""Of operand, weight and result, whose levels then lie around 60."""
_HELD = np.array(SCALES, np.float32).astype(np.float64)
FACTOR = float(_HELD[0] * _HELD[1] / _HELD[2])


def by_float32(factor: float) -> Array:
    """A kernel that rescales in float32 and rounds half to even."""
    return np.clip(np.rint(SUMS.astype(np.float32) * np.float32(factor)), -128, 127).astype(np.int8)


def by_fixed_point(factor: float) -> Array:
    """A kernel of TFLite: a multiplier of 31 bits and a shift, one rounding (MultiplyByQuantizedMultiplier)."""
    fraction, exponent = np.frexp(factor)
    multiplier, shift = int(np.rint(fraction * 2**31)), 31 - int(exponent)
    return np.clip((SUMS * multiplier + (1 << (shift - 1))) >> shift, -128, 127).astype(np.int8)


def onnx_owes() -> Levels:
    zero = np.zeros((), np.int8)
    x, w, y = (leaf(np.asarray(scale, np.float32)) for scale in SCALES)
    operands = [observed(X), x, observed(zero), observed(W.T), w, observed(zero), y, observed(zero)]
    node = Operation("QLinearMatMul", "", tuple("abcdefgh"), ("y",), {})
    found = onnx_integers.compute(node, operands, 0, {})
    assert isinstance(found, Levels)
    return found


def _owed(module: object, node: Operation, *how: object) -> Levels:
    tensors = {name: Quantisation(np.array([scale]), np.zeros(1), 0) for name, scale in zip("xwy", _HELD, strict=True)}
    compute = module.computer(tensors, *how)  # type: ignore[attr-defined]
    found = compute(node, [observed(X), observed(W)], 0, {"y": by_float32(FACTOR)})
    assert isinstance(found, Levels)
    return found


def tflite_owes() -> Levels:
    return _owed(tflite_kernels, Operation("FULLY_CONNECTED", "", ("x", "w"), ("y",), {}), "reference")


def torch_owes() -> Levels:
    return _owed(torch_integers, Operation("linear", "quantized", ("x", "w"), ("y",), {"args": []}), "onednn")


KERNELS = {
    "onnx": (onnx_owes, by_float32),
    "tflite": (tflite_owes, by_fixed_point),
    "torch": (torch_owes, by_float32),
}


@pytest.mark.parametrize("name", KERNELS)
def test_a_multiplier_that_is_off_in_the_fifth_digit_is_found(name: str) -> None:
    owed, kernel = KERNELS[name]
    found = Judgement()
    judge_tensor(found, kernel(FACTOR), owed(), name)
    assert not found.wrong
    judge_tensor(found, kernel(FACTOR * WRONG), owed(), name)
    assert "levels wrong, by up to 1" in found.wrong[0]
