"""The commands on training under distribution strategies: strategies, train."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.live import Live
from rich.table import Table

from generators.training import seeded_training
from harness.pool import HarnessError
from harness.ranks import RankLimits, RankPools
from harness.reduce import Budget
from harness.strategies import STRATEGIES, Strategy
from harness.strategies.known import KnownDeviationError, load
from harness.terminal import Json, console, fail, named, seconds_of, write_json
from harness.training_findings import investigate, text_of
from harness.trainings import Gym, Judgement, available, suited

Globs = Annotated[str, typer.Option("--strategies", metavar="GLOB", help="Comma-separated globs of strategies.")]
STATUSES = ("agree", "undetermined", "unsupported", "wrong")


def strategies(json_file: Json = None) -> None:
    """List all distribution strategies: on, or off with the reason."""
    table = Table("strategy", "framework", "ranks", "status")
    rows = []
    for strategy in STRATEGIES.values():
        why = available(strategy)
        state = f"[yellow]off: {why}[/]" if why else "[green]on[/]"
        table.add_row(strategy.name, strategy.framework, " ".join(map(str, strategy.worlds)), state)
        row = {"name": strategy.name, "framework": strategy.framework, "world_sizes": list(strategy.worlds)}
        rows.append({**row, "available": why is None, "reason": why})
    console.print(table)
    write_json(json_file, rows)


@dataclass
class Row:
    """What has come of one strategy on one number of ranks in one dtype. largest: the greatest part of what was allowed
    that a run was off by; cpu: processor seconds of all its runs."""

    statuses: Counter[str] = field(default_factory=Counter)
    largest: float = 0.0
    cpu: float = 0.0

    def add(self, judgement: Judgement) -> None:
        """Count one run."""
        status = judgement.status if judgement.status in STATUSES else "wrong"
        self.statuses[status] += 1
        if judgement.largest == judgement.largest:
            self.largest = max(self.largest, judgement.largest)
        self.cpu += judgement.cpu

    @property
    def runs(self) -> int:
        """Those that ran."""
        return self.statuses.total() - self.statuses["unsupported"]


Rows = dict[tuple[str, int, str], Row]


def train(
    strategy_globs: Globs = "*",
    budget: Annotated[str, typer.Option(help="How long: 90s, 5m, 1h.")] = "5m",
    seed: Annotated[int | None, typer.Option(help="The same seed draws the same runs.")] = None,
    cases: Annotated[int | None, typer.Option(min=1, help="Stop after so many training runs.")] = None,
    worlds: Annotated[str, typer.Option(help="Numbers of ranks, where a strategy takes them.")] = "2,3,4",
    blocks: Annotated[int, typer.Option(min=0, help="Most blocks of layers of a drawn network.")] = 4,
    findings: Annotated[Path, typer.Option(help="Where findings go.")] = Path("findings"),
    timeout: Annotated[float, typer.Option(min=1, help="Seconds that one run may take.")] = 60.0,
    json_file: Json = None,
) -> None:
    """Draw training runs, spread them over ranks by every strategy, and judge them against one device."""
    chosen = [STRATEGIES[name] for name in named(strategy_globs, STRATEGIES, "strategy")]
    try:
        duration, numbers = seconds_of(budget), sorted({int(world) for world in worlds.split(",")})
        known = load()
        findings.mkdir(parents=True, exist_ok=True)
    except (typer.BadParameter, KnownDeviationError) as error:
        raise fail(str(error)) from error
    except ValueError as error:
        raise fail(f"--worlds {worlds!r} is not a list of numbers") from error
    except OSError as error:
        raise fail(f"cannot use {findings} for findings: {error.strerror}") from error
    here = _usable(chosen, numbers)
    seed = random.SystemRandom().randrange(2**31) if seed is None else seed
    console.print(f"training under {len(here)} strategies for {budget}, seed {seed}", highlight=False)
    rows: Rows = {}
    found: dict[str, str] = {}
    excused: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    started, number = time.monotonic(), 0
    interrupted = False
    with RankPools(RankLimits(seconds=timeout)) as pools, Live(console=console, transient=True) as live:
        gym = Gym(pools, known)
        try:
            while time.monotonic() - started < duration and (cases is None or number < cases):
                training = seeded_training(seed, number, blocks)
                for strategy, here_worlds in here.items():
                    world = here_worlds[number % len(here_worlds)]
                    run = suited(training, strategy, world)
                    judgement = gym.examine(run, strategy, world)
                    rows.setdefault((strategy.name, world, training.settings.dtype), Row()).add(judgement)
                    excused.update(judgement.excused)
                    left_out.update([judgement.reason] if judgement.reason else [])
                    if judgement.discrepancy:
                        kept = investigate(gym, findings, run, strategy, world, judgement, Budget())
                        found.setdefault(kept.fingerprint, text_of(kept))
                    live.update(table_of(rows))
                number += 1
        except KeyboardInterrupt:
            interrupted = True
        except HarnessError as error:
            raise fail(str(error)) from error
    console.print(table_of(rows))
    console.print(
        f"{number} runs drawn, {sum(row.runs for row in rows.values())} judged in {time.monotonic() - started:.0f} s, "
        f"{pools.started} groups of ranks started, {len(found)} findings, {excused.total()} excused by {len(excused)} "
        "known deviations",
        highlight=False,
    )
    for reason, count in left_out.most_common():
        console.print(f"left out {count} times: {reason}", style="dim", markup=False, highlight=False)
    for text in found.values():
        console.print(f"\n{text}", markup=False, highlight=False, soft_wrap=True)
    data = {
        "seed": seed,
        "rows": as_json(rows),
        "findings": sorted(found),
        "excused": dict(excused),
        "left_out": dict(left_out),
    }
    write_json(json_file, data)
    if interrupted:
        console.print("interrupted; everything found so far is kept", style="yellow")
        raise typer.Exit(130)


def _usable(chosen: list[Strategy], numbers: list[int]) -> dict[Strategy, tuple[int, ...]]:
    """Available strategies with the numbers of ranks that they take; those that are off are named with the reason."""
    on: dict[Strategy, tuple[int, ...]] = {}
    for strategy in chosen:
        why = available(strategy)
        taken = tuple(world for world in strategy.worlds if world in numbers)
        if why or not taken:
            console.print(f"off: {strategy.name} ({why or 'not on so many ranks'})", style="yellow", markup=False)
        else:
            on[strategy] = taken
    if not on:
        raise fail("no strategy that matches is available here")
    return on


def table_of(rows: Rows) -> Table:
    """One line a strategy, number of ranks and dtype: how its runs ended, the greatest error as a part of what was
    allowed, processor seconds a run."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=0)
    table.add_column("strategy", no_wrap=True)
    for heading in ("ranks", "dtype", "agree", "undet.", "unsup.", "wrong", "error", "CPU s"):
        table.add_column(heading, justify="right", no_wrap=True)
    for (name, world, dtype), row in sorted(rows.items()):
        counts = [str(row.statuses[status] or "·") for status in STATUSES]
        cpu = f"{row.cpu / row.runs:.2f}" if row.runs else "-"
        style = "red" if row.statuses["wrong"] else None
        table.add_row(name, str(world), dtype, *counts, f"{row.largest:.2g}", cpu, style=style)
    return table


def as_json(rows: Rows) -> list[dict]:
    """The same as data."""
    return [
        {
            "strategy": name, "world_size": world, "dtype": dtype,
            **{status: row.statuses[status] for status in STATUSES},
            "largest_of_allowed": row.largest, "cpu_seconds_a_run": row.cpu / row.runs if row.runs else None,
        }
        for (name, world, dtype), row in sorted(rows.items())
    ]  # fmt: skip
