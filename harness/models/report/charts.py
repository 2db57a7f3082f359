"""Geometry of the page's drawings: places are percentages of the width, so that a drawing fits any, its text being as
large everywhere. Shares of what is allowed are on logarithmic scales, with 1 as the line not to cross."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.models.layer_errors import Layer
from harness.models.measure import Run
from harness.models.report.words import short
from harness.models.rows import Row
from oracles.models.timing import LEAST

EDGE = 2.0
"""Percent of the width that is left at both ends: for marks at the ends of a scale."""
LOWEST, HIGHEST = -9, 9
"""Powers of ten that a scale does not go beyond; what does stands at its end."""
TICKS = 7
"""Most numbers at a scale."""
SEEN = 4.0
"""Least height of a bar in percent: one wrong element in a million is what is looked for."""
STEPS = 2
"""Bins of a histogram for each power of ten."""
POINTS = 300
"""So many layers a drawing shows; of more, the worst of each run of neighbours."""
LEVELS = (0.0, 0.03, 0.1, 0.3, 1.0, 10.0)
"""Ends of the shades of a map: the last two are for what is not allowed."""


@dataclass(frozen=True)
class Scale:
    """From 10**low to 10**high."""

    low: int
    high: int

    def place(self, value: float) -> float:
        """Percent of the width; what is beyond an end is at it."""
        if value <= 0:
            return EDGE
        power = min(max(math.log10(value), self.low), self.high) if math.isfinite(value) else self.high
        return round(EDGE + (100 - 2 * EDGE) * (power - self.low) / (self.high - self.low), 2)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Places and words of powers of ten."""
        step = math.ceil((self.high - self.low + 1) / TICKS)
        powers = [power for power in range(self.low, self.high + 1) if power % step == 0]
        return [(self.place(10.0**power), f"{10.0**power:g}") for power in powers]


def scale_of(values: Iterable[float]) -> Scale:
    """Whole powers of ten around all that are positive and finite; one power at least."""
    powers = [math.log10(value) for value in values if 0 < value < math.inf]
    low = min(max(math.floor(min(powers, default=0.0)), LOWEST), HIGHEST - 1)
    return Scale(low, max(min(math.ceil(max(powers, default=1.0)), HIGHEST), low + 1))


@dataclass(frozen=True)
class Mark:
    """A line of a chart. at: of its point; low, high: of the ends of its interval; word: the number beside it; kind:
    good, bad, known (or in doubt) or plain, which is how it is drawn."""

    name: str
    at: float
    low: float
    high: float
    word: str
    kind: str


@dataclass(frozen=True)
class Chart:
    """limit: the place of 1 (None: there is none to be drawn)."""

    marks: tuple[Mark, ...]
    ticks: list[tuple[float, str]]
    limit: float | None


def by_share(rows: Iterable[Row]) -> list[Row]:
    """What has the greatest share of the allowed error first, before it what returned nothing; then what was not
    judged."""

    def key(row: Row) -> tuple[bool, bool, float]:
        return not row.silent, row.ratio is None, -(row.ratio or 0.0)

    return sorted(rows, key=key)


def shares(rows: Sequence[Row]) -> Chart | None:
    """The greatest error of each variant as a part of what is allowed; None where nothing was compared."""
    known = sorted(((row, row.ratio) for row in rows if row.ratio is not None), key=lambda pair: -pair[1])
    if not known:
        return None
    scale = scale_of([0.1, 10.0, *(ratio for _, ratio in known)])
    marks = []
    for row, ratio in known:
        wrong = "bad" if row.deviates and not row.known else "known"
        kind = wrong if ratio > 1 else "good"
        start = scale.place(min(1.0, 10.0**scale.low))
        marks.append(Mark(row.variant.name, scale.place(ratio), start, scale.place(ratio), short(ratio), kind))
    return Chart(tuple(marks), scale.ticks, scale.place(1.0))


@dataclass(frozen=True)
class Timed:
    """Times of a variant in milliseconds. ratio: to the first variant's, in words; rounds: how many they are of."""

    name: str
    median: float
    least: float
    most: float
    rounds: int
    ratio: str


def timed_of(runs: Sequence[Run], rows: Sequence[Row]) -> list[Timed]:
    """Of all that ran in a timed round, by their medians. Below five rounds the ratio to the first variant of the same
    rounds has the least and the greatest of a round in place of an interval."""
    base, found = next((run for run in runs if run.seconds), None), []
    for run, row in zip(runs, rows, strict=True):
        if not run.seconds or base is None:
            continue
        times = 1000 * np.asarray(run.seconds)
        told = "-"
        if row.slowdown and len(times) >= LEAST:
            told = f"{row.slowdown.ratio:.2f} ({row.slowdown.low:.2f} to {row.slowdown.high:.2f})"
        elif len(run.seconds) == len(base.seconds):
            each = np.asarray(run.seconds) / np.asarray(base.seconds)
            whole = float(np.median(run.seconds) / np.median(base.seconds))
            told = f"{whole:.2f}" + (f" ({each.min():.2f} to {each.max():.2f} in a round)" if len(each) > 1 else "")
        found.append(
            Timed(
                run.variant.name, float(np.median(times)), float(times.min()), float(times.max()), len(times), told
            )
        )  # fmt: skip
    return sorted(found, key=lambda one: one.median)


def times(timed: Sequence[Timed]) -> Chart | None:
    """Medians from the least to the greatest time; None where nothing was timed."""
    if not timed:
        return None
    scale = scale_of(value for one in timed for value in (one.least, one.most))
    at = scale.place
    marks = [
        Mark(one.name, at(one.median), at(one.least), at(one.most), short(one.median), "plain")
        for one in timed
    ]  # fmt: skip
    return Chart(tuple(marks), scale.ticks, None)


@dataclass(frozen=True)
class Histogram:
    """bars: place, width and heights of the worst variant and of all others, in percent, high enough to be seen
    where there is an element; exact, beyond: shares of elements of both that are without error, and that have no number
    (infinitely wrong); top: share of the elements that the highest bar stands for."""

    bars: tuple[tuple[float, float, float, float], ...]
    ticks: list[tuple[float, str]]
    limit: float
    exact: tuple[float, float]
    beyond: tuple[float, float]
    top: float


def histogram(worst: np.ndarray, others: np.ndarray) -> Histogram:
    """Of shares of what is allowed, in bins of half a power of ten, as shares of the elements of each. NaN: not
    determined, and not counted."""
    groups = [array[~np.isnan(array)] for array in (worst, others)]
    finite = [array[(array > 0) & np.isfinite(array)] for array in groups]
    ends = [value for array in finite if array.size for value in (array.min(), array.max())]
    scale = scale_of([0.1, 10.0, *(float(value) for value in ends)])
    edges = np.linspace(scale.low, scale.high, STEPS * (scale.high - scale.low) + 1)
    counts = []
    for whole, part in zip(groups, finite, strict=True):
        found, _ = np.histogram(np.clip(np.log10(part), edges[0], edges[-1]), edges)
        counts.append(found / max(1, whole.size))
    top = max(float(np.max(count)) for count in counts) or 1.0
    width = scale.place(10.0 ** edges[1]) - scale.place(10.0 ** edges[0])
    bars = tuple(
        (scale.place(10.0**edge), round(width, 2), _height(a / top), _height(b / top))
        for edge, a, b in zip(edges, *counts, strict=False)
        if a or b
    )
    exact, beyond = ([float(np.mean(test(g))) if g.size else 0.0 for g in groups] for test in (_zero, np.isinf))
    return Histogram(bars, scale.ticks, scale.place(1.0), (exact[0], exact[1]), (beyond[0], beyond[1]), top)


def _height(part: float) -> float:
    """Of a bar, in percent."""
    return round(max(100 * part, SEEN), 2) if part else 0.0


def _zero(array: np.ndarray) -> np.ndarray:
    return array == 0


def shade(share: float) -> int:
    """Which of LEVELS it reaches; -1: nothing is known of it."""
    return -1 if math.isnan(share) else sum(share > level for level in LEVELS)


@dataclass(frozen=True)
class Map:
    """Elements of an output as squares of one unit, the last axis to the right, shaded by their share of what is
    allowed. paths: of each shade, as SVG writes them; block: so many elements (down, across) are in a square, which
    shows the worst of them."""

    width: int
    height: int
    block: tuple[int, int]
    paths: Mapping[int, str]


def error_map(share: np.ndarray, rows: int = 24, columns: int = 64) -> Map | None:
    """Of one array; None where it has fewer than two elements."""
    if share.size < 2:
        return None
    if share.ndim < 2 or share.shape[-1] == 1:
        flat = share.reshape(-1)
        grid = flat[None] if flat.size <= columns else _filled(flat, math.ceil(math.sqrt(flat.size)))
    else:
        grid = share.reshape(-1, share.shape[-1])
    down, across = math.ceil(grid.shape[0] / rows), math.ceil(grid.shape[1] / columns)
    height, width = math.ceil(grid.shape[0] / down), math.ceil(grid.shape[1] / across)
    padded = np.full((height * down, width * across), np.nan)
    padded[: grid.shape[0], : grid.shape[1]] = grid
    blocks = np.where(np.isnan(padded), -1.0, padded).reshape(height, down, width, across).max(axis=(1, 3))
    paths: dict[int, str] = {}
    for y, line in enumerate(blocks):
        shades = [-1 if value < 0 else shade(float(value)) for value in line]
        start = 0
        for x in range(1, width + 1):
            if x == width or shades[x] != shades[start]:
                paths[shades[start]] = paths.get(shades[start], "") + f"M{start} {y}h{x - start}v1h-{x - start}z"
                start = x
    return Map(width, height, (down, across), paths)


def _filled(flat: np.ndarray, width: int) -> np.ndarray:
    """Rows of this width; NaN where there is no element."""
    padded = np.full(math.ceil(flat.size / width) * width, np.nan)
    padded[: flat.size] = flat
    return padded.reshape(-1, width)


@dataclass(frozen=True)
class Points:
    """Layers as points: place across and down in percent, words, and whether it adds too much."""

    points: tuple[tuple[float, float, str, bool], ...]
    ticks: list[tuple[float, str]]
    limit: float
    thinned: bool


def layer_points(layers: Sequence[Layer]) -> Points | None:
    """What each layer adds, as a part of what it may; None where none was judged."""
    judged = [layer for layer in layers if layer.judged]
    if not judged:
        return None
    parts = np.array_split(np.arange(len(judged)), min(POINTS, len(judged)))
    shown = [max((judged[i] for i in part), key=lambda layer: layer.excess) for part in parts]
    scale = scale_of([0.1, 10.0, *(layer.excess for layer in shown)])
    last = max(1, len(layers) - 1)
    points = tuple(
        (
            round(EDGE + (100 - 2 * EDGE) * layer.index / last, 2), round(100 - scale.place(layer.excess), 2),
            f"{layer.name or layer.output} ({layer.op}): {short(layer.excess)} of what it may add", layer.wrong,
        )
        for layer in shown
    )  # fmt: skip
    ticks = [(round(100 - place, 2), word) for place, word in scale.ticks]
    return Points(points, ticks, round(100 - scale.place(1.0), 2), len(shown) < len(judged))
