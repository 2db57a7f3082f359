"""The command `conversions`: the edges between formats of model files, and drawn graphs by way of each."""

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

from harness.commands.shared.engine import Address, Engine, Gpus, Resource
from harness.commands.shared.record import Record, RecordError, seed_of
from harness.commands.shared.recorded import recorded
from harness.commands.shared.recorded_jobs import cluster_with, here_or_together
from harness.commands.shared.terminal import (
    FOUND_IS_KEPT,
    Json,
    Known,
    fail,
    finite,
    interrupted,
    named,
    print_counts,
    print_wide,
    say,
    say_off,
    seconds_of,
    write_json,
    write_text,
)
from harness.conversions.edges import EDGES, Edge
from harness.conversions.route import availability
from harness.findings.known.entry import FOLDER, KnownFileError
from harness.findings.known.issues import load
from harness.findings.store import Store
from harness.search.conversions import (
    ConversionResult,
    Options,
    as_json,
    csv_of,
    drawn_routes,
    examine_all,
    not_done,
    rows_of,
    shortest_routes,
    table_of,
)


def conversions(
    cases: Annotated[
        int | None, typer.Option(min=1, help="Draw so many graphs for each edge; without it the edges are listed.")
    ] = None,
    chosen: Annotated[
        str | None, typer.Option("--numbers", metavar="N,N", help="Draw the graphs of these numbers alone.")
    ] = None,
    edge_globs: Annotated[str, typer.Option("--edges", metavar="GLOB", help="Globs of edges.")] = "*",
    drawn: Annotated[
        bool, typer.Option("--paths", help="Draw a path of one to three edges for each graph instead.")
    ] = False,
    seed: Annotated[int | None, typer.Option(help="The same seed draws the same graphs and paths.")] = None,
    max_nodes: Annotated[int, typer.Option(min=1, help="Most nodes of a drawn graph.")] = 4,
    budget: Annotated[str | None, typer.Option(help="Stop after so long: 90s, 9m, 1h.")] = None,
    findings: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Minimise and keep there what is wrong; else it is counted.")
    ] = None,
    reduction: Annotated[float, typer.Option(min=0, help="Seconds that one finding may take to minimise.")] = 30.0,
    confirmations: Annotated[int, typer.Option(min=0, help="Runs of each finding in fresh processes.")] = 1,
    known_issues: Known = FOLDER,
    timeout: Annotated[float, typer.Option(min=1, callback=finite, help="Seconds that one program may take.")] = 60.0,
    record: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep each graph's line there, and go on with what is there.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes, or tasks of Ray, that share the conversions.")] = 1,
    engine: Engine = "processes",
    address: Address = "",
    gpus: Gpus = 0.0,
    resource: Resource = "",
    csv_file: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write all lines as CSV.")] = None,
    json_file: Json = None,
) -> None:
    """List the conversions between formats of model files; with --cases or --numbers, drawn graphs by way of each."""
    edges = [EDGES[name] for name in named(edge_globs, EDGES, "edge")]
    if cases is None and chosen is None:
        _list(edges, json_file)
        return
    numbers = _numbers(cases, chosen)
    here = [edge for edge in edges if _usable(edge)]
    if not here:
        raise fail(f"no edge that matches {edge_globs!r} is available here")
    try:
        duration = seconds_of(budget) if budget else math.inf
        issues = load(known_issues)
        if findings:
            findings.mkdir(parents=True, exist_ok=True)
            Store(findings).check()
        cluster = cluster_with(record, jobs, engine, address, gpus, resource)
        kept = _opened(record, seed, max_nodes, drawn)
    except (typer.BadParameter, KnownFileError, RecordError) as error:
        raise fail(str(error)) from error
    except OSError as error:
        raise fail(f"cannot use {error.filename}: {error.strerror}") from error
    seed = kept.head["seed"]
    run = recorded(findings, seed)
    kept.told = lambda one: run.case("conversion", {one.outcome: 1}, one.cpu, number=one.number, subject=one.route)
    plan = drawn_routes(here, numbers, seed) if drawn else list(shortest_routes(here, numbers))
    done = {(one.route, one.number) for one in kept.runs}
    left = [(route.name, number) for _, route, number in plan if (route.name, number) not in done]
    say(f"{len(plan)} conversions over {len(here)} edges, seed {seed}; {len(plan) - len(left)} done")
    until, kept_in = time.monotonic() + duration, findings or Path("findings")
    options = Options(
        seed, max_nodes, bool(findings), kept_in, issues, until, timeout, reduction, confirmations, drawn, run
    )
    kept, code, failure = here_or_together(
        kept, ConversionResult, left, "conversions", jobs, partial(examine_all, options), not_done, cluster
    )
    rows = rows_of(kept.runs)
    print_wide(table_of(rows))
    known = Counter(name for one in kept.runs for name in one.known.split())
    excused = ", ".join(f"{name} ({count})" for name, count in known.most_common())
    say(f"known issues: {excused or 'none'}")
    print_counts("unconfirmed {count} times", (one.unconfirmed for one in kept.runs if one.unconfirmed))
    _tell(kept.runs, findings)
    write_json(json_file, {"seed": seed, "max_nodes": max_nodes, "edges": as_json(rows)})
    write_text(csv_file, csv_of(kept.runs))
    if failure:
        raise fail(failure)
    if code:
        raise interrupted(code, FOUND_IS_KEPT)


def _list(edges: list[Edge], json_file: Path | None) -> None:
    """What there is, on with its version or off with the reason."""
    table, rows = Table("edge", "from", "to", "tool", "version", "status"), []
    for edge in edges:
        version, reason = availability(edge)
        row = {
            "name": edge.name,
            "source": edge.source,
            "target": edge.target,
            "tool": edge.tool.split("|")[0],
            "version": version,
            "environment": edge.environment or ".",
            "available": reason is None,
            "reason": reason,
        }
        rows.append(row)
        state = f"[yellow]off: {reason}[/]" if reason else "[green]on[/]"
        table.add_row(edge.name, edge.source, edge.target, row["tool"], version or "-", state)
    print_wide(table)
    write_json(json_file, rows)


def _numbers(cases: int | None, chosen: str | None) -> Sequence[int]:
    """Those of the graphs to draw: the first so many, or the chosen ones."""
    if chosen is None:
        return range(cases or 0)
    if cases is not None:
        raise fail("--cases draws the first graphs of a seed, --numbers those that it names: give one of them")
    parts = [part.strip() for part in chosen.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise fail(f"--numbers takes numbers of graphs, such as 3,14, not {chosen!r}")
    return sorted(set(map(int, parts)))


def _usable(edge: Edge) -> bool:
    _, reason = availability(edge)
    if reason:
        say_off(edge.name, reason)
    return reason is None


def _opened(path: Path | None, seed: int | None, max_nodes: int, drawn: bool) -> Record[ConversionResult]:
    """A file to go on with, whose seed is taken where none is given. Raises OSError and RecordError."""
    return Record.opened(
        path, {"seed": seed_of(seed, path), "max_nodes": max_nodes, "paths": int(drawn)}, ConversionResult
    )


def _tell(results: list[ConversionResult], findings: Path | None) -> None:
    """What is wrong, one line each, with its reproducer."""
    for one in results:
        if one.outcome in ("wrong", "error", "runner"):
            at = f"  {findings / one.finding / 'reproducer.py'}" if findings and one.finding else ""
            told = f"{one.outcome}  {one.route} #{one.number}  {one.operators}: {one.why[:160]}{at}"
            say(told)


COMMANDS = (conversions,)
