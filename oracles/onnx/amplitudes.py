"""How far rounding may move a node's results.

In units of the roundoff u of the result's type: u |y| by the number of roundings of the operator (ulps of OpenCL C 3.0,
section 7.4, for functions), and for a sum of n terms t, products among them, u sqrt(n) sqrt(sum(t^2) + y^2): error
analysis of recursive summation gives sum(delta_i s_i) with s_i the partial sums (Higham, Accuracy and Stability of
Numerical Algorithms, section 4.2); with independent delta of mean 0 (N. J. Higham, T. Mary, A New Approach to
Probabilistic Rounding Error Analysis, SISC 41(5), 2019) and terms in random order, s_i has the mean i y / n and a
variance of at most sum(t^2), hence the square root. What only moves, selects or compares elements has no rounding.

Operators that are many (recurrent layers, attention, fused ones) are measured: a rounding of each element of their
inputs moves the result by u sqrt(sum((dy/dx x)^2)), as one rounding of each product would, and sums of n terms are
sqrt(n) of that."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from onnx import TensorProto

from oracles.onnx.graph import Node
from oracles.onnx.kinds import FLOATS, floating, rounded
from oracles.onnx.rule import Value

Evaluate = Callable[[Sequence[Value]], Sequence[Value]]
"""The results of a node on other inputs."""

UNITS: dict[int, float] = {
    TensorProto.FLOAT: 2.0**-24,
    TensorProto.FLOAT16: 2.0**-11,
    TensorProto.BFLOAT16: 2.0**-8,
    TensorProto.DOUBLE: 2.0**-53,
}
EXACT = {
    *("Abs", "BitCast", "Ceil", "CenterCropPad", "Clip", "Compress", "Concat", "ConcatFromSequence", "Constant"),
    *(
        "ConstantOfShape",
        "DepthToSpace",
        "Dropout",
        "Expand",
        "EyeLike",
        "Flatten",
        "Floor",
        "Gather",
        "GatherElements",
    ),
    *("GatherND", "GlobalMaxPool", "Hardmax", "Identity", "Max", "MaxPool", "MaxRoiPool", "MaxUnpool", "Min", "Neg"),
    *("OneHot", "OptionalGetElement", "Pad", "ReduceMax", "ReduceMin", "Relu", "Reshape", "ReverseSequence", "Round"),
    *("SequenceAt", "Sign", "Slice", "SpaceToDepth", "Split", "Squeeze", "TensorScatter", "ThresholdedRelu", "Tile"),
    *("TopK", "Transpose", "Trilu", "Unique", "Unsqueeze", "Where"),
}
ROUNDINGS = {"Exp": 6, "Log": 6, "Tanh": 10, "Sigmoid": 10, "Erf": 32, "Gelu": 36, "Pow": 32, "Sqrt": 6, "Div": 5}
ROUNDINGS |= {"Reciprocal": 5, "Sin": 8, "Cos": 8, "Tan": 10, "Sinh": 8, "Cosh": 8, "Asin": 8, "Acos": 8, "Atan": 10}
ROUNDINGS |= {"Asinh": 8, "Acosh": 8, "Atanh": 10, "Softplus": 14, "Elu": 8, "Celu": 8, "Selu": 10, "Mish": 26}
ROUNDINGS |= {"HardSwish": 4, "HardSigmoid": 3, "LRN": 40, "Swish": 12, "SwiGLU": 14}
"""Units of roundoff, two to an ulp; 1 for all others."""
SUMMED = {"Conv", "ConvTranspose", "Einsum", "Gemm", "MatMul"}
MEASURED = {
    *("AffineGrid", "Attention", "CausalConvWithState", "Col2Im", "DeformConv", "Det", "GRU", "GlobalLpPool"),
    *("GridSample", "LSTM", "LinearAttention", "LpNormalization", "LpPool", "MeanVarianceNormalization", "RNN"),
    *("NegativeLogLikelihoodLoss", "RoiAlign", "RotaryEmbedding", "SoftmaxCrossEntropyLoss"),
}
LOSSES = ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
TURNS = 2 * np.pi / np.sqrt(3)
"""The root mean square of angles that are spread over a whole turn."""
GATED = {"GRU": 1.0}
"""Beside what is measured: a GRU subtracts its update gate from 1, so that a rounding of a number near 1 stays."""
SCATTERED = {"Scatter": 64, "ScatterElements": 64, "ScatterND": 64}
"""Terms that are added to one element, of all kinds of networks."""
STEPPED = ("DynamicQuantizeLSTM",)
"""Those that quantise what they computed before: a rounding error of one unit moves a few of some ten thousand hidden
states to the next level, and then all that follow. Changes of 16 units show that in four draws, which single ones do
in some of a hundred."""
NORMALIZED = ("LayerNormalization", "GroupNormalization", "RMSNormalization", "InstanceNormalization")
DRAWS = 4


def unit_of(kind: int) -> float:
    """The unit roundoff of a type; that of float32 where it is not known."""
    return UNITS.get(kind, UNITS[TensorProto.FLOAT])


def amplitudes(
    node: Node, inputs: Sequence[Value], outputs: Sequence[Value], evaluate: Evaluate
) -> list[np.ndarray | float]:
    """For each output; 0: rounding does not move it."""
    found: list[np.ndarray | float] = [0.0] * len(outputs)
    if _still(node):
        return found
    measured = node.operator in MEASURED or node.domain not in ("", "ai.onnx")
    with np.errstate(all="ignore"):
        if measured and any(floating(y) for y in outputs):
            if node.operator in LOSSES:
                return _loss(node, inputs, outputs, evaluate)
            sizes = _measured(inputs, outputs, evaluate, size=2.0**-20 if node.operator in STEPPED else 2.0**-24)
            return [size + GATED.get(node.operator, 0.0) * floating(y) for size, y in zip(sizes, outputs, strict=True)]
        for place, y in enumerate(outputs):
            if floating(y):
                found[place] = np.abs(y) if place else _amplitude(node, inputs, y, evaluate)
    return found


def _still(node: Node) -> bool:
    """Does it only move or select elements?"""
    if node.operator in ("Resize", "Upsample"):
        return node.attributes.get("mode", "nearest") == "nearest"
    if node.operator in ("Scatter", "ScatterElements", "ScatterND"):
        return node.attributes.get("reduction", "none") in ("none", "max", "min")
    return node.operator in EXACT or node.operator.startswith("Sequence")


def _measured(
    inputs: Sequence[Value], outputs: Sequence[Value], evaluate: Evaluate, terms: int = 0, size: float = 2.0**-24
) -> list[np.ndarray | float]:
    """The root mean square of what small relative changes of all inputs do, by their size, and a rounding of the
    result. Half of it is an element's own, half that of all: which elements four draws happen to move little is
    chance. terms: so many are summed (0: as many as the longest last axis has); size: of the changes."""
    draw = np.random.default_rng(0)
    squares: list[np.ndarray | float] = [0.0] * len(outputs)
    for _ in range(DRAWS):
        moved = [x * (1 + size * draw.uniform(-1, 1, x.shape)) if floating(x) else x for x in inputs]
        for place, (y, other) in enumerate(zip(outputs, evaluate(moved), strict=False)):
            if floating(y) and isinstance(other, np.ndarray) and other.shape == y.shape:
                squares[place] = squares[place] + ((other - y) / size) ** 2
    terms = terms or max((x.shape[-1] for x in inputs if floating(x) and x.ndim), default=1)
    return [
        np.sqrt(3 * terms * (square + np.mean(square)) / 2 / DRAWS) + np.abs(y) if floating(y) else 0.0
        for square, y in zip(squares, outputs, strict=True)
    ]


def _loss(
    node: Node, inputs: Sequence[Value], outputs: Sequence[Value], evaluate: Evaluate
) -> list[np.ndarray | float]:
    """Each loss has a sum over classes, and their sum as many terms as there are targets: beside what is measured of
    the terms that is u sqrt(n) |y| of their sum, and as much of the sum of weights that a mean divides by."""
    scores, targets = np.asarray(inputs[0]), np.asarray(inputs[1])
    how = node.attributes.get("reduction", "mean")
    count = targets.size if how != "none" else 1
    sizes = _measured(inputs, outputs, evaluate, max(count, scores.shape[1]))
    sums = {"none": 0, "sum": 1, "mean": 2}.get(how, 2) * np.sqrt(count)
    return [sizes[0] + sums * np.abs(np.asarray(outputs[0])), *sizes[1:]]


def _amplitude(node: Node, inputs: Sequence[Value], y: np.ndarray, evaluate: Evaluate) -> np.ndarray | float:
    operator, x = node.operator, np.asarray(inputs[0]) if inputs and inputs[0] is not None else np.zeros(0)
    if operator in ("Cast", "CastLike"):
        return _cast(node, y)
    if operator in SUMMED and len(inputs) > 1:
        squares = [a * a if isinstance(a, np.ndarray) else a for a in inputs]
        terms = np.asarray(evaluate(squares)[0])
        return np.sqrt(_terms(node, inputs, evaluate) * (np.abs(terms) + y * y))
    if operator in ("ReduceSum", "ReduceMean", "GlobalAveragePool", "AveragePool", "CumSum"):
        whole = operator in ("ReduceSum", "ReduceMean", "GlobalAveragePool")
        n = x.size / max(1, y.size) if whole else max(x.shape) if operator == "CumSum" else _kernel(node)
        terms = np.asarray(evaluate([x * x, *inputs[1:]])[0]) / (n if "Sum" not in operator else 1)
        return np.sqrt(n * (terms + y * y))
    if operator in ("Resize", "Upsample"):
        return _resized(node, inputs, y, evaluate)
    if operator in ("Sum", "Mean", *SCATTERED):  # what is added may cancel
        terms = np.asarray(evaluate([np.abs(a) if floating(a) else a for a in inputs])[0])
        return np.sqrt(SCATTERED.get(operator, len(inputs))) * terms
    if operator in ("ReduceLogSum", "ReduceLogSumExp"):  # near 0 as anywhere
        return (2 + np.sqrt(x.size / max(1, y.size))) * (1 + np.abs(y))
    if operator in ("DFT", "STFT"):
        return _transform(node, inputs, y, evaluate)
    if operator.startswith("Reduce"):
        return np.sqrt(x.size / max(1, y.size)) * np.abs(y) + np.abs(y)
    if operator == "CumProd":
        return np.sqrt(max(x.shape)) * np.abs(y)
    if operator == "BatchNormalization":
        return _batch(node, inputs)
    if operator in NORMALIZED:
        return _normalized(node, x, np.abs(np.asarray(inputs[1])).max(initial=0.0), y)
    if operator in ("Softmax", "LogSoftmax"):
        axes = _softmax_axes(node, x.ndim)
        below = np.abs(x - x.max(axis=axes, keepdims=True, initial=-np.inf))
        below = np.where(np.isfinite(below), below, 0.0)  # exp(-inf) is exact
        parts = below + 6 + np.sqrt(np.prod([x.shape[axis] for axis in axes]))
        return parts * np.abs(y) if operator == "Softmax" else parts + np.abs(y)
    if operator in ("Sigmoid", "HardSigmoid"):  # as (1 + tanh(x / 2)) / 2, what is far below 1 loses its digits
        return ROUNDINGS[operator] * np.abs(y) + 2
    if operator in ("Gelu", "Swish", "HardSwish", "Mish", "Softplus", "Elu", "Selu", "Celu"):  # the same of x
        return ROUNDINGS[operator] * np.abs(y) + 2 * np.minimum(np.abs(x), 1 + np.abs(y))
    return ROUNDINGS.get(operator, 1) * np.abs(y)


def _resized(node: Node, inputs: Sequence[Value], y: np.ndarray, evaluate: Evaluate) -> np.ndarray:
    """Eight roundings of the terms, whose sum may be near 0, and what a weight is off by since its coordinate is
    rounded, if the ratio of sizes has no few binary digits: u times the coordinate, times neighbours. The negative
    weights of cubic interpolation in two dimensions add up to less than a half."""
    x = np.abs(np.asarray(inputs[0]))
    terms = np.abs(np.asarray(evaluate([x, *inputs[1:]])[0]))
    if node.attributes.get("mode") == "cubic":
        terms = terms + 0.5 * x.max(initial=0.0)
    rounded_ = [a for a, b in zip(x.shape, y.shape, strict=True) if b and a / b * 256 % 1]
    return (8 + max(rounded_, default=0)) * terms + np.abs(y)


def _transform(node: Node, inputs: Sequence[Value], y: np.ndarray, evaluate: Evaluate) -> np.ndarray:
    """Each frequency is a sum of n elements x times factors of modulus 1. The factor of the angle a = m (2 pi / n), m
    in 0 .. n - 1, is off by what a is: for two roundings of its own u sqrt(2) a, and for that of 2 pi / n, which all
    have in common, u a, in the sum at most u sqrt(sum(x^2) sum(a^2)) (Cauchy and Schwarz); angles of a whole turn have
    a^2 = (2 pi)^2 / 3 in the mean. Sines and cosines have 8 roundings (OpenCL), also where they or the sum would be 0.
    Angles that are not reduced to one turn, and so n times as large, are no correct evaluation: m is a whole number.
    The sum of the squares is what the squares have at frequency 0."""
    squares = [a * a if floating(a) else a for a in inputs]
    found = np.asarray(evaluate(squares)[0])
    axis = y.ndim - 2
    if node.operator == "DFT":
        stated = inputs[2] if node.version >= 20 and len(inputs) > 2 else None
        given = node.attributes.get("axis", 1) if node.version < 20 else -2 if stated is None else np.asarray(stated)
        axis = int(np.asarray(given).reshape(())) % y.ndim
    terms = np.abs(np.take(found, [0], axis)).sum(-1, keepdims=True)
    n = np.asarray(inputs[0]).shape[axis] if node.operator == "DFT" else _frame(inputs)
    scale = 1 / np.sqrt(n) if node.attributes.get("inverse", 0) else 1.0
    own = np.hypot(np.sqrt(2) * TURNS, ROUNDINGS["Sin"])
    return scale * np.sqrt(terms) * (np.sqrt(n) * (1 + TURNS) + own) + np.abs(y)


def _frame(inputs: Sequence[Value]) -> int:
    """How long the frames of an STFT are."""
    window, length = (inputs[place] if len(inputs) > place else None for place in (2, 3))
    if window is not None:
        return len(np.asarray(window))
    return int(np.asarray(length).reshape(())) if length is not None else np.asarray(inputs[0]).shape[1]


def _cast(node: Node, y: np.ndarray) -> np.ndarray | float:
    """To a wider float nothing is rounded, nor are numbers that the type has."""
    source, target = node.kinds[0] if node.kinds else 0, node.made[0] if node.made else 0
    if source in FLOATS and unit_of(source) >= unit_of(target):
        return 0.0
    if source in FLOATS or target not in FLOATS:
        return np.abs(y)
    return np.where(rounded(y, target) == y, 0.0, np.abs(y))


def _batch(node: Node, inputs: Sequence[Value]) -> np.ndarray:
    """Of scale, bias and statistics, whether they are folded or not."""
    x, *rest = (np.asarray(a) for a in inputs[:5])
    if x.ndim > 1 and rest[0].ndim == 1:
        rest = [a.reshape(-1, *[1] * (x.ndim - 2)) for a in rest]
    scale, bias, mean, variance = rest
    slope = np.abs(scale) / np.sqrt(variance + node.attributes.get("epsilon", 1e-5))
    return 3 * slope * (np.abs(x) + np.abs(mean)) + np.abs(bias)


def _normalized(node: Node, x: np.ndarray, scale: float, y: np.ndarray) -> np.ndarray:
    """What is taken from its mean, by the deviation of what is normalized together: elements lose the digits that they
    have in common, and where they are few the deviation does, too."""
    if node.operator == "GroupNormalization":
        parts = x.reshape(x.shape[0], node.attributes["num_groups"], -1)
        axes: tuple[int, ...] = (2,)
    else:
        first = 2 if node.operator == "InstanceNormalization" else node.attributes.get("axis", -1) % max(1, x.ndim)
        parts, axes = x, tuple(range(first, x.ndim))
    n = parts.size / max(1, np.prod([size for axis, size in enumerate(parts.shape) if axis not in axes]))
    if node.operator == "RMSNormalization":
        return (3 + np.sqrt(n)) * np.abs(y)
    size = np.max(np.abs(parts), axes, keepdims=True, initial=0.0)
    steep = 1 / np.sqrt(np.var(parts, axes, keepdims=True) + node.attributes.get("epsilon", 1e-5))
    moved = ((np.abs(parts) + size) * scale * steep).reshape(x.shape)
    relative = np.broadcast_to(np.sqrt(n) + 2 * size * steep / np.sqrt(max(1, n)), parts.shape).reshape(x.shape)
    return moved + relative * np.abs(y)


def _softmax_axes(node: Node, rank: int) -> tuple[int, ...]:
    """Before version 13 all from the axis on."""
    if node.version >= 13:
        return (node.attributes.get("axis", -1) % max(1, rank),)
    return tuple(range(node.attributes.get("axis", 1) % (rank + 1), rank))


def _kernel(node: Node) -> float:
    return float(np.prod(node.attributes["kernel_shape"]))


def _terms(node: Node, inputs: Sequence[Value], evaluate: Evaluate) -> float:
    """How many products a sum has."""
    x, w = np.asarray(inputs[0]), np.asarray(inputs[1])
    if node.operator == "Conv":
        return float(np.prod(w.shape[1:]))
    if node.operator == "ConvTranspose":
        return float(w.shape[0] * np.prod(w.shape[2:]))
    if node.operator == "Gemm":
        return float(x.shape[0] if node.attributes.get("transA") else x.shape[1])
    if node.operator == "MatMul":
        return float(x.shape[-1])
    ones = [np.ones_like(a) if isinstance(a, np.ndarray) else a for a in inputs]
    return float(np.max(np.asarray(evaluate(ones)[0]), initial=1.0))
