"""The command `study overhead`: the time of training with determinism over the time without it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from generators.training.architectures.named import ARCHITECTURES
from generators.training.networks import Network
from harness.commands.shared import training_options as options
from harness.commands.shared.engine import Address, Engine, Gpus, Resource, cluster_of
from harness.commands.shared.record import Record, RecordError
from harness.commands.shared.recorded import recorded
from harness.commands.shared.recorded_jobs import ONE_MACHINE, Keep, together
from harness.commands.shared.terminal import fail, interrupted, named, print_wide, say, unwritten
from harness.execute.files import replace_text
from harness.studies.loops.loop import FRAMEWORKS
from harness.studies.overhead.measure import KERNELS, Timed, networks, time_one
from harness.studies.overhead.report import as_json, csv_of, kernels_csv, page


def overhead(
    frameworks: options.Frameworks = "torch,tensorflow",
    models: Annotated[str, typer.Option("--networks", metavar="GLOB", help=f"Of {', '.join(ARCHITECTURES)}.")] = "*",
    kernels: Annotated[bool, typer.Option(help="Time convolutions with windows of 1 x 1 to 7 x 7, too.")] = True,
    side: Annotated[int, typer.Option(min=8, help="Of the pictures.")] = 32,
    width: options.Width = 0,
    steps: Annotated[int, typer.Option(min=1, help="Of a round (the paper: 100).")] = 100,
    rounds: Annotated[int, typer.Option(min=1, help="With the deterministic mode, and without.")] = 3,
    batch: options.Batch = 128,
    device: options.Device = "cpu",
    jobs: options.JobCount = 1,
    engine: Engine = "processes",
    address: Address = "",
    gpus: Gpus = 0.0,
    resource: Resource = "",
    timeout: options.Timeout = 3600.0,
    out: options.Out = None,
) -> None:
    """Time training steps with the deterministic mode on and off, in turn, network by network."""
    chosen = named(frameworks, FRAMEWORKS, "framework")
    names = named(models, ARCHITECTURES, "network")
    options.checked_device(device)
    folder, versions = out or Path("studies") / "overhead", options.versions(FRAMEWORKS)
    head = {"side": side, "width": width, "steps": steps, "rounds": rounds, "batch": batch, "gpu": int(device == "gpu")}
    cluster = cluster_of(engine, address, gpus, resource, folder, ONE_MACHINE)
    try:
        found, refused = networks(names, tuple(KERNELS) if kernels else (), side, width)
        folder.mkdir(parents=True, exist_ok=True)
        kept = Record.opened(folder / "rounds.jsonl", head, Timed)
    except RecordError as error:
        raise fail(str(error)) from error
    except OSError as error:
        raise fail(f"cannot use {error.filename or folder}: {error.strerror}") from error
    for why in refused.values():
        say(f"left out: {why}")
    if not found:
        raise fail("no network is left")
    log = recorded(folder)
    kept.told = lambda one: log.case(
        "overhead", {"timed": 1}, sum(one.default + one.deterministic), subject=f"{one.framework} {one.network}"
    )
    done = {(one.framework, one.network) for one in kept.runs}
    todo = [(f, name, network) for f in chosen for name, network in found.items() if (f, name) not in done]
    one = partial(work, steps=steps, rounds=rounds, batch=batch, timeout=timeout, device=device)
    try:
        kept, code, failure = together(kept, Timed, todo, jobs, one, len(todo), left, cluster)
    except RecordError as error:
        raise fail(str(error)) from error
    except OSError as error:
        raise fail(unwritten(error, folder)) from error
    if failure:
        raise fail(f"{failure}; what is done is kept in {folder}")
    kept.close()
    if kept.runs:
        try:
            replace_text(folder / "results.json", json.dumps(as_json(kept.runs, versions), indent=1) + "\n")
            replace_text(folder / "overhead.csv", csv_of(kept.runs))
            replace_text(folder / "kernels.csv", kernels_csv(kept.runs))
            replace_text(folder / "report.html", page(kept.runs, versions, device))
        except OSError as error:
            raise fail(unwritten(error, folder)) from error
    print_wide(_table(kept.runs))
    say(f"{folder}/report.html, results.json, overhead.csv, kernels.csv")
    if code:
        raise interrupted(code)


def left(task: tuple[str, str, Network], timed: Sequence[Timed]) -> tuple[str, str, Network] | None:
    """A network is timed, or it is not."""
    return None if task[:2] in {(one.framework, one.network) for one in timed} else task


def work(
    tasks: Iterable[tuple[str, str, Network]], keep: Keep[Timed], *, steps: int, rounds: int, batch: int,
    timeout: float, device: str,
) -> None:  # fmt: skip
    """Networks one after another."""
    for framework, name, network in tasks:
        one = time_one(
            framework, name, network, steps=steps, rounds=rounds, batch=batch, timeout=timeout, device=device
        )
        keep([one])


def _table(timed: list[Timed]) -> Table:
    """A line a network."""
    shown = Table("framework", "network", "ratio", "of single rounds")
    for one in timed:
        low, high = one.ends
        shown.add_row(one.framework, one.network, f"{one.ratio:.3f}", f"{low:.3f} to {high:.3f}")
    return shown


STUDIES = (overhead,)
