"""The command `surface`: what the frameworks' own registries have, and which of it sweeps reach."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column, Table

from harness.commands.shared.bar import Bar
from harness.commands.shared.terminal import Json, console, fail, named, print_wide, say, write_json, write_text
from harness.execute.isolation.signals import status_of
from harness.execute.pool import HarnessError, Limits, Pool
from harness.search import coverage as covered
from harness.studies.surface import scope
from harness.studies.surface.cell import ASPECTS
from harness.studies.surface.registries import REGISTRIES
from harness.studies.surface.table import Row, Share, Surface, joined, missing
from harness.studies.surface.trace import Calls, Missing, calls, listed

SWEEP_CASES = 100
SHOWN = 5
"""Names of operators, and reasons, that a line shows."""


def surface(
    findings: Annotated[Path, typer.Option(help="Where what was traced is kept, beside what hunts covered.")] = Path(
        "findings"
    ),
    registry_globs: Annotated[str, typer.Option("--registries", metavar="GLOB", help="Globs of registries.")] = "*",
    sweep_cases: Annotated[int, typer.Option(min=2, help="Of each operator's sweep, about so many are traced.")] = (
        SWEEP_CASES
    ),
    list_missing: Annotated[bool, typer.Option("--missing", help="List what nothing reaches.")] = False,
    list_out: Annotated[bool, typer.Option("--out", help="List what is out of scope, by reason.")] = False,
    csv_file: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Every cell as a line.")] = None,
    json_file: Json = None,
) -> None:
    """Operators, attributes, dtypes and kinds of operands that the frameworks list, and what of it sweeps reach."""
    chosen = [REGISTRIES[name] for name in named(registry_globs, REGISTRIES, "registry")]
    rules = scope.load()
    surfaces: list[Surface] = []
    try:
        counted = covered.load(findings)
        with Pool(Limits(seconds=600), tolerant=True) as pool, Bar(console=console) as progress:
            task = progress.add_task("")

            def show(name: str, done: int, every: int) -> None:
                progress.update(task, description=name, completed=done, total=every)

            for registry in chosen:
                try:
                    found = listed(pool, registry, findings)
                    traced = calls(pool, registry.tracer, findings, sweep_cases, show)
                except Missing as error:
                    surfaces.append(Surface(registry, off=str(error)))
                else:
                    surfaces.append(joined(registry, found, traced, rules, counted))
    except KeyboardInterrupt as stop:
        raise typer.Exit(status_of(stop)) from stop  # what was traced is kept
    except HarnessError as error:
        raise fail(str(error)) from error
    except OSError as error:
        raise fail(f"cannot use {findings}: {error.strerror}") from error
    _print(surfaces, sweep_cases)
    if counted:
        say(f"`ran` counts what the store of {findings} has")
    lacking = missing(surfaces)
    if list_missing:
        _print_missing(lacking)
    if list_out:
        _print_out(surfaces)
    write_text(csv_file, _csv(surfaces))
    write_json(json_file, [_plain(one, lacking) for one in surfaces])


def _print(surfaces: Sequence[Surface], sweep_cases: int) -> None:
    right = (*(Column(aspect, justify="right") for aspect in (*ASPECTS, "all", "out of scope")),)
    table = Table("registry", *right)
    for one in surfaces:
        if not one.off:
            shares = one.shares()
            table.add_row(one.registry.name, *map(_cell, shares.values()), str(shares["all"].out))
    print_wide(table)
    for one in surfaces:
        if one.off:
            say(f"off: {one.off}", style="yellow")
    tracers: dict[str, Calls] = {one.registry.tracer.name: one.calls for one in surfaces if not one.off}
    for name, traced in tracers.items():
        failed = f", {sum(traced.failed.values())} of them not to the end" if traced.failed else ""
        say(f"{name}: {traced.programs} programs of sweeps of {sweep_cases} cases traced{failed}", style="dim")
        for why, count in Counter(traced.failed).most_common(SHOWN):
            say(f"  {count}: {why}", style="dim")


def _cell(share: Share) -> str:
    return f"{share.reached}/{share.cells} {share.share:.0%}" if share.cells else "-"


def _print_missing(rows: Sequence[Row]) -> None:
    for row in rows:
        say(f"{row.cell.registry}: {row.cell}")
    say(f"{len(rows)} cells that nothing reaches, operators before features of reached ones")


def _print_out(surfaces: Sequence[Surface]) -> None:
    reasons: dict[str, set[str]] = {}
    for one in surfaces:
        for row in one.rows:
            if row.out and row.cell.aspect == "operator":
                reasons.setdefault(f"{one.registry.name}: {row.out}", set()).add(row.cell.operator)
    for why, operators in reasons.items():
        few = ", ".join(sorted(operators)[:SHOWN])
        more = ", …" if len(operators) > SHOWN else ""
        say(f"{why} ({len(operators)}: {few}{more})")


def _csv(surfaces: Sequence[Surface]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["registry", "operator", "aspect", "features", "reached_by", "edges", "ran", "out_of_scope"])
    for one in surfaces:
        edges = " ".join(one.registry.edges)
        for row in one.rows:
            cell = row.cell
            by = " ".join(row.reached)
            reached_edges = edges if by else ""
            features = "; ".join(cell.features)
            writer.writerow([cell.registry, cell.operator, cell.aspect, features, by, reached_edges, row.ran, row.out])
    return text.getvalue()


def _plain(one: Surface, lacking: Sequence[Row]) -> dict:
    shares = {} if one.off else one.shares()
    return {
        "registry": one.registry.name,
        "off": one.off or None,
        "aspects": {
            name: {"cells": share.cells, "reached": share.reached, "out_of_scope": share.out}
            for name, share in shares.items()
        },
        "edges": list(one.registry.edges),
        "programs": one.calls.programs,
        "not_traced": dict(one.calls.failed),
        "missing": [str(row.cell) for row in lacking if row.cell.registry == one.registry.name],
    }


COMMANDS = (surface,)
