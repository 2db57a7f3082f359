"""Which share of the faults each oracle catches, by their size: tables, CSV, JSON, and a page that needs no network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import floor, log10

import plotly.graph_objects as go

from harness.execute.templates import render
from harness.studies.faults import rows
from harness.studies.faults.mutation import Mutant
from oracles.statistics import Interval, wilson

COLOURS = {"forward": "#2166ac", "gradient": "#e6a117", "sharding": "#b2182b", "reduction": "#5e3c99"}
NARROW = ("float16", "bfloat16", "mixed")


@dataclass(frozen=True)
class Share:
    """Of a group of faults: how many there are, how many changed any bit of what was returned (visible), how many of
    these the oracle caught; how many visible ones changed only elements that it does not judge (undetermined), or by
    less than the smallest normal number (subnormal); how many others there are (told), and how many of these it caught.
    interval: of the share of visible ones that is caught; told_interval: of that of the others."""

    group: str
    all: int
    visible: int
    caught: int
    undetermined: int
    subnormal: int
    told: int
    told_caught: int
    interval: Interval
    told_interval: Interval


def shares(found: Sequence[Mutant], key: Callable[[Mutant], tuple]) -> list[Share]:
    """A line a group, in rising order of its key."""
    groups: dict[tuple, list[Mutant]] = {}
    for one in found:
        groups.setdefault(key(one), []).append(one)
    return [_share(", ".join(map(_told, name)), groups[name]) for name in sorted(groups)]


def _told(part: object) -> str:
    return f"{part:g}" if isinstance(part, float) else str(part)


def _share(name: str, group: Sequence[Mutant]) -> Share:
    visible = [one for one in group if one.visible]
    caught = sum(1 for one in visible if one.caught)
    undetermined = sum(1 for one in visible if not one.determined)
    told = [one for one in visible if one.told]
    right = sum(1 for one in told if one.caught)
    return Share(
        name, len(group), len(visible), caught, undetermined, len(visible) - undetermined - len(told), len(told), right,
        wilson(caught, len(visible)), wilson(right, len(told)),
    )  # fmt: skip


def _width(one: Mutant) -> str:
    return "16 bits" if one.dtype in NARROW else "32 and 64 bits"


def _shown(one: Mutant) -> float:
    """The power of ten next to the change in what was returned."""
    return 10.0 ** max(-9, floor(log10(one.shown) + 0.5))


def tables_of(found: Sequence[Mutant]) -> Mapping[str, list[Share]]:
    """By what they are of."""
    visible = [one for one in found if one.visible]
    return {
        "oracle and relative size": shares(found, lambda one: (one.oracle, one.size)),
        "oracle and greatest relative change in what was returned": shares(
            visible, lambda one: (one.oracle, _shown(one))
        ),
        "oracle, width of what is struck, and greatest relative change in what was returned": shares(
            visible, lambda one: (one.oracle, _width(one), _shown(one))
        ),
        "oracle, width of what is struck, and size": shares(found, lambda one: (one.oracle, _width(one), one.size)),
        "oracle, one element or all, and size": shares(found, lambda one: (one.oracle, one.extent, one.size)),
    }


def csv_of(found: Sequence[Mutant]) -> str:
    """A row a fault."""
    return rows.csv_of(Mutant, found)


def as_json(found: Sequence[Mutant]) -> dict:
    """Tables and faults."""
    tables = {name: [asdict(line) for line in lines] for name, lines in tables_of(found).items()}
    return {"tables": tables, "faults": [asdict(one) for one in found]}


def page(found: Sequence[Mutant], seed: int, versions: Mapping[str, str]) -> str:
    """The report as one file of HTML."""
    figure = go.Figure()
    for oracle in dict.fromkeys(one.oracle for one in found):
        own = [one for one in found if one.oracle == oracle]
        sizes = sorted({one.size for one in own})
        lines = [_share("", [one for one in own if one.size == size]) for size in sizes]
        y = [100 * line.caught / line.visible if line.visible else None for line in lines]
        up = [100 * line.interval.high - (v or 0.0) for line, v in zip(lines, y, strict=True)]
        down = [(v or 0.0) - 100 * line.interval.low for line, v in zip(lines, y, strict=True)]
        error = {"type": "data", "array": up, "arrayminus": down, "symmetric": False, "thickness": 1}
        figure.add_scatter(
            x=sizes, y=y, name=oracle, error_y=error, line={"color": COLOURS[oracle]}, mode="lines+markers"
        )
    figure.update_layout(
        height=380, margin={"l": 10, "r": 10, "t": 10, "b": 40}, plot_bgcolor="#ffffff",
        xaxis={"type": "log", "title": "relative size of the fault", "automargin": True, "gridcolor": "#eeeeee",
               "exponentformat": "e", "dtick": 1},
        yaxis={"title": "caught, %", "range": [0, 102], "automargin": True, "gridcolor": "#eeeeee"},
        legend={"orientation": "h", "y": 1.12},
    )  # fmt: skip
    options = {"displayModeBar": False, "responsive": True}
    plot = figure.to_html(full_html=False, include_plotlyjs=True, config=options, div_id="curves")
    return render(
        "studies/faults/sensitivity.html.j2", found=found, tables=tables_of(found), plot=plot, seed=seed,
        versions=versions, cases=len({(one.oracle, one.number) for one in found}),
    )  # fmt: skip
