"""ImageNet (ILSVRC 2012) as its training archives unpack: train/WNID/*.JPEG, and val/ either in the same way or flat
beside LOC_val_solution.csv (a line a picture: its name, and the WNID that its labels begin with)."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from harness.execute.reading import read_text
from harness.studies.datasets.dataset import DataError, DataSet, Pictures

ENDINGS = (".jpeg", ".jpg", ".png")


def imagenet(folder: Path, side: int) -> DataSet:
    """Classes are the folders of train/ in order of their names; pictures of side x side. Raises FileError."""
    classes = tuple(one.name for one in _listed(folder / "train") if one.is_dir())
    train = {name: _pictures(folder / "train" / name) for name in classes}
    if not any(train.values()):
        raise DataError(f"{folder / 'train'}: no folders with pictures")
    solution = folder / "LOC_val_solution.csv"
    test = _solved(solution, folder / "val") if solution.exists() else {}
    test = test or {one.name: _pictures(one) for one in _listed(folder / "val") if one.is_dir()}
    strange = sorted(set(test) - set(classes))
    if strange or not any(test.values()):
        raise DataError(f"{folder / 'val'}: " + (f"{strange[0]} is no class of train" if strange else "no pictures"))
    (x, y), (held_x, held_y) = (_made(part, classes, side) for part in (train, test))
    return DataSet("imagenet", x, y, held_x, held_y, classes)


def _made(part: dict[str, list[Path]], classes: tuple[str, ...], side: int) -> tuple[Pictures, np.ndarray]:
    paths = [(path, number) for number, name in enumerate(classes) for path in part.get(name, ())]
    return Pictures(tuple(path for path, _ in paths), side), np.array([number for _, number in paths], np.int64)


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise DataError(f"{folder}: {error.strerror}") from error


def _pictures(folder: Path) -> list[Path]:
    return [path for path in _listed(folder) if path.suffix.lower() in ENDINGS]


def _solved(path: Path, folder: Path) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for number, row in enumerate(csv.reader(read_text(path).splitlines()), 1):
        if number == 1 and row[:1] == ["ImageId"]:
            continue
        if len(row) != 2 or not row[1].split():
            raise DataError(f"{path}: line {number} is no name and labels")
        found.setdefault(row[1].split()[0], []).append(folder / f"{row[0]}.JPEG")
    return found
