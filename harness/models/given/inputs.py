"""What a given model is run on: arrays from a file, or drawn from its signature."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import IO

import numpy as np

from generators.schema import one_line
from harness.conversions.model_file import FormatError, Port
from harness.execute.processes import worker
from harness.execute.reading import FileError, read_json, read_text, size_of_plain
from oracles.judge.compare import dtype_of

Sets = tuple[tuple[np.ndarray, ...], ...]
"""Sets of inputs, each an array for each input of the model, in its order."""
CLASSES = "labels"
"""Name of the array of true classes in a file of inputs."""
OTHER = 32
"""What a dimension that varies is set to, the first one apart, which is 1: images and sequences of a useful size."""
INTEGERS = (0, 9)
"""What integers are drawn from, both ends among them: small enough to be indices of most tables."""
WORDS = ("", "a", "tree", "Tree", "42", "two words")
"""What text is drawn from where the file has no vocabulary."""
LARGEST = 4 << 30
"""Bytes of all arrays of a file together."""


def drawn(
    ports: Sequence[Port],
    seed: int,
    sets: int,
    shapes: Mapping[str, Sequence[int]],
    span: tuple[float, float] | None = None,
    tops: Mapping[str, int] | None = None,
    words: Mapping[str, Sequence[str]] | None = None,
) -> Sets:
    """By seed and number: floats from the standard normal distribution, or uniform in `span`; integers uniform in
    INTEGERS or in span; booleans; text from words. shapes: of inputs by name, where the signature leaves dimensions
    open; tops: inputs that are whole numbers from 0 to below these; words: by input (none: a few). Raises
    FormatError."""
    unknown = set(shapes) - {port.name for port in ports}
    if unknown:
        raise FormatError(
            f"the model has no input {sorted(unknown)[0]!r}; it has {', '.join(port.name for port in ports)}"
        )
    return tuple(
        tuple(
            _text(port, np.random.default_rng([seed, number, place]), shapes, (words or {}).get(port.name) or WORDS)
            if port.dtype == "string"
            else _drawn(port, np.random.default_rng([seed, number, place]), shapes, span, (tops or {}).get(port.name))
            for place, port in enumerate(ports)
        )
        for number in range(sets)
    )


def shape_of(port: Port, shapes: Mapping[str, Sequence[int]]) -> tuple[int, ...]:
    """The shape that an input is given. Raises FormatError."""
    if port.name in shapes:
        given = tuple(shapes[port.name])
        fits = port.shape is None or (
            len(given) == len(port.shape) and all(d in (None, g) for d, g in zip(port.shape, given, strict=True))
        )
        if not fits:
            raise FormatError(f"input {port} cannot have the shape {given}")
        return given
    if port.shape is None:
        raise FormatError(f"the model does not say the shape of its input {port.name}: give --input-shapes")
    return tuple((1 if place == 0 else OTHER) if d is None else d for place, d in enumerate(port.shape))


def _drawn(
    port: Port, rng: np.random.Generator, shapes: Mapping, span: tuple[float, float] | None, top: int | None
) -> np.ndarray:
    try:
        shape, dtype = shape_of(port, shapes), worker.dtype_of(port.dtype or "float32")
    except TypeError as error:
        raise FormatError(f"inputs of {port.dtype} are not drawn: give {port.name} with --inputs") from error
    if top is not None and span is None and dtype.kind in "iuf":
        return rng.integers(0, top, shape).astype(dtype)
    if dtype.kind == "f" or dtype.name == "bfloat16":
        return (rng.standard_normal(shape) if span is None else rng.uniform(*span, shape)).astype(dtype)
    if dtype.kind in "iu":
        low, high = (int(end) for end in span or INTEGERS)
        return rng.integers(low, high, shape, endpoint=True).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(2, size=shape).astype(bool)
    raise FormatError(f"inputs of {dtype} are not drawn: give {port.name} with --inputs")


def _text(
    port: Port, rng: np.random.Generator, shapes: Mapping[str, Sequence[int]], words: Sequence[str]
) -> np.ndarray:
    return np.array(words, np.str_)[rng.integers(len(words), size=shape_of(port, shapes))]


def read_arrays(path: Path, ports: Sequence[Port]) -> Sets:
    """From an .npz file: an array for each input, by its name, else in order. One more dimension than the input has: a
    set of inputs along the first. More rows than the model takes: several sets. Raises FormatError."""
    arrays = arrays_of(path)
    if CLASSES not in {port.name for port in ports}:
        arrays.pop(CLASSES, None)
    if len(arrays) != len(ports):
        raise FormatError(f"{path} has {len(arrays)} arrays; the model takes {len(ports)}")
    named = set(arrays) == {port.name for port in ports}
    columns = [
        _sets_of(port, arrays[port.name] if named else array, path)
        for port, array in zip(ports, arrays.values(), strict=True)
    ]
    if len({len(column) for column in columns}) != 1:
        raise FormatError(f"{path}: the inputs come in {', '.join(str(len(column)) for column in columns)} sets")
    return tuple(zip(*columns, strict=True))


def arrays_of(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file, each of which has as many bytes as its header says. Raises FormatError."""
    found = {}
    try:
        size_of_plain(path)
    except FileError as error:
        raise FormatError(str(error)) from error
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(one.file_size for one in archive.infolist()) > LARGEST:
                raise FormatError(f"{path}: more than {LARGEST} bytes when it is unpacked")
            for one in archive.infolist():
                with archive.open(one) as file:
                    found[one.filename.removesuffix(".npy")] = _array_of(file, one.file_size)
    except OSError as error:
        raise FormatError(f"cannot read {path} as .npz: {error.strerror or error}") from error
    except FormatError:
        raise
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError) as error:
        raise FormatError(one_line(f"cannot read {path} as .npz: {error}")) from error
    return found


def _array_of(file: IO[bytes], size: int) -> np.ndarray:
    """Raises ValueError where the header and the size do not fit, before anything is allocated."""
    if np.lib.format.read_magic(file) > (3, 0):
        raise ValueError("an array of an unknown version")
    file.seek(0)
    version = np.lib.format.read_magic(file)
    headers = np.lib.format.read_array_header_1_0, np.lib.format.read_array_header_2_0
    shape, _, dtype = headers[version != (1, 0)](file)
    if dtype.hasobject:
        raise ValueError("objects, which are not read")
    if prod(shape) * dtype.itemsize != size - file.tell():
        raise ValueError(f"{size - file.tell()} bytes for {dtype}{list(shape)}")
    file.seek(0)
    return np.lib.format.read_array(file, allow_pickle=False)


def labels_of(path: Path) -> tuple[str, ...]:
    """Names of classes: a JSON list, or one a line. Raises FormatError."""
    try:
        found = read_json(path, tuple[str, ...]) if path.suffix == ".json" else read_text(path).splitlines()
    except FileError as error:
        raise FormatError(str(error)) from error
    if not found:
        raise FormatError(f"{path}: no names")
    return tuple(name.strip() for name in found)


def arranged(arrays: Sequence[np.ndarray], ports: Sequence[Port]) -> Sets:
    """Arrays that come with a model, as one set. Raises FormatError where they do not fit."""
    if len(arrays) != len(ports):
        raise FormatError(f"{len(arrays)} arrays come with a model that takes {len(ports)}")
    return (tuple(fitted(port, array, "the factory") for port, array in zip(ports, arrays, strict=True)),)


def _sets_of(port: Port, array: np.ndarray, path: Path) -> list[np.ndarray]:
    rank = array.ndim if port.shape is None else len(port.shape)
    if array.ndim == rank + 1:
        return [fitted(port, one, path) for one in array]
    first = port.shape[0] if port.shape else None
    if first and array.ndim == rank and len(array) > first and len(array) % first == 0:
        return [fitted(port, one, path) for one in np.split(array, len(array) // first)]
    return [fitted(port, array, path)]


def fitted(port: Port, array: np.ndarray, path: Path | str) -> np.ndarray:
    if port.shape is not None:
        fits = array.ndim == len(port.shape) and all(
            d in (None, g) for d, g in zip(port.shape, array.shape, strict=True)
        )
        if not fits:
            raise FormatError(f"{path}: {array.dtype}{list(array.shape)} does not fit input {port}")
    if port.dtype and dtype_of(array) != port.dtype:
        try:
            fits = np.can_cast(array.dtype, port.dtype, "same_kind") and array.dtype.kind != "U"
        except TypeError:  # text, a sequence, or a dtype that numpy does not have
            fits = False
        if not fits:
            raise FormatError(f"{path}: {array.dtype} does not fit input {port}")
        array = array.astype(port.dtype)
    return np.ascontiguousarray(array)


def shapes_of(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """`NAME:[1,3,224,224]` as Polygraphy writes it, by name. Raises FormatError."""
    found = {}
    for text in texts:
        match = re.fullmatch(r"(?:(.+):)?\[(\d+(?:,\d+)*)\]", text.replace(" ", ""))
        if not match:
            raise FormatError(f"{text!r} is not a shape such as x:[1,3,224,224]")
        found[match[1] or ""] = tuple(int(part) for part in match[2].split(","))
    return found


def span_of(text: str) -> tuple[float, float]:
    """`[0,1]` as Polygraphy writes ranges of values. Raises FormatError."""
    match = re.fullmatch(r"\[(-?[\d.e+-]+),(-?[\d.e+-]+)\]", text.replace(" ", ""))
    try:
        low, high = (float(part) for part in match.groups()) if match else (1.0, 0.0)
    except ValueError:
        low, high = 1.0, 0.0
    if low > high:
        raise FormatError(f"{text!r} is not a range of values such as [0,1]")
    return low, high


def saved(sets: Sets, ports: Sequence[Port]) -> dict[str, np.ndarray]:
    """Sets of inputs as arrays that `read_arrays` reads again: by name, sets along a new first axis."""
    return {port.name: np.stack([one[place] for one in sets]) for place, port in enumerate(ports)}
