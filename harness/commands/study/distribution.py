"""The command `study distribution`: D3's protocol."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from generators.training.d3 import Protocol, study_arrays
from generators.training.runs import Training
from harness.commands.shared.bar import Bar
from harness.commands.shared.recorded import recorded
from harness.commands.shared.terminal import (
    console,
    fail,
    finite,
    interrupted,
    print_counts,
    print_wide,
    seconds_of,
    unwritten,
)
from harness.execute.files import replace_text
from harness.execute.isolation.signals import status_of
from harness.execute.pool import HarnessError, OutOfTime
from harness.execute.ranks import RankLimits, RankPools
from harness.execute.worker import versions_of
from harness.findings.known.deviations import load
from harness.findings.known.entry import KnownFileError
from harness.findings.store import Store as Findings
from harness.search.reduce import within
from harness.strategies import Strategy
from harness.studies.distribution.protocol import Study, run_case
from harness.studies.distribution.report import STATES, csv_of, lines, page, state_of
from harness.studies.distribution.settings import PRESETS, versions_beside
from harness.studies.distribution.store import Result, Store, StoreError
from harness.training.findings import investigate, text_of
from harness.training.judge import Judgement, TrainingJudge

PACKAGES = {"tensorflow": ["tensorflow-cpu", "tensorflow", "keras"], "torch": ["torch"]}
"""Whose versions a study depends on."""


def distribution(
    preset: Annotated[str, typer.Option(metavar="NAME", help=f"Whose settings: {', '.join(PRESETS)}.")],
    models: Annotated[int, typer.Option(min=1, help="Models, of four quarters in turn (the paper: 400).")] = 8,
    inputs: Annotated[int, typer.Option(min=1, max=1000, help="Inputs a model (the paper: 10).")] = 1,
    batch: Annotated[int, typer.Option(min=1, help="Samples of the one step (the paper: 2400).")] = 24,
    image: Annotated[int, typer.Option(min=3, help="Side of images (the paper: 32).")] = 8,
    seed: Annotated[int, typer.Option(help="The same seed draws the same models and inputs.")] = 0,
    budget: Annotated[str | None, typer.Option(help="Stop after so long, 15m say, and go on another time.")] = None,
    timeout: Annotated[float, typer.Option(min=1, callback=finite, help="Seconds that one run may take.")] = 60.0,
    minimise: Annotated[
        bool, typer.Option(help="Make the first deviation of each strategy and kind small, into DIR/findings.")
    ] = True,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where study.sqlite, inconsistencies.csv and report.html go.")
    ] = None,
) -> None:
    """D3's protocol: one step with a learning rate of 10 under each setting, and its predictions against one device."""
    if preset not in PRESETS:
        raise fail(f"no preset is called {preset!r}; there are {', '.join(PRESETS)}")
    chosen = PRESETS[preset]()
    plan = Study(preset, models, inputs, Protocol(seed, batch, image, chosen.freeze))
    folder = out or Path("studies") / preset
    versions = versions_of(["numpy", *PACKAGES[chosen.framework]])
    try:
        duration = seconds_of(budget) if budget else math.inf
        known = load()
        folder.mkdir(parents=True, exist_ok=True)
        Findings(folder / "findings").check()
        store = Store(folder / "study.sqlite", plan.about | versions)
        todo = plan.missing(store)
    except (typer.BadParameter, KnownFileError, StoreError) as error:
        raise fail(str(error)) from error
    except OSError as error:
        raise fail(f"cannot use {folder}: {error.strerror}") from error
    if not plan.settings:
        raise fail(f"no setting of {preset} can be run here: {next(iter(plan.unavailable.values()))}")
    total = sum(1 for _ in plan.cases())
    console.print(
        f"{preset}: {models} models x {inputs} inputs x {len(plan.settings)} settings = {total} results, "
        f"{total - len(todo)} of them there already; {len(plan.unavailable)} settings are not available",
        highlight=False,
    )
    log = recorded(folder, seed)
    failure, code = None, 0
    deviations: dict[tuple[str, str, str], str] = {}
    started = time.monotonic()
    deadline = started + duration
    with (
        RankPools(RankLimits(seconds=timeout), until=deadline) as pools,
        Bar(console=console) as progress,
    ):
        judge, task = TrainingJudge(pools, known, study_arrays), progress.add_task(preset, total=len(todo))

        def keep(training: Training, strategy: Strategy, world: int, judgement: Judgement) -> None:
            """Make the first deviation of a strategy in each kind of what it returns small, and store it."""
            assert judgement.discrepancy is not None
            key = strategy.name, judgement.discrepancy.symptom, judgement.part.split(".")[0]
            if key not in deviations:
                found = investigate(
                    judge, folder / "findings", training, strategy, world, judgement, within(deadline, 90), log
                )
                deviations[key] = text_of(found)

        try:
            for case in todo:
                if time.monotonic() >= deadline:
                    break
                one = run_case(judge, plan, case, keep if minimise else None)
                store.add(one)
                log.case(
                    "distribution",
                    {state_of(one): 1},
                    one.cpu,
                    number=one.model,
                    subject=f"{one.setting} input {one.input}",
                )
                progress.advance(task)
        except OutOfTime:  # the case under way is run again when this is gone on with
            pass
        except KeyboardInterrupt as stop:
            code = status_of(stop)
        except (HarnessError, StoreError) as error:
            failure = str(error)
        except OSError as error:
            failure = unwritten(error, folder)
    try:
        results = plan.within(store.results())
        store.close()
        replace_text(folder / "inconsistencies.csv", csv_of(plan, results))
        replace_text(folder / "report.html", page(plan, results, versions | versions_beside(chosen)))
    except (OSError, StoreError) as error:
        told = unwritten(error, folder) if isinstance(error, OSError) else str(error)
        raise fail(f"{failure or told}; results so far are kept in {folder / 'study.sqlite'}") from error
    print_wide(_table(plan, results))
    print_counts("not available: {count} settings", plan.unavailable.values())
    print_counts("left out {count} times", (r.reason for r in results if r.outcome == "left out"))
    states = Counter(state_of(r) for r in results)
    console.print(
        f"{len(results)} of {total} results, {len(todo)} were to be done, {time.monotonic() - started:.0f} s: "
        + ", ".join(f"{states[name]} {name}" for name, _, _ in STATES if states[name])
        + f", {judge.unconfirmed.total()} failures not repeated",
        highlight=False,
    )
    for text in deviations.values():
        console.print(f"\n{text}\n", markup=False, highlight=False, soft_wrap=True)
    console.print(f"{folder}/report.html, {folder}/inconsistencies.csv", highlight=False, soft_wrap=True)
    if failure:
        raise fail(f"{failure}; results so far are kept in {folder / 'study.sqlite'}")
    if code:
        raise interrupted(code)


def _table(plan: Study, results: Sequence[Result]) -> Table:
    """A line a setting: how many of its results have each state, the greatest L-infinity."""
    shown = [name for name, _, _ in STATES if any(state_of(r) == name for r in results)]
    table = Table("setting", *shown, "L-inf.", "ratio", "CPU s")
    for line in lines(plan, results):
        counts = [str(line.counts[name] or "·") for name in shown]
        seconds = "-" if line.seconds is None else f"{line.seconds:.2f}"
        table.add_row(line.setting.name, *counts, f"{line.largest:.1e}", f"{line.ratio:.2g}", seconds)
    return table


STUDIES = (distribution,)
