"""The command `study invariance`: does a row's result depend on its batch?"""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from generators.ops import DRAWN
from harness.backends import TARGETS
from harness.backends.probe import probe, versions
from harness.commands.shared import training_options as options
from harness.commands.shared.engine import Address, Engine, Gpus, Resource, cluster_of
from harness.commands.shared.record import Record, RecordError
from harness.commands.shared.recorded import recorded
from harness.commands.shared.recorded_jobs import ONE_MACHINE, Keep, together
from harness.commands.shared.terminal import (
    fail,
    finite,
    interrupted,
    named,
    print_wide,
    say,
    say_off,
    seconds_of,
    unwritten,
)
from harness.execute.files import replace_text
from harness.execute.pool import Limits, OutOfTime, Pool
from harness.studies.invariance import transformers
from harness.studies.invariance.batches import Batched, batched
from harness.studies.invariance.examine import VARIATIONS, Cell, examine
from harness.studies.invariance.network import NETWORK, STYLES
from harness.studies.invariance.packs import OPERATORS
from harness.studies.invariance.report import as_json, counts, csv_of, page

DEFAULT = "torch-eager,torch-inductor,jax-jit,tf-xla,ort-all,tvm-O3"


def invariance(
    operators: Annotated[str, typer.Option(metavar="GLOB", help="Globs of operators.")] = "*",
    targets: Annotated[str, typer.Option(metavar="GLOB", help="Globs of targets.")] = DEFAULT,
    seed: options.Seed = 0,
    budget: Annotated[str | None, typer.Option(help="Stop after so long, 15m say, and go on another time.")] = None,
    timeout: Annotated[float, typer.Option(min=1, callback=finite, help="Seconds that one program may take.")] = 600.0,
    jobs: options.JobCount = 1,
    engine: Engine = "processes",
    address: Address = "",
    gpus: Gpus = 0.0,
    resource: Resource = "",
    out: options.Out = None,
) -> None:
    """Run rows in batches of other sizes, at other places, beside other rows, padded, and on two threads."""
    names = named(operators, DRAWN, "operator")
    chosen = [TARGETS[name] for name in named(targets, TARGETS, "target")]
    for target in chosen:
        if probe(target).reason:
            say_off(target.name, probe(target).reason)
    here = [target for target in chosen if not probe(target).reason]
    if not here:
        raise fail(f"no target that matches {targets!r} is available here")
    folder = out or Path("studies") / "invariance"
    try:
        until = time.monotonic() + (seconds_of(budget) if budget else math.inf)
        folder.mkdir(parents=True, exist_ok=True)
        cluster = cluster_of(engine, address, gpus, resource, folder, ONE_MACHINE)
        kept = Record.opened(folder / "cells.jsonl", {"seed": seed}, Cell)
    except (typer.BadParameter, RecordError) as error:
        raise fail(str(error)) from error
    except OSError as error:
        raise fail(f"cannot use {error.filename}: {error.strerror}") from error
    log = recorded(folder, seed)
    kept.told = lambda one: log.case("invariance", {one.state: 1}, 0.0, subject=f"{one.operator} {one.target}")
    done = {(cell.operator, cell.target) for cell in kept.runs}
    found = [one for one in map(batched, names) if one]
    say(f"{len(found)} of {len(names)} operators have a batch dimension")
    todo = tasks_of([target.name for target in here], found, operators == "*", done)
    total = sum(len(task.operators) + len(task.styles) for task in todo)
    try:
        kept, code, failure = together(
            kept, Cell, todo, jobs, partial(work, seed=seed, timeout=timeout, until=until), total, left, cluster
        )
    except RecordError as error:
        raise fail(str(error)) from error
    except OSError as error:
        raise fail(unwritten(error, folder)) from error
    cells = [
        cell
        for cell in kept.runs
        if (cell.operator in names or cell.operator.startswith(NETWORK)) and cell.target in {t.name for t in chosen}
    ]
    kept.close()
    about = versions(here)
    try:
        replace_text(folder / "results.json", json.dumps(as_json(cells, about), indent=1) + "\n")
        replace_text(folder / "cells.csv", csv_of(cells))
        replace_text(folder / "report.html", page(cells, about))
    except OSError as error:
        raise fail(unwritten(error, folder)) from error
    print_wide(_table(cells))
    say(f"{folder}/report.html, results.json, cells.csv")
    if failure:
        raise fail(f"{failure}; what is done is kept in {folder}")
    if code:
        raise interrupted(code)


@dataclass(frozen=True)
class Task:
    """What one process does at a time for a target: operators that share programs, or networks of our own."""

    target: str
    operators: tuple[Batched, ...] = ()
    styles: tuple[str, ...] = ()


def tasks_of(
    targets: Sequence[str], found: Sequence[Batched], networks: bool, done: Collection[tuple[str, str]]
) -> list[Task]:
    """Target by target, what is not done."""
    tasks = []
    for target in targets:
        styles = [style for style in STYLES if (f"{NETWORK}{style}", target) not in done]
        if networks:
            tasks += [Task(target, styles=(style,)) for style in styles]
        todo = [one for one in found if (one.operator, target) not in done]
        tasks += [Task(target, tuple(todo[n : n + OPERATORS])) for n in range(0, len(todo), OPERATORS)]
    return tasks


def left(task: Task, cells: Sequence[Cell]) -> Task | None:
    """Without the operators and networks that have cells."""
    done = {cell.operator for cell in cells if cell.target == task.target}
    operators = tuple(one for one in task.operators if one.operator not in done)
    styles = tuple(style for style in task.styles if f"{NETWORK}{style}" not in done)
    return replace(task, operators=operators, styles=styles) if operators or styles else None


def work(tasks: Iterable[Task], keep: Keep[Cell], *, seed: int, timeout: float, until: float) -> None:
    """One after another, until the time is over: an operator's cells, or a network's, are kept together."""
    with (
        contextlib.suppress(OutOfTime),
        Pool(Limits(seconds=timeout, workers=1), until=until, tolerant=True) as one,
        Pool(Limits(seconds=timeout, workers=1, threads=2), until=until, tolerant=True) as two,
    ):
        for task in tasks:
            for style in task.styles:
                keep(transformers.examine(one, two, TARGETS[task.target], style, seed))
            if task.operators:
                for cells in examine(one, two, TARGETS[task.target], task.operators, seed):
                    keep(cells)


def _table(cells: list[Cell]) -> Table:
    """A line a target: how many operators are in each state under each variation."""
    found = counts(cells)
    shown = Table("target", *VARIATIONS)
    for target in dict.fromkeys(cell.target for cell in cells):
        each = [found.get((target, name), {}) for name in VARIATIONS]
        shown.add_row(target, *[", ".join(f"{count} {state}" for state, count in sorted(one.items())) for one in each])
    return shown


STUDIES = (invariance,)
