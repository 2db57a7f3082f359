"""The command `study seeds`: how much of the spread between seeds do runs of one seed show already?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from generators.training.networks import NetworkError
from harness.commands.shared import training_options as options
from harness.commands.shared.engine import Address, Engine, Gpus, Resource, cluster_of
from harness.commands.shared.terminal import fail, interrupted, named, say, unwritten
from harness.commands.shared.training_runs import train_all
from harness.execute.files import replace_text
from harness.execute.isolation.jobs import JobError
from harness.execute.pool import HarnessError
from harness.execute.reading import FileError
from harness.studies.datasets.dataset import DataSet
from harness.studies.loops.loop import FRAMEWORKS, OPTIMIZERS
from harness.studies.loops.train import LoopError
from harness.studies.runs.first import named_difference
from harness.studies.runs.history import History
from harness.studies.runs.opened import opened
from harness.studies.runs.plan import AUGMENTATIONS, Plan, Run
from harness.studies.runs.together import finished
from harness.studies.seeds.protocol import GROUPS, SAME, Group, group_of, runs_of, shares
from harness.studies.seeds.report import Results, as_json, csv_of, lines, page


def seeds(
    frameworks: options.Frameworks = "tensorflow,torch,jax",
    runs: Annotated[int, typer.Option(min=2, help="Runs of each group (the paper: 50).")] = 50,
    epochs: options.Epochs = 200,
    model: options.Network = "smallcnn",
    width: options.Width = 0,
    dataset: options.DataSetName = "digits",
    data: options.Folder = None,
    side: options.Side = 0,
    train: options.Train = 0,
    test: options.Test = 0,
    optimizer: options.Optimizer = "adam",
    rate: options.Rate = 1e-3,
    drops: options.Drops = "80,120,160",
    batch: options.Batch = 32,
    augment: options.Augment = "none",
    device: options.Device = "cpu",
    threads: options.Threads = 4,
    deterministic: Annotated[bool, typer.Option(help="In the frameworks' deterministic mode, on one thread.")] = False,
    name_first: Annotated[
        int, typer.Option("--name", min=0, help="First differences of each group that are named to the element.")
    ] = 1,
    seed: options.Seed = 0,
    jobs: options.JobCount = 1,
    engine: Engine = "processes",
    address: Address = "",
    gpus: Gpus = 0.0,
    resource: Resource = "",
    timeout: options.Timeout = 3600.0,
    out: options.Out = None,
) -> None:
    """Train many times with one seed, and with different ones: what is the same, what differs first, how far."""
    chosen = named(frameworks, FRAMEWORKS, "framework")
    plan = Plan(
        dataset, data, side, train, test, model, width, options.chosen(optimizer, OPTIMIZERS, "optimizer"), rate,
        options.epochs_of(drops), batch, epochs, options.chosen(augment, AUGMENTATIONS, "augmentation"),
        options.checked_device(device), timeout,
    )  # fmt: skip
    folder = out or Path("studies") / f"seeds-{dataset}-{model}"
    versions = options.versions(FRAMEWORKS)
    cluster = cluster_of(engine, address, gpus, resource, folder)
    all_runs = runs_of(chosen, runs, seed, threads, deterministic)
    about = {"seed": str(seed), "threads": str(threads), "deterministic": str(deterministic)}
    try:
        samples = plan.data()
        plan.loop(samples, all_runs[0])
        with opened(folder, plan.about | about | versions):
            code = train_all(plan, all_runs, folder, jobs, seed, cluster)
            done = finished(plan, all_runs, folder)
            groups, found = _groups(plan, samples, done, seed, name_first)
            by = {name: {g.name: g for g in groups if g.framework == name} for name in chosen}
            results = Results(
                plan, runs, threads, deterministic, seed, groups,
                {name: shares(own, seed) for name, own in by.items()}, found, versions,
            )  # fmt: skip
            if groups:
                replace_text(folder / "results.json", json.dumps(as_json(results), indent=1, default=float) + "\n")
                replace_text(folder / "runs.csv", csv_of(results))
                replace_text(folder / "report.html", page(results))
    except (FileError, NetworkError, JobError, HarnessError, LoopError) as error:
        raise fail(f"{error}; epochs that are done are kept in {folder}") from error
    except OSError as error:
        raise fail(unwritten(error, folder)) from error
    for line in lines(results):
        say(line)
    say(f"{folder}/report.html, results.json, runs.csv")
    if code:
        raise interrupted(code)
    if any(not one.same for group in groups if group.name == SAME for one in group.checked):
        raise typer.Exit(1)  # one seed did not give one model, or one order of batches


def _groups(
    plan: Plan, data: DataSet, done: dict[Run, History], seed: int, most: int
) -> tuple[list[Group], dict[tuple[str, str], list[str]]]:
    """Of the runs that are done, and their first differences to the element."""
    groups, named_first = [], {}
    for framework in dict.fromkeys(run.framework for run in done):
        for name in GROUPS:
            own = sorted((r for r in done if (r.framework, r.group) == (framework, name)), key=lambda run: run.number)
            if len(own) < 2:
                continue
            group = group_of(framework, name, [done[run] for run in own], seed)
            groups.append(group)
            named_first[framework, name] = [
                str(named_difference(plan, data, own[0], own[one.run], one)) for one in group.differences[:most]
            ]
    return groups, named_first


STUDIES = (seeds,)
