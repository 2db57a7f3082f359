"""QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from onnx import TensorProto

from oracles.onnx.kinds import FLOATS, dtype_of, kind_of, rounded
from oracles.onnx.operators.arguments import along, positive, refuse, single
from oracles.onnx.operators.elementwise.casts import cast
from oracles.onnx.rule import Call, Value

_SMALL_FLOATS = ("float8", "float6", "float4")


def spread(call: Call, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Scales or zero points as they lie along a tensor: one for all, one for each place of an axis, or one for each
    block of an axis."""
    if values.ndim == 0 or values.size == 1:
        return values.reshape(())
    axis = positive(call.get("axis", 1), len(shape)) if len(shape) > 1 else 0
    if values.ndim == 1 and not call.get("block_size", 0):
        if call.version < 13 and not call.domain:
            raise refuse(call, "several scales")
        return along(values, len(shape), axis)
    block = call.get("block_size", 0)
    wanted = tuple(-(-size // block) if place == axis else size for place, size in enumerate(shape)) if block else ()
    if values.shape != wanted:
        raise refuse(call, f"scales of {values.shape} for {shape} in blocks of {block}")
    return np.take(np.repeat(values, block, axis), np.arange(shape[axis]), axis)


def saturated(call: Call, x: np.ndarray, kind: int) -> np.ndarray:
    """Whole numbers at the ends of their range; floats of 8 bits and fewer as a cast has them."""
    target = dtype_of(kind)
    if target.name.startswith("float6"):
        top = float(ml_dtypes.finfo(target).max)
        return np.clip(x, -top, top).astype(target)
    if target.name.startswith(_SMALL_FLOATS):
        return cast(call, x, kind)
    limits = ml_dtypes.iinfo(target)
    if np.isnan(x).any():
        raise refuse(call, "NaN in whole numbers")
    return np.clip(x, float(limits.min), float(limits.max)).astype(target)


def whole(x: np.ndarray) -> np.ndarray:
    """Quantised values as numbers to compute with: whole ones as int64, small floats as float64."""
    return x.astype(np.float64 if x.dtype.name.startswith(_SMALL_FLOATS) else np.int64)


def quantised(call: Call, quotient: np.ndarray, zero: np.ndarray | None, kind: int) -> np.ndarray:
    """What is divided by the scale already, rounded and moved."""
    small = dtype_of(kind).name.startswith(_SMALL_FLOATS)
    near = quotient if small else np.rint(quotient)
    return saturated(call, near if zero is None else near + whole(zero), kind)


def _quantize(call: Call) -> list[Value]:
    """The division has the precision of the scale's type or the stated one; rounding follows, ties to even."""
    x, scale, zero = call.input(0), call.input(1), call.input(2)
    kind = call.get("output_dtype", 0) or (TensorProto.UINT8 if zero is None else kind_of(zero))
    precision = call.get("precision", 0) or (call.kinds[1] if len(call.kinds) > 1 else 0)
    if scale.dtype != np.float64:  # a power of two
        scale, precision = scale.astype(np.float64), call.get("precision", 0) or TensorProto.FLOAT
    quotient = x / spread(call, scale, x.shape)
    if precision in FLOATS:
        quotient = rounded(quotient, precision)
    return [quantised(call, quotient, None if zero is None else spread(call, zero, x.shape), kind)]


def _dequantize(call: Call) -> list[Value]:
    x, scale, zero = call.input(0), call.input(1), call.input(2)
    moved = whole(x) if zero is None else whole(x) - whole(spread(call, zero, x.shape))
    return [moved * spread(call, scale, x.shape).astype(np.float64)]


def dynamic(call: Call, x: np.ndarray) -> tuple[np.ndarray, float, int]:
    """A tensor in uint8 by its own range, which holds zero; the scale; the zero point. The quotients are float32, as in
    the function body, since the uint8 numbers have their meaning by the float32 scale that is returned with them."""
    low, high = min(0.0, float(x.min(initial=0))), max(0.0, float(x.max(initial=0)))
    scale = single((high - low) / 255)
    if scale == 0:
        raise refuse(call, "a range of one point, whose scale is 0")
    zero = int(np.rint(np.clip(0 - single(low / scale), 0, 255)))
    return saturated(call, np.rint(rounded(x / scale, TensorProto.FLOAT)) + zero, TensorProto.UINT8), scale, zero


def _dynamic(call: Call) -> list[Value]:
    y, scale, zero = dynamic(call, call.input(0))
    return [y, np.array(scale), np.array(zero, np.uint8)]


RULES = {
    "DequantizeLinear": _dequantize,
    "DynamicQuantizeLinear": _dynamic,
    "QuantizeLinear": _quantize,
    "com.microsoft:DequantizeLinear": _dequantize,
    "com.microsoft:QuantizeLinear": _quantize,
}
