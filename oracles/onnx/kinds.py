"""Element types of ONNX (TensorProto.DataType) and the arrays that rules compute on: floats of every width are float64,
complex numbers complex128, strings objects, integers and 8-bit or narrower types as numpy and ml_dtypes have them."""

from __future__ import annotations

from typing import Any, TypeGuard

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper

FLOATS: dict[int, np.dtype] = {
    TensorProto.FLOAT: np.dtype(np.float32),
    TensorProto.FLOAT16: np.dtype(np.float16),
    TensorProto.BFLOAT16: np.dtype(ml_dtypes.bfloat16),
    TensorProto.DOUBLE: np.dtype(np.float64),
}
"""Element types that float64 stands for."""
COMPLEX: set[int] = {TensorProto.COMPLEX64, TensorProto.COMPLEX128}


def dtype_of(kind: int) -> np.dtype:
    """The dtype of arrays that hold an element type. Raises KeyError for an unknown one."""
    if kind in FLOATS:
        return np.dtype(np.float64)
    if kind in COMPLEX:
        return np.dtype(np.complex128)
    return np.dtype(helper.tensor_dtype_to_np_dtype(kind))


def kind_of(value: Any) -> int:
    """The element type that a given array or scalar has before it is widened; 0 for what is no tensor."""
    if not isinstance(value, np.ndarray | np.generic):
        return 0
    if value.dtype.kind in "OUST":
        return TensorProto.STRING
    return helper.np_dtype_to_tensor_dtype(value.dtype)


def widened(value: Any) -> Any:
    """A value with its floats as float64 and its strings as objects, through sequences and maps."""
    if isinstance(value, list | tuple):
        return [widened(item) for item in value]
    if isinstance(value, dict):
        return {key: widened(item) for key, item in value.items()}
    if not isinstance(value, np.ndarray | np.generic):
        return value
    array = np.asarray(value)
    if array.dtype in FLOATS.values():
        return array.astype(np.float64)
    if array.dtype == np.complex64:
        return array.astype(np.complex128)
    if array.dtype.kind in "OUST":
        return np.vectorize(_text, otypes=[object])(array) if array.size else array.astype(object)
    return array


def _text(item: Any) -> str:
    return item.decode() if isinstance(item, bytes) else str(item)


def rounded(array: np.ndarray, kind: int) -> np.ndarray:
    """A float64 array with every element rounded to the nearest one of a floating element type."""
    return array.astype(FLOATS[kind]).astype(np.float64)


def floating(value: Any) -> TypeGuard[np.ndarray]:
    """Is it a tensor of floats that float64 stands for?"""
    return isinstance(value, np.ndarray) and value.dtype == np.float64
