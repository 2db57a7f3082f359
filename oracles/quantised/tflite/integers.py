"""What TFLite's quantised operators must return, by its specification of 8-bit quantisation
(https://ai.google.dev/edge/litert/models/quantization_spec) and the arithmetic of its reference kernels: integers are
rescaled by multipliers of 31 bits (MultiplyByQuantizedMultiplier), of 15 bits where accumulators have 64, and rounded
to the nearest, half up or away from zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import Bounded
from oracles.quantised.integers import LIMITS, UNIT, Levels, Quantisation, away, dequantised, known, quantised, settled
from oracles.quantised.model import NotRecomputed, Real
from oracles.quantised.reference_operators import accumulated, applied, exactly, fixed, whole
from oracles.quantised.tflite.call import TIE, Call, window
from oracles.quantised.tflite.moves import MOVES, axes_of

Array = np.ndarray


def _fixed_point(call: Call, accumulator: Array, factor: Array) -> Levels:
    """A sum rescaled by a multiplier of fixed point."""
    position = accumulator * factor
    wide = call.seen.dtype == np.int16
    slack = np.abs(position) * (2.0**-15 if wide else 2.0**-29) + np.minimum(0.5, np.abs(factor))
    return call.settle(position, slack)


def _product(call: Call, total: Array, weight_scale: Array) -> Real:
    """What convolutions and products share: a bias of scale s_x s_w, and the result's scale."""
    scale, _, _ = call.result()
    _, x_scale, _ = call.levels(0)
    if len(call.operands) > 2 and call.operands[2] is not None:
        total = total + fixed(whole(call.operands[2]))
    return _fixed_point(call, total, x_scale * weight_scale / scale)


def _channels_first(array: Array) -> Array:
    return np.moveaxis(array, -1, 1)


def _conv(call: Call) -> Real:
    x, w = _channels_first(call.levels(0)[0]), _channels_first(call.levels(1)[0])
    attrs = {**window(call, x.shape[2:], w.shape[2:]), "groups": x.shape[1] // w.shape[1]}
    total = np.moveaxis(accumulated("conv2d", x, w, attrs), 1, -1)
    return _product(call, total, np.reshape(call.levels(1)[1], -1))


def _depthwise(call: Call) -> Real:
    x, w = _channels_first(call.levels(0)[0]), np.moveaxis(call.levels(1)[0], (3, 0), (0, 1))
    attrs = {**window(call, x.shape[2:], w.shape[2:]), "groups": x.shape[1]}
    total = np.moveaxis(accumulated("conv2d", x, w, attrs), 1, -1)
    return _product(call, total, np.reshape(call.levels(1)[1], -1))


def _fully_connected(call: Call) -> Real:
    x, w = call.levels(0)[0], call.levels(1)[0]
    total = accumulated("matmul", x.reshape(-1, w.shape[1]), np.ascontiguousarray(w.T))
    found = _product(call, total, np.reshape(call.levels(1)[1], -1))
    return found.map(lambda v: v.reshape(call.seen.shape))


def _batch_matmul(call: Call) -> Real:
    x, w = call.levels(0)[0], call.levels(1)[0]
    x = np.swapaxes(x, -1, -2) if call.node.attrs.get("adjX") else x
    w = np.swapaxes(w, -1, -2) if call.node.attrs.get("adjY") else w
    return _product(call, accumulated("matmul", x, w), call.levels(1)[1])


def _added(sign: int) -> Callable[[Call], Real]:
    """Both operands are shifted left by 20 bits (15 for 16 bits), and rescaled to twice the greater scale first."""

    def compute(call: Call) -> Real:
        (a, s, _), (b, t, _), (scale, _, dtype) = call.levels(0), call.levels(1), call.result()
        step = 2 * np.maximum(s, t) / scale * 2.0 ** -(15 if dtype == "int16" else 20)
        position = (a * s + sign * b * t) / scale
        slack = 2 * step + (np.abs(a) * s + np.abs(b) * t) / scale * 2.0**-28
        if call.kernels == "xnnpack":  # factors of 21 bits, of which the greater one has all
            slack = (np.abs(a) + np.abs(b)) * np.maximum(s, t) / scale * 2.0**-21
        return call.settle(position, slack)

    return compute


def _multiplied(call: Call) -> Real:
    (a, s, _), (b, t, _), (scale, _, _) = call.levels(0), call.levels(1), call.result()
    position = a * b * (s * t / scale)
    return call.settle(position, np.abs(position) * 2.0**-29 + np.minimum(0.5, s * t / scale))


def _function(name: str, quantum: float = 0.0) -> Callable[[Call], Real]:
    """A function of real numbers between dequantising and quantising. quantum: what fixed point may lose."""

    def compute(call: Call) -> Real:
        if isinstance(call.operands[0], Bounded):
            raise NotRecomputed(f"{call.node.op} of real numbers")
        if call.seen.dtype == np.int16:
            raise NotRecomputed(f"{call.node.op} of 16 bits")
        (x, s, _), (scale, _, _) = call.levels(0), call.result()
        attrs = {"axis": -1} if name in ("softmax", "log_softmax") else {}
        value = x * s
        real = applied(name, (Bounded(value, 2.0**-22 * np.abs(value), "float32"),), attrs)
        return call.settle(real.value / scale, real.error / scale + quantum + 2.0**-22 * np.abs(real.value / scale))

    return compute


def _leaky_relu(call: Call) -> Real:
    (x, s, _), (scale, _, _) = call.levels(0), call.result()
    factor = s / scale * np.where(x < 0, float(np.float32(call.node.attrs["alpha"])), 1.0)
    if call.kernels == "xnnpack":  # factors have 8 bits behind the point
        return call.settle(x * factor, np.abs(x) * 2.0**-9)
    return _fixed_point(call, x, factor)


def _pool(name: str) -> Callable[[Call], Real]:
    """Of levels as they are: the greatest; or the mean, rounded to the nearest, half away from zero. Padding is no
    part of a window."""

    def compute(call: Call) -> Real:
        x, attrs = fixed(whole(call.operands[0])), call.node.attrs
        kernel = [attrs["filterHeight"], attrs["filterWidth"]]
        how = {**window(call, x.shape[1:3], kernel), "kernel": kernel}
        n = len(kernel)
        front, behind = np.array(how["padding"][:n]), np.array(how["padding"][n:])
        if (front != behind).any():
            raise NotRecomputed(f"{call.node.op} with padding that differs")
        how["padding"] = front.tolist()
        if name == "avg_pool2d":
            how.pop("dilation")
            how["count_include_pad"] = False
        value = np.moveaxis(applied(name, (exactly(_channels_first(x)),), how).value, 1, -1)
        slack = 7 * UNIT * 256 + TIE if call.kernels == "xnnpack" and name == "avg_pool2d" else 0.0
        return settled(value, np.asarray(slack), np.zeros(()), str(call.seen.dtype), away, call.limits())

    return compute


def _mean(call: Call) -> Real:
    (x, s, _), (scale, _, _) = call.levels(0), call.result()
    axes = axes_of(call, x.ndim)
    factor = s / scale
    position = x.mean(axes).reshape(call.seen.shape) * factor
    return call.settle(position, 2.0**-14 * np.abs(position) + 0.5)


def _quantize(call: Call) -> Real:
    """Of real numbers: a quotient of float32, rounded half away from zero; of levels: rescaled."""
    scale, zero, dtype = call.result()
    x = call.operands[0]
    if isinstance(x, Bounded):
        x = replace(x, error=x.error + TIE * scale) if call.kernels == "xnnpack" else x
        return quantised(x, np.asarray(scale), np.asarray(zero), dtype, away, reciprocal=call.fast)
    levels, s, _ = call.levels(0)
    return _fixed_point(call, levels, s / scale)


def _dequantize(call: Call) -> Bounded:
    x = call.operands[0]
    if isinstance(x, Bounded):  # float16
        return Bounded(x.value, np.zeros(x.value.shape), "float32")
    how = call.given[0]
    if how is None:
        raise NotRecomputed("DEQUANTIZE without a scale")
    q, (scale, zero) = whole(x), how.spread(whole(x).low.ndim)
    found = dequantised(q, scale, zero)
    apart = 3 * UNIT * (np.abs(q.middle) + q.reach + np.abs(zero)) * scale  # scale and zero point
    return replace(found, error=np.maximum(found.error, q.reach * scale + apart)) if call.fast else found


def _same_levels(call: Call, place: int = 0) -> Real:
    """The operand, whose levels mean the same in the result."""
    x, a, b = call.operands[place], call.given[place], call.made
    if x is None or (a is None) != (b is None):
        raise NotRecomputed(f"{call.node.op} that quantises")
    if a and b and not a.alike(b):
        raise NotRecomputed(f"{call.node.op} between two scales")
    return x


def _one_scale(call: Call, given: Sequence[Quantisation | None]) -> None:
    """Raises NotRecomputed where levels of these operands do not mean the same in the result."""
    if call.made is None or any(how is None or not how.alike(call.made) for how in given):
        raise NotRecomputed(f"{call.node.op} between two scales")


def _moved(place: int, layout: Callable[[Call, Array], Array]) -> Callable[[Call], Real]:
    return lambda call: _same_levels(call, place).map(lambda v: layout(call, v))


def _padded(call: Call) -> Real:
    x, pads = _same_levels(call), fixed(call.operands[1]).astype(int)
    filled = call.made.zero[0] if call.made else 0.0
    if len(call.operands) > 2:
        filled = fixed(call.operands[2]).reshape(())
    if isinstance(x, Levels):
        return x.map(lambda v: np.pad(v, pads, constant_values=filled))
    return Bounded(np.pad(x.value, pads, constant_values=filled), np.pad(x.error, pads), x.dtype)


def _joined(call: Call) -> Real:
    parts = [whole(o) for o in call.operands]
    for how in call.given:
        if how is None or call.made is None or how.scale[0] != call.made.scale[0] or how.zero[0] != call.made.zero[0]:
            raise NotRecomputed("CONCATENATION of several scales")
    axis = call.node.attrs["axis"]
    return known(np.concatenate([fixed(p) for p in parts], axis).astype(call.seen.dtype))


def _relu(call: Call) -> Real:
    (x, s, _), (scale, zero, dtype) = call.levels(0), call.result()
    least, most = LIMITS[dtype]
    low, high = {"RELU": (0.0, np.inf), "RELU6": (0.0, 6.0)}[call.node.op]
    least = max(least, zero + float(away(np.asarray(low / scale))))
    most = min(most, zero + float(away(np.asarray(high / scale)))) if np.isfinite(high) else most
    slack = np.abs(x * s / scale) * 2.0**-15 + np.minimum(0.5, s / scale)
    return settled(x * s / scale, slack, np.asarray(zero), dtype, away, (least, most))


def _absolute(call: Call) -> Real:
    (x, s, _), (scale, _, _) = call.levels(0), call.result()
    return _fixed_point(call, np.abs(x), s / scale)


def _prelu(call: Call) -> Real:
    """The slope broadcasts over all but the first axis."""
    (x, s, _), (slope, t, _), (scale, _, _) = call.levels(0), call.levels(1), call.result()
    factor = s / scale * np.where(x < 0, slope * t, 1.0)
    slack = np.abs(x * factor) * 2.0**-29 + np.minimum(0.5, np.maximum(s, s * t) / scale)
    return call.settle(x * factor, slack)


def _squared_difference(call: Call) -> Real:
    """Both operands are shifted left by 7 bits, and rescaled to twice the greater scale first."""
    (a, s, _), (b, t, _), (scale, _, _) = call.levels(0), call.levels(1), call.result()
    step = 2 * np.maximum(s, t) * 2.0**-7
    difference = np.abs(a * s - b * t)
    slack = (2 * difference * step + step**2) / scale + difference**2 / scale * 2.0**-28
    return call.settle(difference**2 / scale, slack + np.minimum(0.5, step**2 / scale))


def _chosen(which: str) -> Callable[[Call], Real]:
    """The greater or the lesser of levels that mean the same."""

    def compute(call: Call) -> Real:
        _one_scale(call, call.given)
        a, b = (fixed(whole(o)) for o in call.operands)
        return known(getattr(np, which)(a, b).astype(call.seen.dtype))

    return compute


def _extreme(which: str) -> Callable[[Call], Real]:
    def compute(call: Call) -> Real:
        x = fixed(whole(_same_levels(call)))
        axes = axes_of(call, x.ndim)
        return known(getattr(x, which)(axes).reshape(call.seen.shape).astype(call.seen.dtype))

    return compute


def _summed(call: Call) -> Real:
    (x, s, _), (scale, _, _) = call.levels(0), call.result()
    axes = axes_of(call, x.ndim)
    total = x.sum(axes).reshape(call.seen.shape)
    return call.settle(total * s / scale, 2.0**-14 * np.abs(total * s / scale) + 0.5)


def _argmax(call: Call) -> Real:
    """The first of the greatest levels."""
    x, axis = fixed(whole(call.operands[0])), int(fixed(call.operands[1]).reshape(()))
    return known(np.argmax(x, axis).reshape(call.seen.shape).astype(call.seen.dtype))


def _compared(which: str) -> Callable[[Call], Bounded]:
    """Both operands are shifted left by 8 bits, and rescaled where their scales differ: what lies this near to each
    other may compare either way."""

    def compute(call: Call) -> Bounded:
        (a, s, _), (b, t, _) = call.levels(0), call.levels(1)
        difference = a * s - b * t
        same = call.given[0] is not None and call.given[1] is not None and call.given[0].alike(call.given[1])
        loose = np.where((not same) & (np.abs(difference) <= 2.0**-7 * np.maximum(s, t)), np.inf, 0.0)
        return Bounded(getattr(np, which)(difference, 0.0), loose, "bool")

    return compute


def _selected(call: Call) -> Real:
    """Levels that mean the same, of one operand or the other."""
    condition, *parts = call.operands
    _one_scale(call, call.given[1:])
    a, b = (fixed(whole(part)) for part in parts)
    return known(np.where(fixed(condition).astype(bool), a, b).astype(call.seen.dtype))


OPERATORS: dict[str, Callable[[Call], Real]] = {
    "CONV_2D": _conv,
    "DEPTHWISE_CONV_2D": _depthwise,
    "FULLY_CONNECTED": _fully_connected,
    "BATCH_MATMUL": _batch_matmul,
    "ADD": _added(1),
    "SUB": _added(-1),
    "MUL": _multiplied,
    "LOGISTIC": _function("sigmoid"),
    "TANH": _function("tanh"),
    "SOFTMAX": _function("softmax", 1.0),
    "HARD_SWISH": _function("hard_swish", 1.0),
    "LOG_SOFTMAX": _function("log_softmax", 1.0),
    "GELU": lambda call: _function("gelu_tanh" if call.node.attrs.get("approximate") else "gelu")(call),
    "EXP": _function("exp"),
    "LOG": _function("log"),
    "ABS": _absolute,
    "PRELU": _prelu,
    "SQUARED_DIFFERENCE": _squared_difference,
    "MAXIMUM": _chosen("maximum"),
    "MINIMUM": _chosen("minimum"),
    "REDUCE_MAX": _extreme("max"),
    "REDUCE_MIN": _extreme("min"),
    "SUM": _summed,
    "ARG_MAX": _argmax,
    "SELECT": _selected,
    "SELECT_V2": _selected,
    **{
        name.upper(): _compared(name)
        for name in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")
    },
    "LEAKY_RELU": _leaky_relu,
    "MAX_POOL_2D": _pool("max_pool2d"),
    "AVERAGE_POOL_2D": _pool("avg_pool2d"),
    "MEAN": _mean,
    "RELU": _relu,
    "RELU6": _relu,
    "QUANTIZE": _quantize,
    "DEQUANTIZE": _dequantize,
    "CONCATENATION": _joined,
    **{op: _moved(*move) for op, move in MOVES.items()},
    "PAD": _padded,
    "PADV2": _padded,
}
