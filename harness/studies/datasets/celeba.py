"""CelebA as it is published (Z. Liu et al., Deep Learning Face Attributes in the Wild, 2015): img_align_celeba/,
list_attr_celeba.txt (how many pictures; names of attributes; a line a picture: its file, 1 or -1 for each attribute)
and list_eval_partition.txt (a line a picture: its file, 0 to train with, 1 to validate, 2 to test with)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from harness.execute.reading import read_text
from harness.studies.datasets.dataset import DataError, DataSet, Pictures

ATTRIBUTE = "Blond_Hair"
"""What is predicted; the subgroups are by two others, as Zhuang et al. have it."""
GROUPS = {"Male": ("male", "female"), "Young": ("young", "old")}


def celeba(folder: Path, side: int) -> DataSet:
    """Two classes; pictures of side x side. Raises FileError."""
    path = folder / "list_attr_celeba.txt"
    lines = read_text(path).splitlines()
    names = lines[1].split() if len(lines) > 1 else []
    absent = [name for name in (ATTRIBUTE, *GROUPS) if name not in names]
    if absent:
        raise DataError(f"{path}: its second line does not name {absent[0]}")
    values: dict[str, np.ndarray] = {}
    for number, line in enumerate(lines[2:], 3):
        file, *flags = line.split()
        if len(flags) != len(names) or not set(flags) <= {"1", "-1"}:
            raise DataError(f"{path}: line {number} has not 1 or -1 for each of {len(names)} attributes")
        values[file] = np.array(flags) == "1"
    part = _parts(folder / "list_eval_partition.txt")
    chosen = {which: [file for file in values if part.get(file) == which] for which in ("0", "2")}
    if not all(chosen.values()):
        raise DataError(f"{folder}: no pictures to {'train' if not chosen['0'] else 'test'} with")
    train, test = (Pictures(tuple(folder / "img_align_celeba" / file for file in chosen[w]), side) for w in ("0", "2"))
    column = {name: number for number, name in enumerate(names)}
    y, held = (np.array([values[file][column[ATTRIBUTE]] for file in chosen[w]], np.int64) for w in ("0", "2"))
    groups = {}
    for name, (yes, no) in GROUPS.items():
        mask = np.array([values[file][column[name]] for file in chosen["2"]], bool)
        groups |= {yes: mask, no: ~mask}
    return DataSet("celeba", train, y, test, held, (f"not {ATTRIBUTE}", ATTRIBUTE), groups)


def _parts(path: Path) -> dict[str, str]:
    found = {}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        file, _, part = line.strip().partition(" ")
        if part.strip() not in ("0", "1", "2"):
            raise DataError(f"{path}: line {number} is no file and 0, 1 or 2")
        found[file] = part.strip()
    return found
