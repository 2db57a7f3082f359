"""What a given model is run on: arrays from a file, images from a folder, or arrays drawn from its signature."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Literal

import numpy as np
from PIL import Image

from generators.schema import converted, one_line, parsed_toml
from harness.conversions.model_file import FormatError, Port
from harness.execute.pool import Pool
from harness.execute.reading import FileError, read_by, read_json, read_text
from harness.models.given.images import SUFFIXES, images_of, pixels_of
from oracles.judge.compare import dtype_of

Sets = tuple[tuple[np.ndarray, ...], ...]
"""Sets of inputs, each an array for each input of the model, in its order."""
PREPROCESSING = "preprocessing.toml"
CLASSES = "labels"
"""Name of the array of true classes in a file of inputs."""
LISTED = "labels.csv"
"""File with the true classes of the images of a folder: lines of NAME,CLASS, the class by its number or its label."""
OTHER = 32
"""What a dimension that varies is set to, the first one apart, which is 1: images and sequences of a useful size."""
INTEGERS = (0, 9)
"""What integers are drawn from, both ends among them: small enough to be indices of most tables."""
RESAMPLING = {"nearest": 0, "bilinear": 2, "bicubic": 3, "area": 4, "lanczos": 1}
LARGEST = 4 << 30
"""Bytes of all arrays of a file together."""
WIDEST = 1 << 14
"""Pixels of an image's side."""


def drawn(
    ports: Sequence[Port],
    seed: int,
    sets: int,
    shapes: Mapping[str, Sequence[int]],
    span: tuple[float, float] | None = None,
    tops: Mapping[str, int] | None = None,
) -> Sets:
    """By seed and number: floats from the standard normal distribution, or uniform in `span`; integers uniform in
    INTEGERS or in span; booleans. shapes: of inputs by name, where the signature leaves dimensions open; tops: inputs
    that are whole numbers from 0 to below these.
    Raises FormatError."""
    unknown = set(shapes) - {port.name for port in ports}
    if unknown:
        raise FormatError(
            f"the model has no input {sorted(unknown)[0]!r}; it has {', '.join(port.name for port in ports)}"
        )
    return tuple(
        tuple(
            _drawn(port, np.random.default_rng([seed, number, place]), shapes, span, (tops or {}).get(port.name))
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
        shape, dtype = shape_of(port, shapes), np.dtype(port.dtype or "float32")
    except TypeError as error:
        raise FormatError(f"inputs of {port.dtype} are not drawn: give {port.name} with --inputs") from error
    if top is not None and span is None and dtype.kind in "iuf":
        return rng.integers(0, top, shape).astype(dtype)
    if dtype.kind == "f":
        return (rng.standard_normal(shape) if span is None else rng.uniform(*span, shape)).astype(dtype)
    if dtype.kind in "iu":
        low, high = (int(end) for end in span or INTEGERS)
        return rng.integers(low, high, shape, endpoint=True).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(2, size=shape).astype(bool)
    raise FormatError(f"inputs of {dtype} are not drawn: give {port.name} with --inputs")


def read_arrays(path: Path, ports: Sequence[Port]) -> Sets:
    """From an .npz file: an array for each input, by its name, else in order. One more dimension than the input has: a
    set of inputs along the first. More rows than the model takes: several sets. Raises FormatError."""
    arrays = _arrays_of(path)
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


def _arrays_of(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file, each of which has as many bytes as its header says. Raises FormatError."""
    found = {}
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


def classes_of(where: Path, labels: Sequence[str]) -> np.ndarray | None:
    """The true classes of the samples in a file of inputs or a folder of images; None where it does not say. Raises
    FormatError."""
    if not where.is_dir():
        found = _arrays_of(where).get(CLASSES)
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
    for image in images_of(where):
        told = given.get(image.name)
        if told is None:
            raise FormatError(f"{path} does not name {image.name}")
        if not told.isdecimal() and told not in labels:
            raise FormatError(f"{path}: {told!r} is neither a number nor one of the labels")
        numbers.append(int(told) if told.isdecimal() else labels.index(told))
    return np.array(numbers)


def arranged(arrays: Sequence[np.ndarray], ports: Sequence[Port]) -> Sets:
    """Arrays that come with a model, as one set. Raises FormatError where they do not fit."""
    if len(arrays) != len(ports):
        raise FormatError(f"{len(arrays)} arrays come with a model that takes {len(ports)}")
    return (tuple(_fitted(port, array, "the factory") for port, array in zip(ports, arrays, strict=True)),)


def _sets_of(port: Port, array: np.ndarray, path: Path) -> list[np.ndarray]:
    rank = array.ndim if port.shape is None else len(port.shape)
    if array.ndim == rank + 1:
        return [_fitted(port, one, path) for one in array]
    first = port.shape[0] if port.shape else None
    if first and array.ndim == rank and len(array) > first and len(array) % first == 0:
        return [_fitted(port, one, path) for one in np.split(array, len(array) // first)]
    return [_fitted(port, array, path)]


def _fitted(port: Port, array: np.ndarray, path: Path | str) -> np.ndarray:
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


@dataclass(frozen=True)
class Preprocessing:
    """How an image becomes an array. size: height and width; resize: a key of RESAMPLING; shorter: the image is first
    resized so that its shorter side has this many pixels, and `size` is cropped from its centre (0: it is resized to
    `size`); scale: what a pixel (0 to 255) is multiplied with; mean, std: by channel, subtracted and divided by then;
    layout: nchw or nhwc; channels: rgb or bgr; dtype: of the array."""

    size: tuple[int, int]
    resize: str = "bilinear"
    shorter: int = 0
    scale: float = 1 / 255
    mean: tuple[float, float, float] = (0.0, 0.0, 0.0)
    std: tuple[float, float, float] = (1.0, 1.0, 1.0)
    layout: Literal["nchw", "nhwc"] = "nchw"
    channels: Literal["rgb", "bgr"] = "rgb"
    dtype: Literal["float32", "float64", "float16", "uint8", "int8"] = "float32"


def read_preprocessing(path: Path) -> Preprocessing:
    """From a TOML file with the fields as keys. Raises FormatError."""
    if not path.exists():
        raise FormatError(f"cannot read {path}: No such file or directory; images need it (docs/models.md)")
    try:
        found = read_by(path, lambda text: converted(parsed_toml(text), Preprocessing))
    except FileError as error:
        raise FormatError(str(error)) from error
    checks = {
        "size": 0 < min(found.size) <= max(found.size) <= WIDEST,
        "resize": found.resize in RESAMPLING,
        "shorter": found.shorter == 0 or max(found.size) <= found.shorter <= WIDEST,
        "std": 0 not in found.std,
    }
    wrong = next((key for key, right in checks.items() if not right), None)
    if wrong:
        raise FormatError(f"{path}: $.{wrong}: cannot be {getattr(found, wrong)!r}")
    return found


def read_images(pool: Pool, folder: Path, how: Preprocessing, ports: Sequence[Port]) -> Sets:
    """All images of a folder in the order of their names, each a set of its own. Raises FormatError."""
    if len(ports) != 1:
        raise FormatError(f"images are one input; the model takes {len(ports)}")
    files = images_of(folder)
    if not files:
        raise FormatError(f"{folder} has no images ({', '.join(SUFFIXES)})")
    decoded = pixels_of(pool, files)
    return tuple(
        (_fitted(ports[0], prepared(pixels, how)[None], path),) for path, pixels in zip(files, decoded, strict=True)
    )


def prepared(pixels: np.ndarray, how: Preprocessing) -> np.ndarray:
    """One image as an array without a batch. pixels: uint8 of (height, width, 3), red first."""
    image = Image.fromarray(pixels)
    height, width = how.size
    if how.shorter:
        share = how.shorter / min(image.size)
        image = image.resize((round(image.width * share), round(image.height * share)), RESAMPLING[how.resize])
        left, top = (image.width - width) // 2, (image.height - height) // 2
        image = image.crop((left, top, left + width, top + height))
    else:
        image = image.resize((width, height), RESAMPLING[how.resize])
    pixels = np.asarray(image).astype(np.float64)
    if how.channels == "bgr":
        pixels = pixels[..., ::-1]
    values = (pixels * how.scale - np.asarray(how.mean)) / np.asarray(how.std)
    if how.layout == "nchw":
        values = np.moveaxis(values, -1, 0)
    return np.ascontiguousarray(values.astype(how.dtype))


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
