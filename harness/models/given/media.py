"""A folder of images or of recordings as what a model is run on, prepared as a TOML file beside them says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TypeVar

import numpy as np

from generators.schema import converted, parsed_toml
from harness.conversions.model_file import FormatError, Port
from harness.execute.pool import Pool
from harness.execute.reading import FileError, read_by, read_text
from harness.models.given import audio, images
from harness.models.given.audio import AudioPreprocessing
from harness.models.given.images import ImagePreprocessing
from harness.models.given.inputs import CLASSES, Sets, arrays_of, fitted

How = TypeVar("How", ImagePreprocessing, AudioPreprocessing)
PREPROCESSING = "preprocessing.toml"
LISTED = "labels.csv"
"""File with the true classes of a folder's files: lines of NAME,CLASS, the class by its number or its label."""


def files_in(folder: Path) -> tuple[list[Path], type[ImagePreprocessing] | type[AudioPreprocessing]]:
    """Its images or its recordings in the order of their names, and how they are prepared. Raises FormatError."""
    names = sorted(path for path in folder.iterdir() if path.is_file())
    pictures = [path for path in names if path.suffix.lower() in images.SUFFIXES]
    recordings = [path for path in names if path.suffix.lower() in audio.SUFFIXES]
    if pictures and recordings:
        raise FormatError(f"{folder} has images ({pictures[0].name}) and recordings ({recordings[0].name})")
    if not pictures and not recordings:
        raise FormatError(f"{folder} has no images ({', '.join(images.SUFFIXES)}), and no recordings "
                          f"({', '.join(audio.SUFFIXES)})")  # fmt: skip
    return (pictures, ImagePreprocessing) if pictures else (recordings, AudioPreprocessing)


def read_preprocessing(path: Path, kind: type[How]) -> How:
    """From a TOML file with the fields as keys. Raises FormatError."""
    if not path.exists():
        what = "images" if kind is ImagePreprocessing else "recordings"
        raise FormatError(f"cannot read {path}: No such file or directory; {what} need it (docs/models.md)")
    try:
        found = read_by(path, lambda text: converted(parsed_toml(text), kind))
    except FileError as error:
        raise FormatError(str(error)) from error
    if key := found.wrong():
        raise FormatError(f"{path}: $.{key}: cannot be {getattr(found, key)!r}")
    return found


def read_folder(pool: Pool, folder: Path, preprocessing: Path | None, ports: Sequence[Port]) -> Sets:
    """All files of a folder in the order of their names: an image is a set of its own, a recording one or more.
    preprocessing: a file; None: the one in the folder. Raises FormatError."""
    files, kind = files_in(folder)
    path = preprocessing or folder / PREPROCESSING
    if kind is ImagePreprocessing:
        how = read_preprocessing(path, ImagePreprocessing)
        decoded = zip(files, images.pixels_of(pool, files), strict=True)
        prepared = ((file, images.prepared(pixels, how), how.constants) for file, pixels in decoded)
    else:
        how = read_preprocessing(path, AudioPreprocessing)
        prepared = _recordings(pool, files, how)
    return _arranged(prepared, ports, path, how.constants)


def _recordings(
    pool: Pool, files: list[Path], how: AudioPreprocessing
) -> Iterator[tuple[Path, np.ndarray, Mapping[str, float]]]:
    for file, samples in zip(files, audio.recordings_of(pool, files, how.rate), strict=True):
        for array, constants in audio.prepared(samples, how):
            yield file, array, constants


def _arranged(
    prepared: Iterable[tuple[Path, np.ndarray, Mapping[str, float]]],
    ports: Sequence[Port],
    where: Path,
    named: Iterable[str],
) -> Sets:
    """Each array as the one input that has no constant, the others filled with theirs."""
    unknown = sorted(set(named) - {port.name for port in ports})
    if unknown:
        raise FormatError(f"{where}: $.constants.{unknown[0]}: the model has no such input; it has "
                          f"{', '.join(port.name for port in ports)}")  # fmt: skip
    free = [port for port in ports if port.name not in set(named)]
    if len(free) != 1:
        names = ", ".join(port.name for port in free) or "none"
        raise FormatError(f"{where}: $.constants must name all inputs of the model but one; left are: {names}")
    return tuple(
        tuple(
            _placed(port, array, path) if port is free[0] else _filled(port, constants[port.name], where)
            for port in ports
        )
        for path, array, constants in prepared
    )


def _placed(port: Port, array: np.ndarray, path: Path) -> np.ndarray:
    """With dimensions of 1 where the input has more: in front of the others if that fits."""
    more = 1 if port.shape is None else len(port.shape) - array.ndim
    if more > 0:
        rank = array.ndim + more
        for places in combinations(range(rank), more):
            candidate = np.expand_dims(array, places)
            if port.shape is None or all(d in (None, g) for d, g in zip(port.shape, candidate.shape, strict=True)):
                return fitted(port, candidate, path)
        array = np.expand_dims(array, tuple(range(more)))
    return fitted(port, array, path)


def _filled(port: Port, value: float, where: Path) -> np.ndarray:
    try:
        dtype = np.dtype(port.dtype or "float32")
        limits = np.iinfo(dtype) if dtype.kind in "iu" else None
        fits = limits is None or (float(value).is_integer() and limits.min <= value <= limits.max)
    except TypeError:  # text, or what numpy does not have
        fits, dtype, limits = False, None, None
    if not fits:
        raise FormatError(f"{where}: $.constants.{port.name}: {value!r} is no {port.dtype}")
    return np.full([1 if d is None else d for d in port.shape or ()], int(value) if limits else value, dtype)


def classes_of(where: Path, labels: Sequence[str]) -> np.ndarray | None:
    """The true classes of the samples in a file of inputs or a folder; None where it does not say. Raises
    FormatError."""
    if not where.is_dir():
        found = arrays_of(where).get(CLASSES)
        if found is not None and found.dtype.kind not in "iu":
            raise FormatError(f"{where}: {CLASSES} are {found.dtype}, not whole numbers")
        return None if found is None else found.reshape(-1)
    path = where / LISTED
    if not path.exists():
        return None
    try:
        lines = [line.split(",", 1) for line in read_text(path).splitlines() if line.strip()]
    except FileError as error:
        raise FormatError(str(error)) from error
    given = {line[0].strip(): line[-1].strip() for line in lines}
    numbers = []
    for file in files_in(where)[0]:
        told = given.get(file.name)
        if told is None:
            raise FormatError(f"{path} does not name {file.name}")
        if not told.isdecimal() and told not in labels:
            raise FormatError(f"{path}: {told!r} is neither a number nor one of the labels")
        numbers.append(int(told) if told.isdecimal() else labels.index(told))
    return np.array(numbers)
