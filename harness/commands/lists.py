"""The commands that list what there is: targets, ops, cells."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Column, Table

from generators.graph import MEASURED
from generators.ops import OPS
from generators.ops.spec import Unsupported
from harness.backends import TARGETS, probe
from harness.commands.shared import refusal_files
from harness.commands.shared.cases import KINDS, Targets, usable
from harness.commands.shared.terminal import Json, Known, console, fail, named, say, write_json
from harness.dialects import DIALECTS, Dialect
from harness.execute.pool import HarnessError
from harness.findings.known.entry import FOLDER, KnownFileError
from harness.findings.known.issues import load
from harness.search.dtype_support import dtypes_of, representatives


def targets(json_file: Json = None) -> None:
    """List all targets: on, or off with the reason."""
    table = Table("target", "framework", "version", "status")
    statuses = [probe.probe(target) for target in TARGETS.values()]
    for status in statuses:
        asked_for = ", if named" if TARGETS[status.name].opt_in else ""
        state = f"[green]on[/]{asked_for}" if status.available else f"[yellow]off: {status.reason}[/]"
        table.add_row(status.name, status.framework, status.version or "-", state)
    console.print(table)
    keys = ("name", "framework", "version", "available", "reason")
    write_json(json_file, [{key: getattr(status, key) for key in keys} for status in statuses])


def cell(operator: str, dialect: Dialect) -> bool | dict[str, str]:
    """True where a dialect can express an operator for some types, else why not."""
    spelling = dialect.written(operator)
    return {"unsupported": spelling.why} if isinstance(spelling, Unsupported) else True


def ops(json_file: Json = None) -> None:
    """List all operators, with the dialects that can express them."""
    table = Table(Column("operator", overflow="fold"), "family", "dtypes", *DIALECTS)
    rows = []
    for spec in OPS.values():
        cells = {name: cell(spec.name, dialect) for name, dialect in DIALECTS.items()}
        dtypes = dtypes_of(spec)
        rows.append({"name": spec.name, "family": spec.family, "dtypes": dtypes, "dialects": cells})
        marks = ["[green]yes[/]" if c is True else "[yellow]no[/]" for c in cells.values()]
        table.add_row(spec.name, spec.family, " ".join(dtypes), *marks)
    console.print(table)
    console.print(f"{len(rows)} operators")
    for row in rows:
        for name, entry in row["dialects"].items():
            if entry is not True:
                say(f"  {row['name']} in {name}: {entry['unsupported']}")
    write_json(json_file, rows)


def cells(
    renew: Annotated[bool, typer.Option("--update", help="Measure what is refused, and write the records.")] = False,
    target_globs: Targets = "*",
    operator_globs: Annotated[str, typer.Option("--operators", help="Globs of what is measured.")] = "*",
    dtype_globs: Annotated[str, typer.Option("--dtypes", help="Globs of the dtypes that are measured.")] = "*",
    known_issues: Known = FOLDER,
    json_file: Json = None,
) -> None:
    """What runs of operator x dtype on each framework, and what is refused of it."""
    chosen = usable(target_globs)
    try:
        operators = named(operator_globs, OPS, "operator")
        dtypes = [dtype for dtype in MEASURED if dtype in named(dtype_globs, KINDS, "dtype that graphs favour")]
        issues = load(known_issues)
        for target in representatives(chosen).values() if renew else ():
            for found in refusal_files.update(target, issues, operators, dtypes):
                if found.wrong:
                    console.print(f"{target.name}: {found.operator} of {found.dtype}: {found.wrong}", markup=False)
    except (KnownFileError, HarnessError) as error:
        raise fail(str(error)) from error
    listed = refusal_files.rows(chosen)
    console.print(refusal_files.summary(listed))
    write_json(json_file, listed)


COMMANDS = (
    targets,
    ops,
    cells,
)
