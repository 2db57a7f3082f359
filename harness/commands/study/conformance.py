"""The command `conformance`: the tests that come with onnx, by the reference and by runners and conversions of ONNX."""

from __future__ import annotations

import math
import time
import zlib
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from harness.commands.shared.engine import Address, Engine, Gpus, Resource
from harness.commands.shared.record import Record, RecordError
from harness.commands.shared.recorded import recorded
from harness.commands.shared.recorded_jobs import cluster_with, here_or_together
from harness.commands.shared.terminal import (
    FOUND_IS_KEPT,
    Json,
    console,
    fail,
    finite,
    interrupted,
    named,
    print_wide,
    say,
    say_off,
    seconds_of,
    unwritten,
    write_json,
    write_text,
)
from harness.execute.isolation.cluster import Cluster
from harness.execute.isolation.signals import status_of
from harness.execute.pool import HarnessError, Limits, OutOfTime, Pool
from harness.studies.conformance.collected import KINDS, collect
from harness.studies.conformance.examine import Judged, each_test, unfinished
from harness.studies.conformance.page import html_of
from harness.studies.conformance.results import as_json, csv_of, failed_claims, table_of
from harness.studies.conformance.targets import DEFAULT, REFERENCE, Tried, targets


def conformance(
    test_globs: Annotated[str, typer.Option("--tests", metavar="GLOB", help="Globs of tests.")] = "*",
    target_globs: Annotated[
        str, typer.Option("--targets", metavar="GLOB", help="Globs of runners, and of EDGE/RUNNER.")
    ] = DEFAULT,
    kind_globs: Annotated[str, typer.Option("--kinds", metavar="GLOB", help=f"Of {', '.join(KINDS)}.")] = "*",
    budget: Annotated[str | None, typer.Option(help="Stop after so long: 90s, 9m, 1h.")] = None,
    timeout: Annotated[float, typer.Option(min=1, callback=finite, help="Seconds that one test may take.")] = 60.0,
    record: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep each test's line there, and go on with what is there.")
    ] = None,
    csv_file: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write all lines as CSV.")] = None,
    html_file: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a page.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes that share the tests; with --record.")] = 1,
    engine: Engine = "processes",
    address: Address = "",
    gpus: Gpus = 0.0,
    resource: Resource = "",
    json_file: Json = None,
) -> None:
    """Run the tests that come with onnx by the reference, and by runners and conversions of ONNX."""
    chosen = [targets()[name] for name in named(target_globs, targets(), "target")]
    kinds = named(kind_globs, KINDS, "kind")
    for one in chosen:
        if one.reason:
            say_off(one.name, one.reason)
    reason = targets()[REFERENCE].reason
    here = [one for one in chosen if not one.reason]
    if reason or not here:
        raise fail(reason or f"no target that matches {target_globs!r} is available here")
    try:
        duration = seconds_of(budget) if budget else math.inf
        cluster = cluster_with(record, jobs, engine, address, gpus, resource)
        head = {"onnx": zlib.crc32(targets()[REFERENCE].version.encode())}  # other versions have other tests
        kept = Record.opened(record, head, Judged)
    except (typer.BadParameter, RecordError) as error:
        raise fail(str(error)) from error
    except OSError as error:
        raise fail(f"cannot use {error.filename}: {error.strerror}") from error
    log = recorded(None)
    kept.told = lambda one: log.case("conformance", {one.status: 1}, 0.0, subject=f"{one.test} {one.runner}")
    until = time.monotonic() + duration
    kept, code, failure = _run(kept, here, kinds, test_globs, until, timeout, jobs, cluster)
    kept.close()
    names = {one.name: one.version for one in here}
    results = [one for one in kept.runs if names.get(one.runner) == one.version]
    print_wide(table_of(results))
    claims = failed_claims(results)
    for one in claims:
        told = f"the reference fails {one.test}, {one.operator}-{one.opset}: {one.why}"
        say(told)
    console.print("tests of kind real are downloaded, and left out", style="dim")
    write_json(json_file, as_json(results))
    write_text(csv_file, csv_of(results))
    versions = ", ".join(f"{name} {version}" for name, version in names.items())
    write_text(html_file, html_of(results, versions) if html_file else "")
    if failure:
        raise fail(failure)
    if code:
        raise interrupted(code, FOUND_IS_KEPT)
    if claims:
        raise typer.Exit(1)


def _run(
    kept: Record[Judged], here: list[Tried], kinds: tuple[str, ...], globs: str, until: float, timeout: float,
    jobs: int, cluster: Cluster | None,
) -> tuple[Record[Judged], int, str]:  # fmt: skip
    """Run what is not kept yet. The record, the exit status of an interruption (0: none), and what failed."""
    done = {(one.test, one.runner, one.version) for one in kept.runs}
    try:
        with Pool(Limits(seconds=max(timeout, 120)), until=until) as pool:
            folder = pool.temporary / "tests"  # which goes with the pool, however that ends
            folder.mkdir()
            tests = collect(pool, kinds, folder)
            chosen = set(named(globs, [test.name for test in tests], "test"))
            each = [
                (test, tuple(one.name for one in here if (test.name, one.name, one.version) not in done))
                for test in tests
                if test.name in chosen
            ]
            say(f"{len(each)} tests by {len(here)} targets")
            work = partial(each_test, folder=folder, until=until, timeout=timeout)
            todo = [(test, runners) for test, runners in each if runners]
            return here_or_together(kept, Judged, todo, "tests", jobs, work, unfinished, cluster)
    except OutOfTime:
        return kept, 0, ""
    except KeyboardInterrupt as stop:
        return kept, status_of(stop), ""
    except HarnessError as error:
        return kept, 0, str(error)
    except OSError as error:
        return kept, 0, unwritten(error, kept.path)


COMMANDS = (conformance,)
