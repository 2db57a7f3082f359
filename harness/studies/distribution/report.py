"""What a study shows: a CSV file of inconsistencies, and a page with a heat map that needs no network."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from harness.execute.templates import render
from harness.studies.distribution.protocol import Study
from harness.studies.distribution.settings import PRESETS, Setting
from harness.studies.distribution.store import Result
from oracles.training import d3

COLUMNS = (
    "model", "input", "setting", "strategy", "world_size", "quarter", "outcome", "l_infinity", "d3", "ours", "part",
    "largest_of_allowed", "undetermined_share", "cluster", "reason",
)  # fmt: skip
STATES = (
    ("left out", "#d9d9d9", "the strategy does not support the model"),
    ("consistent", "#deebf7", "by D3's thresholds and by our bound"),
    ("undetermined", "#9ecae1", "consistent by D3's thresholds; nothing of it is determined by our bound"),
    ("D3 only", "#fdae61", "inconsistent by D3's thresholds, within our bound or undetermined"),
    ("known", "#c994c7", "deviates in a way that is known; consistent by D3's thresholds"),
    ("ours only", "#7b3294", "outside our bound, consistent by D3's thresholds"),
    ("both", "#b2182b", "inconsistent by D3's thresholds, and deviates by our bound"),
    ("no result", "#000000", "crash, hang or refusal: a failure"),
)
"""What a cell of the heat map may be, the least first: name, colour, meaning."""
SHOWN = 200
"""Inconsistencies that the page lists; the CSV file has all."""


def state_of(result: Result) -> str:
    """The name of its state."""
    if result.outcome == "failed":
        return "no result"
    if result.outcome == "left out":
        return "left out"
    if result.close is False:
        return "both" if result.deviates else "D3 only"
    return {"deviates": "ours only", "known": "known", "undetermined": "undetermined"}.get(result.ours, "consistent")


def _order(state: str) -> int:
    return [name for name, _, _ in STATES].index(state)


def inconsistencies(results: Sequence[Result]) -> list[Result]:
    """Those that are not consistent by one of the judgements, the failures among them."""
    return [result for result in results if result.inconsistent or result.deviates]


def csv_of(study: Study, results: Sequence[Result]) -> str:
    """All inconsistencies as comma-separated values."""
    settings = {setting.name: setting for setting in study.settings}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for r in inconsistencies(results):
        setting = settings[r.setting]
        verdict = "no result" if r.outcome == "failed" else "consistent" if r.close else "inconsistent"
        writer.writerow(
            [
                r.model, r.input, r.setting, setting.strategy, setting.world, r.quarter, r.outcome, r.largest, verdict,
                r.ours or "no result", r.part, r.ratio, r.undetermined, r.cluster or "no result", r.reason,
            ]
        )  # fmt: skip
    return out.getvalue()


def clusters(results: Sequence[Result]) -> list[tuple[str, int, int, list[str], float | None]]:
    """Name of each cluster, how many inconsistencies of it there are, models, settings, and the greatest L-infinity;
    failures are clusters by reason. The largest first."""
    groups: dict[str, list[Result]] = {}
    for r in results:
        if r.outcome == "failed":
            groups.setdefault(f"no result: {r.reason}", []).append(r)
        elif r.cluster:
            groups.setdefault(r.cluster, []).append(r)
    rows = [
        (
            name, len(found), len({r.model for r in found}), sorted({r.setting for r in found}),
            max((r.largest for r in found if r.largest is not None), default=None),
        )
        for name, found in groups.items()
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (-row[1], row[0]))


@dataclass(frozen=True)
class Line:
    """One setting in the table: how many of its results have each state, and the greatest L-infinity and ratio."""

    setting: Setting
    counts: Mapping[str, int]
    largest: float
    ratio: float
    seconds: float | None


def lines(study: Study, results: Sequence[Result]) -> list[Line]:
    """A line for each setting that can be run."""
    found = []
    for setting in study.settings:
        own = [r for r in results if r.setting == setting.name]
        ran = [r for r in own if r.outcome != "left out"]
        found.append(
            Line(
                setting, Counter(state_of(r) for r in own), max((r.largest or 0.0 for r in own), default=0.0),
                max((r.ratio or 0.0 for r in own), default=0.0), sum(r.cpu for r in ran) / len(ran) if ran else None,
            )
        )  # fmt: skip
    return found


def heat_map(study: Study, results: Sequence[Result]) -> str:
    """Settings x models as HTML, plotly.js inside; a cell is the worst state of the model's inputs."""
    names = [setting.name for setting in study.settings]
    cells: dict[tuple[str, int], list[Result]] = {}
    for r in results:
        cells.setdefault((r.setting, r.model), []).append(r)
    worst = {key: max(found, key=lambda r: _order(state_of(r))) for key, found in cells.items()}
    z = [
        [_order(state_of(worst[name, model])) if (name, model) in worst else None for model in range(study.models)]
        for name in names
    ]
    texts = [
        [_hover(worst[name, model]) if (name, model) in worst else "not run" for model in range(study.models)]
        for name in names
    ]
    steps = len(STATES)
    scale = [(edge, colour) for k, (_, colour, _) in enumerate(STATES) for edge in (k / steps, (k + 1) / steps)]
    trace = go.Heatmap(
        z=z, x=list(range(study.models)), y=names, text=texts, hovertemplate="%{text}<extra></extra>", zmin=-0.5,
        zmax=steps - 0.5, colorscale=scale, xgap=1, ygap=1, showscale=False,
    )  # fmt: skip
    figure = go.Figure(trace)
    figure.update_layout(
        height=140 + 22 * len(names), margin={"l": 10, "r": 10, "t": 10, "b": 50}, plot_bgcolor="#ffffff",
        xaxis={"title": "model", "automargin": True, "dtick": max(1, study.models // 20)},
        yaxis={"autorange": "reversed", "automargin": True, "dtick": 1},
    )  # fmt: skip
    options = {"displaylogo": False, "responsive": True}
    return figure.to_html(full_html=False, include_plotlyjs=True, config=options, div_id="heat-map")


def _hover(r: Result) -> str:
    parts = [f"model {r.model} ({r.quarter}), input {r.input}", f"{r.setting}: {state_of(r)}"]
    parts += [f"L-infinity {r.largest:.3g}"] if r.largest is not None else []
    parts += [f"ours: {r.ours}" + (f", {r.ratio:.2g} of what is allowed" if r.ratio is not None else "")] * bool(r.ours)
    parts += [r.part] * bool(r.part) + [f"cluster: {r.cluster}"] * bool(r.cluster) + [r.reason[:160]] * bool(r.reason)
    return "<br>".join(part.replace("&", "&amp;").replace("<", "&lt;") for part in parts)


def page(study: Study, results: Sequence[Result], versions: Mapping[str, str]) -> str:
    """The report as one file of HTML."""
    preset = PRESETS[study.preset]()
    reasons: dict[str, list[str]] = {}
    for name, why in study.unavailable.items():
        reasons.setdefault(why, []).append(name)
    wrong = sorted(inconsistencies(results), key=lambda r: (-_order(state_of(r)), r.model, r.input))
    compared = [r for r in results if r.outcome == "compared"]
    shares = [r.undetermined for r in compared if r.undetermined is not None]
    return render(
        "studies/distribution/page.html.j2",
        study=study,
        preset=preset,
        versions=versions,
        rtol=d3.RTOL,
        atol=d3.ATOL,
        described=preset.described,
        planned=sum(1 for _ in study.cases()),
        results=results,
        states=STATES,
        totals=Counter(state_of(r) for r in results),
        undetermined=sum(shares) / len(shares) if shares else None,
        left_out=Counter(r.reason for r in results if r.outcome == "left out").most_common(),
        lines=lines(study, results),
        unavailable=reasons,
        theirs=sum(1 for setting in preset.settings if setting.own and setting.name in study.unavailable),
        clusters=clusters(results),
        wrong=wrong[:SHOWN],
        more=max(0, len(wrong) - SHOWN),
        state_of=state_of,
        heat_map=heat_map(study, results),
    )
