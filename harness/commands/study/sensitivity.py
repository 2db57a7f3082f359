"""The command `study sensitivity`: what share of small faults each oracle catches."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from harness.commands.shared.engine import Address, Engine, Gpus, Resource
from harness.commands.shared.record import Record, RecordError
from harness.commands.shared.recorded import recorded
from harness.commands.shared.recorded_jobs import cluster_with, here_or_together
from harness.commands.shared.terminal import (
    FOUND_IS_KEPT,
    Json,
    fail,
    interrupted,
    named,
    print_wide,
    write_json,
    write_text,
)
from harness.execute.processes.worker import versions_of
from harness.studies.faults.mutation import OF_RANKS, ORACLES, Mutant, each_case, undone
from harness.studies.faults.sensitivity import as_json, csv_of, page, tables_of


def sensitivity(
    cases: Annotated[int, typer.Option(min=1, help="Drawn graphs for each oracle of graphs.")] = 300,
    runs: Annotated[int, typer.Option(min=0, help="Drawn training runs for each oracle of ranks.")] = 20,
    oracle_globs: Annotated[str, typer.Option("--oracles", metavar="GLOB", help=f"Of {', '.join(ORACLES)}.")] = "*",
    seed: Annotated[int, typer.Option(min=0, help="The same seed draws the same faults.")] = 0,
    record: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep each fault's line there, and go on with what is there.")
    ] = None,
    csv_file: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write all faults as CSV.")] = None,
    html_file: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a page.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes that share the cases; with --record.")] = 1,
    engine: Engine = "processes",
    address: Address = "",
    gpus: Gpus = 0.0,
    resource: Resource = "",
    json_file: Json = None,
) -> None:
    """Faults of relative size 1e-7 to 1 in one target: what share of them does each oracle catch?"""
    chosen = named(oracle_globs, ORACLES, "oracle")
    try:
        cluster = cluster_with(record, jobs, engine, address, gpus, resource)
        kept = Record.opened(record, {"seed": seed}, Mutant)
    except RecordError as error:
        raise fail(str(error)) from error
    except OSError as error:
        raise fail(f"cannot use {error.filename}: {error.strerror}") from error
    log = recorded(None, seed)
    kept.told = lambda one: log.case(
        "sensitivity", {_came(one): 1}, 0.0, number=one.number,
        subject=f"{one.oracle} {one.operator} {one.dtype} {one.extent} {one.size:g}",
    )  # fmt: skip
    done = {(one.oracle, one.number) for one in kept.runs}
    counts = {oracle: runs if oracle in OF_RANKS else cases for oracle in chosen}
    todo = [
        (oracle, number) for oracle, count in counts.items() for number in range(count) if (oracle, number) not in done
    ]
    work = partial(each_case, seed=seed)
    kept, code, failure = here_or_together(kept, Mutant, todo, "cases", jobs, work, undone, cluster)
    kept.close()
    found = [one for one in kept.runs if one.number < counts.get(one.oracle, 0)]
    found.sort(key=lambda one: (ORACLES.index(one.oracle), one.number))  # in whichever order they came
    for name, lines in list(tables_of(found).items())[:2]:
        table = Table(
            f"by {name}",
            "faults",
            "visible",
            "caught",
            "share",
            "95 %",
            "undetermined",
            "subnormal",
            "others",
            "share of these",
        )
        for line in lines:
            share = f"{100 * line.caught / line.visible:.1f} %" if line.visible else "-"
            interval = f"{100 * line.interval.low:.1f} to {100 * line.interval.high:.1f} %"
            others = f"{100 * line.told_caught / line.told:.1f} %" if line.told else "-"
            row = (
                line.all, line.visible, line.caught, share, interval, line.undetermined, line.subnormal, line.told,
                others,
            )  # fmt: skip
            table.add_row(line.group, *map(str, row))
        print_wide(table)
    write_json(json_file, as_json(found))
    write_text(csv_file, csv_of(found))
    write_text(html_file, page(found, seed, versions_of(["torch", "numpy"])) if html_file else "")
    if failure:
        raise fail(failure)
    if code:
        raise interrupted(code, FOUND_IS_KEPT)


def _came(one: Mutant) -> str:
    """Of a fault, in a word."""
    return "caught" if one.caught else "missed" if one.visible else "invisible"


STUDIES = (sensitivity,)
