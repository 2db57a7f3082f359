"""Data sets that studies train on: one that is embedded, others from a folder in the form in which they are published.
Nothing is downloaded."""

from __future__ import annotations

from pathlib import Path

from harness.studies.datasets.celeba import celeba
from harness.studies.datasets.cifar import cifar10, cifar100
from harness.studies.datasets.dataset import DataError, DataSet
from harness.studies.datasets.digits import digits
from harness.studies.datasets.imagenet import imagenet

NAMES = ("digits", "cifar10", "cifar100", "celeba", "imagenet")


def load(name: str, folder: Path | None = None, side: int = 0, train: int = 0, test: int = 0) -> DataSet:
    """The data set of this name. folder: where its files are; side: of pictures of celeba (64) and imagenet (224);
    train, test: only so many samples (0: all). Raises FileError."""
    if name not in NAMES:
        raise DataError(f"no data set is called {name!r}; there are {', '.join(NAMES)}")
    if name == "digits":
        return digits().first(train, test)
    if folder is None:
        raise DataError(f"{name} is read from a folder: say where it is; nothing is downloaded")
    if name in ("cifar10", "cifar100"):
        return (cifar10 if name == "cifar10" else cifar100)(folder).first(train, test)
    return (celeba(folder, side or 64) if name == "celeba" else imagenet(folder, side or 224)).first(train, test)
