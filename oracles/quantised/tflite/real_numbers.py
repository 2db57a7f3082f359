"""What a back end must return that imports a quantised TFLite file and computes each operator with real numbers between
dequantising its operands and quantising its result, as TVM's importer does
(https://ai.google.dev/edge/litert/models/quantization_spec: what the levels mean)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from generators.bounds.bounded import Bounded
from generators.ops.composed import chosen, joined
from oracles.quantised.integers import Levels, Quantisation, dequantised, quantised
from oracles.quantised.model import NotRecomputed, Operation, Real, Values
from oracles.quantised.reference_operators import applied, fixed, number
from oracles.quantised.tflite.call import FUSED, TIE, Call, window
from oracles.quantised.tflite.moves import MOVES, axes_of, ints

Array = np.ndarray


def computer(tensors: Mapping[str, Quantisation], values: Values) -> Callable:
    """What a node returns (`quantised_model.Compute`). tensors: how they are quantised; values: all of them as TFLite's
    kernels have them, for their dtypes and shapes."""

    def compute(node: Operation, operands: Sequence[Real | None], index: int, seen: Values) -> Real:
        if node.op not in OPERATORS or (index and node.op not in MOVES):
            raise NotRecomputed(node.op)
        name = node.results[index]
        given, made = [tensors.get(o) for o in node.operands], tensors.get(name)
        if made is None and not any(given) and node.op != "DEQUANTIZE":
            raise NotRecomputed(f"{node.op} of real numbers, of which the question forward asks")
        real = [_real(o, how) for o, how in zip(operands, given, strict=True)]
        found = computed(Call(node, real, given, made, values[name], "built-in", index))
        if made is None:
            return found
        scale, zero = made.spread(found.value.ndim)
        loose = replace(found, error=found.error + TIE * scale)
        return quantised(loose, scale, zero, str(values[name].dtype), reciprocal=True)

    return compute


def computed(call: Call) -> Bounded:
    """The result as real numbers."""
    found = OPERATORS[call.node.op](call)
    low, high = FUSED[call.node.attrs.get("fusedActivationFunction", 0)]
    return found if low is None and high is None else replace(found, value=np.clip(found.value, low, high))


def _real(operand: Real | None, how: Quantisation | None) -> Real | None:
    """Levels that stand for real numbers as these."""
    if not isinstance(operand, Levels) or how is None:
        return operand
    return dequantised(operand, *how.spread(operand.low.ndim))


def _channels_first(x: Bounded) -> Bounded:
    return x.map(lambda v: np.moveaxis(v, -1, 1))


def _channels_last(x: Bounded) -> Bounded:
    return x.map(lambda v: np.moveaxis(v, 1, -1))


def _biased(call: Call, total: Bounded) -> Bounded:
    bias = call.operands[2] if len(call.operands) > 2 else None
    return total if bias is None else applied("add", (total, number(bias)))


def _conv(depthwise: bool) -> Callable[[Call], Bounded]:
    def compute(call: Call) -> Bounded:
        x, w = _channels_first(number(call.operands[0])), number(call.operands[1])
        w = w.map(lambda v: np.moveaxis(v, (3, 0), (0, 1))) if depthwise else _channels_first(w)
        groups = x.value.shape[1] if depthwise else x.value.shape[1] // w.value.shape[1]
        attrs = {**window(call, x.value.shape[2:], w.value.shape[2:]), "groups": groups}
        return _biased(call, _channels_last(applied("conv2d", (x, w), attrs)))

    return compute


def _fully_connected(call: Call) -> Bounded:
    x, w = number(call.operands[0]), number(call.operands[1])
    rows = x.map(lambda v: v.reshape(-1, w.value.shape[1]))
    total = applied("matmul", (rows, w.map(lambda v: np.ascontiguousarray(v.T))))
    return _biased(call, total).map(lambda v: v.reshape(call.seen.shape))


def _batch_matmul(call: Call) -> Bounded:
    a, b = number(call.operands[0]), number(call.operands[1])
    a = a.map(lambda v: np.swapaxes(v, -1, -2)) if call.node.attrs.get("adjX") else a
    b = b.map(lambda v: np.swapaxes(v, -1, -2)) if call.node.attrs.get("adjY") else b
    return applied("matmul", (a, b))


def _pool(name: str) -> Callable[[Call], Bounded]:
    def compute(call: Call) -> Bounded:
        x, attrs = _channels_first(number(call.operands[0])), call.node.attrs
        kernel = [attrs["filterHeight"], attrs["filterWidth"]]
        how = {**window(call, x.value.shape[2:], kernel), "kernel": kernel}
        pads = how["padding"]
        if pads[:2] != pads[2:]:
            raise NotRecomputed(f"{call.node.op} with padding that differs")
        how["padding"] = pads[:2]
        if name == "avg_pool2d":
            how = {**how, "count_include_pad": False}
            how.pop("dilation")
        return _channels_last(applied(name, (x,), how))

    return compute


def _named(name: str, **attrs: Any) -> Callable[[Call], Bounded]:
    return lambda call: applied(name, [number(o) for o in call.operands if o is not None], attrs)


def _leaky_relu(call: Call) -> Bounded:
    return applied("leaky_relu", (number(call.operands[0]),), {"alpha": float(np.float32(call.node.attrs["alpha"]))})


def _prelu(call: Call) -> Bounded:
    """The slope broadcasts over all but the first axis."""
    x, slope = number(call.operands[0]), number(call.operands[1])
    product = applied("mul", (x, slope))
    return chosen(x.value < 0, product, x)


def _reduced(name: str) -> Callable[[Call], Bounded]:
    def compute(call: Call) -> Bounded:
        x = number(call.operands[0])
        axes = tuple(sorted(set(axes_of(call, x.value.ndim))))
        return applied(name, (x,), {"axes": axes, "keepdims": bool(call.node.attrs.get("keepDims"))})

    return compute


def _moved(place: int, layout: Callable[[Call, Array], Array]) -> Callable[[Call], Bounded]:
    return lambda call: number(call.operands[place]).map(lambda v: layout(call, v))


def _resized(call: Call) -> Bounded:
    attrs = call.node.attrs
    if attrs["alignCorners"] == attrs["halfPixelCenters"]:
        raise NotRecomputed("RESIZE_BILINEAR by corners of pixels")
    how = {"size": tuple(ints(call, 1).tolist()), "mode": "corners" if attrs["alignCorners"] else "center"}
    return _channels_last(applied("resize_linear", (_channels_first(number(call.operands[0])),), how))


def _padded(call: Call) -> Bounded:
    x, pads = number(call.operands[0]), ints(call, 1)
    filled = float(fixed(call.operands[2]).reshape(())) if len(call.operands) > 2 else 0.0
    return Bounded(np.pad(x.value, pads, constant_values=filled), np.pad(x.error, pads), x.dtype)


def _joined(call: Call) -> Bounded:
    return joined(*(number(o) for o in call.operands), axis=call.node.attrs["axis"])


def _gelu(call: Call) -> Bounded:
    name = "gelu_tanh" if call.node.attrs.get("approximate") else "gelu"
    return applied(name, (number(call.operands[0]),))


def _chosen(call: Call) -> Bounded:
    condition, *parts = call.operands
    a, b = (number(part) for part in parts)
    return chosen(fixed(condition).astype(bool), a, b)


OPERATORS: dict[str, Callable[[Call], Bounded]] = {
    "CONV_2D": _conv(False),
    "DEPTHWISE_CONV_2D": _conv(True),
    "FULLY_CONNECTED": _fully_connected,
    "BATCH_MATMUL": _batch_matmul,
    "MAX_POOL_2D": _pool("max_pool2d"),
    "AVERAGE_POOL_2D": _pool("avg_pool2d"),
    "LEAKY_RELU": _leaky_relu,
    "PRELU": _prelu,
    "RELU6": _named("clip", min=0.0, max=6.0),
    "SOFTMAX": _named("softmax", axis=-1),
    "LOG_SOFTMAX": _named("log_softmax", axis=-1),
    "MEAN": _reduced("mean"),
    "SUM": _reduced("sum"),
    "REDUCE_MAX": _reduced("max"),
    "REDUCE_MIN": _reduced("min"),
    "REDUCE_PROD": _reduced("prod"),
    "CONCATENATION": _joined,
    "GELU": _gelu,
    "SELECT": _chosen,
    "SELECT_V2": _chosen,
    **{op: _moved(*move) for op, move in MOVES.items()},
    "RESIZE_BILINEAR": _resized,
    "QUANTIZE": lambda call: number(call.operands[0]),
    "PAD": _padded,
    "PADV2": _padded,
    "DEQUANTIZE": lambda call: replace(number(call.operands[0]), dtype=str(call.seen.dtype)),
    **{
        op: _named(name)
        for op, name in {
            "ADD": "add",
            "SUB": "sub",
            "MUL": "mul",
            "DIV": "div",
            "MAXIMUM": "maximum",
            "MINIMUM": "minimum",
            "SQUARED_DIFFERENCE": "squared_difference",
            "ABS": "abs",
            "NEG": "neg",
            "SQUARE": "square",
            "POW": "pow",
            "ATAN2": "atan2",
            "FLOOR_DIV": "floor_divide",
            "LESS": "less",
            "LESS_EQUAL": "less_equal",
            "GREATER": "greater",
            "GREATER_EQUAL": "greater_equal",
            "EQUAL": "equal",
            "NOT_EQUAL": "not_equal",
            "EXP": "exp",
            "LOG": "log",
            "SQRT": "sqrt",
            "RSQRT": "rsqrt",
            "SIN": "sin",
            "COS": "cos",
            "FLOOR": "floor",
            "CEIL": "ceil",
            "RELU": "relu",
            "ELU": "elu",
            "HARD_SWISH": "hard_swish",
            "LOGISTIC": "sigmoid",
            "TANH": "tanh",
        }.items()
    },
}
