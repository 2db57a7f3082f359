"""CIFAR in its Python version: pickles of Python 2, a dict each with the pixels as an array of bytes and the labels. A
pickle is a program; this reader lets it make a numpy array, and nothing else."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy._core.multiarray import _reconstruct

from harness.execute.reading import size_of_plain
from harness.studies.datasets.dataset import DataError

PIXELS = 3 * 32 * 32
LARGEST = 1 << 29
"""Bytes of a file; CIFAR-100's training samples have 155 million."""
ALLOWED: dict[tuple[str, str], Any] = {
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _reconstruct for core in ("core", "_core")},
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
}
"""All that a pickle may name: what numpy's arrays are pickled with."""


class _Reader(pickle.Unpickler):
    """Raises UnpicklingError where a pickle names anything else."""

    def find_class(self, module_name: str, global_name: str) -> Any:
        """Never an import."""
        if (module_name, global_name) not in ALLOWED:
            raise pickle.UnpicklingError(f"it names {module_name}.{global_name}, which no array needs")
        return ALLOWED[module_name, global_name]

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError("it refers to what is outside of it")


def dict_of(path: Path) -> dict[str, Any]:
    """The dict of a file, keys of bytes as text. Raises DataError."""
    if size_of_plain(path) > LARGEST:
        raise DataError(f"{path}: larger than any file of CIFAR")
    try:
        found = _Reader(io.BytesIO(path.read_bytes()), encoding="bytes").load()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from error
    except MemoryError as error:
        raise DataError(f"{path}: no pickle of CIFAR: it asks for more memory than there is") from error
    except Exception as error:  # a broken pickle raises nearly anything
        raise DataError(f"{path}: no pickle of CIFAR: {error}") from error
    if not isinstance(found, dict):
        raise DataError(f"{path}: no pickle of CIFAR: a {type(found).__name__}, not a dict")
    return {key.decode("utf-8", "replace") if isinstance(key, bytes) else str(key): found[key] for key in found}


def samples_of(path: Path, labels: str) -> tuple[np.ndarray, np.ndarray]:
    """Pixels, uint8 (n, 3, 32, 32), and labels, int64 (n,), of the key of this name. Raises DataError."""
    found = dict_of(path)
    pixels, numbers = found.get("data"), found.get(labels)
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.shape[1:] != (PIXELS,):
        raise DataError(f"{path}: data is no array of bytes, {PIXELS} a sample")
    if not isinstance(numbers, list) or not all(type(number) is int and 0 <= number < 256 for number in numbers):
        raise DataError(f"{path}: {labels} is no list of labels")
    if len(numbers) != len(pixels) or not numbers:
        raise DataError(f"{path}: {len(pixels)} samples and {len(numbers)} labels")
    return np.ascontiguousarray(pixels).reshape(-1, 3, 32, 32), np.array(numbers, np.int64)


def names_of(path: Path, key: str) -> tuple[str, ...]:
    """The classes. Raises DataError."""
    names = dict_of(path).get(key)
    if not isinstance(names, list) or not all(isinstance(name, bytes | str) for name in names):
        raise DataError(f"{path}: {key} is no list of names")
    return tuple(name.decode("utf-8", "replace") if isinstance(name, bytes) else name for name in names)
