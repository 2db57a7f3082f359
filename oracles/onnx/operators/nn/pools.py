"""Pools. Padding takes no part in them, unless it is counted where `count_include_pad` says so."""

from __future__ import annotations

import numpy as np

from oracles.onnx.operators.arguments import integers
from oracles.onnx.operators.nn.windows import Windows, windows_of
from oracles.onnx.rule import Call, Value


def _least(dtype: np.dtype) -> float:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _max_pool(call: Call) -> list[Value]:
    """The greatest of each window and its place in the flat input, the first in the order of rows where several are
    equal. NaN is the greatest, as PyTorch has it."""
    x = call.input(0)
    windows = windows_of(call, x.shape[2:], call.get("kernel_shape", ()))
    padded = windows.padded(x, _least(x.dtype))
    places = iter(windows.places())
    y = windows.at(padded, next(places)).copy()
    for place in places:
        y = np.maximum(y, windows.at(padded, place))
    if len(call.outputs) < 2 or not call.outputs[1]:
        return [y]
    order = "F" if call.get("storage_order", 0) else "C"
    spatial = np.arange(int(np.prod(windows.sizes))).reshape(windows.sizes, order=order)
    outside = windows.padded(spatial[None, None], -1)
    found = np.full(y.shape, -1, np.int64)
    for place in windows.places():
        here, index = windows.at(padded, place), windows.at(outside, place)
        found = np.where((found < 0) & (index >= 0) & ((here == y) | np.isnan(here.astype(np.float64))), index, found)
    planes = np.arange(x.shape[0] * x.shape[1]).reshape(*x.shape[:2], *[1] * len(windows.sizes))
    return [y, found + planes * int(np.prod(windows.sizes))]


def _summed(x: np.ndarray, windows: Windows) -> np.ndarray:
    """The sum of each window."""
    padded = windows.padded(x, 0.0)
    y = np.zeros((*x.shape[:2], *windows.output))
    for place in windows.places():
        y += windows.at(padded, place)
    return y


def _average_pool(call: Call) -> list[Value]:
    """The sum of each window by the number of its elements, where padding counts that is asked for and what
    `ceil_mode` adds behind it does not."""
    x = call.input(0)
    windows = windows_of(call, x.shape[2:], call.get("kernel_shape", ()))
    counted = np.ones((1, 1, *windows.sizes))
    if call.get("count_include_pad", 0):
        pads = [(0, 0), (0, 0), *zip(windows.before, windows.after, strict=True)]
        inside = Windows(
            tuple(s + b + a for s, b, a in zip(windows.sizes, windows.before, windows.after, strict=True)),
            *(windows.kernel, windows.output, windows.strides, windows.dilations),
            *((0,) * len(windows.sizes), (0,) * len(windows.sizes), windows.more),
        )
        return [_summed(x, windows) / _summed(np.pad(counted, pads, constant_values=1.0), inside)]
    return [_summed(x, windows) / _summed(counted, windows)]


def _lp_pool(call: Call) -> list[Value]:
    x, p = call.input(0), call.get("p", 2)
    windows = windows_of(call, x.shape[2:], call.get("kernel_shape", ()))
    return [_summed(np.abs(x) ** p, windows) ** (1 / p)]


def _spatial(x: np.ndarray) -> tuple[int, ...]:
    """All axes behind the channels, of a tensor of any rank."""
    return tuple(range(2, x.ndim))


def _global_max(call: Call) -> list[Value]:
    x = call.input(0)
    return [np.max(x, _spatial(x), keepdims=True, initial=_least(x.dtype))]


def _global_average(call: Call) -> list[Value]:
    x = call.input(0)
    return [np.mean(x, _spatial(x), keepdims=True)]


def _global_lp(call: Call) -> list[Value]:
    x, p = call.input(0), call.get("p", 2)
    return [np.sum(np.abs(x) ** p, _spatial(x), keepdims=True) ** (1 / p)]


def _max_unpool(call: Call) -> list[Value]:
    """Zeros, and each element at its place in the flat tensor that the pool was given. Where another shape is stated
    that one is put at its beginning, as onnx's own tests have it."""
    x, indices, kernel = call.input(0), call.input(1), call.get("kernel_shape", ())
    rank = len(kernel)
    strides, pads = call.get("strides", [1] * rank), call.get("pads", [0] * 2 * rank)
    shape = list(x.shape[:2])
    for axis in range(rank):
        shape.append((x.shape[axis + 2] - 1) * strides[axis] + kernel[axis] - pads[axis] - pads[axis + rank])
    flat = np.zeros(int(np.prod(shape)), x.dtype)
    flat[indices.ravel()] = x.ravel()
    if call.input(2) is None:
        return [flat.reshape(shape)]
    wanted = np.zeros(integers(call.input(2)), x.dtype)
    wanted[tuple(map(slice, shape))] = flat.reshape(shape)
    return [wanted]


RULES = {
    "AveragePool": _average_pool,
    "GlobalAveragePool": _global_average,
    "GlobalLpPool": _global_lp,
    "GlobalMaxPool": _global_max,
    "LpPool": _lp_pool,
    "MaxPool": _max_pool,
    "MaxUnpool": _max_unpool,
}
