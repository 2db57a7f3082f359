"""The command `study invariance`: does a row's result depend on its batch?"""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress
from rich.table import Table

from generators.ops import DRAWN
from harness.backends import TARGETS
from harness.backends.probe import probe, versions
from harness.commands.shared import training_options as options
from harness.commands.shared.record import Record, RecordError
from harness.commands.shared.recorded import recorded
from harness.commands.shared.terminal import (
    console,
    fail,
    finite,
    interrupted,
    named,
    print_wide,
    seconds_of,
    unwritten,
)
from harness.execute.files import replace_text
from harness.execute.isolation.signals import status_of
from harness.execute.pool import HarnessError, Limits, OutOfTime, Pool
from harness.studies.invariance import transformers
from harness.studies.invariance.batches import batched
from harness.studies.invariance.examine import VARIATIONS, Cell, examine
from harness.studies.invariance.report import NETWORK, as_json, counts, csv_of, page

DEFAULT = "torch-eager,torch-inductor,jax-jit,tf-xla,ort-all,tvm-O3"


def invariance(
    operators: Annotated[str, typer.Option(metavar="GLOB", help="Globs of operators.")] = "*",
    targets: Annotated[str, typer.Option(metavar="GLOB", help="Globs of targets.")] = DEFAULT,
    seed: options.Seed = 0,
    budget: Annotated[str | None, typer.Option(help="Stop after so long, 15m say, and go on another time.")] = None,
    timeout: Annotated[float, typer.Option(min=1, callback=finite, help="Seconds that one program may take.")] = 120.0,
    out: options.Out = None,
) -> None:
    """Run rows in batches of other sizes, at other places, beside other rows, padded, and on two threads."""
    names = named(operators, DRAWN, "operator")
    chosen = [TARGETS[name] for name in named(targets, TARGETS, "target")]
    for target in chosen:
        if probe(target).reason:
            console.print(f"off: {target.name} ({probe(target).reason})", style="yellow", markup=False)
    here = [target for target in chosen if not probe(target).reason]
    if not here:
        raise fail(f"no target that matches {targets!r} is available here")
    folder = out or Path("studies") / "invariance"
    try:
        until = time.monotonic() + (seconds_of(budget) if budget else math.inf)
        folder.mkdir(parents=True, exist_ok=True)
        kept = Record.opened(folder / "cells.jsonl", {"seed": seed}, Cell)
    except (typer.BadParameter, RecordError) as error:
        raise fail(str(error)) from error
    except OSError as error:
        raise fail(f"cannot use {error.filename}: {error.strerror}") from error
    log = recorded(folder, seed)
    kept.told = lambda one: log.case("invariance", {one.state: 1}, 0.0, subject=f"{one.operator} {one.target}")
    done, code, failure = {(cell.operator, cell.target) for cell in kept.runs}, 0, None
    found = [one for one in map(batched, names) if one]
    console.print(f"{len(found)} of {len(names)} operators have a batch dimension", highlight=False)
    todo = [(target, one) for target in here for one in found if (one.operator, target.name) not in done]
    wanted = [(t.name, style) for t in here if t.name in transformers.TARGETS for style in transformers.STYLES]
    networks = [(name, style) for name, style in wanted if (f"{NETWORK}{style}", name) not in done]
    networks = networks if operators == "*" else []
    limits = Limits(seconds=timeout, workers=1)
    try:
        with (
            Pool(limits, until=until, tolerant=True) as one_thread,
            Pool(Limits(seconds=timeout, workers=1, threads=2), until=until, tolerant=True) as two_threads,
            Progress(console=console, transient=True) as progress,
        ):
            task = progress.add_task("operators", total=len(todo))
            for name, style in networks:
                for cell in transformers.examine(one_thread, two_threads, name, style, seed):
                    kept.add(cell)
            for target, one in todo:
                for cell in examine(one_thread, two_threads, target, one, seed):
                    kept.add(cell)
                progress.advance(task)
    except OutOfTime:
        pass
    except KeyboardInterrupt as stop:
        code = status_of(stop)
    except HarnessError as error:
        failure = str(error)
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
    console.print(f"{folder}/report.html, results.json, cells.csv", highlight=False, soft_wrap=True)
    if failure:
        raise fail(f"{failure}; what is done is kept in {folder}")
    if code:
        raise interrupted(code)


def _table(cells: list[Cell]) -> Table:
    """A line a target: how many operators are in each state under each variation."""
    found = counts(cells)
    shown = Table("target", *VARIATIONS)
    for target in dict.fromkeys(cell.target for cell in cells):
        each = [found.get((target, name), {}) for name in VARIATIONS]
        shown.add_row(target, *[", ".join(f"{count} {state}" for state, count in sorted(one.items())) for one in each])
    return shown


STUDIES = (invariance,)
