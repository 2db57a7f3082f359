"""What is kept of a run: its state after the last whole epoch, and what each epoch came to."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.execute.reading import FileError, size_of_plain

Arrays = Mapping[str, np.ndarray]
_STATE = "state/"


class HistoryError(FileError):
    """A file of a run that cannot be used."""


@dataclass(frozen=True)
class History:
    """state: after the last epoch; of each epoch: losses, accuracies: (epochs, steps) of its batches, float64; batches:
    (epochs, steps), CRC-32 of each, uint32; test_accuracy, test_loss: (epochs,) float64; digests: (epochs + 1, arrays),
    CRC-32 of each array of the state, before the first epoch and after each; data: CRC-32 of the training data;
    predictions: classes of the test samples after the last epoch; cpu: processor seconds so far."""

    state: Arrays
    losses: np.ndarray
    accuracies: np.ndarray
    batches: np.ndarray
    test_accuracy: np.ndarray
    test_loss: np.ndarray
    digests: np.ndarray
    data: np.ndarray
    predictions: np.ndarray
    cpu: np.ndarray

    @property
    def epochs(self) -> int:
        """That are done."""
        return len(self.test_accuracy)


FIELDS = tuple(name for name in History.__dataclass_fields__ if name != "state")


def digest(array: np.ndarray) -> int:
    """CRC-32 of its bytes."""
    return zlib.crc32(np.ascontiguousarray(array).tobytes())


def begun(state: Arrays, steps: int, data: int) -> History:
    """Before the first epoch."""
    none, table = np.zeros(0), np.zeros((0, steps))
    marks = np.array([[digest(array) for array in state.values()]], np.uint32)
    return History(
        state, table, table, table.astype(np.uint32), none, none, marks, np.array(data, np.uint32),
        np.zeros(0, np.int64), np.zeros(()),
    )  # fmt: skip


def write(path: Path, history: History) -> None:
    """Whole or not at all. Raises OSError."""
    arrays = {name: getattr(history, name) for name in FIELDS}
    arrays |= {_STATE + name: array for name, array in history.state.items()}
    scratch = path.with_name(f".{path.name}.new")
    with scratch.open("wb") as file:
        np.savez(file, **arrays)
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)


def read(path: Path) -> History:
    """Raises HistoryError."""
    size_of_plain(path)
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        state = {name.removeprefix(_STATE): arrays.pop(name) for name in list(arrays) if name.startswith(_STATE)}
        return History(state, **arrays)
    except (OSError, ValueError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise HistoryError(f"{path}: not the state of a run: {error}; remove it to have the run done again") from error
