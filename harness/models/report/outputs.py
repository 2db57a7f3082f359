"""Each output of a given model by itself: errors of all variants as shares of what is allowed, the worst elements, and
agreement in what fits it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from generators.bounds.bounded import Bounded
from harness.models.measure import Run
from harness.models.report import charts, tasks
from harness.models.report.charts import Histogram, Map
from harness.models.report.tasks import Kind
from harness.models.report.words import short
from harness.models.results import REFERENCE, Results
from oracles.judge.compare import dtype_of
from oracles.judge.outcome import Value

WORST = 8
"""So many of the worst elements are shown, and at most so many of one variant:"""
EACH = 3
DETAILED = 12
"""So many outputs have drawings, the worst ones; the others have a table alone."""


@dataclass(frozen=True)
class Element:
    """One of the worst. variants: those that return the same there; number: of the set of inputs."""

    variants: tuple[str, ...]
    number: int
    place: str
    right: str
    got: str
    allowed: str
    share: float


@dataclass(frozen=True)
class Line:
    """A variant beside the reference, or the first variant. share: of what is allowed (None: not known); why: there are
    no measures."""

    variant: str
    share: float | None
    measures: tuple[str, ...]
    why: str = ""


@dataclass(frozen=True)
class Output:
    """name, type: as the model says; base: what the lines are beside; worst: of all variants; culprit: the variant that
    the histogram and the map are of."""

    name: str
    type: str
    kind: Kind
    base: str
    titles: tuple[str, ...]
    lines: tuple[Line, ...]
    worst: tuple[Element, ...]
    culprit: str
    histogram: Histogram | None
    map: Map | None

    @property
    def share(self) -> float:
        return max((line.share for line in self.lines if line.share is not None), default=0.0)


def share_of(bound: Bounded, got: np.ndarray) -> np.ndarray:
    """Of each element, the error as a part of what is allowed; infinite where something else was demanded exactly, NaN
    where nothing is determined."""
    value = bound.value
    if not bound.floating:
        share = np.where(got == value, 0.0, np.inf)
    else:
        wide = got.astype(np.complex128 if bound.complex else np.float64)
        with np.errstate(all="ignore"):
            apart = np.abs(wide - value)
            share = np.where(apart == 0, 0.0, apart / bound.error)
            same = (wide == value) | (np.isnan(wide) & np.isnan(value))
        share = np.where(same, 0.0, np.where(np.isfinite(wide) & np.isfinite(value), share, np.inf))
    return np.where(bound.undetermined, np.nan, share)


def outputs_of(results: Results, runs: Sequence[Run]) -> list[Output]:
    """All of them, in the model's order; none where no variant returned something."""
    ports = results.outputs
    names, arrays = _first(results, runs)
    kinds = []
    for place, (name, array) in enumerate(zip(names, arrays, strict=True)):
        labelled = (bool(results.labels) or results.truth is not None) and name == results.measured
        kinds.append(tasks.kind_of(name, array, [*arrays[:place], *arrays[place + 1 :]], labelled))
    found = []
    for place, (name, array, kind) in enumerate(zip(names, arrays, kinds, strict=True)):
        port = str(ports[place]) if len(ports) == len(names) else ""
        shown = f"{dtype_of(array)}[{','.join(map(str, array.shape))}]"
        told = port.removeprefix(f"{ports[place].name}: ") if port else ""
        found.append(_output(results, runs, place, name, told if told and told != shown else shown, kind))
    return found


def _first(results: Results, runs: Sequence[Run]) -> tuple[list[str], list[np.ndarray]]:
    """Names and right values (or those of the first that has some) of the first set of inputs."""
    if results.expected:
        arrays = [
            np.zeros(bound.value.shape, bound.dtype) if bound.floating and bound.value.size == 0 else bound.value
            for bound in results.expected[0].values
        ]
        return list(results.expected[0].names), arrays
    for run in runs:
        if isinstance(run.outcomes[0], Value):
            arrays = list(run.outcomes[0].outputs)
            same = len(results.outputs) == len(arrays)
            names = [port.name for port in results.outputs] if same else [f"output {i}" for i in range(len(arrays))]
            return names, arrays
    return [], []


def _output(results: Results, runs: Sequence[Run], place: int, name: str, told: str, kind: Kind) -> Output:
    shares = {run.variant.name: _shares(results, run, place) for run in runs} if results.expected else {}
    base, right = _base(results, runs, place)
    lines, titles = [], ()
    for run in runs:
        array, why = _whole(run, place)
        variant = run.variant.name
        values = () if array is None or right is None else tuple(tasks.measures(kind, right, array))
        if len(values) > len(titles):
            titles = tuple(title for title, _ in values)
        share = _greatest(shares[variant]) if shares.get(variant) else None
        lines.append((variant, share, dict(values), why))
    sure = [(share, variant) for variant, share, _, _ in lines if share is not None]
    culprit = max(sure, key=lambda pair: pair[0])[1] if sure else ""
    table = tuple(
        Line(variant, share, tuple(values.get(title, "-") for title in titles), why)
        for variant, share, values, why in sorted(lines, key=lambda line: (bool(line[3]), -(line[1] or 0.0)))
    )
    drawn, image, worst = None, None, ()
    if culprit:
        ours = shares[culprit]
        others = [one.ravel() for variant, found in shares.items() if variant != culprit for one in found]
        drawn = charts.histogram(_joined([one.ravel() for one in ours]), _joined(others))
        image = charts.error_map(max(ours, key=lambda one: _greatest([one])))
        worst = _worst(results, runs, shares, place)
    return Output(name, told, kind, base, titles, table, worst, culprit, drawn, image)


def _joined(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate(arrays) if arrays else np.empty(0)


def _greatest(shares: Sequence[np.ndarray]) -> float:
    return max((float(np.nanmax(one)) for one in shares if not np.isnan(one).all()), default=0.0)


def _shares(results: Results, run: Run, place: int) -> list[np.ndarray]:
    """Of each set that the variant returned this output for, in the right shape and dtype."""
    found = []
    for expected, outcome in zip(results.expected or (), run.outcomes, strict=True):
        if not isinstance(outcome, Value) or len(outcome.outputs) != len(expected.values):
            return []
        got, type_ = outcome.outputs[place], expected.types[place]
        if (dtype_of(got), got.shape) != (type_.dtype, type_.shape):
            return []
        found.append(share_of(expected.values[place], got))
    return found


def _whole(run: Run, place: int) -> tuple[np.ndarray | None, str]:
    """One output over all sets of inputs, or why there is none."""
    found = []
    for outcome in run.single:
        if not isinstance(outcome, Value):
            return None, "no result"
        if len(outcome.outputs) <= place:
            return None, "no such output"
        found.append(np.atleast_1d(outcome.outputs[place]))
    if len({one.shape[1:] for one in found}) > 1:
        return None, "another shape for each set"
    return np.concatenate(found), ""


def _base(results: Results, runs: Sequence[Run], place: int) -> tuple[str, np.ndarray | None]:
    """What the others are laid beside: the reference, or the first variant that has a result."""
    if results.expected:
        single = results.expected[: len(runs[0].single)]
        found = [np.atleast_1d(expected.values[place].value) for expected in single]
        same = len({one.shape[1:] for one in found}) == 1
        return REFERENCE, np.concatenate(found) if same else None
    for run in runs:
        array, _ = _whole(run, place)
        if array is not None:
            return run.variant.name, array
    return "", None


def _worst(
    results: Results, runs: Sequence[Run], shares: dict[str, list[np.ndarray]], place: int
) -> tuple[Element, ...]:
    """The elements with the greatest shares, a few of each variant."""
    found = []
    for run in runs:
        ours = []
        for number, share in enumerate(shares[run.variant.name]):
            flat = np.where(np.isnan(share), -1.0, share).ravel()
            for index in np.argsort(-flat, kind="stable")[:EACH]:
                if flat[index] > 0:
                    ours.append((float(flat[index]), number, int(index), run))
        found += sorted(ours, key=lambda one: -one[0])[:EACH]
    groups: dict[tuple[float, int, int], list[Run]] = {}
    for share, number, index, run in sorted(found, key=lambda one: -one[0]):
        groups.setdefault((share, number, index), []).append(run)
    chosen = list(groups.items())[:WORST]
    return tuple(_element(results, those, place, number, index, share) for (share, number, index), those in chosen)


def _element(results: Results, those: Sequence[Run], place: int, number: int, index: int, share: float) -> Element:
    outcome = those[0].outcomes[number]
    assert isinstance(outcome, Value)
    assert results.expected
    bound, got = results.expected[number].values[place], outcome.outputs[place]
    where = ", ".join(str(int(i)) for i in np.unravel_index(index, got.shape))
    right, ours = (_plain(array.flat[index]) for array in (bound.value, got))
    allowed = short(float(bound.error.flat[index])) if bound.floating else "0"
    return Element(tuple(run.variant.name for run in those), number, f"({where})", right, ours, allowed, share)


def _plain(value: object) -> str:
    """With the digits that float32 has."""
    text = f"{value:.9g}" if isinstance(value, float | np.floating) else str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def detailed(outputs: Sequence[Output]) -> set[int]:
    """Places of those that have drawings."""
    order = sorted(range(len(outputs)), key=lambda i: -min(outputs[i].share, math.inf))
    return set(order[:DETAILED])
