"""The command `report`: what triage says of one fault, and the text of an issue upstream."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.backends import probe
from harness.commands.findings import gather
from harness.commands.findings.shown import shown_by
from harness.commands.shared.terminal import STANDARD_OUTPUT, Known, console, fail, say, write_text
from harness.execute.pool import HarnessError
from harness.execute.reading import FileError
from harness.findings.known.entry import FOLDER
from harness.findings.triage.causes import causes_of
from harness.findings.triage.instance import Instance
from harness.findings.triage.words import STATE, headline, referred
from harness.findings.upstream.issue import issue_of
from harness.findings.upstream.literals import NoProgramError


def report(
    finding: Annotated[str, typer.Argument(help="A finding's folder, or the id of a known entry.")],
    upstream: Annotated[
        bool,
        typer.Option(
            "--upstream", help="The text of an issue, with a program, of at most 30 lines where it is written."
        ),
    ] = False,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Where the text goes, else to standard output.")
    ] = STANDARD_OUTPUT,
    program: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the short program, too.")] = None,
    known_issues: Known = FOLDER,
) -> None:
    """What triage says of a finding or a known entry; --upstream: the issue as the project's template asks for it."""
    console.stderr = upstream and out == STANDARD_OUTPUT
    try:
        instances = gather.entries(known_issues)
        one = chosen(finding, instances)
    except FileError as error:
        raise fail(str(error)) from error
    if not upstream:
        told(one, instances)
        return
    try:
        shown = shown_by(one)
    except HarnessError as error:
        raise fail(str(error)) from error
    except NoProgramError as error:
        raise fail(f"{one.id}: no program for maintainers: {error}; its reproducer.py is the whole one") from error
    cause = next((other for other in instances if other.id == referred(one)), None)
    issue = issue_of(one, shown, probe.cpu(), cause)
    where = f"for {issue.repository}" if issue.repository else "for a project whose template is not known"
    say(f"{where}; the program was run and shows it{f' ({shown.target})' if shown.target else ''}")
    if one.upstream:
        say(f"there is a thread already: {one.upstream}", style="yellow")
    write_text(out, f"# {issue.title}\n\n{issue.text.rstrip()}\n")
    write_text(program, shown.program)


def chosen(name: str, entries: list[Instance]) -> Instance:
    """The known entry of this id, or the finding in this folder. Raises FileError."""
    known = next((one for one in entries if one.id == name), None)
    if known:
        return known
    folder = Path(name)
    if not (folder / "finding.json").is_file():
        raise FileError(f"{name}: neither the id of a known entry nor the folder of a finding")
    return gather.of_folder(folder)


def told(one: Instance, entries: list[Instance]) -> None:
    """What triage says of it."""
    everything = entries if one in entries else [*entries, one]
    cause = next(cause for cause in causes_of(everything) if one in cause.instances)
    reach = cause.reaches[cause.instances.index(one)]
    say(headline(one), style="bold")
    lines = [
        f"severity: {cause.severity}",
        f"reach: {reach.level}: {reach.subjects} of {reach.asked} targets, {reach.operators or 'any'} operators, "
        f"{', '.join(reach.dtypes) or 'any dtype'}, {reach.trigger}",
        *(f"needs: {condition}" for condition in reach.conditions),
        f"state: {STATE[one.state]}{f', {one.upstream}' if one.upstream else ''}",
        *([f"releases: {one.bisection}"] if one.bisection else []),
        f"cause: {cause.id}, {len(cause.instances)} instances",
        *(f"  {fold.first} with {fold.second}, by {fold.rule}: {fold.why}" for fold in cause.folds),
    ]
    for line in lines:
        say(line)


COMMANDS = (report,)
