"""What all commands share: the console, bad input in one clear line, durations, globs, JSON files."""

from __future__ import annotations

import json
import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from harness.execute.globs import matching

console = Console()
WIDE = 140
"""Columns that wide tables need, also where they are written to a file."""
Known = Annotated[Path, typer.Option("--known-issues", metavar="DIR", help="What is known already.")]
STANDARD_OUTPUT = Path("-")
FOUND_IS_KEPT = "everything found so far is kept"
"""What `interrupted` says of commands that begin anew."""


def _aside(path: Path | None) -> Path | None:
    """What people read goes to standard error where JSON goes to standard output."""
    console.stderr = path == STANDARD_OUTPUT
    return path


JSON_HELP = "Write the result as JSON, too; on standard output without a FILE, and all else on standard error."
Json = Annotated[Path | None, typer.Option("--json", metavar="[FILE]", callback=_aside, help=JSON_HELP)]


def spelled_out(arguments: Sequence[str]) -> list[str]:
    """Arguments of a command line, with `--json -` for a `--json` at their end or before another option: Typer has no
    option whose value may be left out."""
    found = []
    for argument, following in zip(arguments, [*arguments[1:], "--"], strict=True):
        found.append(argument)
        if argument == "--json" and following.startswith("--"):
            found.append(str(STANDARD_OUTPUT))
    return found


def say(text: str, style: str | None = None) -> None:
    """Print a line as it stands: brackets are no markup, numbers are not coloured, and a long line is not broken, so
    that it can be searched for and copied."""
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def say_off(name: str, reason: str | None) -> None:
    """What is asked for and left out, and why."""
    say(f"off: {name} ({reason})", style="yellow")


def print_wide(table: Table) -> None:
    """Print a table whole, however narrow the terminal is."""
    Console(width=max(console.width, WIDE), stderr=console.stderr).print(table)


def print_counts(told: str, reasons: Iterable[str]) -> None:
    """A dim line for each reason, the most frequent first. told: what it is about, with {count}."""
    for why, count in Counter(reasons).most_common():
        say(f"{told.format(count=count)}: {why}", style="dim")


def fail(message: str) -> typer.Exit:
    """One clear line on stderr, and exit status 2."""
    Console(stderr=True).print(f"dissent: {message}", style="red", markup=False, highlight=False, soft_wrap=True)
    return typer.Exit(2)


def unwritten(error: OSError, where: Path | str | None) -> str:
    """What cannot be written, and why: the file that the error names, else `where`."""
    return f"cannot write {error.filename or where}: {error.strerror or error}"


def interrupted(code: int, then: str = "the same command goes on") -> typer.Exit:
    """Ends a command that was interrupted with this status, and says what becomes of what was done."""
    say(f"interrupted; {then}", style="yellow")
    return typer.Exit(code)


def write_json(path: Path | None, data: object) -> None:
    """Write data where a file is named; one clear line where that fails."""
    write_text(path, json.dumps(data, indent=1) + "\n")


def write_text(path: Path | None, text: str) -> None:
    """Write text where a file, or standard output, is named; one clear line where that fails."""
    if path is None:
        return
    if path == STANDARD_OUTPUT:
        sys.stdout.write(text)
        return
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise fail(unwritten(error, path)) from error


def finite(value: float) -> float:
    """A number that is one. Raises typer.BadParameter."""
    if not math.isfinite(value):
        raise typer.BadParameter(f"{value} is no number of seconds")
    return value


def seconds_of(text: str) -> float:
    """A duration such as 90, 90s, 5m or 1.5h, in seconds. Raises typer.BadParameter."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if not match:
        raise typer.BadParameter(f"{text!r} is not a duration such as 90s, 5m or 1h")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]


def named(globs: str, names: Iterable[str], kind: str) -> tuple[str, ...]:
    """The names that match comma-separated globs; one clear line where one matches nothing."""
    try:
        return matching(globs, names, kind)
    except ValueError as error:
        raise fail(str(error)) from error
