"""Do the optimisation levels of one compiler agree? Bit for bit first; a difference inside the error bound is
counted, a greater one reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from generators.graph import Graph
from generators.ops.bounded import Bounded
from oracles.compare import compare
from oracles.discrepancy import Discrepancy

NAME = "levels"

Agreement = Literal["identical", "within_bound", "different"]


@dataclass(frozen=True)
class Judgement:
    """How the outputs of two levels relate, with the discrepancy where they are `different`."""

    agreement: Agreement
    discrepancy: Discrepancy | None = None


def judge(
    graph: Graph,
    expected: Mapping[str, Bounded],
    low: Sequence[np.ndarray],
    high: Sequence[np.ndarray],
) -> Judgement:
    """Outputs of a lower and a higher level. Both may err by the bound, so they may differ by twice as much;
    elements whose reference is undetermined may differ in any way (that is counted as within the bound)."""
    if len(low) != len(high):
        return Judgement("different", Discrepancy("outputs", f"{len(high)} outputs instead of {len(low)}"))
    agreement: Agreement = "identical"
    for index, (name, a, b) in enumerate(zip(graph.outputs, low, high, strict=True)):
        if identical(a, b):
            continue
        agreement = "within_bound"
        bound = expected[name]
        value = a.astype(np.float64) if bound.floating else a
        found = compare(b, graph.types[name], Bounded(value, 2 * bound.error, bound.dtype), index)
        if found:
            return Judgement("different", Discrepancy("level", found.message, index, found.worst))
    return Judgement(agreement)


def identical(a: np.ndarray, b: np.ndarray) -> bool:
    """Same dtype, shape and bits; any NaN equals any other, since no standard fixes their payload."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind == "f":
        nan = np.isnan(a)
        if not np.array_equal(nan, np.isnan(b)):
            return False
        a, b = np.where(nan, 0, a), np.where(nan, 0, b)
    return a.tobytes() == b.tobytes()
