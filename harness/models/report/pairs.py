"""All variants with all, and groups of them with groups, as tables of shaded cells: shares of what is allowed first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.models.report.charts import shade
from harness.models.report.words import short
from harness.models.results import AXES, HIGHER, REFERENCE, Results, groups, incomplete, worst
from oracles.models.agreement import Failure

SCORES = {
    "top1": "top-1 agreement",
    "top5": "top-5 agreement",
    "rbo": "rank-biased overlap",
    "kendall": "Kendall's tau-b",
    "kl": "KL divergence (nats)",
    "offset": "offset of class ids",
}
"""Measures of class scores alone."""
MEASURES = {
    "excess": "greatest difference / allowed",
    "largest": "greatest error",
    "mean": "mean error",
    "largest_relative": "greatest relative error",
    "mean_relative": "mean relative error",
    "special": "NaN or infinity in one only",
}
FEW = 15
"""Most variants of which all measures are shown, and numbers in the cells."""
CHIEF = ("excess", "top1", "largest")
"""Measures that are shown of more."""
NONE = -2
"""The shade of a result that is missing."""


@dataclass(frozen=True)
class Square:
    """measure: its title; cells: for each row its name, and the shade and the text of each cell."""

    measure: str
    titles: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[int, str], ...]], ...]


def _shade(measure: str, value: float | None) -> int:
    """As that of a share of what is allowed, where a measure has one; of the others 0 is full agreement, and so is any
    error that is no more than rounding of float32."""
    if value is None:
        return NONE
    if measure == "excess" or math.isnan(value):
        return shade(value)
    if measure in HIGHER:
        return 0 if value == 1 else 3 if value > 0.9 else 4
    if measure in ("special", "offset"):
        return 0 if value == 0 else 5
    return 0 if value == 0 else 1 if value < 1e-6 else 2 if value < 1e-3 else 3


def _square(
    measure: str,
    names: Sequence[str],
    titles: Sequence[str],
    values: Sequence[Sequence[float | None]],
    stars: Sequence[Sequence[bool]] | None = None,
) -> Square:
    worded = len(names) <= FEW
    rows = []
    for place, (name, row) in enumerate(zip(names, values, strict=True)):
        marks = stars[place] if stars else [False] * len(row)
        cells = tuple(
            (_shade(measure, v), (_inside(v) if worded or v is None else "") + "*" * star)
            for v, star in zip(row, marks, strict=True)
        )
        rows.append((name, cells))
    return Square({**MEASURES, **SCORES}[measure], tuple(titles), tuple(rows))


def _inside(value: float | None) -> str:
    if value is None or math.isnan(value):
        return "×" if value is None else ""
    return f"{value:.0f}" if 100 <= value < 1e4 else short(value, 2)


def _measures(names: Sequence[str], scores: bool) -> list[str]:
    """Those that are shown of so many."""
    measures = [*MEASURES, *(SCORES if scores else ())]
    return measures if len(names) <= FEW else [one for one in measures if one in CHIEF]


def everything(results: Results, scores: bool) -> list[Square]:
    """All with all, the reference first where there is one. scores: are the outputs class scores?"""
    names = list(dict.fromkeys(first for first, _ in results.pairs))
    start = 0 if names and names[0] == REFERENCE else 1
    titles = [str(number) for number in range(start, start + len(names))]
    told = [f"{title}  {name}" for name, title in zip(names, titles, strict=True)]
    found = []
    for measure in _measures(names, scores):
        pairs = [[results.pairs[a, b] for b in names] for a in names]
        values = [[None if isinstance(p, Failure) else getattr(p, measure) for p in row] for row in pairs]
        if any(value is not None for row in values for value in row) or not found:
            found.append(_square(measure, told, titles, values))
    return [one for one in found if any(cell[1] != "×" for _, cells in one.rows for cell in cells)] or found[:1]


def axes(results: Results, scores: bool) -> list[tuple[str, str, list[Square]]]:
    """For each axis its name and the worst of all pairs of its values; where there is one value, that and no table."""
    found = []
    for axis in AXES:
        members = groups(results, axis)
        if len(members) < 2:
            found.append((axis, next(iter(members)), []))
            continue
        titles = [str(number + 1) for number in range(len(members))]
        names = [f"{title}  {name}" for name, title in zip(members, titles, strict=True)]
        stars = [[incomplete(results, a, b) for b in members.values()] for a in members.values()]
        squares = []
        for measure in _measures(names, scores):
            values = [[worst(results, a, b, measure) for b in members.values()] for a in members.values()]
            if any(value is not None and not math.isnan(value) for row in values for value in row):
                squares.append(_square(measure, names, titles, values, stars))
        found.append((axis, "", squares[: 2 if scores else 1]))
    return found
