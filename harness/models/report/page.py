"""The page on a given model: one file of HTML that needs no network and no program, its drawings SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.execute.templates import render
from harness.models.convert import unbuilt
from harness.models.layer_errors import LayerErrors
from harness.models.measure import Run
from harness.models.report import charts, graph, outputs, pairs, reproducer, store, tasks
from harness.models.report.charts import Points
from harness.models.report.glance import Glance, Node
from harness.models.report.graph import Drawing
from harness.models.report.outputs import Output
from harness.models.report.words import accuracy, blamed, short, status_of
from harness.models.results import REFERENCE, Results
from harness.models.rows import Row

SAMPLES = 50
"""So many samples the page shows the classes of."""
STRIP = 800
"""Most layers that are listed as small squares."""


@dataclass(frozen=True)
class Blamed:
    """Variants of whose layers the same can be told. told: that; points: what each layer adds; drawing: the graph with
    the layer where an error begins (None: it has no such value); strip: each layer with its words and its shade."""

    names: tuple[str, ...]
    told: str
    points: Points | None
    drawing: Drawing | None
    strip: tuple[tuple[str, int], ...]


def named(results: Results, number: int) -> str:
    """A class by its name, where it has one."""
    return results.labels[number] if 0 <= number < len(results.labels) else str(number)


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


def layers_of(results: Results, nodes: Sequence[Node]) -> list[Blamed]:
    """For the variants whose layers were looked at, those of which the same can be told in one."""
    groups: dict[str, list[LayerErrors]] = {}
    for layers in results.layers:
        same = f"{layers.culprit.output if layers.culprit else ''}" or blamed(layers, results)
        groups.setdefault(same, []).append(layers)
    found = []
    for members in groups.values():
        layers = members[0]
        marked = frozenset(layer.output for layer in layers.blamed)
        words = {
            layer.output: f"{layer.name or layer.output} ({layer.op}): "
            + (f"{short(layer.excess)} of what it may add" if layer.judged else "not judged")
            for layer in layers.errors
        }
        here = any(marked.intersection(node.outputs) for node in nodes)
        drawing = graph.drawn(nodes, marked, words) if here else None
        strip = tuple((words[layer.output], charts.shade(layer.excess)) for layer in layers.errors)
        found.append(
            Blamed(
                tuple(one.variant for one in members), blamed(layers, results), charts.layer_points(layers.errors),
                drawing, strip if len(strip) <= STRIP else (),
            )
        )  # fmt: skip
    return found


def links_of(folder: Path | None, row: Row) -> list[tuple[str, str]]:
    """Words and relative addresses of a variant's files, of those that are there."""
    if folder is None:
        return []
    place = store.place_of(folder, row.variant)
    files = {
        "reproducer": place / "reproducer.py",
        "its layer": place / reproducer.CULPRIT / f"{reproducer.CULPRIT}.onnx",
        "error": place.with_name(f"{place.name}.error.txt"),
        "outputs": place.with_name(f"{place.name}.npz"),
        "details": place.with_name(f"{place.name}.json"),
    }
    fresh = ("reproducer", "its layer", "error")  # those of an earlier run may lie there
    return [
        (word, path.relative_to(folder).as_posix())
        for word, path in files.items()
        if path.exists() and (row.deviates or word not in fresh)
    ]


def html_of(
    results: Results, runs: Sequence[Run] = (), glance: Glance | None = None, folder: Path | None = None
) -> str:
    """The whole page. runs: of its rows, in their order (none: nothing is told of single outputs); glance: what the
    model consists of; folder: where the page will be, which files are linked from (None: none are)."""
    refusals, elsewhere = unbuilt(results.refusals)
    found = outputs.outputs_of(results, runs) if runs else []
    scores = _scores(results, found)
    timed = charts.timed_of(runs, results.rows) if runs else []
    blame = layers_of(results, glance.nodes if glance else ())
    whole = glance if glance and glance.nodes and not any(one.drawing for one in blame) else None
    files = ("inputs.npz", "results.json", "pairs.csv")
    return render(
        "models/report/templates/page.html.j2",
        results=results,
        rows=charts.by_share(results.rows),
        chart=charts.shares(results.rows),
        glance=glance,
        files=[name for name in files if folder and (folder / name).exists()],
        links={row.variant.name: links_of(folder, row) for row in results.rows},
        outputs=found,
        detailed=outputs.detailed(found),
        kinds=list(dict.fromkeys(one.kind.word for one in found)),
        task=tasks.task_of([one.kind for one in found]),
        scores=scores,
        squares=pairs.everything(results, scores),
        axes=pairs.axes(results, scores),
        layers=blame,
        drawing=graph.drawn(whole.nodes) if whole else None,
        timed=timed,
        first=next((run.variant.name for run in runs if run.seconds), ""),
        times=charts.times(timed),
        told=_told_once(results),
        samples=samples(results) if scores else [],
        refusals=refusals,
        elsewhere=elsewhere,
        base=REFERENCE if any(first == REFERENCE for first, _ in results.pairs) else results.rows[0].variant.name,
        short=short,
        status_of=status_of,
        accuracy=accuracy,
    )


def _scores(results: Results, found: Sequence[Output]) -> bool:
    """Is the output that all variants are compared by one of class scores?"""
    if results.labels or results.truth is not None:
        return True
    return any(one.name == results.measured and one.kind.word == tasks.CLASSES for one in found)


def _told_once(results: Results) -> list[tuple[str, str, str]]:
    """What deviates: names of variants, the word for it, the message; those with the same message in one."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in charts.by_share(results.deviating):
        found.setdefault((status_of(row), row.message), []).append(row.variant.name)
    return [(", ".join(names), status, message) for (status, message), names in found.items()]
