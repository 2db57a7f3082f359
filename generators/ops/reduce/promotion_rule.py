"""Which dtype operands of several dtypes are computed in, by PyTorch's rule
(https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc)."""

from __future__ import annotations

import numpy as np

from generators.graph import FLOATS, INTEGERS, TensorType
from generators.ops.spec import TypeRuleError, Types

PROMOTED = ("float32", "int64", "int32", "float64", "bool", "float16", "bfloat16", "int8", "int16", "uint8")
"""dtypes that promote: uint16, uint32 and uint64 do so with nothing."""
DEFAULT = "float32"
"""What whole numbers become where the result is floating."""


def category(dtype: str) -> int:
    """bool, whole or floating."""
    return 0 if dtype == "bool" else 1 if dtype in INTEGERS else 2


def least(left: str, right: str) -> str:
    """The least dtype of the higher category that holds both (float16 and bfloat16: float32)."""
    if category(left) != category(right):
        return max(left, right, key=category)
    if category(left) < 2:
        return str(np.promote_types(left, right))
    if left == right:
        return left
    return "float64" if "float64" in (left, right) else "float32"


def of_pair(x: TensorType, y: TensorType) -> str:
    """A tensor without dimensions counts only where its category is higher."""
    if not {x.dtype, y.dtype} <= set(PROMOTED):
        raise TypeRuleError(f"nothing holds both {x} and {y}")
    if bool(x.rank) == bool(y.rank):
        return least(x.dtype, y.dtype)
    wide, narrow = (x.dtype, y.dtype) if x.rank else (y.dtype, x.dtype)
    return narrow if category(narrow) > category(wide) else wide


def of_all(operands: Types) -> str:
    """Of tensors that are put together, of which dimensions do not count."""
    to = operands[0].dtype
    for one in operands[1:]:
        to = least(to, one.dtype)
    return to


def floating(dtype: str) -> str:
    """What a function of real numbers computes in."""
    return dtype if dtype in FLOATS else DEFAULT
