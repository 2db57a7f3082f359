"""Products and convolutions with what ONNX Runtime fuses into them, and its versions of operators of ONNX."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from oracles.onnx.operators.arguments import integer, integers, refuse
from oracles.onnx.operators.elementwise.functions import sigmoid
from oracles.onnx.operators.moving.indexed import RULES as INDEXED
from oracles.onnx.operators.moving.slices import RULES as SLICES
from oracles.onnx.operators.nn.convolutions import RULES as CONVOLUTIONS
from oracles.onnx.operators.nn.pools import RULES as POOLS
from oracles.onnx.operators.nn.products import RULES as PRODUCTS
from oracles.onnx.rule import Call, Rule, Value

_OF_ONNX: Mapping[str, Rule] = {**INDEXED, **SLICES, **CONVOLUTIONS, **POOLS, **PRODUCTS}


def _by(call: Call, operator: str, version: int, *inputs: Any, **attributes: Any) -> np.ndarray:
    """The first output of an operator of ONNX, with this call's attributes and these."""
    given = {**call.attributes, **attributes}
    same = replace(call, operator=operator, domain="", version=version, inputs=inputs, attributes=given)
    return np.asarray(_OF_ONNX[operator](replace(same, outputs=("y",)))[0])


def _activated(call: Call, y: np.ndarray, numbers: tuple[float, ...]) -> np.ndarray:
    """By the attribute `activation`."""
    how = call.get("activation", "")
    if how in ("", "Relu"):
        return np.maximum(y, 0) if how else y
    if how in ("Sigmoid", "Tanh"):
        return sigmoid(y) if how == "Sigmoid" else np.tanh(y)
    if how == "LeakyRelu" and numbers:
        return np.where(y < 0, numbers[0] * y, y)
    if how == "Clip" and len(numbers) == 2:
        return np.clip(y, *numbers)
    if how == "HardSigmoid" and len(numbers) == 2:
        return np.clip(numbers[0] * y + numbers[1], 0, 1)
    raise refuse(call, f"activation {how!r} with {len(numbers)} numbers")


def _conv(call: Call) -> list[Value]:
    """What is added comes before the activation."""
    y, more = _by(call, "Conv", 11, *call.inputs[:3]), call.input(3)
    return [_activated(call, y if more is None else y + more, tuple(call.get("activation_params", ())))]


def _gemm(call: Call) -> list[Value]:
    names = (f"activation_{name}" for name in ("alpha", "beta", "gamma"))
    numbers = tuple(call.attributes[name] for name in names if name in call.attributes)
    return [_activated(call, _by(call, "Gemm", 13, *call.inputs), numbers)]


def _turned(x: np.ndarray, last: bool, batch: bool) -> np.ndarray:
    """The first axis moved behind the other ones of the batch, then the last two swapped."""
    x = np.moveaxis(x, 0, -2) if batch and x.ndim > 2 else x
    return x.swapaxes(-1, -2) if last and x.ndim > 1 else x


def _matmul(call: Call) -> list[Value]:
    sides = [
        _turned(call.input(place), bool(call.get(f"trans{side}", 0)), bool(call.get(f"transBatch{side}", 0)))
        for place, side in enumerate("AB")
    ]
    return [np.asarray(np.matmul(*sides)) * call.get("alpha", 1.0)]


def _transposed_conv(call: Call) -> list[Value]:
    x, w, pads, bias = (call.input(place) for place in range(4))
    more = {} if pads is None else {"pads": integers(pads)}
    return [_by(call, "ConvTranspose", 11, x, w, bias, **more)]


def _channels_last(operator: str) -> Rule:
    """Of (N, D..., C)."""

    def rule(call: Call) -> list[Value]:
        x = np.moveaxis(call.input(0), -1, 1)
        return [np.moveaxis(_by(call, operator, 11, x, *call.inputs[1:]), 1, -1)]

    return rule


def _same(operator: str, version: int) -> Rule:
    def rule(call: Call) -> list[Value]:
        return [_by(call, operator, version, *call.inputs)]

    return rule


def _pad(call: Call) -> list[Value]:
    value = call.input(2)
    value = np.zeros((), call.input(0).dtype) if value is None else np.ravel(value)[0]
    return [_by(call, "Pad", 11, call.input(0), call.input(1).ravel(), value)]


def _unique(call: Call) -> list[Value]:
    """In the order of the input."""
    x = call.input(0)
    _, first, back, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return [x[first[order]], place[back.ravel()].astype(np.int64), counts[order].astype(np.int64)]


def _range(call: Call) -> list[Value]:
    start, limit = np.ravel(call.input(0))[0], np.ravel(call.input(1))[0]
    step = start.dtype.type(1) if call.input(2) is None else np.ravel(call.input(2))[0]
    count = max(0, int(np.ceil((float(limit) - float(start)) / float(step))))
    return [(start + np.arange(count) * step).astype(start.dtype)]


def _inverse(call: Call) -> list[Value]:
    return [np.linalg.inv(call.input(0))]


def _expand(call: Call) -> list[Value]:
    return [np.expand_dims(call.input(0), integer(call.input(1)))]


def _finite(call: Call) -> list[Value]:
    arrays = [np.asarray(x) for x in call.inputs]
    if call.get("isnan_only", 0):
        return [np.array(not any(np.isnan(x).any() for x in arrays))]
    if call.get("isinf_only", 0):
        return [np.array(not any(np.isinf(x).any() for x in arrays))]
    return [np.array(all(np.isfinite(x).all() for x in arrays))]


def _distances(call: Call) -> list[Value]:
    a, b, how = call.input(0), call.input(1), call.get("metric", "sqeuclidean")
    if how not in ("sqeuclidean", "euclidean"):
        raise refuse(call, f"metric {how!r}")
    squares = ((a[:, None] - b[None]) ** 2).sum(-1)
    return [squares if how == "sqeuclidean" else np.sqrt(squares)]


def _embedding(call: Call) -> list[Value]:
    return [call.input(0)[call.input(1)]]


_FOUND: dict[str, Rule] = {
    "CDist": _distances,
    "ConvTransposeWithDynamicPads": _transposed_conv,
    "ExpandDims": _expand,
    "FusedConv": _conv,
    "FusedGemm": _gemm,
    "FusedMatMul": _matmul,
    "GatherND": _same("GatherND", 11),
    "Inverse": _inverse,
    "IsAllFinite": _finite,
    "NhwcConv": _channels_last("Conv"),
    "NhwcMaxPool": _channels_last("MaxPool"),
    "Pad": _pad,
    "Range": _range,
    "TorchEmbedding": _embedding,
    "TransposeMatMul": _matmul,
    "Trilu": _same("Trilu", 14),
    "Unique": _unique,
}
RULES = {f"com.microsoft:{name}": rule for name, rule in _FOUND.items()}
