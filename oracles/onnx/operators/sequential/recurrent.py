"""RNN, GRU and LSTM, step by step as the specification writes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from oracles.onnx.operators.arguments import integers, refuse, single
from oracles.onnx.operators.elementwise.functions import sigmoid, softplus
from oracles.onnx.rule import Call, Rule, Value

Function = Callable[[np.ndarray], np.ndarray]

_PLAIN: dict[str, Function] = {
    "Relu": lambda x: np.maximum(x, 0),
    "Tanh": np.tanh,
    "Sigmoid": sigmoid,
    "Softsign": lambda x: x / (1 + np.abs(x)),
    "Softplus": softplus,
}
_SCALED: dict[str, tuple[Callable[..., np.ndarray], tuple[str, ...]]] = {
    "Affine": (lambda x, alpha, beta: alpha * x + beta, ("alpha", "beta")),
    "LeakyRelu": (lambda x, alpha: np.where(x < 0, alpha * x, x), ("alpha",)),
    "ThresholdedRelu": (lambda x, alpha: np.where(x >= alpha, x, 0), ("alpha",)),
    "ScaledTanh": (lambda x, alpha, beta: alpha * np.tanh(beta * x), ("alpha", "beta")),
    "HardSigmoid": (lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1), ("alpha", "beta")),
    "Elu": (lambda x, alpha: np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x), ("alpha",)),
}
_DEFAULTS = {
    ("LeakyRelu", "alpha"): single(0.01),
    ("ThresholdedRelu", "alpha"): 1.0,
    ("HardSigmoid", "alpha"): single(0.2),
    ("HardSigmoid", "beta"): 0.5,
    ("Elu", "alpha"): 1.0,
}


@dataclass(frozen=True)
class _Layer:
    """One direction: weights (gates x hidden, input), recurrent weights, the two biases, peepholes, activations."""

    w: np.ndarray
    r: np.ndarray
    wb: np.ndarray
    rb: np.ndarray
    peepholes: np.ndarray
    functions: Sequence[Function]
    flags: dict[str, int] = field(default_factory=dict)

    def gates(self, array: np.ndarray) -> list[np.ndarray]:
        """By gate, from what is stacked along the last axis."""
        return np.split(array, self.w.shape[0] // self.r.shape[1], -1)


State = tuple[np.ndarray, ...]
Step = Callable[[_Layer, np.ndarray, State], State]


def _rnn_step(layer: _Layer, x: np.ndarray, state: State) -> State:
    (f,) = layer.functions
    return (f(x @ layer.w.T + state[0] @ layer.r.T + layer.wb + layer.rb),)


def _gru_step(layer: _Layer, x: np.ndarray, state: State) -> State:
    """The order of gates is z, r, h."""
    f, g = layer.functions
    (before,) = state
    wz, wr, wh = layer.gates(x @ layer.w.T + layer.wb)
    rz, rr, rh = layer.gates(before @ layer.r.T + layer.rb)
    z, r = f(wz + rz), f(wr + rr)
    if layer.flags["linear_before_reset"]:
        new = g(wh + r * rh)
    else:
        new = g(wh + (r * before) @ layer.gates(layer.r.T)[2] + layer.gates(layer.rb)[2])
    return ((1 - z) * new + z * before,)


def _lstm_step(layer: _Layer, x: np.ndarray, state: State) -> State:
    """The order of gates is i, o, f, c; that of peepholes i, o, f."""
    f, g, h = layer.functions
    before, cell = state
    i, o, forget, c = layer.gates(x @ layer.w.T + before @ layer.r.T + layer.wb + layer.rb)
    pi, po, pf = np.split(layer.peepholes, 3)
    i = f(i + pi * cell)
    kept = 1 - i if layer.flags["input_forget"] else f(forget + pf * cell)
    cell = kept * cell + i * g(c)
    return f(o + po * cell) * h(cell), cell


def _functions(call: Call, default: Sequence[str], directions: int) -> list[Function]:
    """Activations of all directions; alphas and betas are taken in their order by those that have one."""
    given = {kind: list(call.get(f"activation_{kind}", ())) for kind in ("alpha", "beta")}
    known = {name.lower(): name for name in (*_PLAIN, *_SCALED)}
    found = []
    for stated in call.get("activations", list(default) * directions):
        name = known.get(stated.lower())
        if name is None:
            raise refuse(call, f"activation {stated!r}")
        if name in _PLAIN:
            found.append(_PLAIN[name])
            continue
        function, kinds = _SCALED[name]
        numbers = {}
        for kind in kinds:
            number = given[kind].pop(0) if given[kind] else _DEFAULTS.get((name, kind))
            if number is None:
                raise refuse(call, f"{name} without {kind}, which has no default")
            numbers[kind] = number
        found.append(partial(function, **numbers))
    if len(found) != len(default) * directions:
        raise refuse(call, f"{len(found)} activations in {directions} directions")
    clip = call.get("clip", 0.0)
    return [_clipped(function, clip) for function in found] if clip else found


def _clipped(function: Function, clip: float) -> Function:
    return lambda x: function(np.clip(x, -clip, clip))


def _run(layer: _Layer, step: Step, x: np.ndarray, state: State, lengths: np.ndarray, back: bool) -> tuple:
    """One direction over (time, batch, input): (time, batch, hidden) with zeros behind each sequence's end, and the
    last state."""
    y = np.zeros((*x.shape[:2], layer.r.shape[1]))
    samples = np.arange(x.shape[1])
    for number in range(int(lengths.max(initial=0))):
        active = (number < lengths)[:, None]
        places = np.where(number < lengths, lengths - 1 - number if back else number, 0)
        after = step(layer, x[places, samples], state)
        state = tuple(np.where(active, new, old) for new, old in zip(after, state, strict=True))
        chosen = samples[number < lengths]
        y[places[chosen], chosen] = state[0][chosen]
    return y, state


def _recurrent(step: Step, default: Sequence[str], states: int, *flags: str) -> Rule:
    """A rule for a layer whose initial states are the inputs from the sixth on."""

    def rule(call: Call) -> list[Value]:
        x, w, r, b, lengths = (call.input(place) for place in range(5))
        starts = [call.input(5 + place) for place in range(states)]
        peepholes = call.input(7) if states == 2 else None
        batch_first = bool(call.get("layout", 0))
        if batch_first:
            x = x.swapaxes(0, 1)
            starts = [start if start is None else start.swapaxes(0, 1) for start in starts]
        directions, hidden = r.shape[0], r.shape[2]
        time, batch = x.shape[:2]
        how = call.get("direction", "forward").lower()
        if how not in ("forward", "reverse", "bidirectional") or (how == "bidirectional") != (directions == 2):
            raise refuse(call, f"direction {how!r} with weights of {directions}")
        b = np.zeros((directions, 2 * w.shape[1])) if b is None else b
        peepholes = np.zeros((directions, 3 * hidden)) if peepholes is None else peepholes
        starts = [np.zeros((directions, batch, hidden)) if start is None else start for start in starts]
        lengths = np.full(batch, time) if lengths is None else np.array(integers(lengths))
        functions, count = _functions(call, default, directions), len(default)
        ys, ends = [], []
        for number in range(directions):
            chosen = functions[number * count : (number + 1) * count]
            wb, rb = np.split(b[number], 2)
            layer = _Layer(
                w[number], r[number], wb, rb, peepholes[number], chosen, {flag: call.get(flag, 0) for flag in flags}
            )
            back = how == "reverse" or number == 1
            y, end = _run(layer, step, x, tuple(start[number] for start in starts), lengths, back)
            ys.append(y)
            ends.append(end)
        whole = np.stack(ys, 1)  # (time, direction, batch, hidden)
        last = [np.stack(parts) for parts in zip(*ends, strict=True)]
        if batch_first:
            return [whole.transpose(2, 0, 1, 3), *(end.swapaxes(0, 1) for end in last)]
        return [whole, *last]

    return rule


def lstm(given: Function) -> Rule:
    """An LSTM whose steps are given something else than the last hidden state."""

    def step(layer: _Layer, x: np.ndarray, state: State) -> State:
        return _lstm_step(layer, x, (given(state[0]), state[1]))

    return _recurrent(step, ["Sigmoid", "Tanh", "Tanh"], 2, "input_forget")


RULES = {
    "RNN": _recurrent(_rnn_step, ["Tanh"], 1),
    "GRU": _recurrent(_gru_step, ["Sigmoid", "Tanh"], 1, "linear_before_reset"),
    "LSTM": _recurrent(_lstm_step, ["Sigmoid", "Tanh", "Tanh"], 2, "input_forget"),
}
