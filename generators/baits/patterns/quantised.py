"""Operators between quantisers and dequantisers, which runtimes fuse into integer arithmetic."""

from __future__ import annotations

from typing import Any

from generators.baits.bait import Bait, Guard, Pattern
from generators.baits.patterns.products import activated

_FLOATS = Guard(("float32",))
_ORT = "onnxruntime/"
POINTS = Guard((128, 0), (3, 255))
SIGNED_POINTS = Guard((0,), (3, -128, 127))


def _q(p: Pattern, x: str, scale: float = 0.0625, point: int = 128, dtype: str = "uint8") -> str:
    return p.quantize_dequantize(x, dtype=dtype, scale=scale, zero_point=point)


def _conv(p: Pattern, x: str, bias: bool = True) -> str:
    weight = _q(p, p.weight(4, 4, 3, 3), 0.0078125, 0, "int8")
    operands = (x, weight, p.weight(4) if bias else p.constant(0.0, 4))
    return p.conv2d(*operands, stride=(1, 1), dilation=(1, 1), padding=(1, 1, 1, 1), groups=1)


def _between(p: Pattern, operator: str, scale: float, point: int, kind: str, end: str) -> str:
    """Quantised in, quantised out."""
    x = _q(p, p.input(1, 4, 4, 4), scale, point, kind)
    other = _q(p, p.input(1, 4, 4, 4), scale, point, kind)
    value = {
        "conv": lambda: _conv(p, x),
        "conv relu": lambda: p.relu(_conv(p, x)),
        "conv clip": lambda: p.clip(_conv(p, x), min=0.0, max=6.0),
        "matmul": lambda: p.matmul(x, _q(p, p.weight(4, 4), 0.0078125, 0, "int8")),
        "matmul both": lambda: p.matmul(x, other),
        "add": lambda: p.add(x, other),
        "mul": lambda: p.mul(x, other),
        "relu": lambda: p.relu(x),
        "leaky": lambda: p.leaky_relu(x, alpha=0.125),
        "sigmoid": lambda: p.sigmoid(x),
        "softmax": lambda: p.softmax(x, axis=-1),
        "concat": lambda: p.concat(x, other, axis=1),
        "max pool": lambda: p.max_pool2d(x, kernel=(2, 2), dilation=(1, 1), padding=(0, 0), stride=(2, 2)),
        "average": lambda: p.avg_pool2d(x, kernel=(2, 2), padding=(0, 0), stride=(2, 2), count_include_pad=False),
        "average hanging over": lambda: p.avg_pool2d_ceil(
            x, kernel=(3, 3), padding=(0, 0), stride=(2, 2), count_include_pad=True
        ),
        "global": lambda: p.global_avg_pool(x),
        "transpose": lambda: p.transpose(x, perm=(0, 2, 3, 1)),
        "reshape": lambda: p.reshape(x, shape=(4, 16)),
        "slice": lambda: p.slice(x, starts=(0, 1, 0, 0), stops=(1, 3, 4, 4), steps=(1, 1, 1, 1)),
        "split": lambda: p.split(x, axis=1, sizes=(2, 2), index=0),
        "take": lambda: p.take(p.reshape(x, shape=(4, 4, 4)), p.constant([0, 2], dtype="int64", domain=(0, 3)), axis=0),
        "where": lambda: p.where(p.input(1, 4, 4, 4, dtype="bool"), x, other),
        "where constant": lambda: p.where(p.input(1, 4, 4, 4, dtype="bool"), x, p.constant(0.5)),
        "pad": lambda: p.pad(x, pads=(0, 0, 0, 0, 1, 1, 1, 1), value=0.0),
        "upsample": lambda: p.upsample_nearest(x, factor=2),
        "argmax": lambda: p.argmax(x, axis=1, keepdims=True),
        "unsqueeze": lambda: p.unsqueeze(p.reshape(x, shape=(4, 16)), axis=0),
    }[operator]()
    if end == "none" or operator == "argmax":
        return value
    return p.neg(_q(p, value, scale, point, kind)) if end == "more" else _q(p, value, scale, point, kind)


def _twice(p: Pattern, scale: float, second: float, point: int, other: int, kind: str, again: str, between: str) -> str:
    """Quantised, and again: with the same or another scale, point or dtype."""
    x = _q(p, p.input(2, 4), scale, point, kind)
    x = p.relu(x) if between == "relu" else p.transpose(x, perm=(1, 0)) if between == "transpose" else x
    return p.neg(_q(p, x, second, min(other, 127) if again == "int8" else other, again))


def _limited(p: Pattern, activation: str, scale: float, point: int, kind: str) -> str:
    """A clip or relu that the quantiser after it does anyhow, or not."""
    x = p.add(p.input(2, 4), p.weight(4))
    x = p.clip(x, min=0.0, max=6.0) if activation == "clip" else p.clip(x, min=-2.0, max=2.0) if (
        activation == "narrow") else p.apply(activation, x)  # fmt: skip
    return _q(p, x, scale, point, kind)


def _gemm(p: Pattern, bias: str, point: int, activation: str, output: str, axis: str) -> str:
    x = _q(p, p.input(3, 4), 0.0625, point)
    weight = p.weight(5, 4)
    scales: Any = (0.0078125, 0.5, 0.0625, 0.1, 0.017)
    weight = (
        p.quantize_dequantize_channels(weight, dtype="int8", axis=0, scales=scales, zero_point=0)
        if axis == "channels" else _q(p, weight, 0.0078125, 0, "int8")
    )  # fmt: skip
    b = p.weight(5)
    x = p.linear(x, weight, _q(p, b, 0.0078125, 0, "int8") if bias == "quantised" else b)
    x = activated(p, activation, x) if activation else x
    return _q(p, x, 0.1, 128) if output == "quantised" else x


def _weights(p: Pattern, operator: str, axis: int, point: int, kind: str) -> str:
    """Weights alone that are quantised, by scales along an axis that stays or one that is summed."""
    shape = (4, 4, 3, 3) if operator == "conv" else (8, 4)
    size = shape[axis]
    weight = p.quantize_dequantize_channels(
        p.weight(*shape), dtype=kind, axis=axis, scales=(0.0078125, 0.5, 0.0625, 0.1, 0.017, 0.25, 0.03125, 3.0)[:size],
        zero_point=point,
    )  # fmt: skip
    if operator == "conv":
        operands = p.input(1, 4, 4, 4), weight, p.constant(0.0, 4)
        return p.conv2d(*operands, stride=(1, 1), dilation=(1, 1), padding=(1, 1, 1, 1), groups=1)
    if operator == "linear":
        return p.linear(p.input(3, 4), weight, p.weight(8))
    if operator == "rows":
        return p.take(weight, p.constant([0, 2], dtype="int64", domain=(0, 3)), axis=0)
    return p.matmul(p.input(*((3, 8) if operator == "matmul" else (2, 3, 8))), weight)


def _few_levels(p: Pattern, operator: str, scales: str, size: int, scale: float, point: int, kind: str) -> str:
    """Weights that two or four bits hold, by one scale, one for each column, or a few for the rows."""
    weight = p.weight(*((1, size, 3) if operator == "weights of three axes" else (size, 3)))
    if scales == "one" or operator == "weights of three axes":
        weight = _q(p, weight, scale, point, kind)
    else:
        axis, count = (1, 3) if scales == "columns" else (0, size)
        weight = p.quantize_dequantize_channels(
            weight, dtype=kind, axis=axis, scales=tuple(scale * (1 + place % 2) for place in range(count)),
            zero_point=point,
        )  # fmt: skip
    if operator == "rows":
        return p.take(weight, p.constant([0, 2], dtype="int64", domain=(0, 2)), axis=0)
    if operator == "linear":
        return p.linear(p.input(2, size), p.transpose(weight, perm=(1, 0)), p.weight(3))
    x = (
        p.sign(p.input(2, size))
        if operator == "matmul of signs"
        else p.input(*((2, 2) if operator == "stacks" else (2,)), size)
    )
    return p.matmul(x, weight)


_OPERATORS = (
    *("conv", "conv relu", "conv clip", "matmul", "matmul both", "add", "mul", "relu", "leaky", "sigmoid", "softmax"),
    *("concat", "max pool", "average", "global", "transpose", "reshape", "slice", "split", "take", "where", "argmax"),
    *("where constant", "upsample", "unsqueeze", "average hanging over"),
)
BAITS = (
    Bait("quantised-operator",
         (_ORT + "QDQSelectorActionTransformer", _ORT + "QDQPropagationTransformer", _ORT + "QDQS8ToU8Transformer",
          _ORT + "QDQFinalCleanupTransformer", _ORT + "WeightBiasQuantization", _ORT + "WhereDummyDq"), _between,
         {"operator": Guard(_OPERATORS, ("pad",)), "scale": Guard((0.0625,), (0.1, 3.0)),
          "point": Guard((0,), (3, 127)), "kind": Guard(("uint8", "int8")),
          "end": Guard(("quantised",), ("none", "more"))}, _FLOATS),
    Bait("quantised-twice", (_ORT + "DoubleQDQPairsRemover", _ORT + "QDQPropagationTransformer"), _twice,
         {"scale": Guard((0.0625,), (0.1,)), "second": Guard((0.0625, 0.5), (0.017, 3.0)),
          "point": Guard((0,), (3, 127)),
          "other": Guard((0,), (3, 127)), "kind": Guard(("uint8", "int8")), "again": Guard(("uint8", "int8")),
          "between": Guard(("nothing", "relu"), ("transpose",))}, _FLOATS),
    Bait("quantised-after-limit", (_ORT + "ClipQuantRewrite", _ORT + "ReluQuantRewrite"), _limited,
         {"activation": Guard(("relu", "clip"), ("relu6", "narrow")), "scale": Guard((0.017,), (0.0625, 3.0)),
          "point": Guard((0,), (3, 127)), "kind": Guard(("uint8", "int8"))}, _FLOATS),
    Bait("quantised-weights", (_ORT + "QDQSelectorActionTransformer", _ORT + "WeightBiasQuantization"), _weights,
         {"operator": Guard(("matmul", "linear", "conv"), ("rows", "matmul of stacks")), "axis": Guard((0, 1)),
          "point": Guard((0,), (3, 127)), "kind": Guard(("int8", "uint8"))}, _FLOATS),
    Bait("quantised-to-few-levels", (_ORT + "QDQSelectorActionTransformer",), _few_levels,
         {"operator": Guard(("matmul", "stacks", "matmul of signs"), ("linear", "rows", "weights of three axes")),
          "scales": Guard(("one", "columns"), ("rows",)), "size": Guard((32, 8), (40,)),
          "scale": Guard((2.0, 1.0), (0.0625,)), "point": Guard((1, 0), (127,)),
          "kind": Guard(("int8", "uint8"))}, _FLOATS),
    Bait("quantised-linear", (_ORT + "QDQSelectorActionTransformer", _ORT + "WeightBiasQuantization"), _gemm,
         {"bias": Guard(("plain", "quantised")), "point": POINTS, "activation": Guard(("", "relu"), ("tanh",)),
          "output": Guard(("quantised",), ("none",)), "axis": Guard(("tensor", "channels"))}, _FLOATS),
)  # fmt: skip
