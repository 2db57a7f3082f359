"""Quantised operators of ONNX Runtime, by its documentation (docs/ContribOperators.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from oracles.onnx.kinds import kind_of
from oracles.onnx.operators.arguments import integers, positives, refuse, single
from oracles.onnx.operators.elementwise.functions import sigmoid
from oracles.onnx.operators.nn.pools import RULES as POOLS
from oracles.onnx.operators.quantised.integers import by_column, by_row, moved, product
from oracles.onnx.operators.quantised.linear import dynamic, quantised
from oracles.onnx.operators.reducing.softmax import softmax
from oracles.onnx.rule import Call, Rule, Value


def _real(call: Call, place: int) -> np.ndarray:
    """What the tensor, scale and zero point at a place stand for."""
    x, scale, zero = (call.input(place + step) for step in range(3))
    return moved(x, zero) * scale


def _again(call: Call, y: np.ndarray, place: int, like: np.ndarray) -> list[Value]:
    """Quantised by the scale and zero point at a place; the type is that of the zero point, or of an input."""
    scale, zero = call.input(place), call.input(place + 1)
    return [quantised(call, np.asarray(y / scale), zero, kind_of(like if zero is None else zero))]


def _pairwise(function: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Rule:
    def rule(call: Call) -> list[Value]:
        return _again(call, function(_real(call, 0), _real(call, 3)), 6, call.input(0))

    return rule


def _single(function: Callable[[Call, np.ndarray], np.ndarray]) -> Rule:
    """Of one tensor; scale and zero point of the output follow those of the input."""

    def rule(call: Call) -> list[Value]:
        return _again(call, function(call, _real(call, 0)), 3, call.input(0))

    return rule


def _leaky(call: Call, x: np.ndarray) -> np.ndarray:
    return np.where(x < 0, call.get("alpha", single(0.01)) * x, x)


def _softmax(call: Call, x: np.ndarray) -> np.ndarray:
    """Along one axis as of version 13; over a matrix of all later axes before."""
    axis = call.get("axis", -1)
    if call.get("opset", 0) >= 13:
        return softmax(x, axis % x.ndim)
    rows = x.reshape(int(np.prod(x.shape[: axis % x.ndim])), -1)
    return softmax(rows, 1).reshape(x.shape)


def _pool(operator: str) -> Callable[[Call, np.ndarray], np.ndarray]:
    def function(call: Call, x: np.ndarray) -> np.ndarray:
        last = bool(call.get("channels_last", 0))
        x = np.moveaxis(x, -1, 1) if last else x
        (y,) = POOLS[operator](replace(call, operator=operator, domain="", version=11, inputs=(x,), outputs=("y",)))
        return np.moveaxis(np.asarray(y), 1, -1) if last else np.asarray(y)

    return function


def _mean(call: Call, x: np.ndarray) -> np.ndarray:
    axes = positives(call.get("axes", list(range(x.ndim))), x.ndim)
    return np.asarray(x.mean(tuple(axes), keepdims=bool(call.get("keepdims", 1))))


def _concatenate(call: Call) -> list[Value]:
    parts = [_real(call, place) for place in range(2, len(call.inputs), 3)]
    return _again(call, np.concatenate(parts, call.get("axis", 0)), 0, call.input(2))


def _where(call: Call) -> list[Value]:
    return _again(call, np.where(call.input(0), _real(call, 1), _real(call, 4)), 7, call.input(1))


def _gemm(call: Call) -> list[Value]:
    """C is quantised by the product of both scales; without a scale of the output that is in floats."""
    a, a_scale, a_zero, b, b_scale, b_zero, c = (call.input(place) for place in range(7))
    a = a.T if call.get("transA", 0) else a
    b = b.T if call.get("transB", 0) else b
    total = product(a, b, a_zero, b_zero) + (0 if c is None else c.astype(np.int64))
    y = total * (call.get("alpha", 1.0) * a_scale * by_column(b_scale))
    return [y] if call.input(7) is None else _again(call, y, 7, a)


def _integer_to_float(call: Call) -> list[Value]:
    a, b, a_scale, b_scale, a_zero, b_zero, bias = (call.input(place) for place in range(7))
    y = np.asarray(product(a, b, a_zero, b_zero)) * by_row(a_scale) * by_column(b_scale)
    return [y if bias is None else y + bias]


def _dynamic_matmul(call: Call) -> list[Value]:
    """A is quantised as DynamicQuantizeLinear does it."""
    a, b, b_scale, b_zero, bias = (call.input(place) for place in range(5))
    small, scale, zero = dynamic(call, a)
    y = np.asarray(product(small, b, np.array(zero), b_zero)) * (scale * by_column(b_scale))
    return [y if bias is None else y + bias]


def unpacked(packed: np.ndarray, bits: int, count: int) -> np.ndarray:
    """Numbers of so many bits along the last axis of bytes, the lowest bits first."""
    spread = np.unpackbits(packed, axis=-1, bitorder="little")
    numbers = spread[..., : spread.shape[-1] // bits * bits].reshape(*packed.shape[:-1], -1, bits)
    return (numbers.astype(np.int64) << np.arange(bits)).sum(-1)[..., :count]


def _narrow_matmul(call: Call) -> list[Value]:
    """MatMulNBits: weights of few bits, in blocks along the input features."""
    a, b, scales, zeros, order, bias = (call.input(place) for place in range(6))
    k, n, bits, block = call.get("K", 0), call.get("N", 0), call.get("bits", 4), call.get("block_size", 0)
    if order is not None or call.get("weight_prepacked", 0):
        raise refuse(call, "g_idx, or weights in a layout of their own")
    blocks = -(-k // block)
    weights = unpacked(b.reshape(n, blocks, -1), bits, block)
    if zeros is None:
        moves = np.full((n, blocks), 1 << (bits - 1))
    elif zeros.dtype == np.uint8:
        moves = unpacked(zeros.reshape(n, -1), bits, blocks)
    else:
        moves = zeros.reshape(n, blocks)
    real = ((weights - moves[..., None]) * scales.reshape(n, blocks, 1)).reshape(n, -1)[:, :k]
    y = np.matmul(a, real.T)
    return [y if bias is None else y + bias]


def _integer_product(call: Call) -> list[Value]:
    a, a_zero, b, b_zero = (call.input(place) for place in range(4))
    return [(moved(a, a_zero) * moved(b, b_zero)).astype(np.int32)]


def _integer_sum(call: Call) -> list[Value]:
    x = call.input(0)
    axes = tuple(positives(integers(call.get("axes", list(range(x.ndim)))), x.ndim))
    return [np.asarray(x.astype(np.int64).sum(axes, keepdims=bool(call.get("keepdims", 1)))).astype(np.int32)]


_FOUND: dict[str, Rule] = {
    "DynamicQuantizeMatMul": _dynamic_matmul,
    "MatMulIntegerToFloat": _integer_to_float,
    "MatMulNBits": _narrow_matmul,
    "MulInteger": _integer_product,
    "QGemm": _gemm,
    "QLinearAdd": _pairwise(np.add),
    "QLinearAveragePool": _single(_pool("AveragePool")),
    "QLinearConcat": _concatenate,
    "QLinearGlobalAveragePool": _single(_pool("GlobalAveragePool")),
    "QLinearLeakyRelu": _single(_leaky),
    "QLinearMul": _pairwise(np.multiply),
    "QLinearReduceMean": _single(_mean),
    "QLinearSigmoid": _single(lambda call, x: sigmoid(x)),
    "QLinearSoftmax": _single(_softmax),
    "QLinearWhere": _where,
    "ReduceSumInteger": _integer_sum,
}
RULES = {f"com.microsoft:{name}": rule for name, rule in _FOUND.items()}
