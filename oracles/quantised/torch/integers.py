"""What PyTorch's quantised operators must return, by the sources of its kernels (aten/src/ATen/native/quantized/cpu,
FBGEMM's output processing, QNNPACK): integers are accumulated exactly, rescaled by a multiplier of float32 and rounded
half to even; the real numbers between are float32. QNNPACK holds biases as int32, and adds by multipliers of 22
bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from generators.bounds.bounded import Bounded
from oracles.quantised.integers import UNIT, Levels, Quantisation, dequantised, quantised
from oracles.quantised.model import NotRecomputed, Operation, Real, Values
from oracles.quantised.reference_operators import accumulated, applied, exactly, fixed, number, whole
from oracles.quantised.torch.operators import FLOATS, SHARED, Call, max_window, mean_window, same

Array = np.ndarray


def computer(tensors: Mapping[str, Quantisation], engine: str) -> Callable:
    """What a node returns (`quantised_model.Compute`), by how tensors are quantised."""

    def compute(node: Operation, operands: Sequence[Real | None], index: int, seen: Values) -> Real:
        name = node.results[index]
        call = Call(node, operands, [tensors.get(o) for o in node.operands], tensors.get(name), seen[name],
                    engine == "qnnpack", index)  # fmt: skip
        real = name not in tensors and all(isinstance(o, Bounded) for o in operands)
        known = {**SHARED, **(FLOATS if real and not node.domain else QUANTISED)}
        if node.op not in known:
            raise NotRecomputed(node.op)
        return known[node.op](call)

    return compute


def _bias(call: Call, scale: Array, rank: int, axis: int) -> tuple[Array, Array]:
    """The bias in units of the accumulator, and how far it may be from that: QNNPACK rounds it to a whole number."""
    if len(call.operands) < 3 or call.operands[2] is None:
        return np.zeros(()), np.zeros(())
    real = number(call.operands[2]).value.reshape([-1 if i == axis else 1 for i in range(rank)])
    if not call.qnnpack:
        return real / scale, np.zeros(())
    level = quantised(Bounded(real, np.zeros(real.shape), "float32"), scale, np.zeros(()), "int32", reciprocal=True)
    return level.middle, level.reach


def _product(call: Call, total: Array, axis: int) -> Levels:
    """What convolutions and products share. Rounded in float32: the accumulator, the product of scales, its
    reciprocal, the bias times that, the sum, the multiplier (twice), and the last product."""
    (scale, _, _), (_, x_scale, _) = call.result(), call.levels()
    how = call.given[1]
    assert how is not None, "a weight has a scale"
    w_scale = np.reshape(how.scale, [-1 if i == axis and how.scale.size > 1 else 1 for i in range(total.ndim)])
    bias, reach = _bias(call, x_scale * w_scale, total.ndim, axis)
    factor = x_scale * w_scale / scale
    slack = (reach + 8 * UNIT * (np.abs(total) + np.abs(bias))) * factor
    return call.settle((total + bias) * factor, slack)


def _linear(call: Call) -> Levels:
    x, w = call.levels()[0], call.levels(1)[0]
    total = accumulated("matmul", x.reshape(-1, w.shape[1]), np.ascontiguousarray(w.T))
    return _product(call, total, 1).map(lambda v: v.reshape(call.seen.shape))


def _conv(call: Call) -> Levels:
    """One dimension is held as two, the first of size 1."""
    x, w, attrs = call.levels()[0], call.levels(1)[0], call.node.attrs
    x = np.expand_dims(x, -2) if x.ndim < w.ndim else x
    how = {"stride": attrs["stride"], "dilation": attrs["dilation"], "groups": attrs["groups"]}
    total = accumulated("conv2d", x, w, {**how, "padding": [*attrs["padding"], *attrs["padding"]]})
    return _product(call, total, 1).map(lambda v: v.reshape(call.seen.shape))


def _matmul(call: Call) -> Levels:
    """By float32: both operands are dequantised first."""
    (a, s, _), (b, t, _), (scale, _, _) = call.levels(), call.levels(1), call.result()
    size = accumulated("matmul", np.abs(a), np.abs(b)) * (s * t / scale)
    return call.settle(accumulated("matmul", a, b) * (s * t / scale), (a.shape[-1] + 6) * UNIT * size)


def _add(call: Call) -> Levels:
    """By float32: both operands, their sum, and the scale's reciprocal. QNNPACK: multipliers of 22 bits, of which the
    greater one has all."""
    if len(call.operands) < 2 or not isinstance(call.operands[1], Levels):
        raise NotRecomputed("add of a number")
    (a, b), (scale, _, _) = (call.terms(), call.terms(1)), call.result()
    slack = 6 * UNIT * (a[1] + b[1]) / scale
    if call.qnnpack:
        (p, s, _), (q, t, _) = call.levels(), call.levels(1)
        slack = slack + 2.0**-21 * (np.abs(p) + np.abs(q)) * np.maximum(s, t) / scale
    return call.settle((a[0] + b[0]) / scale, slack)


def _mul(call: Call) -> Levels:
    if len(call.operands) < 2 or not isinstance(call.operands[1], Levels):
        raise NotRecomputed("mul by a number")
    (a, s, _), (b, t, _), (scale, _, _) = call.levels(), call.levels(1), call.result()
    position = a * b * (s * t / scale)
    return call.settle(position, 5 * UNIT * np.abs(position))


def _cat(call: Call) -> Levels:
    scale, axis = call.result()[0], call.argument(1, "dim", 0)
    parts = [call.terms(i) for i in range(len(call.node.attrs["args"][0]))]
    values, sizes = (np.concatenate([part[i] for part in parts], axis) for i in (0, 1))
    return call.settle(values / scale, 6 * UNIT * sizes / scale)


def _clamped(low: float | None, high: float | None, call: Call) -> Levels:
    """Between levels of the bounds, which are quantised as any number is."""
    x, (scale, zero, dtype) = whole(same(call)), call.result()
    least, most = x.low, x.high

    def level(bound: float) -> Levels:
        real = Bounded(np.asarray(float(np.float32(bound))), np.zeros(()), "float32")
        return quantised(real, np.asarray(scale), np.asarray(zero), dtype, reciprocal=True)

    if low is not None:
        least, most = np.maximum(least, level(low).low), np.maximum(most, level(low).high)
    if high is not None:
        least, most = np.minimum(least, level(high).low), np.minimum(most, level(high).high)
    return Levels(least, most, dtype)


def _clamp(call: Call) -> Levels:
    return _clamped(call.argument(1, "min"), call.argument(2, "max"), call)


def _max_pool(call: Call) -> Levels:
    value = applied("max_pool2d", (exactly(fixed(whole(same(call)))),), max_window(call)).value
    return Levels(value, value, str(call.seen.dtype))


def _avg_pool(call: Call) -> Levels:
    """The mean of levels; padding is the zero point."""
    same(call)
    x, _, zero = call.levels()
    value = applied("avg_pool2d", (exactly(x),), mean_window(call)).value
    return call.settle(value, 8 * UNIT * (255 + np.abs(zero)) * np.ones(value.shape))


def _mean(call: Call) -> Levels:
    (x, s, zero), (scale, _, _) = call.levels(), call.result()
    axes = call.argument(1, "dim")
    axes = tuple(axes) if isinstance(axes, list) else axes
    value = x.mean(axes).reshape(call.seen.shape)
    count = x.size // max(value.size, 1)
    return call.settle(value * s / scale, (count + 8) * UNIT * (255 + np.abs(zero)) * s / scale * np.ones(value.shape))


def _function(name: str, key: str = "") -> Callable[[Call], Levels]:
    """A function of real numbers between dequantising and quantising in float32."""

    def compute(call: Call) -> Levels:
        value, size = call.terms()
        attrs = {key: call.argument(1, "negative_slope", 0.01)} if key else {}
        real = applied(name, (Bounded(value, 2 * UNIT * size, "float32"),), attrs)
        scale = call.result()[0]
        return call.settle(real.value / scale, real.error / scale + 3 * UNIT * np.abs(real.value / scale))

    return compute


def _quantize(call: Call) -> Levels:
    """By the reciprocal of the scale, rounded half to even."""
    scale, zero, dtype = call.result()
    return quantised(number(call.operands[0]), np.asarray(scale), np.asarray(zero), dtype, reciprocal=True)


def _dequantize(call: Call) -> Bounded:
    how, q = call.given[0], whole(call.operands[0])
    if how is None:
        raise NotRecomputed("dequantize without a scale")
    return dequantised(q, *how.spread(q.low.ndim))


def chosen(low: float, high: float, most: int) -> tuple[float, float]:
    """Scale and zero point that ChooseQuantizationParams (quantized/cpu/QuantUtils.h) gives a range, in float64."""
    low, high = min(low, 0.0), max(high, 0.0)
    scale = (high - low) / most
    if np.float32(scale) == 0 or not np.isfinite(1 / np.float32(scale)):
        scale = 0.1
    smallest = float(np.float32(6.1e-5))
    if scale < smallest:
        by = smallest / scale
        low, high = (0.0, smallest * most) if low == 0 else (low * by, 0.0) if high == 0 else (low * by, high * by)
        scale = smallest
    near = low if -abs(low / scale) < most - abs(high / scale) else high
    zero = -low / scale if near is low else most - high / scale
    return float(np.float32(scale)), float(np.rint(np.clip(zero, 0, most)))


def _linear_dynamic(call: Call) -> Bounded:
    """The operand is quantised by its own range, to 7 bits where the range is reduced; its levels are not shown, so
    that those at a tie may be either of two."""
    x, (w, w_scale, _) = number(call.operands[0]), call.levels(1)
    scale, zero = chosen(float(x.value.min()), float(x.value.max()), 127 if call.argument(2, "reduce_range") else 255)
    q = quantised(x, np.asarray(scale), np.asarray(zero), "uint8", reciprocal=True)
    rows = (-1, w.shape[1])
    total = (q.middle - zero).reshape(rows) @ w.T
    unit = scale * np.reshape(w_scale, -1)
    bias = number(call.operands[2]).value if len(call.operands) > 2 and call.operands[2] is not None else np.zeros(())
    value = total * unit + bias
    error = (q.reach.reshape(rows) @ np.abs(w.T)) * unit + 6 * UNIT * (np.abs(total) * unit + np.abs(bias))
    return Bounded(value, error, "float32").map(lambda v: v.reshape(call.seen.shape))


def _global_pool(call: Call) -> Levels:
    """The mean over all places, as avg_pool2d has it."""
    if call.argument(1, "output_size") not in (1, [1, 1]):
        raise NotRecomputed("adaptive_avg_pool2d to more than one place")
    same(call)
    x, _, zero = call.levels()
    value = x.mean((-2, -1)).reshape(call.seen.shape)
    return call.settle(value, 8 * UNIT * (255 + np.abs(zero)) * np.ones(value.shape))


QUANTISED: dict[str, Callable[[Call], Real]] = {
    "quantize_per_tensor": _quantize,
    **dict.fromkeys(("linear", "linear_relu"), _linear),
    **dict.fromkeys(("conv1d", "conv1d_relu", "conv2d", "conv2d_relu"), _conv),
    **dict.fromkeys(("add", "add_relu"), _add),
    **dict.fromkeys(("mul", "mul_relu"), _mul),
    "matmul": _matmul,
    "cat": _cat,
    "relu": lambda call: _clamped(0.0, None, call),
    "relu6": lambda call: _clamped(0.0, 6.0, call),
    "hardtanh": _clamp,
    "clamp": _clamp,
    "max_pool2d": _max_pool,
    "avg_pool2d": _avg_pool,
    "adaptive_avg_pool2d": _global_pool,
    "mean": _mean,
    "sigmoid": _function("sigmoid"),
    "tanh": _function("tanh"),
    "hardswish": _function("hard_swish"),
    "leaky_relu": _function("leaky_relu", "alpha"),
    "dequantize": _dequantize,
    "linear_dynamic": _linear_dynamic,
}
