"""The commands on known issues. `known`: their stored cases again; `blind`: how much they hide."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from generators.ops import OPS
from harness.commands.findings.rerun import Done, Row, entries, rerun
from harness.commands.shared.bar import Bar
from harness.commands.shared.cases import Asked, asked
from harness.commands.shared.recorded import recorded
from harness.commands.shared.recorded_jobs import shared_out
from harness.commands.shared.terminal import Json, Known, console, fail, named, say, write_json
from harness.execute.pool import HarnessError, Pool
from harness.execute.ranks import RankPools
from harness.findings.known import deviations
from harness.findings.known.entry import FOLDER, KnownFileError
from harness.findings.known.issues import load
from harness.questions.forward import FORWARD
from harness.search import known_cases
from harness.search.blame.blind import measure
from harness.search.known_cases import FIXED, SHOWS
from harness.search.laboratory import Laboratory
from harness.training import known_runs
from harness.training.judge import TrainingJudge


def known(
    ids: Annotated[str, typer.Argument(help="Globs of entries.")] = "*",
    known_issues: Known = FOLDER,
    write: Annotated[
        bool, typer.Option("--write", help="Only write the reproducers of entries that have none yet.")
    ] = False,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes; as many as there are cores.")] = None,
    findings: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Tell the store of this findings folder what came of it.")
    ] = None,
    json_file: Json = None,
) -> None:
    """Run the stored case, or the program, of every known issue: does it still show itself, or is it fixed?"""
    try:
        if write:
            _write_missing(known_issues)
            raise typer.Exit
        total = len(entries(known_issues, ids))
    except (ValueError, HarnessError) as error:
        raise fail(str(error)) from error
    if findings:
        findings.mkdir(parents=True, exist_ok=True)
    record = recorded(findings)
    rows: list[Row] = []
    with Bar(console=console) as progress:
        task = progress.add_task("known issues", total=total)

        def show(latest: Mapping[int, Done]) -> None:
            had = set(rows)
            for row in (row for done in latest.values() for entry in done for row in entry if row not in had):
                rows.append(row)
                if row.status in (SHOWS, FIXED):
                    record.finding(row.id, row.targets, state="known" if row.status == SHOWS else "fixed")
            progress.update(task, completed=sum(map(len, latest.values())), description=_count(rows))

        work = partial(rerun, known_issues, ids)
        code, failure = shared_out(work, jobs or len(os.sched_getaffinity(0)), None, show, findings or known_issues)
    rows.sort(key=lambda row: (row.id, row.targets))
    _print(rows)
    write_json(json_file, [{"id": row.id, "target": ", ".join(row.targets), "status": row.status} for row in rows])
    if failure:
        raise fail(failure)
    if code:
        raise typer.Exit(code)


def _write_missing(root: Path) -> None:
    """Raises KnownFileError and HarnessError."""
    with Pool() as pool:
        missing = known_cases.write_reproducers(Laboratory(pool), load(root))
    with RankPools() as ranks:
        missing += known_runs.write_reproducers(TrainingJudge(ranks), deviations.load(root))
    say(f"{len(missing)} without a reproducer {' '.join(missing)}")


def _count(rows: Sequence[Row]) -> str:
    told = Counter(row.status if row.status in (SHOWS, FIXED) else "not run" for row in rows)
    return f"known issues: {told[SHOWS]} show themselves, {told[FIXED]} look fixed, {told['not run']} not run"


def _print(rows: Sequence[Row]) -> None:
    """A line for each that looks fixed, and for each reason why entries were not run on any of their targets. Others
    are counted only."""
    told = {row.id for row in rows if row.status in (SHOWS, FIXED)}
    reasons: dict[str, list[str]] = {}
    for row in rows:
        name = f"{row.id} ({', '.join(row.targets)})"
        if row.status == FIXED:
            say(f"looks fixed: {name}{f', {row.upstream}' if '://' in row.upstream else ''}", "green")
        elif row.id not in told:
            reasons.setdefault(row.status, []).append(name)
    for reason, names in sorted(reasons.items()):
        say(f"{reason}: {', '.join(names)}", "dim")
    say(_count(rows))


def blind(
    target_globs: Annotated[str, typer.Option("--targets", metavar="GLOB", help="Globs of targets.")] = "*",
    operator_globs: Annotated[str, typer.Option("--operators", help="Globs of operators.")] = "*",
    question: Asked = FORWARD.name,
    known_issues: Known = FOLDER,
    worst: Annotated[int, typer.Option(help="So many of the issues that hide most.", min=0)] = 20,
    json_file: Json = None,
) -> None:
    """In which operator x dtype x target x symptom no new fault could show: planted ones are excused as known."""
    chosen = asked(question)
    if chosen.observe:
        raise fail(f"the question {question!r} judges what programs show of themselves: no fault can be planted")
    try:
        issues = load(known_issues)
        targets = [chosen.targets[name] for name in named(target_globs, chosen.targets, "target")]
        with Pool() as pool:
            found = measure(Laboratory(pool, chosen), issues, targets, named(operator_globs, OPS, "operator"))
    except KnownFileError as error:
        raise fail(str(error)) from error
    told = found.to_json()
    table = Table("", "cells", "blind", "hidden", title="cells: operator x dtype x target x symptom")
    for row in (told["all"], *told["symptoms"], *told["targets"]):
        share = f"{100 * row['blind'] / max(row['cells'], 1):.2f} %"
        table.add_row(row["name"], str(row["cells"]), f"{row['blind']} ({share})", f"{100 * row['hidden']:.2f} %")
    console.print(table)
    entries = Table("issue", "blind cells", "hidden cells", "why nothing narrows it")
    why = {issue.id: issue.unrestricted for issue in issues}
    for row in told["issues"][:worst]:
        entries.add_row(row["id"], str(row["blind"]), f"{row['hidden']:.1f}", why[row["id"]])
    console.print(entries)
    write_json(json_file, told)


COMMANDS = (known, blind)
