"""What makes a tensor of attributes and sizes."""

from __future__ import annotations

import numpy as np

from oracles.onnx.kinds import dtype_of
from oracles.onnx.operators.arguments import integers, refuse
from oracles.onnx.rule import Call, Value

_CONSTANTS = {
    "value_float": np.float64,
    "value_floats": np.float64,
    "value_int": np.int64,
    "value_ints": np.int64,
    "value_string": object,
    "value_strings": object,
}


def _constant(call: Call) -> list[Value]:
    for name in ("value", "sparse_value"):
        if name in call.attributes:
            return [call.attributes[name]]
    for name, dtype in _CONSTANTS.items():
        if name in call.attributes:
            return [np.array(call.attributes[name], dtype)]
    raise refuse(call, "it has no value")


def _filled(call: Call) -> list[Value]:
    """ConstantOfShape: zeros of float32 unless a value is stated."""
    value = call.get("value", np.zeros(1))
    return [np.full(integers(call.input(0)), value.ravel()[0], value.dtype)]


def _eye(call: Call) -> list[Value]:
    """Of the input's type unless another one is stated."""
    kind = call.get("dtype", 0)
    dtype = dtype_of(kind) if kind else call.input(0).dtype
    return [np.eye(*call.input(0).shape, k=call.get("k", 0)).astype(dtype)]


def _range(call: Call) -> list[Value]:
    """start + i delta, below the limit (above it where delta is negative)."""
    start, limit, delta = (np.asarray(x).reshape(()) for x in call.inputs[:3])
    if start.dtype.kind == "f":
        count = max(int(np.ceil((limit - start) / delta)), 0)
    else:
        first, last, step = int(start), int(limit), int(delta)
        count = max(-((first - last) // step), 0)
    return [(start + np.arange(count).astype(start.dtype) * delta).astype(start.dtype)]


def _upsample(call: Call) -> list[Value]:
    """Upsample until version 9: sizes are floor(size * scale), and a place stands for that place divided by the scale,
    which is the nearest one below (`nearest`) or lies between two, the last one being repeated (`linear`)."""
    x, mode = call.input(0), call.get("mode", "nearest")
    scales = call.get("scales", None) if call.input(1) is None else np.asarray(call.input(1)).tolist()
    if scales is None and x.ndim == 4 and "height_scale" in call.attributes:
        scales = [1.0, 1.0, call.get("height_scale", 1.0), call.get("width_scale", 1.0)]
    if scales is None or mode not in ("nearest", "linear", "bilinear"):
        raise refuse(call, f"mode {mode!r} with scales {scales}")
    for axis, scale in enumerate(scales):
        size = x.shape[axis]
        places = np.arange(int(np.floor(np.float32(size) * np.float32(scale)))) / scale
        below = np.minimum(np.floor(places).astype(np.int64), size - 1)
        if scale == 1:
            continue
        taken = np.take(x, below, axis)
        if mode != "nearest":
            part = (places - below).reshape([-1 if k == axis else 1 for k in range(x.ndim)])
            taken = taken * (1 - part) + np.take(x, np.minimum(below + 1, size - 1), axis) * part
        x = taken.astype(x.dtype)
    return [x]


RULES = {
    "Constant": _constant,
    "ConstantOfShape": _filled,
    "EyeLike": _eye,
    "Range": _range,
    "Upsample": _upsample,
}
