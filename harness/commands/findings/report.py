"""The command `report`: what triage says of one fault, and the text of an issue upstream."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from generators.graphs import Case
from harness.backends import TARGETS, Target, probe
from harness.commands.findings import gather
from harness.commands.shared.terminal import STANDARD_OUTPUT, Known, console, fail, say, write_text
from harness.execute.pool import HarnessError, Pool
from harness.execute.reading import FileError
from harness.findings.known.entry import FOLDER
from harness.findings.triage.causes import causes_of
from harness.findings.triage.instance import Instance
from harness.findings.triage.words import STATE, headline
from harness.findings.upstream.issue import issue_of
from harness.findings.upstream.literals import NoProgramError
from harness.findings.upstream.seen import Seen, seen_in
from harness.findings.upstream.short import PREFERRED, programs
from harness.questions.forward import FORWARD
from harness.search.laboratory import Laboratory

HANG, SLOW = 60.0, 300.0
"""Seconds after which a short program is taken not to return, and for which others are waited for."""
TRIES = 4
"""Targets that show a fault and are written programs for."""


@dataclass(frozen=True)
class Shown:
    """A short program that was run and shows what was seen on a target. printed: the end of what it wrote."""

    target: Target
    seen: Seen
    program: str
    printed: str


def report(
    finding: Annotated[str, typer.Argument(help="A finding's folder, or the id of a known entry.")],
    upstream: Annotated[
        bool, typer.Option("--upstream", help="The text of an issue, with a program of at most 30 lines.")
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
        refuse(one)
        with Pool() as pool:
            shown = shown_by(Laboratory(pool), one)
    except HarnessError as error:
        raise fail(str(error)) from error
    except NoProgramError as error:
        raise fail(f"{one.id}: no short program: {error}; its reproducer.py is the whole one") from error
    versions = probe.versions([shown.target])
    issue = issue_of(one, shown.seen, shown.target.name, shown.program, shown.printed, versions, probe.cpu())
    where = f"for {issue.repository}" if issue.repository else "for a project whose template is not known"
    say(f"{where}; the program was run and shows it ({shown.target.name})")
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


def refuse(one: Instance) -> None:
    """One clear line for what no short program is written of."""
    if one.case is None:
        about = {"model": "a whole model", "program": "a program of its own"}
        raise NoProgramError(f"it is about {about.get(one.kind, 'a training run on ranks')}")
    if one.question != FORWARD.name:
        raise NoProgramError(f"it is shown by the question {one.question!r}, and they are written for values of graphs")


def shown_by(lab: Laboratory, one: Instance) -> Shown:
    """The first short program that shows it. Raises NoProgramError."""
    assert one.case is not None
    reasons: list[str] = []
    shows = 0
    for target in targets_of(one):
        seen = seen_on(lab, one, target)
        if seen is None:
            continue
        shows += 1
        try:
            for text in programs(target, one.case, seen):
                printed = run(text, seen)
                if printed is not None:
                    return Shown(target, seen, text, printed)
            reasons.append(f"written as a user would, it does not show on {target.name}")
        except NoProgramError as error:
            reasons.append(str(error))
        if shows == TRIES:
            break
    raise NoProgramError(reasons[0] if reasons else "none of its targets that are available here shows it")


def targets_of(one: Instance) -> Iterator[Target]:
    """Those that are available, what needs the fewest lines first."""
    order = {name: number for number, name in enumerate(PREFERRED)}
    named = [TARGETS[name] for name in gather.names_of(one)]
    for target in sorted(named, key=lambda target: (order.get(target.name, len(order)), target.name)):
        if probe.probe(target).available:
            yield target


def seen_on(lab: Laboratory, one: Instance, target: Target) -> Seen | None:
    """What a target shows of it, if it does."""
    assert one.case is not None
    case: Case = one.case
    examined = lab.judge(case, [target])
    found = examined.verdicts[target.name].discrepancy
    if found is None or found.symptom not in one.symptoms:
        return None
    return seen_in(found, examined.expected, examined.outcomes[target.name])


def run(text: str, seen: Seen) -> str | None:
    """What a program prints, where it shows what was seen: a wrong result fails its assertion, a refusal raises."""
    seconds = HANG if seen.symptom == "timeout" else SLOW
    try:
        done = subprocess.run(
            [sys.executable, "-c", text], capture_output=True, text=True, timeout=seconds, check=False, errors="replace"
        )
    except subprocess.TimeoutExpired:
        return f"(nothing within {HANG:g} s)" if seen.symptom == "timeout" else None
    last = (done.stderr.strip().splitlines() or [""])[-1]
    if seen.symptom == "crash":
        return f"(the process ends with status {done.returncode})" if done.returncode not in (0, 1) else None
    if done.returncode != 1 or seen.symptom == "timeout":
        return None
    asserted = "AssertionError" in last
    kind = seen.message.split(":", 1)[0]
    if seen.symptom == "rejected":
        return last if not asserted and kind.split(".")[-1] in done.stderr else None
    return f"{done.stdout.strip()}\n{last}" if asserted else None


COMMANDS = (report,)
