"""Geometry of dots and intervals: places are percentages of the width, so that a drawing fits any."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

EDGE = 2.0
"""Percent of the width that is left at both ends."""
TICKS = 6
"""Numbers at a scale, about."""


@dataclass(frozen=True)
class Line:
    """name: before it; values: a dot each; low, high: of an interval (NaN: none); told: the number behind it; title: of
    what shows when it is pointed at; kind: plain, bad or known, which is how it is drawn."""

    name: str
    values: tuple[float, ...]
    low: float
    high: float
    told: str
    kind: str = "plain"


@dataclass(frozen=True)
class Drawn:
    """A line with places in percent. dots: place and number of each value; stem: of the interval, or None."""

    name: str
    dots: tuple[tuple[float, str], ...]
    stem: tuple[float, float] | None
    told: str
    kind: str


@dataclass(frozen=True)
class Chart:
    """ticks: places and numbers of the scale; title: what is on it."""

    title: str
    lines: tuple[Drawn, ...]
    ticks: tuple[tuple[float, str], ...]


def chart(title: str, lines: Sequence[Line], zero: bool = True) -> Chart:
    """All lines on one linear scale. zero: it begins at 0."""
    numbers = [value for line in lines for value in (*line.values, line.low, line.high) if math.isfinite(value)]
    low, high = min(numbers, default=0.0), max(numbers, default=1.0)
    low = min(0.0, low) if zero else low
    if high <= low:
        low, high = (low, low + 1.0) if zero else (low - 0.5 * abs(low) - 1e-9, low + 0.5 * abs(low) + 1e-9)
    step = _step((high - low) / TICKS)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)

    def place(value: float) -> float:
        part = (value / step - first) / (last - first)
        return round(EDGE + (100 - 2 * EDGE) * min(max(part, 0.0), 1.0), 2)

    drawn = []
    for line in lines:
        known = math.isfinite(line.low) and math.isfinite(line.high)
        dots = tuple((place(value), f"{value:.6g}") for value in line.values if math.isfinite(value))
        stem = (place(line.low), place(line.high)) if known else None
        drawn.append(Drawn(line.name, dots, stem, line.told, line.kind))
    ticks = tuple((place(number * step), f"{number * step:.4g}") for number in range(first, last + 1))
    return Chart(title, tuple(drawn), ticks)


def _step(least: float) -> float:
    """1, 2 or 5 times a power of ten, not less."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(times * power for times in (1, 2, 5, 10) if times * power >= least * (1 - 1e-9))
