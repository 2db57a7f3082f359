"""The page on a given model, one file of HTML that needs no network, and the words that it shares with the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from itertools import count

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from harness.execute.templates import render
from harness.models.convert import unbuilt
from harness.models.layer_errors import LayerErrors
from harness.models.results import AXES, HIGHER, REFERENCE, Results, groups, incomplete, worst
from harness.models.rows import Row
from oracles.models.agreement import Failure

MEASURES = {
    "top1": "top-1 agreement",
    "top5": "top-5 agreement",
    "rbo": "rank-biased overlap",
    "kendall": "Kendall's tau-b",
    "kl": "KL divergence (nats)",
    "largest": "greatest error",
    "mean": "mean error",
    "largest_relative": "greatest relative error",
    "mean_relative": "mean relative error",
    "excess": "greatest difference / allowed",
    "special": "NaN or infinity in one only",
    "offset": "offset of class ids",
}
SMALL = 1e-6
"""An error, by the greatest value, that shows in no float32 output."""
MISSING = 1.25
SCALE = ((0.0, "#f3f7fb"), (0.28, "#fdd49e"), (0.56, "#e34a33"), (0.8, "#7f0000"), (0.801, "#3d3d3d"), (1.0, "#3d3d3d"))
"""Of how far two are from agreeing, 0 to 1, by MISSING, which is what a missing result is drawn as."""
WORDED = 15
"""Most variants of which a heat map has its numbers in the cells; of more they show under the pointer."""
_TICKS = [part * 10**power for power in range(-4, 5) for part in (1, 2, 5)]
_CONFIG = {"displaylogo": False, "displayModeBar": False}


def short(value: float | None, digits: int = 3) -> str:
    """A number for a table."""
    if value is None:
        return "-"
    if not math.isfinite(value):
        return "∞" if value > 0 else str(value)
    if value == 0 or 1e-2 <= abs(value) < 1e5:
        return f"{value:.{digits}g}"
    return f"{value:.1e}"


def status_of(row: Row) -> str:
    """The word for it."""
    if row.known:
        return f"known: {row.known}"
    return {"agree": "agrees", "mismatch": "deviates"}.get(row.status, row.status)


def cells(results: Results, row: Row) -> list[str]:
    """A line of the table that the terminal shows."""
    base = REFERENCE if (REFERENCE, row.variant.name) in results.pairs else results.rows[0].variant.name
    pair = results.pairs[base, row.variant.name]
    top1, rbo = (None, None) if isinstance(pair, Failure) else (pair.top1, pair.rbo)
    spread = {None: "-", 0.0: "same bits"}.get(row.spread, f"differ by {short(row.spread)}")
    return [
        row.variant.name, status_of(row), short(row.ratio), short(top1), short(rbo),
        short(None if row.seconds is None else row.seconds * 1000), slowdown(row), spread,
        *(accuracy(row) if results.truth is not None else ()),
    ]  # fmt: skip


def accuracy(row: Row) -> tuple[str, str]:
    """Shares of samples whose true class comes first, and is among the first five."""
    top1, top5 = row.accuracy or (None, None)
    return short(top1), short(top5)


def named(results: Results, number: int) -> str:
    """A class by its name, where it has one."""
    return results.labels[number] if 0 <= number < len(results.labels) else str(number)


SAMPLES = 50
"""So many samples the page shows the classes of."""


def samples(results: Results) -> list[tuple[int, str, str, list[tuple[str, str]]]]:
    """For each of the first samples: its number, the true class (empty: not given), that of the reference or else of
    the first variant, and the classes that others have, each with the names of variants."""
    if not results.firsts or not (results.labels or results.truth is not None):
        return []
    base, found = next(iter(results.firsts.values())), []
    for place, number in enumerate(base[:SAMPLES]):
        others: dict[str, list[str]] = {}
        for variant, classes in results.firsts.items():
            if len(classes) == len(base) and classes[place] != number:
                others.setdefault(named(results, int(classes[place])), []).append(variant)
        true = named(results, int(results.truth[place])) if results.truth is not None else ""
        found.append((place, true, named(results, int(number)), [(c, ", ".join(names)) for c, names in others.items()]))
    return found


def slowdown(row: Row) -> str:
    """The ratio of its time to the first variant's, with the interval."""
    r = row.slowdown
    return "-" if r is None else f"{r.ratio:.2f} ({r.low:.2f} to {r.high:.2f})"


def _shade(measure: str, value: float | None) -> float | None:
    """How far from agreement, 0 to 1, or MISSING; None where there is nothing to compare."""
    if value is None:
        return MISSING
    if math.isnan(value):
        return None
    if measure in HIGHER:
        return min(1.0, 1.0 - value)
    if measure in ("excess", "special", "offset"):
        return min(1.0, abs(value))
    return 0.0 if value == 0 else min(1.0, max(0.05, (math.log10(min(value, 1e3)) + 9) / 9))


def _map(
    names: Sequence[str],
    titles: Sequence[str],
    values: dict[str, list[list[float | None]]],
    name: str,
    stars: Sequence[Sequence[bool]] | None = None,
) -> str:
    """Squares of all measures that have values, one shown at a time. stars: cells of which not all results are
    there."""
    stars = stars or [[False] * len(names) for _ in names]
    shown = {m: v for m, v in values.items() if any(cell is not None for row in v for cell in row)} or values
    worded = len(names) <= WORDED
    over = any(cell is not None and cell > 1 for row in shown.get("excess", ()) for cell in row)
    start = list(shown).index("excess") if over else 0  # what shows that something deviates
    data = []
    for place, (measure, grid) in enumerate(shown.items()):
        hover = [
            [f"{escape(a)}<br>{escape(b)}<br>{MEASURES[measure]}: {_told(v)}" for b, v in zip(names, row, strict=True)]
            for a, row in zip(names, grid, strict=True)
        ]
        data.append(
            go.Heatmap(
                z=[[_shade(measure, v) for v in row] for row in grid], x=list(titles), y=[escape(n) for n in names],
                text=[
                    [_inside(v) + "*" * star for v, star in zip(*row, strict=True)]
                    for row in zip(grid, stars, strict=True)
                ],
                texttemplate="%{text}" if worded else "", textfont={"size": 11}, customdata=hover,
                hovertemplate="%{customdata}<extra></extra>", zmin=0, zmax=MISSING, colorscale=[list(s) for s in SCALE],
                xgap=2, ygap=2, showscale=False, visible=place == start, hoverongaps=False,
            )
        )  # fmt: skip
    buttons = [
        {"label": MEASURES[m], "method": "update", "args": [{"visible": [other == m for other in shown]}]}
        for m in shown
    ]
    figure = go.Figure(data)
    figure.update_layout(
        height=84 + 30 * len(names), width=340 + (52 if worded else 27) * len(names), font={"size": 12},
        margin={"l": 8, "r": 8, "t": 64, "b": 8}, plot_bgcolor="#ffffff",
        xaxis={"side": "top", "type": "category", "tickangle": 0, "fixedrange": True, "showgrid": False},
        yaxis={"autorange": "reversed", "automargin": True, "type": "category", "fixedrange": True, "showgrid": False},
        updatemenus=[
            {
                "buttons": buttons, "active": start, "x": 0, "xanchor": "left", "y": 1, "yanchor": "bottom",
                "pad": {"b": 26},
            }
        ],
    )  # fmt: skip
    return figure.to_html(full_html=False, include_plotlyjs=False, config=_CONFIG, div_id=name)


def _inside(value: float | None) -> str:
    """What stands in a cell."""
    return "×" if value is None else "" if math.isnan(value) else short(value, 2)


def _told(value: float | None) -> str:
    return "no result, or none that has it" if value is None else short(value, 4)


def everything(results: Results) -> str:
    """All with all, the reference first where there is one."""
    names = list(dict.fromkeys(first for first, _ in results.pairs))
    titles = [str(number) for number in range(len(names))] if names[0] == REFERENCE else _numbers(names)
    values: dict[str, list[list[float | None]]] = {}
    for measure in MEASURES:
        pairs = [[results.pairs[a, b] for b in names] for a in names]
        values[measure] = [[None if isinstance(p, Failure) else getattr(p, measure) for p in row] for row in pairs]
    return _map([f"{name}  {title}" for name, title in zip(names, titles, strict=True)], titles, values, "all-with-all")


def _numbers(names: Sequence[str]) -> list[str]:
    numbers = count(1)
    return [str(next(numbers)) for _ in names]


def axes(results: Results) -> list[tuple[str, str]]:
    """For each axis its name and a map of the worst of all pairs of its values; no map where there is one value."""
    found = []
    for axis in AXES:
        members = groups(results, axis)
        if len(members) < 2:
            found.append((axis, f"<p class='soft'>There is one: {escape(next(iter(members)))}.</p>"))
            continue
        values: dict[str, list[list[float | None]]] = {
            m: [[worst(results, a, b, m) for b in members.values()] for a in members.values()] for m in MEASURES
        }
        titles = _numbers(list(members))
        names = [f"{name}  {title}" for name, title in zip(members, titles, strict=True)]
        stars = [[incomplete(results, a, b) for b in members.values()] for a in members.values()]
        found.append((axis, _map(names, titles, values, f"axis-{axis}", stars)))
    return found


def times(results: Results) -> str:
    """Ratios of times with their intervals; empty where nothing was timed often enough."""
    timed = [row for row in results.rows if row.slowdown]
    if not timed:
        return ""
    ratios = [(row, row.slowdown) for row in timed if row.slowdown]
    names = [escape(row.variant.name) for row, _ in ratios]
    figure = go.Figure(
        go.Scatter(
            x=[r.ratio for _, r in ratios], y=names, mode="markers", marker={"size": 8, "color": "#2166ac"},
            error_x={
                "type": "data", "symmetric": False, "array": [r.high - r.ratio for _, r in ratios],
                "arrayminus": [r.ratio - r.low for _, r in ratios], "thickness": 1.5, "width": 4,
            },
            hovertemplate="%{y}<br>%{x:.3g} times the first<extra></extra>",
        )
    )  # fmt: skip
    figure.add_vline(x=1, line_width=1, line_color="#888")
    figure.update_layout(
        height=110 + 24 * len(names), margin={"l": 8, "r": 24, "t": 8, "b": 48}, plot_bgcolor="#ffffff",
        font={"size": 12},
        xaxis={
            "type": "log", "title": f"median time / that of {escape(results.rows[0].variant.name)}",
            "gridcolor": "#e3e3e3", "automargin": True, "fixedrange": True, "tickvals": _TICKS, "tickangle": 0,
            "ticktext": [f"{tick:g}" for tick in _TICKS],
        },
        yaxis={"autorange": "reversed", "automargin": True, "dtick": 1, "fixedrange": True, "gridcolor": "#f2f2f2"},
    )  # fmt: skip
    return figure.to_html(
        full_html=False, include_plotlyjs=False, config=_CONFIG | {"responsive": True}, div_id="times"
    )


def blamed(layers: LayerErrors, results: Results) -> str:
    """What the layers of a variant tell, in one sentence."""
    if layers.why:
        return f"its layers could not be compared: {layers.why}"
    culprit = layers.culprit
    if culprit is None:
        return _at_none(layers, next((row for row in results.rows if row.variant.name == layers.variant), None))
    begins = "it parts from the reference" if results.doubted else "the error begins"
    if math.isinf(culprit.excess):
        return f"{begins} at {layers.where}: no value there resembles the right one"
    seen = f", which it calls {culprit.seen}" if culprit.seen else ""
    return f"{begins} at {layers.where}{seen}: {short(culprit.excess)} times what it may add, given its inputs"


def _at_none(layers: LayerErrors, row: Row | None) -> str:
    """What it means that no layer adds too much: of a variant that is right nothing, of one that is wrong that the
    error is somewhere else."""
    count, whole = layers.judged, len(layers.errors)
    right = f"none of {count} layers adds more error than a correct one may, given its inputs"
    if row is None or row.status == "agree":
        return right
    if count < whole:
        return f"where the error begins is not known: it is at none of the {count} of {whole} layers that were matched"
    if layers.errors[-1].shown <= SMALL:
        return "the error does not show where all values are outputs: it comes with what makes one layer of several"
    return "the error is at no layer of the ONNX model: what was made of it is another function, or ends differently"


def errors_by_layer(results: Results) -> list[tuple[list[str], str, str]]:
    """For the variants whose layers were looked at, those of which the same can be told in one: their names, that, and
    what each layer of the first one adds and shows."""
    groups: dict[str, list[LayerErrors]] = {}
    for layers in results.layers:
        same = f"{layers.culprit.output if layers.culprit else ''}" or blamed(layers, results)
        groups.setdefault(same, []).append(layers)
    found = []
    for number, members in enumerate(groups.values()):
        layers = members[0]
        judged = [layer for layer in layers.errors if layer.judged]
        figure = go.Figure()
        for name, colour, attribute in (("shown", "#bdbdbd", "shown"), ("added, given its inputs", "#2166ac", "added")):
            values = [getattr(layer, attribute) for layer in judged]
            figure.add_scatter(
                x=[layer.index + 1 for layer in judged], y=[v if 0 < v < math.inf else None for v in values], name=name,
                mode="markers", marker={"size": 6, "color": colour},
                text=[escape(f"{layer.name or layer.output} ({layer.op})") for layer in judged],
                hovertemplate="%{text}<br>%{y:.2e}<extra></extra>",
            )  # fmt: skip
        wrong = [layer for layer in judged if layer.wrong]
        figure.add_scatter(
            x=[layer.index + 1 for layer in wrong],
            y=[layer.added if layer.added < math.inf else None for layer in wrong],
            name="more than it may add", mode="markers", marker={"size": 11, "color": "#b2182b", "symbol": "x"},
            text=[escape(f"{layer.name or layer.output} ({layer.op})") for layer in wrong],
            hovertemplate="%{text}<br>%{y:.2e}<extra></extra>",
        )  # fmt: skip
        figure.update_layout(
            height=320, margin={"l": 8, "r": 24, "t": 40, "b": 48}, plot_bgcolor="#ffffff", font={"size": 12},
            legend={"orientation": "h", "y": 1, "yanchor": "bottom"},
            xaxis={"title": "layer", "gridcolor": "#f2f2f2", "fixedrange": True, "automargin": True},
            yaxis={
                "type": "log", "title": "greatest error / greatest value", "gridcolor": "#e3e3e3", "fixedrange": True,
                "automargin": True, "tickformat": ".0e",
            },
        )  # fmt: skip
        config = _CONFIG | {"responsive": True}
        name = f"layers-{number}"
        shown = figure.to_html(full_html=False, include_plotlyjs=False, config=config, div_id=name) if judged else ""
        found.append(([one.variant for one in members], blamed(layers, results), shown))
    return found


def html_of(results: Results) -> str:
    """The whole page."""
    refusals, elsewhere = unbuilt(results.refusals)
    return render(
        "models/report/page.html.j2",
        results=results,
        reference=REFERENCE,
        rows=[(row, _pair(results, row)) for row in results.rows],
        everything=everything(results),
        axes=axes(results),
        times=times(results),
        layers=errors_by_layer(results),
        short=short,
        told=_told_once(results),
        status_of=status_of,
        slowdown=slowdown,
        accuracy=accuracy,
        samples=samples(results),
        plotly=get_plotlyjs(),
        refusals=refusals,
        elsewhere=elsewhere,
    )


def _told_once(results: Results) -> list[tuple[str, str, str]]:
    """What deviates: names of variants, the word for it, the message; those with the same message in one."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in results.deviating:
        found.setdefault((status_of(row), row.message), []).append(row.variant.name)
    return [(", ".join(names), status, message) for (status, message), names in found.items()]


def _pair(results: Results, row: Row):
    """Its agreement with the reference, or with the first variant; None where there is no result."""
    base = REFERENCE if (REFERENCE, row.variant.name) in results.pairs else results.rows[0].variant.name
    pair = results.pairs[base, row.variant.name]
    return None if isinstance(pair, Failure) else pair
