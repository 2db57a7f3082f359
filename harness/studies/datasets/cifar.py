"""CIFAR-10 and CIFAR-100 in their binary version (A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images,
2009): records of one label (CIFAR-100: a coarse and a fine one) and 3,072 bytes, channels first."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from harness.execute.reading import read_text
from harness.studies.datasets.dataset import DataError, DataSet, bytes_of

PIXELS = 3 * 32 * 32


def cifar10(folder: Path) -> DataSet:
    """Of a folder with data_batch_1.bin to data_batch_5.bin, test_batch.bin and batches.meta.txt. Raises FileError."""
    train = [_records(folder / f"data_batch_{number}.bin", 1) for number in range(1, 6)]
    return _made("cifar10", train, [_records(folder / "test_batch.bin", 1)], folder / "batches.meta.txt")


def cifar100(folder: Path) -> DataSet:
    """Of a folder with train.bin, test.bin and fine_label_names.txt; labels are the fine ones. Raises FileError."""
    train, test = ([_records(folder / f"{name}.bin", 2)] for name in ("train", "test"))
    return _made("cifar100", train, test, folder / "fine_label_names.txt")


def _records(path: Path, labels: int) -> tuple[np.ndarray, np.ndarray]:
    """Pixels from 0 to 1, and the last of a record's labels."""
    raw, size = bytes_of(path), labels + PIXELS
    if not raw.size or raw.size % size:
        raise DataError(f"{path}: {raw.size} bytes are no records of {size}")
    records = raw.reshape(-1, size)
    return records[:, labels:].reshape(-1, 3, 32, 32), records[:, labels - 1].astype(np.int64)


def _made(
    name: str, train: list[tuple[np.ndarray, np.ndarray]], test: list[tuple[np.ndarray, np.ndarray]], names: Path
) -> DataSet:
    classes = tuple(line.strip() for line in read_text(names).splitlines() if line.strip())
    (x, y), (held_x, held_y) = ([np.concatenate(parts) for parts in zip(*both, strict=True)] for both in (train, test))
    for labels in (y, held_y):
        if labels.max() >= len(classes):
            raise DataError(f"{names}: {len(classes)} names, but there is a label {labels.max()}")
    x, held_x = (pixels.astype(np.float32) / np.float32(255) for pixels in (x, held_x))
    return DataSet(name, x, y, held_x, held_y, classes)
