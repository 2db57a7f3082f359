"""The commands on known issues. `known`: their stored cases again; `blind`: how much they hide."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from generators.ops import OPS
from harness.commands.shared.cases import Asked, asked, load_case
from harness.commands.shared.recorded import recorded
from harness.commands.shared.terminal import Json, Known, console, fail, named, write_json
from harness.execute.pool import HarnessError, Pool
from harness.execute.ranks import RankPools
from harness.findings.known import deviations
from harness.findings.known.entry import FOLDER, KnownFileError
from harness.findings.known.issues import load
from harness.questions.forward import FORWARD
from harness.search import known_cases
from harness.search.blame.blind import measure
from harness.search.laboratory import Laboratory
from harness.training import known_runs
from harness.training.judge import TrainingJudge


def known(
    known_issues: Known = FOLDER,
    write: Annotated[
        bool, typer.Option("--write", help="Only write the reproducers of entries that have none yet.")
    ] = False,
    findings: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Tell the store of this findings folder what came of it.")
    ] = None,
    json_file: Json = None,
) -> None:
    """Run the stored case of every known issue: does it still show itself, or is it fixed?"""
    try:
        issues = load(known_issues)
    except KnownFileError as error:
        raise fail(str(error)) from error
    if findings:
        findings.mkdir(parents=True, exist_ok=True)
    record = recorded(findings)
    table = Table("issue", "target", "status", "upstream")
    rows = []
    try:
        with Pool() as pool:
            if write:
                missing = known_cases.write_reproducers(Laboratory(pool), issues)
                with RankPools() as ranks:
                    missing += known_runs.write_reproducers(TrainingJudge(ranks), deviations.load(known_issues))
                console.print(f"{len(missing)} without a reproducer {' '.join(missing)}", highlight=False)
                return
            for issue in issues:
                if not issue.here:
                    table.add_row(issue.id, "-", f"not run: of processors with {issue.cpu}", issue.upstream)
                case = load_case(issue.case)
                for target in known_cases.targets_of(issue):
                    status = known_cases.still_shows(Laboratory(pool), issue, target, case)
                    rows.append({"id": issue.id, "target": target.name, "status": status})
                    if status in ("shows", "fixed"):
                        record.finding(issue.id, [target.name], state="known" if status == "shows" else "fixed")
                    table.add_row(issue.id, target.name, status, issue.upstream)
    except HarnessError as error:
        raise fail(str(error)) from error
    console.print(table)
    fixed = [row for row in rows if row["status"] == "fixed"]
    console.print(f"{len(issues)} known issues; {len(fixed)} of {len(rows)} (issue, target) pairs look fixed")
    write_json(json_file, rows)


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
