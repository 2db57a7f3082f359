"""Casts. Between the floats that float64 stands for nothing is rounded: a cast to one of them only has its range."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper

from oracles.onnx.kinds import FLOATS, dtype_of
from oracles.onnx.operators.arguments import refuse
from oracles.onnx.rule import Call, Value

_HALF_STEP: dict[int, float] = {
    TensorProto.FLOAT8E4M3FN: 16.0,
    TensorProto.FLOAT8E4M3FNUZ: 8.0,
    TensorProto.FLOAT8E5M2: 4096.0,
    TensorProto.FLOAT8E5M2FNUZ: 4096.0,
}
"""Below the greatest number."""
_SMALL = {TensorProto.FLOAT4E2M1, *_HALF_STEP}
_SPECIAL = {"inf": np.inf, "+inf": np.inf, "-inf": -np.inf, "nan": np.nan}


def cast(call: Call, x: np.ndarray, kind: int) -> np.ndarray:
    """The array in another element type."""
    if kind == TensorProto.STRING:
        return _texts(x, call.kinds[0] if call.kinds else 0)
    if x.dtype == object:
        x = _numbers(x, kind)
    if kind == TensorProto.FLOAT8E8M0:
        return _scale(x.astype(np.float64), call.get("round_mode", "up"), bool(call.get("saturate", 1)))
    if kind in _SMALL:
        return _small(x.astype(np.float64), kind, bool(call.get("saturate", 1)))
    if kind in FLOATS:
        return _in_range(x.astype(np.float64), kind)
    target = dtype_of(kind)
    if target == np.bool_:
        return x.astype(np.float64) != 0 if x.dtype.kind not in "iub" else x != 0
    if x.dtype.kind not in "iub" and target.kind in "iu":
        return _truncated(x.astype(np.float64), target)
    if target.itemsize == 1 and target.kind == "V":  # ml_dtypes' 4 and 2 bits take their value modulo their size
        whole = np.trunc(x.astype(np.float64)).astype(np.int64) if x.dtype.kind not in "iub" else x.astype(np.int64)
        bits = 2 if "int2" in target.name else 4
        low = 0 if target.name.startswith("u") else 1 << (bits - 1)
        return (((whole + low) % (1 << bits)) - low).astype(np.int8).astype(target)
    if target.kind in "iu" and x.dtype.kind == "V":
        x = x.astype(np.int64)
    return x.astype(target)


def _in_range(x: np.ndarray, kind: int) -> np.ndarray:
    """Infinite where the type ends: what rounds to beyond its greatest number."""
    top = float(ml_dtypes.finfo(FLOATS[kind]).max)
    if kind == TensorProto.DOUBLE or not (np.abs(x) > top).any():
        return x
    return np.where((np.abs(x) > top) & np.isinf(x.astype(FLOATS[kind]).astype(np.float64)), np.copysign(np.inf, x), x)


def _truncated(x: np.ndarray, target: np.dtype) -> np.ndarray:
    """Towards zero; beyond the range the specification leaves it open."""
    whole = np.trunc(np.nan_to_num(x, nan=0.0, posinf=np.inf, neginf=-np.inf))
    return (
        whole.astype(target)
        if target != np.uint64
        else np.where(whole >= 2.0**63, x.astype(target), whole.astype(target))
    )


def _small(x: np.ndarray, kind: int, saturate: bool) -> np.ndarray:
    """To 8-bit floats and 4 bits by the tables of the specification; what rounds beyond the greatest number is out of
    range."""
    target = dtype_of(kind)
    top = float(ml_dtypes.finfo(target).max)
    if kind == TensorProto.FLOAT4E2M1:  # which has neither infinities nor NaN
        return np.clip(x, -top, top).astype(target)
    inside = np.clip(x, -top, top).astype(target)
    half = _HALF_STEP[kind]
    even = kind == TensorProto.FLOAT8E4M3FN  # the greatest number, to which a tie then goes
    beyond = np.abs(x) > top + half if even else np.abs(x) >= top + half
    if not saturate:
        infinite = np.inf if kind == TensorProto.FLOAT8E5M2 else np.nan
        return np.where(beyond, np.copysign(infinite, x).astype(target), inside)
    return inside


def _scale(x: np.ndarray, mode: str, saturate: bool) -> np.ndarray:
    """Powers of two from 2^-127 to 2^127."""
    fraction, exponent = np.frexp(np.abs(x))  # fraction from 0.5 on, below 1
    power = exponent.astype(np.float64) - 1
    if mode == "up":
        power += fraction > 0.5
    elif mode == "nearest":
        power += fraction >= 0.75
    below, above = (x == 0) | (power < -127), np.isinf(x) | (power > 127)
    found = np.ldexp(1.0, np.clip(power, -127, 127).astype(np.int64))
    found = np.where(below, 2.0**-127 if saturate else np.nan, found)
    found = np.where(above, 2.0**127 if saturate else np.nan, found)
    return np.where(np.isnan(x), np.nan, found).astype(ml_dtypes.float8_e8m0fnu)


def _numbers(x: np.ndarray, kind: int) -> np.ndarray:
    """Strings as numbers: integers exactly, all else as float64."""
    whole = kind not in FLOATS and all(re.fullmatch(r"\s*[+-]?\d+\s*", str(item)) for item in x.ravel())
    read = [int(item) if whole else _number(str(item)) for item in x.ravel()]
    if whole and kind == TensorProto.UINT64:
        return np.array(read, np.uint64).reshape(x.shape)
    return np.array(read, np.int64 if whole else np.float64).reshape(x.shape)


def _number(text: str) -> float:
    special = _SPECIAL.get(text.strip().lower())
    return float(text) if special is None else special


def _texts(x: np.ndarray, kind: int) -> np.ndarray:
    """Numbers as the shortest text that reads as them in their own type."""
    own = x.astype(FLOATS[kind]) if kind in FLOATS and x.dtype == np.float64 else x
    return np.array([str(item) for item in own.ravel()], object).reshape(x.shape)


def _cast(call: Call) -> list[Value]:
    return [cast(call, call.input(0), call.get("to", 0))]


def _cast_like(call: Call) -> list[Value]:
    if len(call.kinds) < 2 or not call.kinds[1]:
        raise refuse(call, "the type of the second input is not inferred")
    return [cast(call, call.input(0), call.kinds[1])]


def _bit_cast(call: Call) -> list[Value]:
    """The same bits as another type: floats first go back to their own width, where that is exact."""
    x, kind = call.input(0), call.get("to", 0)
    source = FLOATS.get(call.kinds[0], x.dtype) if call.kinds else x.dtype
    narrow = x.astype(source)
    if x.dtype == np.float64 and not np.array_equal(narrow.astype(np.float64), x, equal_nan=True):
        raise refuse(call, "the bits of a value that is evaluated in float64")
    target = FLOATS.get(kind, np.dtype(helper.tensor_dtype_to_np_dtype(kind)))
    bits = narrow.view(target)
    return [bits.astype(np.float64) if kind in FLOATS else bits]


RULES = {"BitCast": _bit_cast, "Cast": _cast, "CastLike": _cast_like}
