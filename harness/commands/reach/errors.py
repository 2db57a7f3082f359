"""The command `errors`: the greatest error of elementwise operators over all numbers of a dtype, on every target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from generators.graph import Graph
from generators.ops import OPS
from harness.backends import Target, probe
from harness.commands.shared.bar import Bar
from harness.commands.shared.cases import Targets, usable
from harness.commands.shared.record import Record, RecordError
from harness.commands.shared.terminal import (
    Json,
    console,
    fail,
    finite,
    interrupted,
    named,
    print_counts,
    print_wide,
    say,
    unwritten,
    write_json,
)
from harness.execute.files import replace_text
from harness.execute.isolation.signals import status_of
from harness.execute.pool import HarnessError, Limits, Pool
from harness.search.laboratory import Laboratory
from harness.studies.errors.measure import Cell, all_of, elementwise, searched
from harness.studies.errors.points import LAYOUTS
from harness.studies.errors.report import Line, as_json, csv_of, lines_of, page, told

Task = tuple[Target, Graph, int]
"""part: of an operator's numbers, -1 for a search."""


def errors(
    operator_globs: Annotated[str, typer.Argument(metavar="OPERATOR", help="Globs of elementwise operators.")],
    target_globs: Targets = "*",
    dtype_globs: Annotated[str, typer.Option("--dtypes", help=f"Globs of {', '.join(LAYOUTS)}.")] = "float*",
    everything: Annotated[
        bool, typer.Option("--all", help="All numbers, by sign and exponent; float32 has 2**32 of them.")
    ] = False,
    points: Annotated[int, typer.Option(min=1024, help="Of float32, spread over all signs and exponents.")] = 1 << 18,
    rounds: Annotated[int, typer.Option(min=0, help="Further looks around the worst of them.")] = 2,
    seed: Annotated[int, typer.Option(min=0, help="The same seed looks at the same points first.")] = 0,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where results go, and are gone on with.")] = Path("errors"),
    timeout: Annotated[float, typer.Option(min=1, callback=finite, help="Seconds that one program may take.")] = 120.0,
    json_file: Json = None,
) -> None:
    """Where an operator errs most, in units in the last place: all float16, a search through float32."""
    chosen = usable(target_globs)
    dtypes = named(dtype_globs, LAYOUTS, "dtype")
    operators = named(operator_globs, OPS, "operator")
    graphs = [found for name in operators for dtype in dtypes if (found := elementwise(name, dtype))]
    if everything:
        graphs = [graph for graph in graphs if len(graph.inputs) == 1]
    if not graphs:
        kind = "elementwise, of one operand" if everything else "elementwise"
        raise fail(f"no operator that matches {operator_globs!r} is {kind} and takes {', '.join(dtypes)}")
    try:
        out.mkdir(parents=True, exist_ok=True)
        head = {"all": 1} if everything else {"seed": seed, "points": points, "rounds": rounds}
        kept = Record.opened(out / ("all.jsonl" if everything else "search.jsonl"), head, Cell)
    except RecordError as error:
        raise fail(str(error)) from error
    except OSError as error:
        raise fail(f"cannot use {error.filename}: {error.strerror}") from error
    installed = {target.name: probe.probe(target).version or "" for target in chosen}
    done = {(c.operator, c.dtype, c.target, c.part) for c in kept.runs if installed.get(c.target) == c.version}
    todo = [task for task in _tasks(graphs, chosen, everything) if _key(task) not in done]
    code, failure = 0, ""
    try:
        with Pool(Limits(seconds=timeout), tolerant=True) as pool, Bar(console=console) as bar:
            lab, task_bar = Laboratory(pool), bar.add_task("errors", total=len(todo))
            for target, graph, part in todo:
                if part < 0:
                    cell = searched(lab, target, graph, seed, points, rounds)
                else:
                    cell = all_of(lab, target, graph, part)
                kept.add(replace(cell, version=installed[target.name]))
                bar.advance(task_bar)
    except KeyboardInterrupt as stop:
        code = status_of(stop)
    except HarnessError as error:
        failure = str(error)
    except OSError as error:
        failure = unwritten(error, out)
    kept.close()
    wanted = {(graph.nodes[0].op, graph.inputs[0].type.dtype) for graph in graphs}
    lines = lines_of([c for c in kept.runs if (c.operator, c.dtype) in wanted and installed.get(c.target) == c.version])
    try:
        replace_text(out / "errors.csv", csv_of(lines))
        replace_text(out / "report.html", page(lines, probe.versions(chosen)))
    except OSError as error:
        raise fail(unwritten(error, out)) from error
    print_wide(_table(lines))
    print_counts("no result of {count}", (line.why for line in lines if line.why))
    say(f"{out}/report.html, errors.csv")
    write_json(json_file, as_json(lines))
    if failure:
        raise fail(f"{failure}; what is done is kept in {out}")
    if code:
        raise interrupted(code)
    if not any(line.total for line in lines):
        raise fail("nothing was compared: no target has a result")


def _tasks(graphs: Sequence[Graph], targets: Sequence[Target], everything: bool) -> Iterator[Task]:
    """Target by target, so that few workers are kept."""
    for target in targets:
        for graph in graphs:
            parts = range(LAYOUTS[graph.inputs[0].type.dtype].strata) if everything else (-1,)
            yield from ((target, graph, part) for part in parts)


def _key(task: Task) -> tuple[str, str, str, int]:
    target, graph, part = task
    return graph.nodes[0].op, graph.inputs[0].type.dtype, target.name, part


def _table(lines: Sequence[Line]) -> Table:
    """A line for all targets that have the same result."""
    shown = Table("operator", "dtype", "targets")
    for heading in ("ulps", "at", "of allowed", "at", "outside", "the first", "undet. %"):
        shown.add_column(heading, justify="right")
    groups: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for line in lines:
        if (one := line.total) is not None:
            row = (f"{one.ulps:.4g}", told(one.place, line.dtype), f"{100 * one.share:.3g} %")
            row += (told(one.taken, line.dtype), str(one.wrong or "·"), told(one.first, line.dtype))
            row += (f"{100 * one.undetermined / max(1, one.undetermined + one.elements):.2g}",)
            groups.setdefault((line.operator, line.dtype, row), []).append(line.target)
    for (operator, dtype, row), targets in sorted(groups.items()):
        shown.add_row(operator, dtype, ", ".join(targets), *row, style="red" if row[4] != "·" else "")
    return shown


COMMANDS = (errors,)
