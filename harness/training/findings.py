"""From a strategy that deviates to a finding: smaller, confirmed, and stored as a program that anyone can run."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from generators.training.runs import Arrays, Training, dumps
from harness.execute.environments import versions_of
from harness.execute.files import locked, replace_text, whole
from harness.execute.pool import OutOfTime
from harness.execute.templates import render
from harness.findings.database.recorder import NOTHING, Recorder
from harness.findings.deviation import Deviation
from harness.findings.reproducer import INLINE, PROLOGUE, WRONG, literal, looked_for
from harness.search.reduce import Budget
from harness.strategies import Strategy
from harness.training.judge import Judgement, TrainingJudge
from harness.training.programs import program
from harness.training.reduce import reduce_training
from oracles.judge.compare import Expected
from oracles.judge.discrepancy import SYMPTOMS
from oracles.judge.verdict import normalized
from oracles.training import sharding


def fingerprint(strategy: Strategy, training: Training, judgement: Judgement) -> str:
    """Symptom, strategy, the kind of what is wrong, and the kinds of layers, e.g. value-torch-ddp-gradient-1f3a."""
    assert judgement.discrepancy is not None
    kind = judgement.part.split(".")[0]
    key = [
        judgement.discrepancy.symptom,
        strategy.name,
        kind,
        *training.network.kinds,
        normalized(judgement.discrepancy),
    ]
    digest = hashlib.sha256("\n".join(key).encode()).hexdigest()[:6]
    return "-".join(filter(None, (judgement.discrepancy.symptom, strategy.name, kind, digest)))


def text_of(found: Deviation) -> str:
    """What a person reads when a campaign fails."""
    lines = [
        f"{SYMPTOMS[found.symptom].__name__}  {found.part or 'the run'}   {found.strategy} on {found.world} ranks "
        "vs one device",
        found.message,
    ]
    if found.twin:
        lines.append(f"float64 twin: {found.twin}")
    return "\n".join([*lines, f"reproducer: {found.path}/reproducer.py"])


def investigate(
    judge: TrainingJudge,
    folder: Path,
    training: Training,
    strategy: Strategy,
    world: int,
    judgement: Judgement,
    budget: Budget,
    record: Recorder = NOTHING,
) -> Deviation:
    """Reduce, run the float64 twin, and store. The case is stored before it is reduced, so that an interruption loses
    nothing, and is what remains where time is over before it is small."""
    first = _save(judge, folder, training, strategy, world, judgement, record)
    assert judgement.discrepancy is not None
    symptom = judgement.discrepancy.symptom

    def fails(candidate: Training, ranks: int) -> bool:
        found = judge.examine(candidate, strategy, ranks)
        return (
            found.discrepancy is not None
            and found.discrepancy.symptom == symptom
            and bool(found.part) == bool(judgement.part)
        )

    try:
        small, ranks = reduce_training(training, world, strategy.worlds, fails, budget)
        again = judge.examine(small, strategy, ranks)
    except OutOfTime:
        return first
    if again.discrepancy is None:  # it comes and goes: kept as it is
        return first
    found = _save(judge, folder, small, strategy, ranks, again, record)
    if found.fingerprint != first.fingerprint:
        _drop(folder, first.fingerprint)
        record.dropped(first.fingerprint)
    return found


def _drop(folder: Path, name: str) -> None:
    with locked(folder / ".lock"):
        shutil.rmtree(folder / name)


def _save(
    judge: TrainingJudge, folder: Path, training: Training, strategy: Strategy, world: int, judgement: Judgement,
    record: Recorder,
) -> Deviation:  # fmt: skip
    assert judgement.discrepancy is not None
    name = fingerprint(strategy, training, judgement)
    own = folder / name
    found = Deviation(
        fingerprint=name,
        symptom=judgement.discrepancy.symptom,
        strategy=strategy.name,
        world=world,
        part=judgement.part,
        message=judgement.discrepancy.message,
        twin=_twin(judge, training, strategy, world),
        layers=training.network.kinds,
        versions=versions_of(["numpy", *strategy.packages], strategy.environment),
        path=str(own),
    )
    expected = judge.expected(training, strategy, world)
    with locked(folder / ".lock"):
        report = render(
            "training/report.md.j2",
            found=found,
            training=training,
            text=text_of(found),
            program=program(training, strategy),
        )
        with whole(own) as scratch:
            replace_text(scratch / "training.json", dumps(training))
            write_reproducer(scratch, training, strategy, world, expected, found, judge.arrays(training))
            replace_text(scratch / "report.md", report)
            replace_text(scratch / "finding.json", json.dumps(asdict(found), indent=1) + "\n")
    record.finding(name, [strategy.name], found.symptom, found.part)
    return found


def _twin(judge: TrainingJudge, training: Training, strategy: Strategy, world: int) -> str | None:
    if training.settings.dtype == "float64":
        return None
    wide = replace(training, settings=replace(training.settings, dtype="float64"))
    return judge.examine(wide, strategy, world).status


def write_reproducer(
    folder: Path, training: Training, strategy: Strategy, world: int, expected: Expected, found: Deviation,
    arrays: Arrays,
) -> None:  # fmt: skip
    """`reproducer.py`, and `data.npz` where arrays are large. arrays: that the run is given."""
    values = {name: bound.value for name, bound in zip(expected.names, expected.values, strict=True)}
    errors = {name: bound.error for name, bound in zip(expected.names, expected.values, strict=True)}
    groups = {"arrays": arrays, "expected": values, "allowed": errors}
    inline = None
    if all(array.size <= INLINE for group in groups.values() for array in group.values()):
        inline = {kind: literal(group, keyed=True) for kind, group in groups.items()}
    else:
        named = {f"{kind}/{name}": array for kind, group in groups.items() for name, array in group.items()}
        np.savez_compressed(folder / "data.npz", **named)  # type: ignore[arg-type]
    check = render(
        "training/check.py.j2",
        world=strategy.processes(world),
        variables=strategy.variables(world),
        symptom=found.symptom,
        seconds=60.0,
        inline=inline,
        types={name: (type_.dtype, type_.shape) for name, type_ in zip(expected.names, expected.types, strict=True)},
        wrong=WRONG,
        replicas=sharding.REPLICATED if strategy.replicas else (),
    )
    versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    versions += f" (environment {strategy.environment})" if strategy.environment else ""
    text = program(training, strategy)
    modules = looked_for(strategy.modules, text)
    text = PROLOGUE.format(title=text_of(found).splitlines()[0], versions=versions, modules=modules) + text + check
    replace_text(folder / "reproducer.py", text)
