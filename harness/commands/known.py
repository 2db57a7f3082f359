"""The command `known`: the stored cases of known issues again."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from harness.commands.shared.cases import load_case
from harness.commands.shared.terminal import Json, Known, console, fail, write_json
from harness.execute.pool import HarnessError, Pool
from harness.execute.ranks import RankPools
from harness.findings.known import deviations
from harness.findings.known.entry import FOLDER, KnownFileError
from harness.findings.known.issues import load
from harness.search import known_cases
from harness.search.laboratory import Laboratory
from harness.training import known_runs
from harness.training.judge import TrainingJudge


def known(
    known_issues: Known = FOLDER,
    write: Annotated[
        bool, typer.Option("--write", help="Only write the reproducers of entries that have none yet.")
    ] = False,
    json_file: Json = None,
) -> None:
    """Run the stored case of every known issue: does it still show itself, or is it fixed?"""
    try:
        issues = load(known_issues)
    except KnownFileError as error:
        raise fail(str(error)) from error
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
                    table.add_row(issue.id, target.name, status, issue.upstream)
    except HarnessError as error:
        raise fail(str(error)) from error
    console.print(table)
    fixed = [row for row in rows if row["status"] == "fixed"]
    console.print(f"{len(issues)} known issues; {len(fixed)} of {len(rows)} (issue, target) pairs look fixed")
    write_json(json_file, rows)


COMMANDS = (known,)
