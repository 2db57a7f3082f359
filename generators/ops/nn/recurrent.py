"""Recurrent cells, and the same run over time: simple, gated (GRU) and with long short-term memory (LSTM).

Weights are laid out as in PyTorch: gates one below the other (r, z, n of a GRU; i, f, g, o of an LSTM), with a bias for
the input and another one for the state. An error goes from step to step as the building blocks carry it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, add, gamma, monotone, multiply, rounded, settled
from generators.bounds.products import bilinear
from generators.graph import FLOATS, Attr, TensorType
from generators.ops.composed import compute, given, joined, shared, stacked
from generators.ops.elementwise.activations import sigmoid
from generators.ops.elementwise.rectifiers import relu
from generators.ops.slots import computed, draw_dtype, one_of
from generators.ops.spec import AttrRule, Attrs, Call, Draw, OpSpec, Slot, Spelling, TypeRuleError, Types

CHOICES: dict[str, tuple[Attr, ...]] = {
    "activation": ("tanh", "relu"),
    "reset": ("after", "before"),
    "direction": ("forward", "reverse"),
    "output": ("all", "last", "cell"),
}
"""reset: a GRU's reset gate scales the product of state and weights (PyTorch, cuDNN, Keras by default), or the state
before it (Cho et al. 2014, ONNX by default). output: of all steps, or state or cell after the last one."""

# ---- references ---------------------------------------------------------------------------------------


def tanh(x: Bounded) -> Bounded:
    """5 ulp (OpenCL)."""
    return monotone(np.tanh, x, 5)


def _affine(*terms: tuple[Bounded, Bounded], biases: Sequence[Bounded]) -> Bounded:
    """The sum of the products of (B, n) with (m, n) transposed, and of the biases (m), in any order."""
    ones = given(np.ones((terms[0][0].value.shape[0], len(biases))), biases[0].dtype)
    left = joined(*(x for x, _ in terms), ones, axis=1)
    right = joined(*(weight for _, weight in terms), stacked(*biases, axis=1), axis=1)
    return bilinear(lambda a, b: np.matmul(a, b.T), left, right, left.value.shape[1] + 1)


def _gate(x: Bounded, number: int, count: int, axis: int = 0) -> Bounded:
    return x.map(lambda a: np.split(a, count, axis)[number])


def _simple(x: Bounded, state: tuple[Bounded, ...], weights: Sequence[Bounded], attrs: Attrs) -> tuple[Bounded, ...]:
    w, r, bw, br = weights
    total = _affine((x, w), (state[0], r), biases=(bw, br))
    return (compute(relu, total) if attrs["activation"] == "relu" else tanh(total),)


def _mixed(z: Bounded, new: Bounded, old: Bounded) -> Bounded:
    """(1 - z) new + z old, or new + z (old - new): in either form three roundings of terms that are at most
    |new| (1 + z) + z |old|. Beside an infinite state it depends on the form: undetermined."""
    p = PRECISION[z.dtype]
    with np.errstate(all="ignore"):
        value = (1 - z.value) * new.value + z.value * old.value
        reach = np.abs(new.value) + new.error + np.abs(old.value) + old.error
        error = np.abs(1 - z.value) * new.error + z.value * old.error + z.error * reach
        size = (np.abs(new.value) + new.error) * (1 + z.value) + z.value * (np.abs(old.value) + old.error)
        error += gamma(3, p.unit + U64) * size + np.where(size > 0, 3 * p.tiny, 0.0)
        error = np.where(np.isfinite(value), error, np.inf)
    nan = np.isnan(value) & (np.isnan(old.value) & ~old.undetermined | np.isnan(new.value) & ~new.undetermined)
    loose = settled(new, old, np.where(z.undetermined, np.inf, error))
    return rounded(value, np.where(nan, 0.0, loose), z.dtype)


def _gated(x: Bounded, state: tuple[Bounded, ...], weights: Sequence[Bounded], attrs: Attrs) -> tuple[Bounded, ...]:
    h = state[0]
    w, r, bw, br = ([_gate(p, i, 3) for i in range(3)] for p in weights)
    reset, update = (sigmoid(_affine((x, w[i]), (h, r[i]), biases=(bw[i], br[i]))) for i in (0, 1))
    if attrs["reset"] == "after":
        inner = add(_affine((x, w[2]), biases=(bw[2],)), multiply(reset, _affine((h, r[2]), biases=(br[2],))))
    else:
        inner = _affine((x, w[2]), (multiply(reset, h), r[2]), biases=(bw[2], br[2]))
    return (_mixed(update, tanh(inner), h),)


def _with_memory(
    x: Bounded, state: tuple[Bounded, ...], weights: Sequence[Bounded], attrs: Attrs
) -> tuple[Bounded, ...]:
    h, c = state
    w, r, bw, br = weights
    gates = _affine((x, w), (h, r), biases=(bw, br))
    i, f, g, o = (_gate(gates, number, 4, 1) for number in range(4))
    cell = add(multiply(sigmoid(f), c), multiply(sigmoid(i), tanh(g)))
    return multiply(sigmoid(o), tanh(cell)), cell


STEPS = {"rnn": _simple, "gru": _gated, "lstm": _with_memory}
GATES = {"rnn": 1, "gru": 3, "lstm": 4}


def _cell(kind: str, args: Sequence[Bounded], call: Call) -> Bounded:
    x, *rest = args
    result = STEPS[kind](x, tuple(rest[:-4]), rest[-4:], call.attrs)
    return result[1 if call.attrs.get("output") == "cell" else 0]


def _sequence(kind: str, args: Sequence[Bounded], call: Call) -> Bounded:
    x, *rest = args
    state: tuple[Bounded, ...] = tuple(rest[:-4])
    order = range(x.value.shape[0])
    outputs = []
    for t in order if call.attrs["direction"] == "forward" else reversed(order):
        state = STEPS[kind](x.map(lambda a, t=t: a[t]), state, rest[-4:], call.attrs)
        outputs.append(state[0])
    if call.attrs["output"] != "all":
        return state[1 if call.attrs["output"] == "cell" else 0]
    return stacked(*(outputs if call.attrs["direction"] == "forward" else reversed(outputs)), axis=0)


# ---- operands and types -------------------------------------------------------------------------------


def _input(rank: int) -> Slot:
    def fresh(d: Draw, earlier: Types) -> TensorType:
        shape = (d.choice((3, 1, 2, 5)), d.choice((2, 1, 3)), d.choice((3, 1, 2, 4)))
        return TensorType(draw_dtype(d, FLOATS), shape[-rank:])

    def accepts(type_: TensorType, earlier: Types) -> bool:
        return type_.dtype in FLOATS and type_.rank == rank and 0 < type_.size <= 256 and type_.shape[0] <= 8

    return Slot(accepts, fresh)


def _state() -> Slot:
    def fresh(d: Draw, earlier: Types) -> TensorType:
        return TensorType(earlier[0].dtype, (earlier[0].shape[-2], d.choice((2, 3, 1, 4))))

    def accepts(type_: TensorType, earlier: Types) -> bool:
        x = earlier[0]
        return type_.dtype == x.dtype and type_.rank == 2 and type_.shape[0] == x.shape[-2] and 1 <= type_.shape[1] <= 8

    return Slot(accepts, fresh)


def _weight_types(kind: str, x: TensorType, h: TensorType) -> tuple[TensorType, ...]:
    rows, size = GATES[kind] * h.shape[1], h.shape[1]
    return tuple(TensorType(x.dtype, shape) for shape in ((rows, x.shape[-1]), (rows, size), (rows,), (rows,)))


def _operands(kind: str, rank: int) -> tuple[Slot, ...]:
    def weight(number: int) -> Slot:
        return computed(lambda earlier: _weight_types(kind, earlier[0], earlier[1])[number])

    memory = (computed(lambda earlier: earlier[1]),) if kind == "lstm" else ()
    return (_input(rank), _state(), *memory, *(weight(i) for i in range(4)))


def _type(kind: str, rank: int, operands: Types, attrs: Attrs) -> TensorType:
    x, h, *rest = operands
    if x.rank != rank or h.rank != 2 or h.shape[0] != x.shape[-2] or 0 in (*x.shape, *h.shape):
        raise TypeRuleError(f"{x} does not fit the state {h}")
    if tuple(rest) != (*((h,) if kind == "lstm" else ()), *_weight_types(kind, x, h)):
        raise TypeRuleError(f"the weights {', '.join(map(str, rest))} do not fit {x} and {h}")
    for name, value in attrs.items():
        if value not in CHOICES[name] or (kind != "lstm" and value == "cell"):
            raise TypeRuleError(f"{name} {value!r} is unknown")
    return TensorType(x.dtype, (x.shape[0], *h.shape)) if attrs.get("output") == "all" else h


# ---- records ------------------------------------------------------------------------------------------


def _torch(kind: str, cell: bool, composed: Spelling) -> Spelling:
    def spell(call: Call) -> str:
        if call.attrs.get("reset") == "before":
            assert callable(composed)
            return str(composed(call))
        name = f"rnn_{call.attrs['activation']}" if kind == "rnn" else kind
        if not cell:
            states = "{1}, {2}" if kind == "lstm" else "{1}"
            weights = ", ".join(f"{{{i}}}" for i in range(len(call.operands) - 4, len(call.operands)))
            return f'recurrent("{name}", {{0}}, [{states}], [{weights}], {{direction}}, {{output}})'
        if kind == "lstm":
            pick = 1 if call.attrs["output"] == "cell" else 0
            return f"torch.lstm_cell({{0}}, ({{1}}, {{2}}), {{3}}, {{4}}, {{5}}, {{6}})[{pick}]"
        return f"torch.{name}_cell({{args}})"

    return spell


def _onnx(kind: str, cell: bool, composed: Spelling) -> Spelling:
    def spell(call: Call) -> str:
        if call.result.dtype not in (
            "float32",
            "float16",
        ):  # ONNX Runtime has float kernels only, and casts around them
            assert callable(composed)
            return str(composed(call))
        states = "{1}, {2}" if kind == "lstm" else "{1}"
        weights = ", ".join(f"{{{i}}}" for i in range(len(call.operands) - 4, len(call.operands)))
        rank = "_cell" if cell else ""
        keywords = ", ".join(f"{name}={{{name}}}" for name in call.attrs)
        return f'recurrent{rank}(g, "{kind}", {{0}}, [{states}], [{weights}], {{shape1}}, {keywords})'

    return spell


def _record(kind: str, cell: bool) -> OpSpec:
    rank, name = 2 if cell else 3, f"{kind}_cell" if cell else kind
    attrs: dict[str, AttrRule] = {}
    if kind != "lstm":
        key = "activation" if kind == "rnn" else "reset"
        attrs[key] = one_of(*CHOICES[key])
    if not cell:
        attrs["direction"] = one_of(*CHOICES["direction"])
    if kind == "lstm" or not cell:
        every = ("last", "cell") if cell else CHOICES["output"]
        attrs["output"] = one_of(*(every if kind == "lstm" else every[:2]))
    composed = shared(name)
    return OpSpec(
        name, "recurrent", _operands(kind, rank),
        lambda operands, attrs: _type(kind, rank, operands, attrs),
        lambda args, call: (_cell if cell else _sequence)(kind, args, call),
        attrs=attrs, torch=_torch(kind, cell, composed["torch"]), tensorflow=composed["tensorflow"],
        jax=composed["jax"], relax=composed["relax"], onnx=_onnx(kind, cell, composed["onnx"]),
    )  # fmt: skip


OPERATORS: tuple[OpSpec, ...] = tuple(_record(kind, cell) for kind in GATES for cell in (True, False))
