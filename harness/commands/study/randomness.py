"""The command `study randomness`: how much of the spread of results comes from initialisation, from the order of the
samples, and from the framework."""

from __future__ import annotations

import json
from pathlib import Path

import typer
from rich.table import Table

from generators.training.networks import NetworkError
from harness.commands.shared import training_options as options
from harness.commands.shared.engine import Address, Engine, Gpus, Resource, cluster_of
from harness.commands.shared.terminal import console, fail, interrupted, named, print_wide, say, unwritten
from harness.commands.shared.training_runs import train_all
from harness.execute.files import replace_text
from harness.execute.isolation.jobs import JobError
from harness.execute.pool import HarnessError
from harness.execute.reading import FileError
from harness.studies.datasets.dataset import DataSet
from harness.studies.loops.loop import FRAMEWORKS, OPTIMIZERS
from harness.studies.loops.train import LoopError
from harness.studies.randomness.measures import FEWEST, Measured, by_setting, comparisons, measure
from harness.studies.randomness.protocol import CONTROL, Setting, runs_of, setting_of
from harness.studies.randomness.report import Results, as_json, csv_of, page, rows
from harness.studies.runs.first import named_difference
from harness.studies.runs.opened import opened
from harness.studies.runs.plan import AUGMENTATIONS, Plan, Run
from harness.studies.runs.together import finished


def randomness(
    frameworks: options.Frameworks = "torch,tensorflow",
    settings: options.Settings = "algo+impl,algo,impl,control",
    models: options.Models = 10,
    network: options.Network = "smallcnn",
    width: options.Width = 0,
    dataset: options.DataSetName = "digits",
    data: options.Folder = None,
    side: options.Side = 0,
    train: options.Train = 0,
    test: options.Test = 0,
    optimizer: options.Optimizer = "adam",
    rate: options.Rate = 4e-4,
    drops: options.Drops = "50,100",
    batch: options.Batch = 128,
    epochs: options.Epochs = 200,
    augment: options.Augment = "none",
    device: options.Device = "cpu",
    threads: options.Threads = 4,
    seed: options.Seed = 0,
    jobs: options.JobCount = 1,
    engine: Engine = "processes",
    address: Address = "",
    gpus: Gpus = 0.0,
    resource: Resource = "",
    timeout: options.Timeout = 3600.0,
    out: options.Out = None,
) -> None:
    """Train the same network many times with initialisation, order of samples and framework held still or let vary."""
    chosen = named(frameworks, FRAMEWORKS, "framework")
    try:
        which = tuple(setting_of(name.strip()) for name in settings.split(","))
    except ValueError as error:
        raise fail(str(error)) from error
    plan = Plan(
        dataset, data, side, train, test, network, width, options.chosen(optimizer, OPTIMIZERS, "optimizer"), rate,
        options.epochs_of(drops), batch, epochs, options.chosen(augment, AUGMENTATIONS, "augmentation"),
        options.checked_device(device), timeout,
    )  # fmt: skip
    folder = out or Path("studies") / f"randomness-{dataset}-{network}"
    versions = options.versions(FRAMEWORKS)
    cluster = cluster_of(engine, address, gpus, resource, folder)
    runs = runs_of(chosen, which, models, seed, threads)
    try:
        samples = plan.data()
        plan.loop(samples, runs[0])
        with opened(folder, plan.about | {"seed": str(seed), "threads": str(threads)} | versions):
            code = train_all(plan, runs, folder, jobs, seed, cluster)
            results = _results(plan, runs, folder, samples, which, models, threads, seed, versions)
            _write(folder, results)
    except (FileError, NetworkError, JobError, HarnessError, LoopError) as error:
        raise fail(f"{error}; epochs that are done are kept in {folder}") from error
    except OSError as error:
        raise fail(unwritten(error, folder)) from error
    print_wide(_table(results))
    for framework, lines in results.named.items():
        for line in lines:
            told = f"{framework}, control is not zero: {line}"
            say(told, style="red")
    say(f"{folder}/report.html, results.json, settings.csv")
    if code:
        raise interrupted(code)
    if results.broken:
        raise typer.Exit(1)


def _results(
    plan: Plan, runs: list[Run], folder: Path, data: DataSet, settings: tuple[Setting, ...], models: int, threads: int,
    seed: int, versions: dict[str, str],
) -> Results:  # fmt: skip
    """What the runs that are done come to."""
    done = finished(plan, runs, folder)
    measured: list[Measured] = []
    compared, differences = [], {}
    for framework in dict.fromkeys(run.framework for run in runs):
        groups = by_setting(done, framework)
        found = {name: measure(framework, name, each, data, seed) for name, each in groups.items()}
        ordered = {one.name: found[one.name] for one in settings if one.name in found}
        measured += ordered.values()
        if len(ordered) > 1:
            compared += comparisons(framework, {name: groups[name] for name in ordered}, ordered, seed)
        if CONTROL in found and found[CONTROL].differences:
            own = [run for run in done if run.framework == framework and run.group == CONTROL]
            by_number = dict(enumerate(sorted(own, key=lambda run: run.number)))
            differences[framework] = [
                str(named_difference(plan, data, by_number[0], by_number[one.run], one))
                for one in found[CONTROL].differences[:NAMED]
            ]
    return Results(plan, models, threads, seed, measured, compared, differences, versions)


NAMED = 3
"""Models of a control that is not zero of which the first difference is named to the element: each takes two runs."""


def _write(folder: Path, results: Results) -> None:
    """JSON, CSV and the page; nothing where too few models are done."""
    if not results.measured:
        console.print(f"fewer than {FEWEST} models of each setting are done: nothing to compare", style="yellow")
        return
    replace_text(folder / "results.json", json.dumps(as_json(results), indent=1, default=float) + "\n")
    replace_text(folder / "settings.csv", csv_of(results))
    replace_text(folder / "report.html", page(results))


def _table(results: Results) -> Table:
    """As the paper has it: a line a setting."""
    table = Table("framework", "setting", "models", "accuracy", "sd, points", "churn, %", "L2", "exactly zero")
    for row in rows(results):
        table.add_row(*row)
    return table


STUDIES = (randomness,)
