"""The command `known`: the stored cases of known issues again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from harness.commands.shared.cases import load_case
from harness.commands.shared.terminal import KNOWN_ISSUES, Issues, Json, console, fail, write_json
from harness.execute.pool import HarnessError, Pool
from harness.findings import known_issues
from harness.findings.known_file import KnownFileError
from harness.search.laboratory import Laboratory


def known(
    issues_file: Issues = KNOWN_ISSUES,
    write: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Only write reproducers of entries that have none in DIR yet.")
    ] = None,
    json_file: Json = None,
) -> None:
    """Run the stored case of every known issue: does it still show itself, or is it fixed?"""
    try:
        issues = known_issues.load(issues_file)
    except KnownFileError as error:
        raise fail(str(error)) from error
    table = Table("issue", "target", "status", "upstream")
    rows = []
    try:
        with Pool() as pool:
            if write:
                missing = known_issues.write_reproducers(Laboratory(pool), issues, issues_file.parent, write)
                console.print(f"{len(missing)} without a reproducer {' '.join(missing)}", highlight=False)
                return
            for issue in issues:
                if not issue.here:
                    table.add_row(issue.id, "-", f"not run: of processors with {issue.cpu}", issue.upstream)
                case = load_case(issues_file.parent / issue.case)
                for target in known_issues.targets_of(issue):
                    status = known_issues.still_shows(Laboratory(pool), issue, target, case)
                    rows.append({"id": issue.id, "target": target.name, "status": status})
                    table.add_row(issue.id, target.name, status, issue.upstream)
    except HarnessError as error:
        raise fail(str(error)) from error
    console.print(table)
    fixed = [row for row in rows if row["status"] == "fixed"]
    console.print(f"{len(issues)} known issues; {len(fixed)} of {len(rows)} (issue, target) pairs look fixed")
    write_json(json_file, rows)


COMMANDS = (known,)
