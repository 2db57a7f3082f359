"""One fault in the training of one optimiser: what becomes of it, with and without the guard; and the file from which
it is done again."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from generators.faults.fault import Fault, Injection
from harness.execute.files import locked, replace_text
from harness.execute.pool import OutOfTime, Pool
from harness.execute.reading import read_json
from harness.studies.faults.injection import Watched, flipped_bit, inject, struck, struck_width
from harness.studies.faults.protocol import Plan, Start, Study, depth_of, operators_of
from harness.studies.faults.store import load, save
from oracles.outcomes import Classified, classify

Task = tuple[int, str]
"""The number of a fault, and the optimiser whose training it strikes."""


@dataclass(frozen=True)
class Experiment:
    """number: of the fault; operator: kind of the layer; depth: of the layer, 0 to 1; bit: that was inverted, -1 where
    it was not one; width: bits of an element that was struck, 16 for an operand that was rounded to them; elements:
    struck; outcome, broken, low_test, history, variance: as of `Classified`, broken -1 where
    it stayed finite; gap: of training accuracy at the end, test_gap: of test accuracy, None where it did not; parts:
    training accuracy of each part of the steps; digest: of the state and the curves at the end; cpu: seconds.
    With the guard (guarded): alarm: steps from the fault to the first alarm that did not come again, -1 without
    one; repeated: alarms that did; recovered: the outcome then."""

    number: int
    optimizer: str
    model: str
    layer: str
    operator: str
    depth: float
    stage: str
    array: str
    epoch: int
    step: int
    precision: str
    bit: int
    width: int
    elements: int
    outcome: str
    broken: int
    low_test: bool
    gap: float | None
    test_gap: float | None
    history: float
    variance: float
    parts: tuple[float, ...]
    digest: str
    cpu: float
    guarded: bool
    alarm: int = -1
    repeated: int = 0
    recovered: str = ""


@dataclass(frozen=True)
class FaultFile:
    """What a file holds: the plan, with one optimiser; the fault, and what it did; what became of it."""

    plan: Plan
    fault: Fault
    injection: Injection
    outcome: str
    digest: str


def digest_of(run: Watched) -> str:
    """SHA-256 of all bits of the state after a run, its curves and its predictions."""
    found = hashlib.sha256()
    for name, array in sorted({**run.trained.state, **run.trained.found}.items()):
        found.update(f"{name} {array.dtype} {array.shape}\n".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def experiment(
    study: Study, pool: Pool, optimizer: str, number: int, starts: Sequence[Start]
) -> tuple[Experiment, FaultFile]:
    """Do one. Raises LoopError."""
    fault = study.fault(number)
    point = study.point_of(fault)
    start, loop = starts[point], study.loop(optimizer)
    first = study.points[point]
    part = study.part(optimizer, study.plan.seed, first, first + study.plan.after, True)
    done = inject(pool, loop, start.state, part, fault)
    run = struck(pool, loop, start.state, part, fault, done)
    found, digest = classify(study.curves([run]), start.band), digest_of(run)
    one = _experiment(study, optimizer, number, fault, done, run, found, digest)
    if study.plan.guarded and study.guarded:
        safe = struck(pool, loop, start.state, part, fault, done, guarded=True, bounds=start.bounds)
        alarms = np.setdiff1d(safe.shown["alarms"], safe.shown["repeated"])
        one = replace(
            one, guarded=True, alarm=int(alarms[0]) if len(alarms) else -1, repeated=len(safe.shown["repeated"]),
            recovered=classify(study.curves([safe]), start.band).outcome, cpu=one.cpu + safe.trained.cpu,
        )  # fmt: skip
    plan = replace(study.plan, optimizers=(optimizer,))
    return one, FaultFile(plan, fault, done, found.outcome, digest)


def _experiment(
    study: Study, optimizer: str, number: int, fault: Fault, done: Injection, run: Watched, found: Classified,
    digest: str,
) -> Experiment:  # fmt: skip
    site, gaps = fault.site, found.gaps
    accuracy = study.curves([run]).parts
    return Experiment(
        number, optimizer, fault.model, site.layer, operators_of(study.network)[site.layer],
        round(depth_of(study.network, site.layer), 4), site.stage, site.array, fault.epoch, fault.step,
        study.plan.precision, flipped_bit(fault, done), struck_width(fault, done),
        sum(count for _, count in done.ranges), found.outcome,
        -1 if found.broken is None else found.broken, found.low_test, gaps and gaps.end, gaps and gaps.test,
        found.history, found.variance, tuple(round(float(value), 5) for value in accuracy), digest, run.trained.cpu,
        False,
    )  # fmt: skip


def each(
    tasks: Iterable[Task], keep: Callable[[Sequence[Experiment]], None], *, plan: Plan, data: Path | None, out: Path,
    until: float,
) -> None:  # fmt: skip
    """Do these one after another, until the time (`time.monotonic`) is over, each with its file in the folder of the
    study. Raises FileError, LoopError, OSError, and what pools raise."""
    study, starts = Study(plan, data), dict[str, Sequence[Start]]()
    with contextlib.suppress(OutOfTime), Pool(until=until) as pool:
        for number, optimizer in tasks:
            if optimizer not in starts:
                starts[optimizer] = _starts(study, pool, optimizer, out)
            one, file = experiment(study, pool, optimizer, number, starts[optimizer])
            write(out / "faults" / f"{optimizer}-{number}.json", file)
            keep([one])


def _starts(study: Study, pool: Pool, optimizer: str, out: Path) -> Sequence[Start]:
    """Those of the folder; else one process makes them, and all others that need them wait."""
    folder = out / "starts" / optimizer
    with locked(out / "starts" / f".{optimizer}.lock"):
        found = load(folder, study.about)
        if found is None:
            found = study.starts(pool, optimizer)
            save(folder, study.about, found)
        return found


def undone(task: Task, there: Sequence[Experiment]) -> Task | None:
    """An experiment that is not among these; None where it is."""
    return None if task in {(one.number, one.optimizer) for one in there} else task


def write(path: Path, file: FaultFile) -> None:
    """The file of one experiment, from which it is done again. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_text(path, json.dumps(asdict(file)) + "\n")


def read(path: Path) -> FaultFile:
    """What `write` wrote. Raises FileError."""
    return read_json(path, FaultFile)


@dataclass(frozen=True)
class Replayed:
    """digest: of the run that was done again; same: is it that of the file? before, after:
    values that the fault put in place of others, the first ones; loss: of each step."""

    digest: str
    same: bool
    before: tuple[float, ...]
    after: tuple[float, ...]
    loss: tuple[float, ...]


SHOWN_VALUES = 8


def study_of(file: FaultFile, folder: Path | None) -> Study:
    """The fault-free run, to the step of the fault. Raises PlanError, FileError and NetworkError."""
    return Study(file.plan, folder, (file.fault.epoch, file.fault.step))


def replay(study: Study, pool: Pool, file: FaultFile) -> Replayed:
    """Train to the step of the fault again, and do to it what the file says. Raises LoopError."""
    (optimizer,), (first,) = study.plan.optimizers, study.points
    state = study.state_at(pool, optimizer, 0)
    part = study.part(optimizer, study.plan.seed, first, first + study.plan.after, True)
    return _replayed(struck(pool, study.loop(optimizer), state, part, file.fault, file.injection), file)


def _replayed(run: Watched, file: FaultFile) -> Replayed:
    digest = digest_of(run)
    before, after = (tuple(float(v) for v in values[:SHOWN_VALUES]) for values in file.injection.values)
    return Replayed(digest, digest == file.digest, before, after, tuple(map(float, run.trained.found["loss"])))
