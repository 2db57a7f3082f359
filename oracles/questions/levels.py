"""Do the optimisation levels of one compiler agree? Bit for bit first; a difference inside the error bound is
counted, a greater one reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import COMPONENT, FLOATS, TensorType
from oracles.judge.compare import Expected, compare
from oracles.judge.discrepancy import Discrepancy

NAME = "levels"

Agreement = Literal["identical", "within_bound", "different"]


@dataclass(frozen=True)
class LevelComparison:
    """How the outputs of two levels relate, with the discrepancy where they are `different`."""

    agreement: Agreement
    discrepancy: Discrepancy | None = None


def judge(expected: Expected, low: Sequence[np.ndarray], high: Sequence[np.ndarray]) -> LevelComparison:
    """Outputs of a lower and a higher level. Both may err by the bound, so they may differ by twice as much;
    elements whose reference is undetermined may differ in any way (that is counted as within the bound)."""
    if len(low) != len(high):
        return LevelComparison("different", Discrepancy("outputs", f"{len(high)} outputs instead of {len(low)}"))
    agreement: Agreement = "identical"
    for index, (type_, bound, a, b) in enumerate(zip(expected.types, expected.values, low, high, strict=True)):
        if identical(a, b):
            continue
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            high_type, low_type = (TensorType(str(x.dtype), x.shape) for x in (b, a))
            return LevelComparison("different", Discrepancy("level", f"{high_type} instead of {low_type}", index))
        agreement = "within_bound"
        value = a.astype(np.complex128 if bound.complex else np.float64) if bound.floating else a
        found = compare(b, type_, Bounded(value, 2 * bound.error, bound.dtype), index)
        if found:
            return LevelComparison("different", Discrepancy("level", found.message, index, found.worst))
    return LevelComparison(agreement)


def identical(a: np.ndarray, b: np.ndarray) -> bool:
    """Same dtype, shape and bits; any NaN equals any other, since no standard fixes their payload."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    part = COMPONENT.get(str(a.dtype))
    if part:
        a, b = (np.ascontiguousarray(array).view(part) for array in (a, b))
    if str(a.dtype) in FLOATS:
        nan = np.isnan(a)
        if not np.array_equal(nan, np.isnan(b)):
            return False
        a, b = np.where(nan, np.zeros_like(a), a), np.where(nan, np.zeros_like(b), b)
    return a.tobytes() == b.tobytes()
