"""The command on quantisers: quantise."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.live import Live
from rich.table import Table

from harness.backends import probe
from harness.commands.shared.engine import Address, Engine, Gpus, Resource, alone_by, cluster_of
from harness.commands.shared.record import seed_of
from harness.commands.shared.recorded import recorded
from harness.commands.shared.recorded_jobs import shared_out
from harness.commands.shared.terminal import (
    FOUND_IS_KEPT,
    Json,
    Known,
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
    write_json,
)
from harness.findings.known.entry import FOLDER, KnownFileError
from harness.findings.known.issues import load
from harness.findings.store import Store
from harness.quantisers import QUANTISERS, Quantiser
from harness.search.quantisation import Options, Tally, do_share, total


def quantise(
    path_globs: Annotated[str, typer.Option("--paths", metavar="GLOB", help="Globs of ways of quantising.")] = "*",
    cases: Annotated[
        int | None, typer.Option(min=1, help="Stop after so many cases, each on one path in turn.")
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="How long: 90s, 5m, 1h. 5m where --cases does not say how much.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The same seed draws the same cases.")] = None,
    max_nodes: Annotated[int, typer.Option(min=1, help="Most nodes of a drawn graph.")] = 8,
    findings: Annotated[Path, typer.Option(help="Where findings go.")] = Path("findings"),
    known_issues: Known = FOLDER,
    timeout: Annotated[float, typer.Option(min=1, callback=finite, help="Seconds that one case may take.")] = 60.0,
    reduction: Annotated[float, typer.Option(min=0, help="Seconds that one finding may take to minimise.")] = 30.0,
    jobs: Annotated[int, typer.Option(min=1, help="Processes, or tasks of Ray, that share the cases.")] = 1,
    engine: Engine = "processes",
    address: Address = "",
    gpus: Gpus = 0.0,
    resource: Resource = "",
    json_file: Json = None,
) -> None:
    """Quantise drawn graphs by each framework's own tools, and recompute what the quantised models say."""
    paths, off = usable(named(path_globs, QUANTISERS, "way of quantising"))
    try:
        duration = seconds_of(budget) if budget else math.inf if cases else seconds_of("5m")
        issues = load(known_issues)
        findings.mkdir(parents=True, exist_ok=True)
        Store(findings).check()
        cluster = cluster_of(engine, address, gpus, resource, findings)
    except (typer.BadParameter, KnownFileError) as error:
        raise fail(str(error)) from error
    except OSError as error:
        raise fail(f"cannot use {findings} for findings: {error.strerror}") from error
    seed = seed_of(seed)
    record = recorded(findings, seed)
    if cluster:
        cluster = replace(cluster, alone=alone_by(record.url, findings))
    say(f"quantising in {len(paths)} ways, seed {seed}")
    options = Options(tuple(paths), seed, max_nodes, findings, issues, cases, duration, timeout, reduction, record)
    tally, started = Tally(), time.monotonic()
    with Live(console=console, transient=True, refresh_per_second=2) as live:

        def show(latest: Mapping[int, Tally]) -> None:
            nonlocal tally
            tally = total(latest)
            live.update(table_of(tally))

        code, failure = shared_out(partial(do_share, options), jobs, cluster, show, findings)
    record.known(tally.excused)
    record.timings(tally.seconds)
    report(tally, time.monotonic() - started)
    print_counts("unconfirmed {count} times", tally.unconfirmed.elements())
    data = {
        "seed": seed,
        "versions": probe.versions(paths),
        "paths": {name: row.to_json() for name, row in tally.rows.items()},
        "off": off,
        "known_issues": dict(tally.excused),
        "unconfirmed": dict(tally.unconfirmed),
        "findings": sorted(tally.findings),
    }
    write_json(json_file, data)
    idle = [
        name
        for name, row in tally.rows.items()
        if row.agreed + row.wrong and not row.tensors["judged"] and not row.wrong
    ]
    if failure or idle:
        raise fail(failure or f"nothing was judged on {', '.join(idle)}")
    if code:
        raise interrupted(code, FOUND_IS_KEPT)


def usable(names: tuple[str, ...]) -> tuple[list[Quantiser], dict[str, str]]:
    """Ways of quantising that are available here, and those that are off with the reason."""
    on, off = [], {}
    for name in names:
        status = probe.probe(QUANTISERS[name])
        if status.available:
            on.append(QUANTISERS[name])
        else:
            off[name] = status.reason or "unavailable"
            say_off(name, off[name])
    if not on:
        raise fail("no way of quantising that matches is available here")
    return on, off


def table_of(tally: Tally) -> Table:
    """One line a path."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("path", no_wrap=True)
    headings = ("cases", "agree", "known", "wrong", "refused", "tensors", "exact", "at ties", "real", "numbers",
                "skipped", "SQNR dB", "top-1")  # fmt: skip
    for heading in headings:
        style = "red" if heading == "wrong" else "dim" if heading in ("refused", "skipped") else None
        table.add_column(heading, justify="right", style=style, no_wrap=True)
    for name, row in tally.rows.items():
        figures = (row.cases, row.agreed, row.excused, row.wrong, row.refused.total())
        counted = tuple(row.tensors[key] for key in ("judged", "exact", "near", "real", "checked"))
        ratio, top = row.typical("sqnr_db"), row.typical("top1")
        table.add_row(
            name, *(str(n or "·") for n in (*figures, *counted, row.skipped.total())),
            "·" if ratio is None else f"{ratio:.1f}", "·" if top is None else f"{100 * top:.0f} %",
        )  # fmt: skip
    return table


def report(tally: Tally, seconds: float) -> None:
    """The table, then what was refused and not judged, and the findings."""
    print_wide(table_of(tally))
    rows = tally.rows.values()
    skipped = sum((row.skipped for row in rows), Counter())
    total = sum(row.tensors["judged"] for row in rows)
    say(
        f"{tally.cases} cases in {seconds:.0f} s, {total} tensors judged, {skipped.total()} not; "
        f"{len(tally.findings)} findings, {tally.excused.total()} excused by {len(tally.excused)} known issues"
    )
    print_counts("not judged {count} times", skipped.elements())
    print_counts("refused {count} times", sum((row.refused for row in rows), Counter()).elements())
    for finding in tally.findings.values():
        say(f"{finding.fingerprint}  {finding.target}  {finding.path}")
        say(f"  {finding.message.splitlines()[0] if finding.message else ''}")


COMMANDS = (quantise,)
