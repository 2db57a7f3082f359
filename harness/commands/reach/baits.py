"""The command `baits`: which rules of the optimisers fire over the baits."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Column, Table

from generators.baits import BAITS
from generators.baits.cases import places
from harness.commands.shared.bar import Bar
from harness.commands.shared.terminal import Json, console, fail, named, print_wide, say, write_json
from harness.execute.isolation.signals import status_of
from harness.execute.pool import HarnessError, Limits, Pool
from harness.studies.surface.baits.measure import OPTIMISERS, Fired, measure

SHOWN = 5
"""Reasons that are shown."""


def baits(
    optimiser_globs: Annotated[str, typer.Option("--optimisers", metavar="GLOB", help="Globs of optimisers.")] = "*",
    bait_globs: Annotated[str, typer.Option("--baits", metavar="GLOB", help="Globs of baits.")] = "*",
    most: Annotated[
        int | None, typer.Option("--places", min=1, help="Of each bait, at most so many are tried.")
    ] = None,
    every: Annotated[bool, typer.Option("--rules", help="List every rule, with the baits in which it fires.")] = False,
    json_file: Json = None,
) -> None:
    """Compile all baits and let the optimisers say which of their rules fire."""
    chosen = [OPTIMISERS[name] for name in named(optimiser_globs, OPTIMISERS, "optimiser")]
    names = named(bait_globs, BAITS, "bait")
    found: list[Fired] = []
    try:
        with Pool(Limits(seconds=600), tolerant=True) as pool, Bar(console=console) as progress:
            task = progress.add_task("")

            def show(what: str, done: int, of: int) -> None:
                progress.update(task, description=what, completed=done, total=of)

            found += [measure(pool, one, most or one.places, show, names) for one in chosen]
    except KeyboardInterrupt as stop:
        raise typer.Exit(status_of(stop)) from stop
    except HarnessError as error:
        raise fail(str(error)) from error
    table = Table(
        "optimiser", *(Column(name, justify="right") for name in ("programs", "rules", "fired", "out of reach"))
    )
    for one in found:
        fired, of = len(one.reachable) - len(one.never), len(one.reachable)
        share = f"{fired} {fired / of:.0%}" if of else "-"
        table.add_row(one.optimiser.name, str(one.programs), str(of), share, str(len(one.rules) - of))
    print_wide(table)
    for one in found:
        _say(one, every)
    total = sum(len(places(name)) for name in names)
    say(f"{len(names)} baits with {total} places", style="dim")
    write_json(json_file, [_plain(one) for one in found])


def _say(one: Fired, every: bool) -> None:
    lines = [f"{one.optimiser.name} never: {', '.join(one.never) or 'none'}"]
    if every:
        for rule in sorted(one.by):
            most = ", ".join(name for name, _ in one.by[rule].most_common(3))
            lines.append(f"{one.optimiser.name}/{rule}: {one.by[rule].total()} times ({most})")
        lines += [f"{one.optimiser.name}/{rule}: out of reach, {why}" for rule, why in one.optimiser.out.items()]
    lines += [f"  {count} not compiled: {why}" for why, count in one.failed.most_common(SHOWN)]
    for line in lines:
        say(line)


def _plain(one: Fired) -> dict:
    return {
        "optimiser": one.optimiser.name,
        "programs": one.programs,
        "refused": one.refused,
        "fired": {rule: dict(counts) for rule, counts in sorted(one.by.items())},
        "never": one.never,
        "out_of_reach": one.optimiser.out,
        "not_compiled": dict(one.failed),
    }


COMMANDS = (baits,)
