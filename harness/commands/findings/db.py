"""The commands on the store: `db show`, `merge`, `export`, `prune`."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from harness.commands.shared.terminal import Json, fail, print_wide, say, write_json, write_text
from harness.findings.database import kept, opened

Findings = Annotated[Path, typer.Option(metavar="DIR", help=f"Whose {opened.FILE} it is, if no other is named.")]
db = typer.Typer(
    name="db",
    no_args_is_help=True,
    help=f"The store of what was run, examined, found and covered ({opened.FILE}, or what {opened.VARIABLE} names).",
)


@db.command()
def show(
    findings: Findings = Path("findings"),
    run: Annotated[str, typer.Option(metavar="ID", help="What one run found and examined; its first letters do.")] = "",
    json_file: Json = None,
) -> None:
    """List the runs; or what one of them found, and what came of its cases."""
    url = opened.url_of(findings)
    listed = kept.runs(url)
    chosen = [one for one in listed if one[0].id.startswith(run)]
    if run and len(chosen) != 1:
        raise fail(f"{len(chosen)} runs of {opened.told(url)} begin with {run!r}")
    table = Table("run", "started", "ended", "status", "cases", "findings", "command")
    for row, cases, states in chosen:
        found = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
        status = "-" if row.status is None else str(row.status)
        table.add_row(row.id[:8], row.started[:19], (row.ended or "-")[:19], status, str(cases), found, row.command)
    print_wide(table)
    data = [{**row._mapping, "cases": cases, "findings": states} for row, cases, states in chosen]
    if run:
        own = kept.rows(url, "finding", chosen[0][0].id)
        shown = Table("state", "finding", "target", "symptom", "cause", "times")
        for row in own:
            shown.add_row(*(str(row[key]) for key in ("state", "fingerprint", "target", "symptom", "cause", "count")))
        print_wide(shown)
        data = [{**data[0], "findings": own}]
    write_json(json_file, data)


@db.command()
def merge(
    other: Annotated[str, typer.Argument(help="A findings folder, a file of SQLite, or a URL.")],
    findings: Findings = Path("findings"),
) -> None:
    """Copy the runs of another store into this one; those that are there already are left as they are."""
    path = Path(other)
    source = opened.url_of_store(str(path / opened.FILE) if path.is_dir() else other)
    count = kept.merge(opened.url_of(findings), source)
    say(f"{count} runs of {opened.told(source)} are new")


@db.command()
def export(
    findings: Findings = Path("findings"),
    table: Annotated[str, typer.Option(help=f"Of {', '.join(kept.TABLES)}; of CSV, one.")] = "finding",
    csv_file: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write a table as CSV.")] = None,
    json_file: Json = None,
) -> None:
    """Write all tables as JSON, or one as CSV."""
    if table not in kept.TABLES:
        raise fail(f"no table is called {table!r}; there are {', '.join(kept.TABLES)}")
    if not (csv_file or json_file):
        raise fail("nothing to write: --csv FILE or --json FILE is needed")
    url = opened.url_of(findings)
    if json_file:
        write_json(json_file, {name: kept.rows(url, name) for name in kept.TABLES})
    if csv_file:
        out = io.StringIO()
        writer = csv.DictWriter(out, [column.name for column in kept.TABLES[table].columns], lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept.rows(url, table))
        write_text(csv_file, out.getvalue())


@db.command()
def prune(
    days: Annotated[float, typer.Option(min=0, help="Leave out runs that began before so many days.")],
    findings: Findings = Path("findings"),
) -> None:
    """Leave old runs out. Folders of findings, and what the runs covered, stay."""
    count = kept.prune(opened.url_of(findings), days)
    say(f"{count} runs left out")


COMMANDS = (db,)
