"""Bit patterns of floating numbers, as unsigned integers of the same width. Bit 0 is the least significant one of the
significand, the highest one the sign."""

from __future__ import annotations

from collections.abc import Mapping

import ml_dtypes
import numpy as np

WIDTHS: Mapping[str, int] = {"float64": 64, "float32": 32, "float16": 16, "bfloat16": 16}
"""Bits of each dtype that a fault may strike."""
HALVES = ("bfloat16", "float16")
_DTYPES = {"bfloat16": np.dtype(ml_dtypes.bfloat16)}


def dtype_of(name: str) -> np.dtype:
    """A dtype by its name. Raises ValueError for one without bits here."""
    if name not in WIDTHS:
        raise ValueError(f"faults strike {', '.join(WIDTHS)}, not {name}")
    return _DTYPES[name] if name in _DTYPES else np.dtype(name)


def patterns_of(values: np.ndarray) -> np.ndarray:
    """The bits of floating values, of the same shape."""
    width = WIDTHS[dtype_of(str(values.dtype)).name]
    return np.ascontiguousarray(values).view(f"uint{width}")


def values_of(patterns: np.ndarray, dtype: str) -> np.ndarray:
    """The floating values with these bits."""
    return np.ascontiguousarray(patterns).view(dtype_of(dtype))


def flipped(values: np.ndarray, bits: tuple[int, ...] | np.ndarray) -> np.ndarray:
    """Values with some bits inverted: the same ones in all of them, or (an array) one bit for each."""
    old = patterns_of(values)
    one = old.dtype.type(1)
    if isinstance(bits, np.ndarray):
        return values_of(old ^ (one << bits.astype(old.dtype)), str(values.dtype))
    return values_of(old ^ old.dtype.type(mask_of(bits)), str(values.dtype))


def mask_of(bits: tuple[int, ...]) -> int:
    """The pattern that has these bits and no others."""
    return sum(1 << bit for bit in set(bits))


def rounded(values: np.ndarray, half: str) -> np.ndarray:
    """Values in a dtype of 16 bits, to nearest even, as an operand of that width is held."""
    with np.errstate(all="ignore"):
        return values.astype(dtype_of(half))


def random_finite(rng: np.random.Generator, count: int, dtype: str) -> np.ndarray:
    """Values whose patterns are uniform among those that are neither infinite nor NaN."""
    width = WIDTHS[dtype]
    found = np.empty(0, f"uint{width}")
    while len(found) < count:
        drawn = rng.integers(0, 2**width, count, dtype=f"uint{width}")
        with np.errstate(invalid="ignore"):  # a signalling NaN among them is no matter
            finite = np.isfinite(values_of(drawn, dtype).astype(np.float64))
        found = np.concatenate([found, drawn[finite]])
    return values_of(found[:count], dtype)
