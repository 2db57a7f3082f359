"""Tests are run by the reference and by others, and each result is judged."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import numpy as np

from harness.conversions.model_file import plain, why_not
from harness.execute.pool import Limits, OutOfTime, Pool
from harness.studies.conformance.collected import Test, told, values_of
from harness.studies.conformance.targets import REFERENCE, Tried, targets
from oracles.judge.outcome import Crash, Outcome, Rejected, Timeout, Unsupported, Value
from oracles.models.conformance import DOUBTED, RANDOM, Told, around, judge

STATUSES = ("pass", "wrong", "refused", "crash", "hang", "not judged")
NUMPY = {np.dtype(code).name for code in np.typecodes["All"] if np.dtype(code).isbuiltin == 1}
"""dtypes in which arrays reach a runner for sure; each library takes and returns those of ml_dtypes in its own way."""
BATCH = 24
"""Tests that are handed to the workers at once."""
LONGEST = 300
"""Characters of a reason."""
NO_RULE = "no rule: "
"""How the reason of a refusal of the reference begins where it claims nothing."""


@dataclass(frozen=True)
class Judged:
    """What came of a test. runner: by name; version: of its tool; status: one of STATUSES; why: it is no pass."""

    test: str
    kind: str
    operator: str
    opset: int
    runner: str
    version: str
    status: str
    why: str = ""


def examine(
    pool: Pool,
    tests: Iterable[Test],
    chosen: Sequence[Tried],
    folder: Path,
    done: Callable[[str, str, str], bool] = lambda test, runner, version: False,
) -> Iterator[list[Judged]]:
    """What came of each batch. done: is it known already what came of a test (its name) by a runner of a version?"""
    reference = targets()[REFERENCE]
    rest = iter(tests)
    while batch := list(islice(rest, BATCH)):
        left = [(test, [one for one in chosen if not done(test.name, one.name, one.version)]) for test in batch]
        plan = [
            (test, one, number)
            for test, some in left
            if some
            for one in dict.fromkeys([reference.name, *(one.name for one in some)])
            for number in range(test.sets)
        ]
        sets = {(test.name, number): values_of(test, number, folder) for test, _, number in plan}
        jobs = [targets_by(one, chosen).job(test, sets[test.name, number][0], folder) for test, one, number in plan]
        outcomes = pool.run(jobs)
        found: dict[tuple[str, str], list[Outcome]] = {}
        for (test, one, _), outcome in zip(plan, outcomes, strict=True):
            found.setdefault((test.name, one), []).append(outcome)
        yield [
            _judged(test, one, found[test.name, one.name], found[test.name, REFERENCE], sets)
            for test, some in left
            for one in some
        ]


Task = tuple[Test, tuple[str, ...]]
"""A test, and the names of those who are to run it."""


def each_test(
    tasks: Iterable[Task], keep: Callable[[Sequence[Judged]], None], *, folder: Path, until: float, timeout: float
) -> None:
    """These tests, whose files lie in this folder; what came of one is kept at once, until it is too late (by
    `time.monotonic`)."""
    left: dict[str, tuple[str, ...]] = {}

    def tests() -> Iterator[Test]:
        for test, runners in tasks:
            left[test.name] = runners
            yield test

    every = tuple(targets().values())
    with Pool(Limits(seconds=timeout), until=until, tolerant=True) as pool, suppress(OutOfTime):
        for batch in examine(pool, tests(), every, folder, lambda test, runner, version: runner not in left[test]):
            for _, lines in groupby(batch, key=lambda one: one.test):
                keep(list(lines))


def unfinished(task: Task, there: Sequence[Judged]) -> Task | None:
    """What of a task is not among these lines; None: nothing."""
    test, runners = task
    versions = {name: targets()[name].version for name in runners}
    done = {(one.runner, one.version) for one in there if one.test == test.name}
    rest = tuple(name for name in runners if (name, versions[name]) not in done)
    return (test, rest) if rest else None


def targets_by(name: str, chosen: Sequence[Tried]) -> Tried:
    """One that is chosen, or the reference."""
    return next((one for one in chosen if one.name == name), targets()[REFERENCE])


def _judged(test: Test, one: Tried, outcomes: list[Outcome], references: list[Outcome], sets: dict) -> Judged:
    """The first of its sets that is no pass; what is not judged last."""
    status, why = "pass", ""
    for number, (outcome, reference) in enumerate(zip(outcomes, references, strict=True)):
        found, reason = judged_set(test, one, outcome, reference, sets[test.name, number][1])
        if found != "pass" and status in ("pass", "not judged"):
            status, why = found, reason
    told_in = plain(re.sub(rf"\S*/{test.number}\.onnx", "the model", why))[:LONGEST]  # not where it lay this time
    return Judged(test.name, test.kind, test.operator, test.opset, one.name, one.version, status, told_in)


def judged_set(test: Test, one: Tried, outcome: Outcome, reference: Outcome, expected: list[Any]) -> tuple[str, str]:
    """The status, and why it is no pass."""
    runs = told(reference.outputs) if isinstance(reference, Value) else None
    if one.name == REFERENCE and not isinstance(outcome, Value):
        return _claimless(test, outcome)
    if isinstance(outcome, Unsupported):
        return "refused", outcome.why
    if isinstance(outcome, Rejected):
        return "refused", _documented(one, outcome)
    if isinstance(outcome, Crash):
        return "crash", why_not(outcome)
    if isinstance(outcome, Timeout):
        return "hang", why_not(outcome)
    right = Told() if runs is None else judge(expected, expected, runs)
    if one.name == REFERENCE:
        if test.name in DOUBTED and right.why:
            return "not judged", f"in doubt: {DOUBTED[test.name]}: {right.why}"
        return _of(right)
    given = told(outcome.outputs)
    if right.why:  # the reference and the expected values part
        as_expected = judge(given, expected, around(expected, runs), one.narrows).why
        as_reference = judge(given, expected, runs, one.narrows).why
        sides = [name for name, apart in (("expected values", as_expected), ("reference", as_reference)) if not apart]
        doubt = DOUBTED.get(test.name, "the reference and the expected values part")
        return "not judged", f"in doubt: {doubt}; it agrees with {' and '.join(sides) or 'neither'}"
    found = judge(given, expected, runs, one.narrows)
    if found.why and runs is None and set(test.operators) & RANDOM:
        return "not judged", f"it draws: {', '.join(sorted(set(test.operators) & RANDOM))}"
    lacking = [name for name in test.dtypes if name not in NUMPY]
    if found.why and lacking:
        return "not judged", f"it may have been given something else: numpy lacks {', '.join(lacking)}; {found.why}"
    return _of(found)


def _of(found: Told) -> tuple[str, str]:
    if found.why:
        return "wrong", found.why
    return ("not judged", "noise may move every element to anything") if found.wasted else ("pass", "")


def _claimless(test: Test, outcome: Outcome) -> tuple[str, str]:
    """The reference has no value: it has no rule, or it fails."""
    if isinstance(outcome, Rejected) and outcome.kind == "NoRule":
        return "refused", f"{NO_RULE}{outcome.message}"
    if isinstance(outcome, Crash):
        return "crash", why_not(outcome)
    if isinstance(outcome, Timeout):
        return "hang", why_not(outcome)
    return "wrong", why_not(outcome)


def _documented(one: Tried, outcome: Rejected) -> str:
    for pattern, why in one.refuses:
        match = re.search(pattern, f"{outcome.kind}: {outcome.message}")
        if match:
            return why.format(*match.groups())
    return why_not(outcome)
