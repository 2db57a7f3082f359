"""What the search for the greatest errors shows: a line a target, CSV, JSON, and a page with errors over the range."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import plotly.graph_objects as go

from harness.execute.templates import render
from harness.studies.errors.measure import Cell, Stratum, merged
from harness.studies.errors.points import LAYOUTS, numbers

COLUMNS = (
    *("operator", "dtype", "target", "version", "first_number", "last_number", "elements", "undetermined", "outside"),
    *("first_outside", "ulps", "at", "share_of_allowed", "share_at"),
)
COLOURS = ("#2166ac", "#b2182b", "#1b7837", "#e6a117", "#762a83", "#4d4d4d", "#35978f", "#c51b7d", "#8c510a", "#01665e")
LEAST = 1e-2
"""Ulps, below which the plot does not go."""


@dataclass(frozen=True)
class Line:
    """An operator in a dtype on a target. total: of all strata, None where there is no result; why: there is none, or
    not of all."""

    operator: str
    dtype: str
    target: str
    version: str
    strata: tuple[Stratum, ...]
    total: Stratum | None
    why: str

    @property
    def outside(self) -> int:
        """Elements that are farther off than is allowed, or wrong in kind."""
        return self.total.wrong if self.total else 0


def lines_of(cells: Sequence[Cell]) -> list[Line]:
    """A line each, in the order in which they were measured; the parts of one together."""
    groups: dict[tuple[str, str, str, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.operator, cell.dtype, cell.target, cell.version), []).append(cell)
    found = []
    for key, own in groups.items():
        strata = merged([one for cell in own for one in cell.strata])
        total: Stratum | None = None
        for one in strata:
            total = total.merged(one) if total else one
        found.append(Line(*key, strata, total, next((cell.why for cell in own if cell.why), "")))
    return found


def told(point: Sequence[int], dtype: str) -> str:
    """The numbers of a point, as digits that say which they are; empty for none."""
    return ", ".join(f"{float(number):.9g}" for number in numbers(np.array(point, LAYOUTS[dtype].bits), dtype))


def ends(stratum: int, dtype: str) -> tuple[str, str]:
    """The first and the last number of a stratum."""
    first = stratum << LAYOUTS[dtype].mantissa
    return told([first], dtype), told([first + (1 << LAYOUTS[dtype].mantissa) - 1], dtype)


def csv_of(lines: Sequence[Line]) -> str:
    """A row a stratum."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for line in lines:
        for one in line.strata:
            row = [line.operator, line.dtype, line.target, line.version, *ends(one.number, line.dtype)]
            row += [str(one.elements), str(one.undetermined), str(one.wrong), told(one.first, line.dtype)]
            row += [f"{one.ulps:.6g}", told(one.place, line.dtype), f"{one.share:.6g}", told(one.taken, line.dtype)]
            writer.writerow(row)
    return out.getvalue()


def as_json(lines: Sequence[Line]) -> list[dict]:
    """A line a target, without its strata."""
    found = []
    for line in lines:
        row = {"operator": line.operator, "dtype": line.dtype, "target": line.target, "version": line.version}
        total = asdict(line.total) if line.total else {}
        points = {name: told(total.pop(name), line.dtype) for name in ("first", "place", "taken") if name in total}
        total.pop("number", None)
        found.append({**row, **total, **points, "why": line.why})
    return found


def page(lines: Sequence[Line], versions: Mapping[str, str]) -> str:
    """The report as one file of HTML."""
    groups: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        if line.total:
            groups.setdefault((line.operator, line.dtype), []).append(line)
    plots = {}
    for number, ((operator, dtype), own) in enumerate(groups.items()):
        html = _figure(own, dtype).to_html(
            full_html=False, include_plotlyjs=number == 0, div_id=f"{operator}-{dtype}",
            config={"displayModeBar": False, "responsive": True},
        )  # fmt: skip
        plots[f"{operator}, {dtype}"] = html
    return render("studies/errors/page.html.j2", lines=lines, plots=plots, versions=versions, told=told)


def _figure(lines: Sequence[Line], dtype: str) -> go.Figure:
    """The greatest error of each stratum in ulps, from the least number to the greatest."""
    strata = LAYOUTS[dtype].strata
    figure = go.Figure()
    for number, line in enumerate(lines):
        own = sorted((_place(one.number, strata), one) for one in line.strata if one.place)
        figure.add_scatter(
            x=[x for x, _ in own], y=[max(one.ulps, LEAST) for _, one in own], name=line.target,
            mode="lines+markers", line={"color": COLOURS[number % len(COLOURS)], "width": 1}, marker={"size": 3},
            hovertext=[f"{one.ulps:.4g} ulps at {told(one.place, dtype)}<br>{100 * one.share:.3g} % of what is allowed"
                       for _, one in own], hoverinfo="text+name",
        )  # fmt: skip
        bad = sorted((_place(one.number, strata), one) for one in line.strata if one.wrong)
        if bad:
            figure.add_scatter(
                x=[x for x, _ in bad], y=[max(one.ulps, LEAST) for _, one in bad], name=f"{line.target}: outside",
                mode="markers", marker={"symbol": "x", "size": 7, "color": COLOURS[number % len(COLOURS)]},
                hovertext=[f"{one.wrong} outside, the first at {told(one.first, dtype)}" for _, one in bad],
                hoverinfo="text+name",
            )  # fmt: skip
    half = strata // 2
    marks = [stratum for stratum in range(strata) if stratum % half % max(1, half // 8) == 0]
    figure.update_layout(
        height=420, margin={"l": 10, "r": 10, "t": 10, "b": 40}, plot_bgcolor="#ffffff",
        xaxis={"title": "first operand, by sign and exponent", "automargin": True, "gridcolor": "#eeeeee",
               "tickvals": [_place(stratum, strata) for stratum in marks],
               "ticktext": [_short(ends(stratum, dtype)[0]) for stratum in marks]},
        yaxis={"type": "log", "title": "greatest error, ulps", "automargin": True, "gridcolor": "#eeeeee"},
        legend={"orientation": "h", "y": 1.12},
    )  # fmt: skip
    return figure


def _place(stratum: int, strata: int) -> int:
    """Negative numbers to the left, the greatest first."""
    half = strata // 2
    return stratum + 1 if stratum < half else half - stratum - 1


def _short(number: str) -> str:
    return f"{float(number):.3g}"
