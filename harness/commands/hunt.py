"""The commands `hunt`, and `replay` of a case that one has stored."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

import typer

from generators.baits import BAITS
from generators.baits.cases import operators_of
from generators.graphs import MAX_NODES
from generators.ops import OPS
from harness.backends import Target, probe, select
from harness.commands.shared import earlier
from harness.commands.shared.cases import KINDS, Asked, Targets, asked, load_case, usable
from harness.commands.shared.engine import Address, Engine, Gpus, Resource, alone_by, cluster_of, room
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
    say,
    seconds_of,
    write_json,
)
from harness.commands.shared.view import hunt_table, replay_lines
from harness.commands.shared.watch import hunt_line, next_steps, watched
from harness.conversions.route import planned, target_of
from harness.execute.isolation.signals import status_of
from harness.execute.pool import HarnessError, Limits, Pool
from harness.execute.reading import FileError
from harness.findings.known.entry import FOLDER
from harness.findings.known.issues import load
from harness.questions import QUESTIONS
from harness.questions.consistency import CONSISTENCY
from harness.questions.conversion import CONVERSION
from harness.questions.derivatives.consistency import GRADIENT_CONSISTENCY
from harness.questions.forward import FORWARD
from harness.questions.question import Question
from harness.search import hunt as hunting
from harness.search.dtype_support import involved
from harness.search.hunting import plan as planning
from harness.search.hunting.plan import Lane
from harness.search.laboratory import Laboratory

_SELF = (CONSISTENCY.name, GRADIENT_CONSISTENCY.name)
"""Questions that hold a framework against itself."""


def hunt(
    budget: Annotated[str, typer.Option(help="How long: 90s, 5m, 1h.")] = "5m",
    seed: Annotated[int | None, typer.Option(help="The same seed draws the same cases.")] = None,
    target_globs: Targets = "*",
    operator_globs: Annotated[
        str, typer.Option("--operators", help="Globs of what is drawn, with those that are drawn on request only.")
    ] = "",
    dtype_globs: Annotated[str, typer.Option("--dtypes", help="Globs of the dtypes that graphs favour.")] = "",
    max_nodes: Annotated[int, typer.Option(min=1, help="Most nodes of a drawn graph, without a bait.")] = MAX_NODES,
    jobs: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Hunting processes or tasks; as many as there are cores.")
    ] = None,
    engine: Engine = "processes",
    address: Address = "",
    gpus: Gpus = 0.0,
    resource: Resource = "",
    cases: Annotated[int | None, typer.Option(min=1, help="Stop after so many drawn cases, without the plan.")] = None,
    plan: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the time that sweeps of all operators get; 0: none.")
    ] = 0.5,
    findings: Annotated[Path, typer.Option(help="Where findings go.")] = Path("findings"),
    known_issues: Known = FOLDER,
    timeout: Annotated[float, typer.Option(min=1, callback=finite, help="Seconds that one program may take.")] = 120.0,
    threads: Annotated[int, typer.Option(min=1, help="Threads of each framework's own pool; more show races.")] = 1,
    question: Annotated[
        str | None,
        typer.Option(metavar="NAME", help=f"What is asked, else forward, of the plan all: {', '.join(QUESTIONS)}."),
    ] = None,
    passes: Annotated[
        bool, typer.Option("--passes", help="Run each case also without some of each compiler's passes.")
    ] = False,
    inconsistencies: Annotated[
        bool,
        typer.Option(help="Compare each target with itself, too, where the reference allows anything."),
    ] = True,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing before the summary.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 where something new is wrong.")] = False,
    json_file: Json = None,
) -> None:
    """Draw random graphs, run them on every target, judge, minimise and keep what disagrees."""
    drawn_seed = seed_of(seed)
    cluster = cluster_of(engine, address, gpus, resource, findings)
    asking = asked(question or FORWARD.name)
    chosen = usable(target_globs, asking)
    try:
        duration = seconds_of(budget)
        issues = load(known_issues)
        operators = named(operator_globs, OPS, "operator") if operator_globs else asking.drawn
        favoured = named(dtype_globs, KINDS, "dtype that graphs favour") if dtype_globs else ()
        if favoured:
            operators = tuple(name for name in operators if not set(favoured).isdisjoint(involved(name)))
        findings.mkdir(parents=True, exist_ok=True)
        earlier.check(findings)
        following = None
        if plan and cases is None and not favoured:
            swept = tuple(OPS) if not operator_globs else operators
            everything = (*swept, *(name for name in BAITS if operators_of(name) <= set(swept)))
            wanted = [name for name in QUESTIONS if inconsistencies or name not in _SELF]
            lanes = lanes_of(target_globs, wanted if question is None else (question,))
            following = planning.Plan(lanes, everything, drawn_seed, *planning.state(findings))
        record = recorded(findings, drawn_seed)
    except (typer.BadParameter, FileError) as error:
        raise fail(str(error)) from error
    except OSError as error:
        raise fail(f"cannot use {findings} for findings: {error.strerror}") from error
    if cluster:
        cluster = replace(cluster, alone=alone_by(record.url, findings))
    options = hunting.Options(
        targets=tuple(chosen),
        budget=duration,
        seed=drawn_seed,
        max_nodes=max_nodes,
        findings=findings.absolute() if cluster else findings,
        issues=issues,
        limits=Limits(seconds=timeout, threads=threads),
        cases=cases,
        jobs=jobs or (room(cluster) if cluster else len(os.sched_getaffinity(0))),
        cluster=cluster,
        operators=operators,
        question=asking.name,
        favoured=favoured,
        passes=passes,
        plan=following,
        share=plan,
        voters=tuple(t for t in voters_of(asking) if probe.probe(t).available),
        record=record,
    )
    say(f"hunting on {len(chosen)} targets for {budget}, seed {options.seed}")
    started = time.monotonic()
    latest = hunting.Tally()
    code = 0

    def progress(tally: hunting.Tally) -> None:
        nonlocal latest
        latest = tally
        seconds = time.monotonic() - started
        tell(lambda: hunt_table(options, tally, seconds), lambda: hunt_line(options, tally, seconds))

    with watched(console, quiet) as tell:
        try:
            latest = hunting.run(options, progress)
        except KeyboardInterrupt as stop:
            code = status_of(stop)
        except OSError as error:
            raise fail(f"{error.filename or findings}: {error.strerror}") from error
        except (HarnessError, RuntimeError) as error:
            raise fail(str(error)) from error
    elapsed = time.monotonic() - started
    record.timings(latest.seconds)
    record.failure = record.failure or latest.unrecorded
    console.print(hunt_table(options, latest, elapsed))
    for finding in latest.findings.values():
        say(f"{finding.fingerprint}  {finding.path}")
    for line in next_steps(options, latest):
        say(line, style="dim")
    write_json(json_file, hunting.to_json(options, latest, elapsed))
    if code:
        raise interrupted(code, FOUND_IS_KEPT)
    for line in (*latest.repeated, *latest.died, *latest.faults):
        say(line, style="yellow")
    if latest.died or latest.faults:
        raise typer.Exit(2)
    if not (latest.elements or latest.findings or latest.excused):
        cases_run = latest.cases + latest.taken
        why = f"none of {cases_run} cases had a result" if cases_run else f"no case ended within {budget}"
        raise fail(f"nothing was compared: {why}")
    if strict and len(latest.findings) > len(latest.inconsistencies):
        raise typer.Exit(1)


def lanes_of(globs: str, questions: Iterable[str]) -> tuple[Lane, ...]:
    """What the plan asks of whom: each question of all targets that match and are available, those among them that are
    drawn on only where they are named; of conversions, the routes that are planned."""
    found = []
    for name in questions:
        question = QUESTIONS[name]
        if name == CONVERSION.name:
            targets = [target_of(route.name) for route in planned(named=globs != "*")]
        else:
            targets = list(question.targets.values())
        chosen = targets if globs == "*" else select_among(globs, targets)
        usable_here = [target for target in chosen if probe.probe(target).available]
        found += [Lane(name, target) for target in usable_here if not target.arithmetic or question.expect_under]
    return tuple(found)


def select_among(globs: str, targets: Iterable[Target]) -> list[Target]:
    """Those of the targets that match one of the globs."""
    listed = [glob.strip() for glob in globs.split(",")]
    return [target for target in targets if any(fnmatchcase(target.name, glob) for glob in listed)]


def voters_of(question: Question) -> list[Target]:
    """Who is asked about a finding: all that a question can be asked of, or where each has to be named, all that run
    graphs."""
    return select("*", question.targets) or select("*")


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
        say(line)
    results = {
        name: {"status": v.status, "message": v.discrepancy.message if v.discrepancy else None}
        for name, v in examination.verdicts.items()
    }
    write_json(json_file, {"graph": case.graph.to_json(), "oracle": question, "targets": results})
    if any(verdict.discrepancy for verdict in examination.verdicts.values()):
        raise typer.Exit(1)


COMMANDS = (hunt, replay)
