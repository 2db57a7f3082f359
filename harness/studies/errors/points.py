"""Which numbers an operator is given: all of a dtype, so many of each sign and exponent, or those around some. A number
is its bits, and a point as many of them as there are operands: arrays of shape (operands, points)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

NEAR = (1 << 6, 1 << 12, 1 << 18)
"""How far from a number others are looked at, in numbers of the dtype: all of the nearest, drawn ones of the rest."""


@dataclass(frozen=True)
class Layout:
    """bits: the dtype of same-sized unsigned integers; mantissa: bits of it; numbers: the dtype as numpy has it."""

    bits: str
    mantissa: int
    numbers: np.dtype

    @property
    def count(self) -> int:
        """Of all numbers, NaNs among them."""
        return 1 << 8 * self.numbers.itemsize

    @property
    def strata(self) -> int:
        """Pairs of a sign and an exponent."""
        return self.count >> self.mantissa


LAYOUTS = {
    "float16": Layout("uint16", 10, np.dtype(np.float16)),
    "bfloat16": Layout("uint16", 7, np.dtype(ml_dtypes.bfloat16)),
    "float32": Layout("uint32", 23, np.dtype(np.float32)),
}


def numbers(bits: np.ndarray, dtype: str) -> np.ndarray:
    """The numbers of these bits. A signalling NaN becomes a quiet one: of those IEEE 754 says otherwise than C (fmax),
    and nothing computes them."""
    layout = LAYOUTS[dtype]
    infinity = (layout.count >> 1) - (1 << layout.mantissa)
    nan = (bits & ((layout.count >> 1) - 1)) > infinity
    quiet = np.where(nan, bits | (1 << (layout.mantissa - 1)), bits).astype(layout.bits)
    return np.ascontiguousarray(quiet).view(layout.numbers)


def bits_of(values: Sequence[float], dtype: str) -> np.ndarray:
    """Bits of the numbers next to these."""
    layout = LAYOUTS[dtype]
    with np.errstate(all="ignore"):
        return np.asarray(values, np.float64).astype(layout.numbers).view(layout.bits)


def block(dtype: str, first: int, count: int) -> np.ndarray:
    """So many numbers in the order of their bits, of one operand."""
    return np.arange(first, first + count, dtype=np.uint64).astype(LAYOUTS[dtype].bits)[None]


def stratified(dtype: str, operands: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """About so many points: each stratum of the first operand has the same share of them, the ends of the stratum
    among them, the rest evenly spread; each other operand has the same numbers in another order."""
    layout = LAYOUTS[dtype]
    size = 1 << layout.mantissa
    each = max(2, count // layout.strata if operands > 1 else min(size, count // layout.strata))
    low = np.arange(each) * size // each
    found = []
    for _ in range(operands):
        jitter = rng.integers(0, max(1, size // each), (layout.strata, each))
        jitter[:, 0] = 0
        mantissa = np.minimum(low + jitter, size - 1)
        mantissa[:, -1] = size - 1
        bits = ((np.arange(layout.strata)[:, None] << layout.mantissa) + mantissa).ravel()
        found.append(rng.permutation(bits) if found else bits)
    return np.stack(found).astype(layout.bits)


def around(centres: np.ndarray, dtype: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """So many points near some: of the operands of each, one or all moved by up to `NEAR`. centres: of shape (operands,
    points), one at least."""
    layout = LAYOUTS[dtype]
    operands, given = centres.shape
    chosen = centres[:, np.arange(count) % given].astype(np.int64)
    reach = np.array(NEAR)[rng.integers(0, len(NEAR), count)]
    moved = rng.integers(-reach, reach + 1, (operands, count))
    if operands > 1:
        moved *= rng.integers(0, 2, (operands, count))
    else:  # all of the nearest, whatever is drawn
        turn = np.arange(count) // given
        nearest = turn < 2 * NEAR[0] + 1
        moved = np.where(nearest, turn - NEAR[0], moved)
    sign = chosen & (layout.count >> 1)  # neighbours have the same
    size = np.clip((chosen ^ sign) + moved, 0, (layout.count >> 1) - 1)
    return (sign | size).astype(layout.bits)
