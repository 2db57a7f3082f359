"""What the study of faults shows: tables with intervals and tests, as JSON, CSV and a page that needs no network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
import plotly.graph_objects as go

from harness.execute.templates import render
from harness.studies.faults import rows
from harness.studies.faults.experiment import Experiment
from harness.studies.faults.protocol import Plan, Start
from oracles.outcomes import IMMEDIATE, LATENT, LOW_TEST, MASKED, OUTCOMES, SHARP_ONLY, SHARP_SLOW, SHORT_TERM, SLOW
from oracles.statistics import Interval, Test, holm, independence, wilson

COLOURS: Mapping[str, str] = {
    MASKED: "#9aa5b1", IMMEDIATE: "#111111", SHORT_TERM: "#6b4c9a", SLOW: "#e6a117", SHARP_SLOW: "#b2182b",
    SHARP_ONLY: "#ef8a62", LOW_TEST: "#2166ac",
}  # fmt: skip
WITHIN = 2
"""Iterations in which the guard is to find a fault."""
CURVES = 25
"""Curves of each outcome that the page draws, the first ones."""


DEPTHS = ("first third", "middle third", "last third")


def _bit(one: Experiment) -> str:
    if one.bit < 0:
        return "not one bit"
    return f"{one.bit:02} of {one.width}"


def _depth(one: Experiment) -> str:
    return DEPTHS[min(2, int(one.depth * 3))]


GROUPS: Mapping[str, Callable[[Experiment], str]] = {
    "optimiser": lambda one: one.optimizer,
    "fault model": lambda one: one.model,
    "operator": lambda one: one.operator,
    "direction": lambda one: f"{one.stage}: {one.array}" if one.stage in ("optimizer", "batch-norm") else one.stage,
    "array": lambda one: one.array,
    "depth": _depth,
    "bit": _bit,
    "precision": lambda one: f"{one.precision}, {one.width} bits struck",
}
"""What tables are by."""


@dataclass(frozen=True)
class Line:
    """Of a table: a group, its experiments, how many have each outcome, and the interval of the share that is not
    masked."""

    group: str
    total: int
    counts: Mapping[str, int]
    changed: Interval


def lines(found: Sequence[Experiment], key: Callable[[Experiment], str]) -> list[Line]:
    """A line a group, by name; depths from the first layer on."""
    groups: dict[str, list[Experiment]] = {}
    for one in found:
        groups.setdefault(key(one), []).append(one)
    listed = []
    for name in sorted(groups, key=lambda name: (DEPTHS.index(name) if name in DEPTHS else 0, name)):
        group = groups[name]
        counts = Counter(one.outcome for one in group)
        listed.append(Line(name, len(group), counts, wilson(len(group) - counts[MASKED], len(group))))
    return listed


@dataclass(frozen=True)
class Comparison:
    """Two optimisers: do they have the same outcomes? p: adjusted for all pairs (Holm)."""

    first: str
    second: str
    test: Test
    p: float


def comparisons(found: Sequence[Experiment]) -> list[Comparison]:
    """Each pair of optimisers, by the faults that struck both."""
    by: dict[str, dict[int, str]] = {}
    for one in found:
        by.setdefault(one.optimizer, {})[one.number] = one.outcome
    pairs, tests = list(combinations(by, 2)), []
    for first, second in pairs:
        both = by[first].keys() & by[second].keys()
        rows = [Counter(by[name][number] for number in both) for name in (first, second)]
        tests.append(independence([[row[outcome] for outcome in OUTCOMES] for row in rows]))
    adjusted = holm([test.p for test in tests])
    return [Comparison(*pair, test, p) for pair, test, p in zip(pairs, tests, adjusted, strict=True)]


@dataclass(frozen=True)
class Detection:
    """What the guard did about an outcome: of all, how many it found within WITHIN iterations, how many later, and how
    many runs ended masked, as fault-free ones; within: the interval of the first share; latencies: steps after the
    fault."""

    outcome: str
    total: int
    soon: int
    late: int
    ended_well: int
    within: Interval
    latencies: Mapping[int, int]


def detections(found: Sequence[Experiment]) -> list[Detection]:
    """A line an outcome, and one for all that must be found: latent ones, and those that are not finite."""
    guarded = [one for one in found if one.guarded]
    groups = [(outcome, [one for one in guarded if one.outcome == outcome]) for outcome in OUTCOMES]
    groups.append(("all but Masked", [one for one in guarded if one.outcome != MASKED]))
    return [_detection(name, group) for name, group in groups if group]


def _detection(name: str, group: Sequence[Experiment]) -> Detection:
    soon = sum(1 for one in group if 0 <= one.alarm <= WITHIN)
    return Detection(
        name, len(group), soon, sum(1 for one in group if one.alarm > WITHIN),
        sum(1 for one in group if one.recovered == MASKED), wilson(soon, len(group)),
        dict(sorted(Counter(one.alarm for one in group if one.alarm >= 0).items())),
    )  # fmt: skip


@dataclass(frozen=True)
class Condition:
    """What the greatest gradient history and moving variance were in the two steps after the fault, as multiples of
    the greatest in fault-free runs: the share of an outcome's experiments in which either was above 1."""

    outcome: str
    total: int
    history: int
    variance: int
    either: int


def conditions(found: Sequence[Experiment]) -> list[Condition]:
    """A line an outcome."""
    listed = []
    for outcome in OUTCOMES:
        group = [one for one in found if one.outcome == outcome]
        if group:
            high = [(one.history > 1, one.variance > 1) for one in group]
            counts = sum(h for h, _ in high), sum(v for _, v in high), sum(h or v for h, v in high)
            listed.append(Condition(outcome, len(group), *counts))
    return listed


@dataclass(frozen=True)
class FaultFree:
    """What the guard did in an optimiser's fault-free runs: those in which it took a step for faulty, of so many; steps
    that it had run again in vain, since they came out the same, of so many."""

    alarmed: int
    runs: int
    again: int
    steps: int


def fault_free(starts: Mapping[str, Sequence[Start]]) -> dict[str, FaultFree]:
    """By optimiser. The last point has all steps."""
    found = {}
    for name, listed in starts.items():
        last = max(listed, key=lambda start: start.steps)
        alarmed = {number for start in listed for number in start.alarmed}
        found[name] = FaultFree(len(alarmed), last.band.runs, last.again, last.steps)
    return found


def csv_of(found: Sequence[Experiment]) -> str:
    """A row an experiment."""
    return rows.csv_of(
        Experiment, found, lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else value
    )


def as_json(plan: Plan, found: Sequence[Experiment], quiet: Mapping[str, FaultFree]) -> dict[str, Any]:
    """Plan, tables and experiments; numbers that are not finite are texts."""

    def plain(value: Any) -> Any:
        if isinstance(value, float) and (value != value or value in (float("inf"), -float("inf"))):
            return str(value)
        if isinstance(value, Mapping):
            return {str(key): plain(one) for key, one in value.items()}
        return [plain(one) for one in value] if isinstance(value, list | tuple) else value

    return plain(
        {
            "plan": asdict(plan),
            "tables": {name: [asdict(line) for line in lines(found, key)] for name, key in GROUPS.items()},
            "comparisons": [asdict(one) for one in comparisons(found)],
            "detections": [asdict(one) for one in detections(found)],
            "fault_free": {name: asdict(one) for name, one in quiet.items()},
            "conditions": [asdict(one) for one in conditions(found)],
            "experiments": [asdict(one) for one in found],
        }
    )


def _bars(found: Sequence[Experiment], key: Callable[[Experiment], str], title: str) -> go.Figure:
    table = lines(found, key)
    figure = go.Figure()
    for outcome in OUTCOMES:
        counts = [line.counts.get(outcome, 0) for line in table]
        if any(counts):
            figure.add_bar(name=outcome, x=[line.group for line in table], y=counts, marker_color=COLOURS[outcome])
    figure.update_layout(barmode="stack", xaxis_title=title, yaxis_title="experiments", **_LAYOUT)
    return figure


def _curves(found: Sequence[Experiment], after: int) -> go.Figure:
    figure = go.Figure()
    for outcome in OUTCOMES:
        drawn = [one for one in found if one.outcome == outcome and np.isfinite(one.parts).any()]
        for number, one in enumerate(drawn[:CURVES]):
            x = [(part + 0.5) * after / len(one.parts) for part in range(len(one.parts))]
            figure.add_scatter(
                x=x, y=list(one.parts), name=outcome, legendgroup=outcome, showlegend=not number, opacity=0.55,
                line={"color": COLOURS[outcome], "width": 1.5}, mode="lines",
                hovertemplate=f"{one.number}, {one.optimizer}: {one.model} in {one.layer}<extra>{outcome}</extra>",
            )  # fmt: skip
    figure.update_layout(xaxis_title="steps after the fault", yaxis_title="training accuracy", **_LAYOUT)
    return figure


_LAYOUT: dict[str, Any] = {
    "height": 380, "margin": {"l": 10, "r": 10, "t": 10, "b": 40}, "plot_bgcolor": "#ffffff",
    "legend": {"orientation": "h", "y": 1.15, "traceorder": "normal"},
    "xaxis": {"automargin": True, "gridcolor": "#eeeeee"},
    "yaxis": {"automargin": True, "gridcolor": "#eeeeee"},
}  # fmt: skip


def page(
    plan: Plan, found: Sequence[Experiment], versions: Mapping[str, str], quiet: Mapping[str, FaultFree]
) -> str:  # fmt: skip
    """The report as one file of HTML."""
    bits = [one for one in found if one.bit >= 0]
    figures = {
        "outcomes": _bars(found, GROUPS["optimiser"], "optimiser"),
        "curves": _curves(found, plan.after),
        "bits": _bars(bits, _bit, "bit that was inverted"),
    }
    options = {"displayModeBar": False, "responsive": True}
    drawn = {
        name: figure.to_html(full_html=False, include_plotlyjs=name == "outcomes", config=options, div_id=name)
        for name, figure in figures.items()
    }
    return render(
        "studies/faults/page.html.j2", plan=plan, found=found, versions=versions, outcomes=OUTCOMES, colours=COLOURS,
        totals=Counter(one.outcome for one in found), tables={name: lines(found, key) for name, key in GROUPS.items()},
        comparisons=comparisons(found), detections=detections(found), quiet=quiet, within=WITHIN,
        conditions=conditions(found), latent=LATENT, figures=drawn, seconds=sum(one.cpu for one in found),
        bits=len(bits),
    )  # fmt: skip
