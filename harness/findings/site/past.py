"""The page of runs: nights and hunts with their trend, models, studies, and the pages that these left."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import plotly.graph_objects as go

from harness.findings.database.history import Past

HUNTING = ("nightly", "hunt", "train", "conversions", "quantise", "versions")
"""Commands that look for faults."""
GROUPS = {
    "Nights and hunts": HUNTING,
    "Models": ("model",),
    "Studies": ("study",),
}
LARGEST = 8 << 20
"""Bytes of a page that is copied."""
SHOWN = 200
"""Newest runs of a group."""
CHARTED = 60
"""Newest runs in the chart."""


@dataclass(frozen=True)
class Group:
    """Runs of like commands, the newest first. left: older ones that are not shown."""

    name: str
    runs: tuple[Past, ...]
    left: int


def groups_of(past: Sequence[Past]) -> list[Group]:
    """Those that there are, and other commands last."""
    named = {name: [run for run in past if run.kind.split()[0] in kinds] for name, kinds in GROUPS.items()}
    own = {run.id for runs in named.values() for run in runs}
    named["Others"] = [run for run in past if run.id not in own]
    return [
        Group(name, tuple(reversed(runs[-SHOWN:])), max(0, len(runs) - SHOWN)) for name, runs in named.items() if runs
    ]


def copied(past: Sequence[Past], folder: Path) -> dict[str, str]:
    """Pages of runs, copied into this folder: the file's name by the run's id. Of a folder of results that was gone on
    with only the newest run has its page."""
    newest = {run.folder: run for run in past}
    found = {}
    for run in newest.values():
        page = run.report
        if page and page.stat().st_size <= LARGEST:
            folder.mkdir(exist_ok=True)
            shutil.copyfile(page, folder / f"{run.id}.html")
            found[run.id] = f"{run.id}.html"
    return found


def trend(past: Sequence[Past]) -> str:
    """Bars of new findings and of those met again, run by run, as HTML; "" for fewer than two runs. The library stands
    in the page, so that it opens without a network."""
    runs = [run for run in past if run.kind in HUNTING][-CHARTED:]
    if len(runs) < 2:
        return ""
    names = [f"{run.started[:10]} {run.started[11:16]}, {run.kind}" for run in runs]
    figure = go.Figure()
    for name, values, colour in (
        ("new", [run.new for run in runs], "#d6336c"),
        ("met before", [run.again for run in runs], "#8a8f94"),
    ):
        figure.add_bar(
            x=list(range(len(runs))), y=values, name=name, marker_color=colour, text=names, textposition="none"
        )
    figure.update_layout(
        barmode="stack", height=300, margin={"l": 40, "r": 10, "t": 10, "b": 60}, paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)", font={"color": "#8a8f94"}, legend={"orientation": "h", "y": 1.15},
        xaxis={"tickvals": [0, len(runs) - 1], "ticktext": [names[0][:10], names[-1][:10]]}, bargap=0.3,
        yaxis={"title": "findings", "rangemode": "tozero", "gridcolor": "rgba(128,128,128,.25)"},
    )  # fmt: skip
    options = {"displayModeBar": False, "responsive": True}
    return figure.to_html(full_html=False, include_plotlyjs=True, config=options, div_id="trend")
