"""The command `faults replay`: one fault of a study of faults, done again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from generators.faults.artifact import ArtifactError, read
from generators.training.networks import NetworkError
from harness.commands.shared.terminal import console, fail, say, unwritten
from harness.execute.pool import HarnessError, Pool
from harness.execute.reading import FileError, read_by
from harness.studies.datasets import NAMES
from harness.studies.faults import experiment
from harness.studies.faults.experiment import FaultFile, Replayed
from harness.studies.faults.from_artifact import file_of, plan_of
from harness.studies.faults.protocol import PlanError, Study
from harness.studies.loops.train import LoopError

faults = typer.Typer(name="faults", help="Faults of hardware in training.", no_args_is_help=True)


@faults.callback()
def _group() -> None:
    """Faults of hardware in training."""


@faults.command()
def replay(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Of `study faults` (.json), or of the artifact (.csv).")],
    data: Annotated[Path | None, typer.Option(metavar="DIR", help="Where the data set's files are.")] = None,
    dataset: Annotated[str, typer.Option(help=f"For .csv: of {', '.join(NAMES)}.")] = "cifar10",
    batch: Annotated[int, typer.Option(min=1, help="For .csv: samples of a step (the artifact: 128 a worker).")] = 128,
    width: Annotated[int, typer.Option(min=0, help="For .csv: channels of the first convolution (0: 64).")] = 0,
    after: Annotated[int, typer.Option(min=1, help="For .csv: steps from the fault on.")] = 200,
    epoch: Annotated[int | None, typer.Option(min=0, help="For .csv: instead of its own, to be there sooner.")] = None,
    step: Annotated[int | None, typer.Option(min=0, help="For .csv: instead of its own.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="For .csv: write it as .json, too.")] = None,
) -> None:
    """Do a fault again: train to its step, put the same bits in the same places, and go on. Exit status 1 where the
    run is not the one of the file, bit for bit."""
    try:
        with Pool() as pool:
            if file.suffix == ".csv":
                found = read_by(file, read)
                when = found.epoch if epoch is None else epoch, found.step if step is None else step
                study = Study(plan_of(found, dataset, batch, width, after), data, when)
                one = file_of(study, pool, found, *when)
                if out:
                    experiment.write(out, one)
            else:
                one = experiment.read(file)
                study = experiment.study_of(one, data)
            again = experiment.replay(study, pool, one)
    except (FileError, PlanError, NetworkError, HarnessError, LoopError) as error:
        raise fail(str(error)) from error
    except ArtifactError as error:
        raise fail(f"{file}: {error}") from error
    except OSError as error:
        raise fail(unwritten(error, out)) from error
    _tell(one, again)
    if not again.same:
        console.print("another run than that of the file", style="red")
        raise typer.Exit(1)


def _tell(one: FaultFile, again: Replayed) -> None:
    fault, site = one.fault, one.fault.site
    struck = sum(count for _, count in one.injection.ranges)
    lines = [
        f"{fault.model} in {site.layer}, {site.stage}, {site.array}; {one.plan.optimizers[0]}, "
        f"epoch {fault.epoch}, step {fault.step}",
        f"{struck} of {list(one.injection.shape)} {one.injection.dtype} elements",
        *(f"  {before!r} -> {after!r}" for before, after in zip(again.before, again.after, strict=True)),
        f"loss from then on: {' '.join(f'{loss:.4g}' for loss in again.loss[:8])} … {again.loss[-1]:.4g}",
        *([f"outcome: {one.outcome}"] if one.outcome else []),
        f"the same bit for bit: {again.digest[:16]}" if again.same else f"{again.digest[:16]}, not {one.digest[:16]}",
    ]
    for line in lines:
        say(line)


COMMANDS = (faults,)
