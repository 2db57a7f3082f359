"""The LSTM of ONNX Runtime whose weights are whole numbers, by its documentation (docs/ContribOperators.md)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from oracles.onnx.operators.quantised.integers import moved
from oracles.onnx.operators.quantised.linear import dynamic
from oracles.onnx.operators.sequential.recurrent import lstm
from oracles.onnx.rule import Call, Rule, Value


def _again(call: Call, x: np.ndarray) -> np.ndarray:
    """What a tensor stands for when it was quantised as DynamicQuantizeLinear does it; nothing but zeros stays."""
    if not x.any():
        return x
    small, scale, zero = dynamic(call, x)
    return (small.astype(np.int64) - zero) * scale


def _weights(call: Call, place: int, scale: int) -> np.ndarray:
    """(direction, input, gates) of whole numbers, by a scale for each direction, or column of each, as the real ones
    that an LSTM has: (direction, gates, input)."""
    w, factor, zero = call.input(place), call.input(scale), call.input(scale + 1)
    factor = factor if factor.ndim == 2 else factor.reshape(-1, 1)
    zero = zero if zero is None or zero.ndim == 2 else zero.reshape(-1, 1)
    whole = moved(w, None if zero is None else zero[:, None])
    return np.swapaxes(whole * factor[:, None], 1, 2)


def _dynamic_lstm(call: Call) -> list[Value]:
    """The documentation leaves open what is quantised together: as the kernel has it the whole input, and before each
    step the last hidden state of all samples of a direction; with one thread, since each of several quantises that of
    its own samples."""
    rule: Rule = lstm(lambda h: _again(call, h))
    inputs = list(call.inputs[:8])
    inputs[:3] = [_again(call, call.input(0)), _weights(call, 1, 8), _weights(call, 2, 10)]
    return list(rule(replace(call, inputs=tuple(inputs))))


RULES = {"com.microsoft:DynamicQuantizeLSTM": _dynamic_lstm}
