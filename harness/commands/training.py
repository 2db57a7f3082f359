"""The commands on training under distribution strategies: strategies, train."""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.live import Live
from rich.table import Column, Table

from generators.training.settings import DTYPES
from harness.commands.shared.engine import Address, Engine, Gpus, Resource, cluster_of
from harness.commands.shared.record import Record, RecordError, seed_of
from harness.commands.shared.recorded import recorded
from harness.commands.shared.recorded_jobs import ONE_MACHINE, together
from harness.commands.shared.terminal import (
    FOUND_IS_KEPT,
    Json,
    console,
    fail,
    finite,
    interrupted,
    named,
    print_counts,
    print_wide,
    say,
    say_off,
    seconds_of,
    unwritten,
    write_json,
    write_text,
)
from harness.execute.isolation.signals import status_of
from harness.execute.pool import HarnessError
from harness.execute.reading import read_json
from harness.findings.deviation import Deviation
from harness.findings.known.deviations import load
from harness.findings.known.entry import KnownFileError
from harness.findings.store import Store
from harness.strategies import STRATEGIES, Strategy
from harness.training.findings import text_of
from harness.training.judge import available
from harness.training.share import Job, train_each, untrained
from harness.training.table import (
    Row,
    Run,
    as_json,
    cells_of,
    csv_of,
    rows_of,
    table_of,
)

Globs = Annotated[str, typer.Option("--strategies", metavar="GLOB", help="Comma-separated globs of strategies.")]


def strategies(json_file: Json = None) -> None:
    """List all distribution strategies: on, or off with the reason."""
    table = Table(Column("strategy", no_wrap=True), "framework", "ranks", "status")
    rows = []
    for strategy in STRATEGIES.values():
        why = available(strategy)
        state = f"[yellow]off: {why}[/]" if why else "[green]on[/]"
        table.add_row(strategy.name, strategy.framework, " ".join(map(str, strategy.worlds)), state)
        row = {"name": strategy.name, "framework": strategy.framework, "world_sizes": list(strategy.worlds)}
        rows.append({**row, "available": why is None, "reason": why})
    console.print(table)
    write_json(json_file, rows)


def train(
    strategy_globs: Globs = "*",
    budget: Annotated[
        str | None, typer.Option(help="How long: 90s, 5m, 1h. 5m where neither --runs nor --cases says how much.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The same seed draws the same runs.")] = None,
    cases: Annotated[int | None, typer.Option(min=1, help="Stop after so many training runs.")] = None,
    runs: Annotated[
        int | None,
        typer.Option(min=1, help="So many runs for every strategy, number of ranks and dtype, one after the other."),
    ] = None,
    worlds: Annotated[
        str, typer.Option(help="Numbers of ranks, where a strategy takes them; all: all that it takes.")
    ] = "2,3,4",
    dtypes: Annotated[
        str | None, typer.Option(metavar="GLOB", help=f"Of {', '.join(DTYPES)}. As drawn, or with --runs all of them.")
    ] = None,
    blocks: Annotated[int, typer.Option(min=0, help="Most blocks of layers of a drawn network.")] = 4,
    findings: Annotated[Path, typer.Option(help="Where findings go.")] = Path("findings"),
    timeout: Annotated[float, typer.Option(min=1, callback=finite, help="Seconds that one run may take.")] = 60.0,
    record: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep each run there, and go on with what is there.")
    ] = None,
    csv_file: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write the table as CSV, too.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes that share the runs; with --record.")] = 1,
    engine: Engine = "processes",
    address: Address = "",
    gpus: Gpus = 0.0,
    resource: Resource = "",
    json_file: Json = None,
) -> None:
    """Draw training runs, spread them over ranks by every strategy, and judge them against one device."""
    if runs and cases:
        raise fail("--cases is of drawn runs, --runs of cells: give one of them")
    if (jobs > 1 or engine != "processes") and not (record and (runs or cases)):
        raise fail("what several processes do is shared out and kept: give --record, and --cases or --runs")
    names = named(strategy_globs, STRATEGIES, "strategy")
    chosen: tuple[str, ...] = named(dtypes, DTYPES, "dtype") if dtypes else DTYPES if runs else ()
    try:
        duration = seconds_of(budget) if budget else math.inf if runs or cases else seconds_of("5m")
        load()
        numbers = _numbers(worlds)
        findings.mkdir(parents=True, exist_ok=True)
        Store(findings).check()
        cluster = cluster_of(engine, address, gpus, resource, findings, ONE_MACHINE)
        kept = _opened(record, seed, blocks)
    except (typer.BadParameter, KnownFileError, RecordError) as error:
        raise fail(str(error)) from error
    except OSError as error:
        raise fail(f"cannot use {error.filename}: {error.strerror}") from error
    here, off = _usable([STRATEGIES[name] for name in names], numbers)
    seed, cells = kept.head["seed"], cells_of(here, chosen) if runs else []
    extent = f"{runs} runs a cell, {len(cells)} cells" if runs else f"{cases} cases" if cases else budget or "5m"
    say(f"training under {len(here)} strategies: {extent}, seed {seed}")
    if kept.runs:
        say(f"going on with {len(kept.runs)} runs of {record}")
    log = recorded(findings, seed)
    kept.told = lambda one: log.case(
        "training", {one.outcome: 1}, one.cpu, number=one.number, subject=f"{one.strategy} {one.world_size} {one.dtype}"
    )
    rows = rows_of(kept.runs, cells)
    started, before, code = time.monotonic(), len(kept.runs), 0
    failure: str | None = None
    work = partial(
        train_each, seed=seed, blocks=blocks, timeout=timeout, until=started + duration, findings=findings, record=log
    )
    there = tuple(kept.runs)
    todo = (job for job in _jobs(here, runs, cases, chosen) if untrained(job, there))
    try:
        if jobs > 1 or cluster:
            todo = tuple(todo)
            kept, code, failure = together(kept, Run, todo, jobs, work, len(todo), untrained, cluster)
        else:
            with Live(console=console, transient=True) as live:

                def keep(lines: Sequence[Run]) -> None:
                    for line in lines:
                        kept.add(line)
                        rows.setdefault(line.cell, Row()).add(line)
                    live.update(table_of({cell: row for cell, row in rows.items() if row.outcomes}))

                work(todo, keep)
    except KeyboardInterrupt as stop:
        code = status_of(stop)
    except (HarnessError, RecordError) as error:
        failure = str(error)
    except OSError as error:
        failure = unwritten(error, record or findings)
    rows, now = rows_of(kept.runs, cells), kept.runs[before:]  # in order
    found = {run.finding: _text(findings, run.finding) for run in now if run.finding}
    excused = Counter(name for run in now if run.outcome == "known" for name in run.reason.split(", "))
    unconfirmed = Counter(why for run in now for why in run.unconfirmed)
    print_wide(table_of(rows))
    say(
        f"{len({run.number for run in kept.runs})} runs drawn, {sum(row.ran for row in rows.values())} judged, "
        f"{len(kept.runs) - before} of all in {time.monotonic() - started:.0f} s now, "
        f"{unconfirmed.total()} failures not repeated, {len(found)} findings, "
        f"{excused.total()} excused by {len(excused)} known deviations"
    )
    left_out = [run.reason for run in kept.runs if run.outcome == "left_out"]
    print_counts("left out {count} times", left_out)
    print_counts("not repeated {count} times", unconfirmed.elements())
    for text in found.values():
        say(f"\n{text}")
    data = {
        "seed": seed,
        "rows": as_json(rows),
        "off": off,
        "findings": sorted(found),
        "excused": dict(excused),
        "left_out": dict(Counter(left_out)),
        "unconfirmed": dict(unconfirmed),
    }
    write_json(json_file, data)
    write_text(csv_file, csv_of(rows))
    if failure:
        raise fail(failure)
    if code:
        raise interrupted(code, FOUND_IS_KEPT)


def _text(findings: Path, name: str) -> str:
    """What a person reads of a finding."""
    path = findings / name / "finding.json"
    return text_of(read_json(path, Deviation)) if path.exists() else name


def _numbers(worlds: str) -> list[int] | None:
    """The numbers of ranks that are asked for; None: all. Raises typer.BadParameter."""
    try:
        return None if worlds == "all" else sorted({int(world) for world in worlds.split(",")})
    except ValueError as error:
        raise typer.BadParameter(f"--worlds {worlds!r} is not a list of numbers") from error


def _opened(path: Path | None, seed: int | None, blocks: int) -> Record[Run]:
    """A file of runs to go on with, whose seed is taken where none is given. Raises OSError and RecordError."""
    return Record.opened(path, {"seed": seed_of(seed, path), "blocks": blocks}, Run)


def _jobs(
    here: dict[Strategy, tuple[int, ...]], runs: int | None, cases: int | None, chosen: tuple[str, ...]
) -> Iterator[Job]:
    """One run after the other on all strategies: with `runs` on each number of ranks and in each chosen dtype that it
    takes, else on one number of ranks, which takes turns, in the dtype that is drawn, or in the chosen ones in turn."""
    for number in range(runs) if runs else range(cases) if cases else itertools.count():
        for strategy, worlds in here.items():
            for world in worlds if runs else [worlds[number % len(worlds)]]:
                turn = [chosen[number % len(chosen)]] if chosen else [None]
                for dtype in [dtype for dtype in strategy.dtypes if dtype in chosen] if runs else turn:
                    yield number, strategy.name, world, dtype


def _usable(
    chosen: list[Strategy], numbers: list[int] | None
) -> tuple[dict[Strategy, tuple[int, ...]], dict[str, str]]:
    """Available strategies with the numbers of ranks that they take, and those that are off with the reason."""
    on: dict[Strategy, tuple[int, ...]] = {}
    off: dict[str, str] = {}
    for strategy in chosen:
        why = available(strategy)
        taken = tuple(world for world in strategy.worlds if numbers is None or world in numbers)
        if why or not taken:
            off[strategy.name] = why or "not on so many ranks"
            say_off(strategy.name, off[strategy.name])
        else:
            on[strategy] = taken
    if not on:
        raise fail("no strategy that matches is available here")
    return on, off


COMMANDS = (
    strategies,
    train,
)
