"""The command `study faults`: faults of hardware in training, and what becomes of it."""

from __future__ import annotations

import math
import time
import zlib
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from generators.faults.models import MODELS, PUBLISHED
from generators.training.architectures.named import ARCHITECTURES
from generators.training.networks import NetworkError
from harness.commands.shared.engine import Address, Engine, Gpus, Resource, cluster_of
from harness.commands.shared.record import Record, RecordError
from harness.commands.shared.recorded import recorded
from harness.commands.shared.recorded_jobs import ONE_MACHINE, together
from harness.commands.shared.terminal import (
    Json,
    fail,
    interrupted,
    print_wide,
    say,
    seconds_of,
    unwritten,
    write_json,
)
from harness.execute.files import replace_text
from harness.execute.processes.worker import versions_of
from harness.execute.reading import FileError
from harness.studies.datasets import NAMES
from harness.studies.faults.experiment import Experiment, each, undone
from harness.studies.faults.injection import FRAMEWORKS
from harness.studies.faults.protocol import PRECISIONS, Plan, PlanError, Study, experiments
from harness.studies.faults.report import GROUPS, as_json, comparisons, csv_of, detections, fault_free, lines, page
from harness.studies.faults.store import load
from harness.studies.loops.loop import OPTIMIZERS
from oracles.outcomes import OUTCOMES


def faults(
    more: Annotated[
        list[str] | None, typer.Argument(metavar="[OPTIMIZER]...", help="Further ones behind --test-optimizers.")
    ] = None,
    baseline: Annotated[str, typer.Option(help=f"The first optimiser: {', '.join(OPTIMIZERS)}.")] = "adam",
    test_optimizers: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Others, between commas or spaces, or named again.")
    ] = None,
    num_experiments: Annotated[int, typer.Option(min=1, help="Faults, each of which strikes every optimiser.")] = 100,
    steps_after_injection: Annotated[
        int, typer.Option(min=1, help="Steps from the fault on, its own among them.")
    ] = 200,
    network: Annotated[str, typer.Option(help=f"Of {', '.join(ARCHITECTURES)}.")] = "smallcnn",
    width: Annotated[int, typer.Option(min=0, help="Channels of its first convolution (0: the published number).")] = 0,
    dataset: Annotated[str, typer.Option(help=f"Of {', '.join(NAMES)}.")] = "digits",
    data: Annotated[Path | None, typer.Option(metavar="DIR", help="Where the data set's files are.")] = None,
    framework: Annotated[str, typer.Option(help=f"Of {', '.join(FRAMEWORKS)}.")] = "torch",
    precision: Annotated[
        str, typer.Option(help=f"Of {', '.join(PRECISIONS)}: 16 bits are mixed precision.")
    ] = "float32",
    models: Annotated[
        str,
        typer.Option(metavar="NAME,...", help=f"Fault models: the 18 published ones, or any of {', '.join(MODELS)}."),
    ] = "",
    batch: Annotated[int, typer.Option(min=1, help="Samples of a step.")] = 64,
    warm: Annotated[int, typer.Option(min=1, help="Fault-free epochs first.")] = 3,
    band: Annotated[
        int, typer.Option(min=3, help="Fault-free runs with other seeds, which outcomes are judged by.")
    ] = 20,
    guard: Annotated[bool, typer.Option(help="Repeat each experiment under the guard.")] = True,
    seed: Annotated[int, typer.Option(min=0, help="The same seed draws the same faults.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Experiments at once.")] = 1,
    engine: Engine = "processes",
    address: Address = "",
    gpus: Gpus = 0.0,
    resource: Resource = "",
    budget: Annotated[str | None, typer.Option(help="Stop after so long, 15m say, and go on another time.")] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where everything goes.")] = Path("studies/faults"),
    json_file: Json = None,
) -> None:
    """Faults of hardware in the training of several optimisers: seven outcomes, and a guard against them."""
    named = [name for text in (*(test_optimizers or []), *(more or [])) for name in text.replace(",", " ").split()]
    chosen = tuple(models.replace(",", " ").split()) or tuple(model.name for model in PUBLISHED)
    try:
        plan = Plan(
            network, dataset, framework, precision, tuple(dict.fromkeys((baseline, *named))), chosen, batch, width,
            warm, steps_after_injection, band, seed, guard,
        )  # fmt: skip
        study = Study(plan, data)
        head = {"plan": zlib.crc32(repr(study.about).encode()), "seed": seed}
        duration = seconds_of(budget) if budget else math.inf
        out.mkdir(parents=True, exist_ok=True)
        cluster = cluster_of(engine, address, gpus, resource, out, ONE_MACHINE)
        kept = Record.opened(out / "experiments.jsonl", head, Experiment)
    except (typer.BadParameter, PlanError, NetworkError, RecordError) as error:
        raise fail(str(error)) from error
    except OSError as error:
        raise fail(f"cannot use {out}: {error.strerror}") from error
    log = recorded(out, seed)
    kept.told = lambda one: log.case("fault", {one.outcome: 1}, one.cpu, number=one.number, subject=one.optimizer)
    done = {(one.number, one.optimizer) for one in kept.runs}
    todo = [case for case in experiments(plan, num_experiments) if case not in done]
    total = num_experiments * len(plan.optimizers)
    say(f"{total} experiments, {total - len(todo)} of them there already")
    started, before = time.monotonic(), len(kept.runs)
    work = partial(each, plan=plan, data=data, out=out, until=started + duration)
    try:
        kept, code, failure = together(kept, Experiment, todo, jobs, work, len(todo), undone, cluster)
        kept.close()
        starts = {name: load(out / "starts" / name, study.about) or [] for name in plan.optimizers}
    except FileError as error:
        raise fail(str(error)) from error
    except OSError as error:
        raise fail(unwritten(error, out)) from error
    order = {name: number for number, name in enumerate(plan.optimizers)}
    found = [one for one in kept.runs if one.number < num_experiments and one.optimizer in order]
    found.sort(key=lambda one: (one.number, order[one.optimizer]))
    _told(found, time.monotonic() - started, len(kept.runs) - before)
    quiet = fault_free({name: listed for name, listed in starts.items() if listed})
    told = as_json(plan, found, quiet)
    try:
        replace_text(out / "experiments.csv", csv_of(found))
        text = page(plan, found, versions_of(["numpy", plan.framework]), quiet)
        replace_text(out / "report.html", text)
    except OSError as error:
        raise fail(unwritten(error, out)) from error
    write_json(out / "study.json", told)
    write_json(json_file, told)
    say(f"{out}/report.html, {out}/experiments.csv, {out}/study.json")
    if failure:
        raise fail(f"{failure}; experiments so far are kept in {kept.path}")
    if code:
        raise interrupted(code)


def _told(found: list[Experiment], seconds: float, count: int) -> None:
    """Tables on the terminal. seconds: that `count` of the experiments took, with the fault-free runs."""
    shown = [outcome for outcome in OUTCOMES if any(one.outcome == outcome for one in found)]
    for name in ("optimiser", "fault model", "direction"):
        table = Table(name, "all", *shown, "not masked")
        for line in lines(found, GROUPS[name]):
            interval = f"{100 * line.changed.low:.1f} to {100 * line.changed.high:.1f} %"
            counts = [str(line.counts.get(outcome, 0) or "·") for outcome in shown]
            table.add_row(line.group, str(line.total), *counts, interval)
        print_wide(table)
    for one in comparisons(found):
        say(f"{one.first} and {one.second}: {one.test.name}, p {one.test.p:.3g}, adjusted {one.p:.3g}")
    for line in detections(found):
        say(
            f"guard: {line.outcome}: {line.soon} of {line.total} found within 2 iterations, {line.late} later, "
            f"{line.ended_well} ended as fault-free"
        )
    rate = count / seconds * 3600 if count else 0.0
    say(f"{len(found)} experiments; {seconds:.0f} s, {rate:.0f} an hour")


STUDIES = (faults,)
