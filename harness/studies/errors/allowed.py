"""What a question allows an operator alone: the bound of each element, relative to it, in units of roundoff."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from generators.bounds.bounded import PRECISION
from generators.graphs import SMOOTH, Case, SeededDraw, Style, build_case
from oracles.derivatives.gradient import differentiable_leaves
from oracles.judge.compare import Expected

TRIES = 8
"""Draws for each case that is asked for: operators of integers have none of these."""

CANCELLED = 2.0**-16
"""A value that is smaller than this times its bound is a zero (x / x by x) but for the noise of the reference."""


@dataclass(frozen=True)
class Allowed:
    """median: of error / (|value| u) over the determined elements that are not zero, NaN where there are none; u is
    2**-24 of float32. elements: how many these are; undetermined: the share of all elements."""

    median: float
    elements: int
    undetermined: float


def cases(operator: str, dtype: str, count: int) -> Iterator[Case]:
    """So many cases, at most, of the operator alone, in which a leaf of the dtype can be differentiated."""
    style = Style((dtype,), SMOOTH.mixture[:1])
    drawn = (build_case(SeededDraw(f"{operator}/{i}"), 1, (operator,), style) for i in range(TRIES * count))
    yield from islice((case for case in drawn if _judged(case, operator, dtype)), count)


def _judged(case: Case, operator: str, dtype: str) -> bool:
    leaves = differentiable_leaves(case.graph)
    return case.graph.operators == (operator,) and any(leaf.type.dtype == dtype for leaf in leaves)


def allowed(operator: str, dtype: str, count: int, expect: Callable[[Case], Expected]) -> Allowed:
    """What the question with this expectation allows in so many cases."""
    ratios: list[np.ndarray] = []
    total = undetermined = 0
    for case in cases(operator, dtype, count):
        for type_, value in zip(*(lambda e: (e.types, e.values))(expect(case)), strict=True):
            if type_.dtype != dtype:
                continue
            total += value.value.size
            undetermined += int(np.count_nonzero(value.undetermined))
            size = np.abs(value.value)
            known = ~value.undetermined & (size > CANCELLED * value.error) & np.isfinite(size)
            ratios.append(value.error[known] / size[known] / PRECISION[dtype].unit)
    found = np.concatenate(ratios) if ratios else np.zeros(0)
    median = float(np.median(found)) if found.size else float("nan")
    return Allowed(median, found.size, undetermined / max(total, 1))
