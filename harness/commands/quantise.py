"""The command on quantisers: quantise."""

from __future__ import annotations

import math
import time
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.live import Live
from rich.table import Table

from harness.backends import probe
from harness.commands.shared.record import seed_of
from harness.commands.shared.recorded import recorded
from harness.commands.shared.terminal import (
    Json,
    Known,
    console,
    fail,
    finite,
    named,
    print_counts,
    print_wide,
    seconds_of,
    unwritten,
    write_json,
)
from harness.execute.isolation.signals import status_of
from harness.execute.pool import HarnessError, Limits, Pool
from harness.findings.known.entry import FOLDER, KnownFileError
from harness.findings.known.issues import load
from harness.findings.store import Store
from harness.quantisers import QUANTISERS, Quantiser
from harness.questions.quantisers import QUANTISATION
from harness.search.campaign import Campaign
from harness.search.laboratory import Laboratory
from harness.search.quantisation import Tally, examine
from harness.search.reduce import within


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
    json_file: Json = None,
) -> None:
    """Quantise drawn graphs by each framework's own tools, and recompute what the quantised models say."""
    paths, off = usable(named(path_globs, QUANTISERS, "way of quantising"))
    try:
        duration = seconds_of(budget) if budget else math.inf if cases else seconds_of("5m")
        issues = load(known_issues)
        findings.mkdir(parents=True, exist_ok=True)
        Store(findings).check()
    except (typer.BadParameter, KnownFileError) as error:
        raise fail(str(error)) from error
    except OSError as error:
        raise fail(f"cannot use {findings} for findings: {error.strerror}") from error
    seed = seed_of(seed)
    record = recorded(findings, seed)
    console.print(f"quantising in {len(paths)} ways, seed {seed}", highlight=False)
    tally, failure, code = Tally(), None, 0
    started = time.monotonic()
    deadline = started + duration
    with (
        Pool(Limits(seconds=timeout), until=deadline) as pool,
        Live(console=console, transient=True, refresh_per_second=2) as live,
    ):
        store = Store(findings, timeout, record)
        campaign = Campaign(
            Laboratory(pool, QUANTISATION), paths, store, issues, reduction=lambda: within(deadline, reduction)
        )
        try:
            for latest in examine(campaign, paths, seed, cases, max_nodes):
                tally = latest
                live.update(table_of(tally))
                if time.monotonic() >= deadline:
                    break
        except KeyboardInterrupt as stop:
            code = status_of(stop)
        except HarnessError as error:
            failure = str(error)
        except OSError as error:
            failure = unwritten(error, findings)
        record.known(campaign.excused)
        record.timings(campaign.lab.seconds)
        excused, unconfirmed = dict(campaign.excused), pool.unconfirmed + campaign.unconfirmed
    report(tally, excused, time.monotonic() - started)
    print_counts("unconfirmed {count} times", unconfirmed.elements())
    data = {
        "seed": seed,
        "versions": probe.versions(paths),
        "paths": {name: row.to_json() for name, row in tally.rows.items()},
        "off": off,
        "known_issues": excused,
        "unconfirmed": dict(unconfirmed),
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
        console.print("interrupted; everything found so far is kept", style="yellow")
        raise typer.Exit(code)


def usable(names: tuple[str, ...]) -> tuple[list[Quantiser], dict[str, str]]:
    """Ways of quantising that are available here, and those that are off with the reason."""
    on, off = [], {}
    for name in names:
        status = probe.probe(QUANTISERS[name])
        if status.available:
            on.append(QUANTISERS[name])
        else:
            off[name] = status.reason or "unavailable"
            console.print(f"off: {name} ({off[name]})", style="yellow", markup=False)
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


def report(tally: Tally, excused: dict[str, int], seconds: float) -> None:
    """The table, then what was refused and not judged, and the findings."""
    print_wide(table_of(tally))
    rows = tally.rows.values()
    skipped = sum((row.skipped for row in rows), Counter())
    total = sum(row.tensors["judged"] for row in rows)
    console.print(
        f"{sum(row.cases for row in rows)} cases in {seconds:.0f} s, {total} tensors judged, {skipped.total()} not; "
        f"{len(tally.findings)} findings, {sum(excused.values())} excused by {len(excused)} known issues",
        highlight=False,
    )
    print_counts("not judged {count} times", skipped.elements())
    print_counts("refused {count} times", sum((row.refused for row in rows), Counter()).elements())
    for finding in tally.findings.values():
        console.print(f"{finding.fingerprint}  {finding.target}  {finding.path}", markup=False, highlight=False,
                      soft_wrap=True)  # fmt: skip
        console.print(f"  {finding.message.splitlines()[0] if finding.message else ''}", markup=False, highlight=False,
                      soft_wrap=True)  # fmt: skip


COMMANDS = (quantise,)
