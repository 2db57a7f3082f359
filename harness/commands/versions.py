"""The command `versions`: the same targets in two environments."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from generators.graphs import MAX_NODES
from generators.ops import OPS
from harness.backends import Target, probe, select
from harness.commands.shared.bar import Bar
from harness.commands.shared.record import seed_of
from harness.commands.shared.recorded import recorded
from harness.commands.shared.terminal import (
    FOUND_IS_KEPT,
    Json,
    Known,
    console,
    fail,
    finite,
    interrupted,
    named,
    print_wide,
    say,
    say_off,
    write_json,
)
from harness.execute import environments
from harness.execute.environments import HERE, EnvironmentsError
from harness.execute.isolation.signals import status_of
from harness.execute.pool import HarnessError, Limits
from harness.findings.known.entry import FOLDER, KnownFileError
from harness.findings.known.issues import load
from harness.findings.store import Store
from harness.questions import QUESTIONS
from harness.questions.forward import FORWARD
from harness.questions.question import Question
from harness.search import versions as versioned
from harness.search.versions import STATES, Options, Pair, Rows


def versions(
    old: Annotated[str, typer.Argument(help=f"An environment, or {HERE} for the present one.")],
    new: Annotated[str, typer.Argument(help="The same, with the other version.")],
    target_globs: Annotated[str, typer.Option("--targets", metavar="GLOB", help="Globs of target names.")] = "*",
    cases: Annotated[int, typer.Option(min=1, help="How many are drawn.")] = 200,
    seed: Annotated[int | None, typer.Option(help="The same seed draws the same cases.")] = None,
    max_nodes: Annotated[int, typer.Option(min=1, help="Most nodes of a drawn graph.")] = MAX_NODES,
    operator_globs: Annotated[str, typer.Option("--operators", help="Globs of what is drawn.")] = "",
    question: Annotated[str, typer.Option(help=f"What is asked: {', '.join(QUESTIONS)}.")] = FORWARD.name,
    findings: Annotated[Path, typer.Option(help="Where regressions go.")] = Path("findings"),
    known_issues: Known = FOLDER,
    timeout: Annotated[float, typer.Option(min=1, callback=finite, help="Seconds that one program may take.")] = 120.0,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 where a regression was found.")] = False,
    json_file: Json = None,
) -> None:
    """The same cases with two versions: what agrees, what regressed, what is fixed, what is wrong in both."""
    if question not in QUESTIONS:
        raise fail(f"no question is called {question!r}; there are {', '.join(QUESTIONS)}")
    pairs = _pairs(old, new, target_globs, QUESTIONS[question])
    try:
        issues = load(known_issues)
        operators = named(operator_globs, OPS, "operator") if operator_globs else ()
        findings.mkdir(parents=True, exist_ok=True)
        Store(findings).check()
    except KnownFileError as error:
        raise fail(str(error)) from error
    except OSError as error:
        raise fail(f"cannot use {findings} for findings: {error.strerror}") from error
    chosen = seed_of(seed)
    record = recorded(findings, chosen)
    options = Options(
        pairs, cases, chosen, max_nodes, findings, issues, Limits(seconds=timeout), operators, question, record
    )
    for said in dict.fromkeys(pair.named for pair in pairs):
        say(f"{said}, {cases} cases, seed {chosen}")
    rows: Rows = {pair.new.name: versioned.Row() for pair in pairs}
    done, code = 0, 0

    def latest(so_far: Rows, count: int) -> None:
        nonlocal rows, done
        rows, done = so_far, count
        progress.update(task, completed=count)

    with Bar(console=console) as progress:
        task = progress.add_task("cases", total=cases)
        try:
            versioned.run(options, latest)
        except KeyboardInterrupt as stop:
            code = status_of(stop)
        except OSError as error:
            raise fail(f"{error.filename or findings}: {error.strerror}") from error
        except HarnessError as error:
            raise fail(str(error)) from error
    _show(options, rows)
    write_json(json_file, versioned.to_json(options, rows, done))
    if code:
        raise interrupted(code, f"{FOUND_IS_KEPT}: {done} cases")
    if strict and any(row.findings for row in rows.values()):
        raise typer.Exit(1)


def _pairs(old: str, new: str, globs: str, question: Question) -> tuple[Pair, ...]:
    """The targets that are available in both environments; those that are not are named with the reason."""
    try:
        for name in {old, new} - {HERE}:
            environments.interpreter(name)
        pairs = [Pair(_in(target, old), _in(target, new)) for target in select(globs, question.targets)]
    except (EnvironmentsError, ValueError) as error:
        raise fail(str(error)) from error
    if old == new:
        raise fail(f"{old} is compared with itself")
    on = []
    for pair in pairs:
        statuses = [probe.probe(target) for target in (pair.old, pair.new)]
        off = [status for status in statuses if not status.available]
        if off:
            say_off(off[0].name, off[0].reason)
        else:
            on.append(pair)
    if not on:
        raise fail(f"no target that matches {globs!r} is available in both {old} and {new}")
    return tuple(on)


def _in(target: Target, name: str) -> Target:
    return target if name == HERE else target.elsewhere(name)


def _show(options: Options, rows: Rows) -> None:
    """The table, what regressed or is fixed by operator, and where the findings are."""
    table = Table("target", "agree", "changed bits", *list(STATES)[1:], "known")
    for name, row in rows.items():
        counts = [str(row.states[state] or "·") for state in STATES]
        table.add_row(name, counts[0], str(row.bits or "·"), *counts[1:], str(row.known.total() or "·"))
    print_wide(table)
    for state in STATES:
        faults = sum((row.faults.get(state, Counter()) for row in rows.values()), Counter())
        if faults:
            told = ", ".join(f"{fault} {count}" for fault, count in faults.most_common())
            say(f"{state}: {told}")
    for finding in {name: found for row in rows.values() for name, found in row.findings.items()}.values():
        say(f"{finding.fingerprint}  {finding.path}")


COMMANDS = (versions,)
