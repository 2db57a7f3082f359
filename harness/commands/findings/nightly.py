"""The command `nightly`: known issues, what was ever found, a hunt, the site, what is new since the last night."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from harness.commands.findings.rerun import STATES
from harness.commands.shared.recorded import recorded
from harness.commands.shared.terminal import (
    Json,
    Known,
    console,
    fail,
    say,
    seconds_of,
    unwritten,
    write_json,
    write_text,
)
from harness.execute import environments
from harness.execute.environments import EnvironmentsError, interpreter
from harness.execute.isolation.signals import ends_with_parent
from harness.execute.reading import read_json
from harness.findings import newest
from harness.findings.bisection import programs
from harness.findings.database import opened
from harness.findings.database.nights import Difference, difference
from harness.findings.database.recorder import Recorder
from harness.findings.known.entry import FOLDER
from harness.findings.site.junit import junit_of
from harness.findings.written import FILE
from harness.search.hunting.touched import SourceError, diff_of, touched

SUMMARY = "GITHUB_STEP_SUMMARY"
"""Names the file to which a step of a workflow adds Markdown."""
UNTOLD = "not told"
"""What a stored reproducer comes to that neither shows what it is of nor is right."""


@dataclass(frozen=True)
class Step:
    """A command of the night. status: of its exit."""

    command: str
    status: int
    seconds: float


def nightly(
    budget: Annotated[str, typer.Option(help="How long the hunt is: 30m, 4h. All else comes on top.")] = "1h",
    findings: Annotated[Path, typer.Option(help="Where findings go, and where the store is.")] = Path("findings"),
    target_globs: Annotated[str, typer.Option("--targets", metavar="GLOB", help="Globs of targets of the hunt.")] = "*",
    known_issues: Known = FOLDER,
    beside: Annotated[
        str | None, typer.Option(metavar="ENV", help="Compare the targets with this environment's versions, too.")
    ] = None,
    newest_globs: Annotated[
        str,
        typer.Option("--newest", metavar="GLOB", help="Packages whose newest releases are compared with those here."),
    ] = "",
    timeout: Annotated[float, typer.Option(min=1, help="Seconds that a stored reproducer may take.")] = 300.0,
    seed: Annotated[int | None, typer.Option(help="Of the hunt; another one each night.")] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="REV", help="Hunt only for what changes since then touch."),
    ] = None,
    source: Annotated[Path, typer.Option(metavar="DIR", help="Of --since: a framework's repository.")] = Path(),
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Where the site goes; none without it.")] = None,
    summary: Annotated[
        Path | None, typer.Option(metavar="FILE", help=f"Add Markdown to it; default: what ${SUMMARY} names.")
    ] = None,
    junit: Annotated[Path | None, typer.Option("--junit-xml", metavar="FILE", help="Write JUnit XML.")] = None,
    json_file: Json = None,
) -> None:
    """Known issues, then what was ever found, then a hunt; exit status 1 where something new was found."""
    try:
        seconds_of(budget)
        findings.mkdir(parents=True, exist_ok=True)
        if beside:
            interpreter(beside)
        operators = touched(diff_of(source, since)) if since else ()
        newer = newest.newest(newest_globs, findings, say) if newest_globs else []
    except (typer.BadParameter, EnvironmentsError, SourceError) as error:
        raise fail(str(error)) from error
    except OSError as error:
        raise fail(f"cannot use {findings} for findings: {error.strerror}") from error
    record = recorded(findings, seed)
    folder, issues = ["--findings", str(findings)], ["--known-issues", str(known_issues)]
    drawn = ["--seed", str(seed)] if seed is not None else []
    if since:
        which = ", ".join(operators) or "none, so that there is no hunt"
        say(f"operators that changes since {since} touch: {which}")
    only = ["--operators", ",".join(operators)] if operators else []
    steps = [_run(["known", *folder, *issues], record.run)]
    for name, state in again(findings, record, timeout):
        say(f"{state}: {name}")
    hunting = ["hunt", "--budget", budget, *folder, *issues, "--targets", target_globs, "--quiet", *drawn, *only]
    if operators or not since:
        steps.append(_run(hunting, record.run))
    if beside:
        comparing = ["versions", ".", beside, *folder, *issues, "--targets", target_globs, *drawn]
        steps.append(_run(comparing, record.run))
    for one in newer:
        known = {environments.VARIABLE: str(findings / newest.FILE)}
        steps.append(_run(["env", "create", one.name], record.run, known))
        if not steps[-1].status:
            comparing = ["versions", ".", one.name, *folder, *issues, "--targets", ",".join(one.targets), *drawn]
            steps.append(_run(comparing, record.run, known))
    if out:
        steps.append(_run(["site", "--out", str(out), *folder, *issues], record.run))
    found = difference(record.url, record.run)
    text = markdown(found, steps, findings)
    say(text)
    named = summary or (Path(os.environ[SUMMARY]) if os.environ.get(SUMMARY) else None)
    try:
        if named:
            with named.open("a", encoding="utf-8") as file:
                file.write(text + "\n")
    except OSError as error:
        raise fail(unwritten(error, named)) from error
    write_text(junit, junit_of(found, [(one.command, one.status, one.seconds) for one in steps], findings))
    told = {"steps": [vars(step) for step in steps], **vars(found)}
    write_json(json_file, told)
    if failed := [step.command for step in steps if step.status]:
        raise fail(f"the night is not whole: {'; '.join(failed)}")
    if found.new:
        raise typer.Exit(1)


def again(findings: Path, record: Recorder, timeout: float) -> Iterator[tuple[str, str]]:
    """The reproducer of every finding that is there, in a new interpreter: the name, and whether it shows, is fixed, or
    cannot be told, which the store is not told of."""
    for path in sorted(findings.glob(f"[!.]*/{FILE}")):
        one = read_json(path.with_name("finding.json"), dict[str, Any])
        started = time.monotonic()
        state = STATES.get(programs.run(path, sys.executable, timeout).state, UNTOLD)
        record.case("reproducer", {state: 1}, time.monotonic() - started, subject=one["fingerprint"])
        if state != UNTOLD:
            record.finding(one["fingerprint"], [one.get("target") or one["strategy"]], one["symptom"], state=state)
        yield one["fingerprint"], state


def markdown(found: Difference, steps: Sequence[Step], findings: Path) -> str:
    """What the night came to, new first."""
    last = f"since the last night ({found.last[:10]})" if found.last else "of the first night"
    counts = f"{len(found.new)} new, {len(found.again)} met before, {len(found.gone)} gone, {len(found.fixed)} fixed"
    lines = [f"## Dissent: {counts} {last}", ""]
    for told, names in (
        ("New", [f"`{name}` ({findings / name / 'report.md'})" for name in found.new]),
        ("Gone: found in the last night, and not in this one", [f"`{name}`" for name in found.gone]),
        ("Fixed: shows no more", [f"`{name}`" for name in found.fixed]),
    ):
        if names:
            lines += [f"### {told}", "", *(f"- {name}" for name in names), ""]
    lines += ["| command | exit status | seconds |", "|---|---|---|"]
    lines += [f"| `{step.command}` | {step.status} | {step.seconds:.0f} |" for step in steps]
    return "\n".join(lines)


def _run(arguments: list[str], night: str, variables: Mapping[str, str] | None = None) -> Step:
    """A command as a process of its own, so that its end is not the night's."""
    command, started = " ".join(arguments[:1]), time.monotonic()
    say(f"-- {' '.join(arguments)}", style="dim")
    status = _status([sys.executable, "-m", "harness", *arguments], {opened.PART_OF: night, **(variables or {})})
    return Step(command, status, round(time.monotonic() - started, 1))


def _status(command: list[str], variables: Mapping[str, str]) -> int:
    """The exit status of a process, which ends with this one."""
    output, end = sys.stderr if console.stderr else None, signal.SIGTERM  # a command ends with what it has
    with subprocess.Popen(
        command, stdout=output, env=os.environ | variables, preexec_fn=ends_with_parent(end)
    ) as process:
        try:
            return process.wait()
        except BaseException:
            process.send_signal(end)
            raise


COMMANDS = (nightly,)
