"""The command `study distribution`: D3's protocol."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from generators.training.d3 import Protocol
from harness.commands.shared.bar import Bar
from harness.commands.shared.engine import Address, Engine, Gpus, Resource, cluster_of
from harness.commands.shared.recorded import recorded
from harness.commands.shared.recorded_jobs import ONE_MACHINE, carried_out
from harness.commands.shared.terminal import (
    console,
    fail,
    finite,
    interrupted,
    print_counts,
    print_wide,
    say,
    seconds_of,
    unwritten,
)
from harness.execute.files import replace_text
from harness.execute.isolation.cluster import Cluster
from harness.execute.isolation.cluster import jobs as jobs_of
from harness.execute.isolation.signals import status_of
from harness.execute.pool import HarnessError
from harness.execute.processes.worker import versions_of
from harness.findings.database.recorder import Recorder
from harness.findings.known.deviations import load
from harness.findings.known.entry import KnownFileError
from harness.findings.store import Store as Findings
from harness.studies.distribution.protocol import Study, StudyCase
from harness.studies.distribution.report import STATES, csv_of, lines, page, state_of
from harness.studies.distribution.settings import PRESETS, versions_beside
from harness.studies.distribution.share import Done, Way, do_share, run_cases, together
from harness.studies.distribution.store import Result, Store, StoreError

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
    jobs: Annotated[int, typer.Option(min=1, help="Processes that share the results that are to be done.")] = 1,
    engine: Engine = "processes",
    address: Address = "",
    gpus: Gpus = 0.0,
    resource: Resource = "",
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
        load()
        folder.mkdir(parents=True, exist_ok=True)
        cluster = cluster_of(engine, address, gpus, resource, folder, ONE_MACHINE)
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
    say(
        f"{preset}: {models} models x {inputs} inputs x {len(plan.settings)} settings = {total} results, "
        f"{total - len(todo)} of them there already; {len(plan.unavailable)} settings are not available"
    )
    way = Way(plan, folder, minimise, timeout, time.monotonic() + duration)
    started, log = time.monotonic(), recorded(folder, seed)
    apart = jobs > 1 or cluster is not None
    if apart:
        done, failure, code = _shared(way, store, todo, jobs, cluster)
    else:
        done, failure, code = _here(way, store, todo, log)
    try:
        results = plan.within(store.results())
        store.close()
        new = {(model, data, setting.name) for model, data, setting in todo if apart}
        for one in results:  # processes have no store of their own
            if (one.model, one.input, one.setting) in new:
                _tell(log, one)
        replace_text(folder / "inconsistencies.csv", csv_of(plan, results))
        replace_text(folder / "report.html", page(plan, results, versions | versions_beside(chosen)))
    except (OSError, StoreError) as error:
        told = unwritten(error, folder) if isinstance(error, OSError) else str(error)
        raise fail(f"{failure or told}; results so far are kept in {folder / 'study.sqlite'}") from error
    print_wide(_table(plan, results))
    print_counts("not available: {count} settings", plan.unavailable.values())
    print_counts("left out {count} times", (r.reason for r in results if r.outcome == "left out"))
    states = Counter(state_of(r) for r in results)
    say(
        f"{len(results)} of {total} results, {len(todo)} were to be done, {time.monotonic() - started:.0f} s: "
        + ", ".join(f"{states[name]} {name}" for name, _, _ in STATES if states[name])
        + f", {done.unconfirmed.total()} failures not repeated"
    )
    for text in done.deviations.values():
        say(f"\n{text}\n")
    say(f"{folder}/report.html, {folder}/inconsistencies.csv")
    if failure:
        raise fail(f"{failure}; results so far are kept in {folder / 'study.sqlite'}")
    if code:
        raise interrupted(code)


def _here(way: Way, store: Store, todo: Sequence[StudyCase], log: Recorder) -> tuple[Done, str, int]:
    """Run what is to be done. What is done, what failed, and the exit status of an interruption (0: none)."""
    done, failure, code = Done(), "", 0
    with Bar(console=console) as progress:
        task = progress.add_task(way.plan.preset, total=len(todo))

        def keep(one: Result) -> None:
            store.add(one)
            _tell(log, one)
            progress.advance(task)

        try:
            run_cases(way, todo, keep, done, log)
        except KeyboardInterrupt as stop:
            code = status_of(stop)
        except (HarnessError, StoreError) as error:
            failure = str(error)
        except OSError as error:
            failure = unwritten(error, way.folder)
    return done, failure, code


def _shared(
    way: Way, store: Store, todo: Sequence[StudyCase], most: int, cluster: Cluster | None
) -> tuple[Done, str, int]:
    """The same by several processes, or tasks of Ray."""
    count = max(1, min(most, len(todo)))
    if not todo:
        return Done(), "", 0
    shares = jobs_of(partial(do_share, way, store.about, tuple(todo)), count, cluster)
    code, failure = carried_out(shares, way.plan.preset, len(todo), lambda latest: together(latest).cases)
    return together(shares.latest), failure, code


def _tell(log: Recorder, one: Result) -> None:
    log.case("distribution", {state_of(one): 1}, one.cpu, number=one.model, subject=f"{one.setting} input {one.input}")


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
