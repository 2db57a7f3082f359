"""Options of the studies that train named networks on data sets."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from generators.training.architectures.named import ARCHITECTURES
from harness.commands.shared.terminal import fail, finite
from harness.execute.processes.worker import versions_of
from harness.studies.datasets import NAMES
from harness.studies.loops.loop import DEVICES, FRAMEWORKS, OPTIMIZERS
from harness.studies.runs.plan import AUGMENTATIONS

PACKAGES = {"torch": ["torch"], "tensorflow": ["tensorflow-cpu|tensorflow", "keras"], "jax": ["jax", "jaxlib"]}
"""Whose versions a study depends on."""

Frameworks = Annotated[str, typer.Option(metavar="GLOB", help=f"Globs of {', '.join(FRAMEWORKS)}.")]
Settings = Annotated[str, typer.Option(metavar="NAMES", help="Of algo+impl, algo, impl and control.")]
Models = Annotated[int, typer.Option(min=2, help="Models of each setting.")]
Network = Annotated[str, typer.Option(metavar="NAME", help=f"One of {', '.join(ARCHITECTURES)}.")]
Width = Annotated[int, typer.Option(min=0, help="Channels of its first convolution (0: the published number).")]
DataSetName = Annotated[str, typer.Option("--dataset", metavar="NAME", help=f"One of {', '.join(NAMES)}.")]
Folder = Annotated[
    Path | None, typer.Option("--data", metavar="DIR", help="Where the data set is, as it is published.")
]
Side = Annotated[int, typer.Option(min=0, help="Of pictures of celeba (0: 64) and imagenet (0: 224).")]
Train = Annotated[int, typer.Option(min=0, help="Only so many training samples (0: all).")]
Test = Annotated[int, typer.Option(min=0, help="Only so many test samples (0: all).")]
Optimizer = Annotated[str, typer.Option(metavar="NAME", help=f"One of {', '.join(OPTIMIZERS)}.")]
Rate = Annotated[float, typer.Option(min=0, help="Learning rate.", callback=finite)]
Drops = Annotated[str, typer.Option(metavar="EPOCHS", help="Epochs from which it is a tenth of what it was.")]
Batch = Annotated[int, typer.Option(min=1, help="Samples of a step.")]
Epochs = Annotated[int, typer.Option(min=1, help="Epochs of a run.")]
Augment = Annotated[str, typer.Option(metavar="HOW", help=f"One of {', '.join(AUGMENTATIONS)}.")]
Device = Annotated[str, typer.Option(metavar="NAME", help="cpu or gpu.")]
Seed = Annotated[int, typer.Option(min=0, max=2**31, help="Of all seeds, and of intervals.")]
Threads = Annotated[int, typer.Option(min=1, help="Most threads of a process where the framework varies.")]
JobCount = Annotated[int, typer.Option("--jobs", min=1, help="Runs at once.")]
Timeout = Annotated[float, typer.Option(min=1, callback=finite, help="Seconds that one epoch may take.")]
Out = Annotated[Path | None, typer.Option(metavar="DIR", help="Where runs and results go, and are gone on with.")]


def chosen(value: str, known: Iterable[str], what: str) -> str:
    """A name that there is; one clear line where it is none."""
    names = tuple(known)
    if value not in names:
        raise fail(f"no {what} is called {value!r}; there are {', '.join(names)}")
    return value


def epochs_of(text: str) -> tuple[int, ...]:
    """Comma-separated numbers of epochs, or nothing; one clear line where it is neither."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isdecimal() for part in parts):
        raise fail(f"--drops: {text!r} is no list of epochs such as 50,100")
    return tuple(sorted(int(part) for part in parts))


def checked_device(device: str) -> str:
    """cpu or gpu."""
    return chosen(device, DEVICES, "device")


def versions(frameworks: tuple[str, ...]) -> dict[str, str]:
    """Of what the runs depend on."""
    return versions_of(["numpy", *(package for name in frameworks for package in PACKAGES[name])])
