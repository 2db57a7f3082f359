"""What a data set is to a study, and pictures that are read when they are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

from harness.execute.reading import FileError, size_of_plain


class DataError(FileError):
    """A data set that cannot be used; the message is one line that names the file."""


@dataclass(frozen=True)
class Pictures:
    """Files of pictures. side: of the square that each is made into: scaled so that its shorter side is as long, then
    cut in the middle; index it with integers to get float32 of (n, 3, side, side), from 0 to 1. Raises DataError."""

    paths: tuple[Path, ...]
    side: int

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def shape(self) -> tuple[int, ...]:
        return len(self.paths), 3, self.side, self.side

    def __getitem__(self, rows: np.ndarray | slice) -> np.ndarray:
        chosen = [self.paths[row] for row in np.arange(len(self.paths))[rows]]
        found = np.empty((len(chosen), 3, self.side, self.side), np.float32)
        for number, path in enumerate(chosen):
            found[number] = self._read(path)
        return found

    def _read(self, path: Path) -> np.ndarray:
        try:
            with Image.open(path) as picture:
                whole = picture.convert("RGB")
        except (OSError, ValueError, Image.DecompressionBombError) as error:
            raise DataError(f"{path}: not a picture that can be read: {error}") from error
        scale = self.side / min(whole.size)
        width, height = (max(self.side, round(size * scale)) for size in whole.size)
        left, top = (width - self.side) // 2, (height - self.side) // 2
        scaled = whole.resize((width, height), Image.Resampling.BILINEAR)
        cut = scaled.crop((left, top, left + self.side, top + self.side))
        return np.asarray(cut, np.float32).transpose(2, 0, 1) / np.float32(255)


Samples = np.ndarray | Pictures
"""float32, (n, channels, rows, columns); Pictures are read when they are indexed."""


@dataclass(frozen=True)
class DataSet:
    """train, test: samples; train_labels, test_labels: int64, (n,), below len(classes); subgroups: of the test samples,
    by name, whether each is one of them, bool, (n,)."""

    name: str
    train: Samples
    train_labels: np.ndarray
    test: Samples
    test_labels: np.ndarray
    classes: tuple[str, ...]
    subgroups: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one sample: channels, rows, columns."""
        return tuple(self.train.shape[1:])

    def first(self, train: int, test: int) -> DataSet:
        """Only so many of the samples (0: all)."""
        few, some = slice(train or None), slice(test or None)
        return DataSet(
            self.name, _only(self.train, few), self.train_labels[few], _only(self.test, some), self.test_labels[some],
            self.classes, {name: mask[some] for name, mask in self.subgroups.items()},
        )  # fmt: skip


def _only(samples: Samples, rows: slice) -> Samples:
    return Pictures(samples.paths[rows], samples.side) if isinstance(samples, Pictures) else samples[rows]


def bytes_of(path: Path) -> np.ndarray:
    """All bytes of a plain file. Raises DataError."""
    size_of_plain(path)
    try:
        return np.fromfile(path, np.uint8)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from error
