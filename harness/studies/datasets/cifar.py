"""CIFAR-10 and CIFAR-100 (A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009) in their binary
version, records of one label (CIFAR-100: a coarse and a fine one) and 3,072 bytes, channels first; or in the Python
version, pickles, where a folder has no binary files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from harness.execute.reading import read_text
from harness.studies.datasets.cifar_pickles import PIXELS, names_of, samples_of
from harness.studies.datasets.dataset import DataError, DataSet, bytes_of


def cifar10(folder: Path) -> DataSet:
    """Of a folder with data_batch_1.bin to data_batch_5.bin, test_batch.bin and batches.meta.txt; or data_batch_1 to
    data_batch_5, test_batch and batches.meta. Raises FileError."""
    numbers = range(1, 6)
    if (folder / "batches.meta").exists() and not (folder / "batches.meta.txt").exists():
        train = [samples_of(folder / f"data_batch_{number}", "labels") for number in numbers]
        test, names = samples_of(folder / "test_batch", "labels"), names_of(folder / "batches.meta", "label_names")
        return _made("cifar10", train, [test], folder / "batches.meta", names)
    train = [_records(folder / f"data_batch_{number}.bin", 1) for number in numbers]
    meta = folder / "batches.meta.txt"
    return _made("cifar10", train, [_records(folder / "test_batch.bin", 1)], meta, _listed(meta))


def cifar100(folder: Path) -> DataSet:
    """Of a folder with train.bin, test.bin and fine_label_names.txt; or train, test and meta; labels are the fine ones.
    Raises FileError."""
    if (folder / "meta").exists() and not (folder / "fine_label_names.txt").exists():
        train, test = ([samples_of(folder / name, "fine_labels")] for name in ("train", "test"))
        return _made("cifar100", train, test, folder / "meta", names_of(folder / "meta", "fine_label_names"))
    train, test = ([_records(folder / f"{name}.bin", 2)] for name in ("train", "test"))
    meta = folder / "fine_label_names.txt"
    return _made("cifar100", train, test, meta, _listed(meta))


def _listed(path: Path) -> tuple[str, ...]:
    return tuple(line.strip() for line in read_text(path).splitlines() if line.strip())


def _records(path: Path, labels: int) -> tuple[np.ndarray, np.ndarray]:
    """Pixels from 0 to 1, and the last of a record's labels."""
    raw, size = bytes_of(path), labels + PIXELS
    if not raw.size or raw.size % size:
        raise DataError(f"{path}: {raw.size} bytes are no records of {size}")
    records = raw.reshape(-1, size)
    return records[:, labels:].reshape(-1, 3, 32, 32), records[:, labels - 1].astype(np.int64)


def _made(
    name: str, train: list[tuple[np.ndarray, np.ndarray]], test: list[tuple[np.ndarray, np.ndarray]], names: Path,
    classes: tuple[str, ...],
) -> DataSet:  # fmt: skip
    (x, y), (held_x, held_y) = ([np.concatenate(parts) for parts in zip(*both, strict=True)] for both in (train, test))
    for labels in (y, held_y):
        if labels.max() >= len(classes):
            raise DataError(f"{names}: {len(classes)} names, but there is a label {labels.max()}")
    x, held_x = (pixels.astype(np.float32) / np.float32(255) for pixels in (x, held_x))
    return DataSet(name, x, y, held_x, held_y, classes)
