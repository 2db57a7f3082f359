"""The command line: targets, ops, cells, hunt, replay, known."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.live import Live
from rich.table import Column, Table

from generators import caseio
from generators.graph import COMPLEX, MEASURED, GraphError
from generators.graphs import FAVOURED, MAX_NODES, Case
from generators.ops import OPS
from generators.ops.spec import OpSpec, Unsupported
from harness.backends import TARGETS, Target, probe, select
from harness.commands.conversions import conversions
from harness.commands.environments import env
from harness.commands.model import model
from harness.commands.quantise import quantise
from harness.commands.shared.record import seed_of
from harness.commands.shared.terminal import (
    KNOWN_ISSUES,
    Issues,
    Json,
    console,
    fail,
    heed_sigterm,
    named,
    seconds_of,
    status_of,
    write_json,
)
from harness.commands.shared.view import coverage_table, hunt_table, replay_lines
from harness.commands.study import study
from harness.commands.training import strategies, train
from harness.commands.versions import versions
from harness.dialects import DIALECTS
from harness.execute.pool import HarnessError, Limits, Pool
from harness.findings import known_issues
from harness.findings.known_file import KnownFileError
from harness.questions import QUESTIONS
from harness.questions.question import FORWARD, Question
from harness.search import coverage as covered
from harness.search import hunt as hunting
from harness.search import refused_cells
from harness.search.cells import dtypes_of, involved, representatives
from harness.search.laboratory import Laboratory

app = typer.Typer(
    help="Dissent finds where deep-learning stacks disagree.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
KINDS = (*FAVOURED, *COMPLEX)
"""dtypes that `--dtypes` may name."""

Targets = Annotated[str, typer.Option("--targets", metavar="GLOB", help="Comma-separated globs of target names.")]
Asked = Annotated[str, typer.Option("--question", metavar="NAME", help=f"What is asked: {', '.join(QUESTIONS)}.")]


app.command()(strategies)
app.command()(train)
app.command()(versions)
app.command()(conversions)
app.command()(model)
app.command()(quantise)
app.add_typer(study, name="study")
app.add_typer(env, name="env")


def voters_of(question: Question) -> list[Target]:
    """Who is asked about a finding: all that a question can be asked of, or where each has to be named, all that run
    graphs."""
    return select("*", question.targets) or select("*")


def usable(patterns: str, question: Question = FORWARD) -> list[Target]:
    """Targets of a question that match and are available; those that are off are named with the reason."""
    try:
        chosen = select(patterns, question.targets)
    except ValueError as error:
        raise fail(str(error)) from error
    if not chosen:
        example = next(iter(question.targets))
        raise fail(f"targets of the question {question.name!r} have to be named: {example}, say, or globs of such")
    on = []
    for target in chosen:
        status = probe.probe(target)
        if status.available:
            on.append(target)
        else:
            console.print(f"off: {target.name} ({status.reason})", style="yellow", markup=False)
    if not on:
        raise fail(f"no target that matches {patterns!r} is available here")
    return on


@app.command()
def targets(json_file: Json = None) -> None:
    """List all targets: on, or off with the reason."""
    table = Table("target", "framework", "version", "status")
    statuses = probe.probe_all()
    for status in statuses:
        asked_for = ", if named" if TARGETS[status.name].asked else ""
        state = f"[green]on[/]{asked_for}" if status.available else f"[yellow]off: {status.reason}[/]"
        table.add_row(status.name, status.framework, status.version or "-", state)
    console.print(table)
    keys = ("name", "framework", "version", "available", "reason")
    write_json(json_file, [{key: getattr(status, key) for key in keys} for status in statuses])


def asked(name: str) -> Question:
    """The question of this name; one clear line where there is none."""
    if name not in QUESTIONS:
        raise fail(f"no question is called {name!r}; there are {', '.join(QUESTIONS)}")
    return QUESTIONS[name]


def cell(spec: OpSpec, dialect: str) -> bool | dict[str, str]:
    """True where a dialect can express an operator for some types, else why not."""
    spelling = getattr(spec, dialect)
    return {"unsupported": spelling.why} if isinstance(spelling, Unsupported) else True


@app.command()
def ops(json_file: Json = None) -> None:
    """List all operators, with the dialects that can express them."""
    table = Table(Column("operator", overflow="fold"), "family", "dtypes", *DIALECTS)
    rows = []
    for spec in OPS.values():
        cells = {name: cell(spec, name) for name in DIALECTS}
        dtypes = dtypes_of(spec)
        rows.append({"name": spec.name, "family": spec.family, "dtypes": dtypes, "dialects": cells})
        marks = ["[green]yes[/]" if c is True else "[yellow]no[/]" for c in cells.values()]
        table.add_row(spec.name, spec.family, " ".join(dtypes), *marks)
    console.print(table)
    console.print(f"{len(rows)} operators")
    for row in rows:
        for name, entry in row["dialects"].items():
            if entry is not True:
                console.print(f"  {row['name']} in {name}: {entry['unsupported']}", markup=False, highlight=False)
    write_json(json_file, rows)


@app.command()
def cells(
    renew: Annotated[bool, typer.Option("--update", help="Measure what is refused, and write the records.")] = False,
    target_globs: Targets = "*",
    operator_globs: Annotated[str, typer.Option("--operators", help="Globs of what is measured.")] = "*",
    dtype_globs: Annotated[str, typer.Option("--dtypes", help="Globs of the dtypes that are measured.")] = "*",
    issues_file: Issues = KNOWN_ISSUES,
    json_file: Json = None,
) -> None:
    """What runs of operator x dtype on each framework, and what is refused of it."""
    chosen = usable(target_globs)
    try:
        operators = named(operator_globs, OPS, "operator")
        dtypes = [dtype for dtype in MEASURED if dtype in named(dtype_globs, KINDS, "dtype that graphs favour")]
        issues = known_issues.load(issues_file)
        for target in representatives(chosen).values() if renew else ():
            for found in refused_cells.update(target, issues, operators, dtypes):
                if found.wrong:
                    console.print(f"{target.name}: {found.operator} of {found.dtype}: {found.wrong}", markup=False)
    except (KnownFileError, HarnessError) as error:
        raise fail(str(error)) from error
    listed = refused_cells.rows(chosen)
    console.print(refused_cells.summary(listed))
    write_json(json_file, listed)


@app.command()
def hunt(
    budget: Annotated[str, typer.Option(help="How long: 90s, 5m, 1h.")] = "5m",
    seed: Annotated[int | None, typer.Option(help="The same seed draws the same cases.")] = None,
    target_globs: Targets = "*",
    operator_globs: Annotated[
        str, typer.Option("--operators", help="Globs of what is drawn, with those that are drawn on request only.")
    ] = "",
    dtype_globs: Annotated[str, typer.Option("--dtypes", help="Globs of the dtypes that graphs favour.")] = "",
    max_nodes: Annotated[int, typer.Option(min=1, help="Most nodes of a drawn graph.")] = MAX_NODES,
    jobs: Annotated[int, typer.Option(min=1, help="Hunting processes.")] = 1,
    cases: Annotated[int | None, typer.Option(min=1, help="Stop after so many cases.")] = None,
    findings: Annotated[Path, typer.Option(help="Where findings go.")] = Path("findings"),
    issues_file: Issues = KNOWN_ISSUES,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds that one program may take.")] = 120.0,
    threads: Annotated[int, typer.Option(min=1, help="Threads of each framework's own pool; more show races.")] = 1,
    question: Asked = FORWARD.name,
    passes: Annotated[
        bool, typer.Option("--passes", help="Run each case also without some of each compiler's passes.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 where something new was found.")] = False,
    json_file: Json = None,
) -> None:
    """Draw random graphs, run them on every target, judge, minimise and keep what disagrees."""
    chosen = usable(target_globs, asked(question))
    try:
        duration = seconds_of(budget)
        issues = known_issues.load(issues_file)
        operators = named(operator_globs, OPS, "operator") if operator_globs else QUESTIONS[question].drawn
        favoured = named(dtype_globs, KINDS, "dtype that graphs favour") if dtype_globs else ()
        if favoured:
            operators = tuple(name for name in operators if not set(favoured).isdisjoint(involved(name)))
        findings.mkdir(parents=True, exist_ok=True)
    except (typer.BadParameter, KnownFileError) as error:
        raise fail(str(error)) from error
    except OSError as error:
        raise fail(f"cannot use {findings} for findings: {error.strerror}") from error
    options = hunting.Options(
        targets=tuple(chosen),
        budget=duration,
        seed=seed_of(seed),
        max_nodes=max_nodes,
        findings=findings,
        issues=issues,
        limits=Limits(seconds=timeout, threads=threads),
        cases=cases,
        jobs=jobs,
        operators=operators,
        question=question,
        favoured=favoured,
        passes=passes,
        voters=tuple(t for t in voters_of(QUESTIONS[question]) if probe.probe(t).available),
    )
    console.print(f"hunting on {len(chosen)} targets for {budget}, seed {options.seed}", highlight=False)
    started = time.monotonic()
    latest = hunting.Tally()
    code = 0

    def progress(tally: hunting.Tally) -> None:
        nonlocal latest
        latest = tally
        live.update(hunt_table(options, tally, time.monotonic() - started))

    heed_sigterm()
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        try:
            latest = hunting.run(options, progress)
        except KeyboardInterrupt as stop:
            code = status_of(stop)
        except OSError as error:
            raise fail(f"{error.filename or findings}: {error.strerror}") from error
        except (HarnessError, RuntimeError) as error:
            raise fail(str(error)) from error
    elapsed = time.monotonic() - started
    console.print(hunt_table(options, latest, elapsed))
    for finding in latest.findings.values():
        console.print(f"{finding.fingerprint}  {finding.path}", markup=False, highlight=False, soft_wrap=True)
    write_json(json_file, hunting.to_json(options, latest, elapsed))
    if code:
        console.print("interrupted; everything found so far is kept", style="yellow")
        raise typer.Exit(code)
    if strict and latest.findings:
        raise typer.Exit(1)


@app.command()
def replay(
    file: Annotated[Path, typer.Argument(help="graph.json of a finding, or its folder.")],
    target_globs: Targets = "*",
    question: Asked = FORWARD.name,
    json_file: Json = None,
) -> None:
    """Run a stored case again on all targets and judge it."""
    asking = asked(question)
    chosen = usable(target_globs, asking)
    case = load_case(file)
    try:
        with Pool() as pool:
            examination = Laboratory(pool, asking).examine(case, chosen)
    except HarnessError as error:
        raise fail(str(error)) from error
    for line in replay_lines(examination):
        console.print(line, highlight=False, soft_wrap=True)
    results = {
        name: {"status": v.status, "message": v.discrepancy.message if v.discrepancy else None}
        for name, v in examination.verdicts.items()
    }
    write_json(json_file, {"graph": case.graph.to_json(), "oracle": question, "targets": results})
    if any(verdict.discrepancy for verdict in examination.verdicts.values()):
        raise typer.Exit(1)


@app.command()
def coverage(
    findings: Annotated[Path, typer.Option(help="The findings folder of hunts and tests.")] = Path("findings"),
    question: Annotated[str, typer.Option(help="What was asked: the name of an oracle.")] = FORWARD.name,
    operator_globs: Annotated[str, typer.Option("--operators", help="Globs of operators.")] = "*",
    json_file: Json = None,
) -> None:
    """What hunts and tests have covered: operators, dtypes, targets, outcomes, pairs."""
    try:
        counted = covered.load(findings / covered.FILE)
        operators = named(operator_globs, OPS, "operator")
    except covered.CoverageError as error:
        raise fail(str(error)) from error
    if question not in counted:
        raise fail(f"{findings / covered.FILE}: nothing on {question!r}; there is {', '.join(counted) or 'nothing'}")
    console.print(coverage_table(counted[question], operators, usable("*")))
    write_json(json_file, counted[question].to_json())


@app.command()
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


def load_case(file: Path) -> Case:
    """A case from a `graph.json` or the folder that holds one; one clear line where that cannot be."""
    path = file / "graph.json" if file.is_dir() else file
    try:
        return caseio.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise fail(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise fail(f"{path}: not text") from error
    except GraphError as error:
        raise fail(f"{path}: {error}") from error
