"""Zip archives that two readers see in two ways, or that reach out of their folder: by what wraps a good program."""

from __future__ import annotations

import struct
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

from hostile import keras, pt2
from hostile.edit import Build


def _with(change: Callable[[zipfile.ZipFile], object], keras_archive: bool = False) -> Build:
    """A good archive to which `change` adds members."""

    def build(folder: Path, marker: Path) -> Path:
        path = folder / ("model.keras" if keras_archive else "model.pt2")
        root, members = ("", keras.good()) if keras_archive else ("model/", pt2.good())
        with zipfile.ZipFile(path, "w") as archive, warnings.catch_warnings(action="ignore"):
            for name, data in members.items():
                archive.writestr(root + name, data)
            change(archive)
        return path

    return build


def _member(name: str, **told: int) -> Callable[[zipfile.ZipFile], None]:
    def add(archive: zipfile.ZipFile) -> None:
        info = zipfile.ZipInfo("x")
        info.filename = name
        for key, value in told.items():
            setattr(info, key, value)
        archive.writestr(info, b"/etc/passwd")

    return add


def _changed(change: Callable[[bytearray, int], None]) -> Build:
    """change: edits the bytes; takes where the directory begins."""

    def build(folder: Path, marker: Path) -> Path:
        path = _with(lambda archive: None)(folder, marker)
        data = bytearray(path.read_bytes())
        change(data, struct.unpack_from("<I", data, len(data) - 6)[0])
        path.write_bytes(data)
        return path

    return build


def _flag(data: bytearray, directory: int) -> None:
    data[directory + 8] |= 1


def _offset(data: bytearray, directory: int) -> None:
    """The second member begins where the first does."""
    lengths = struct.unpack_from("<HHH", data, directory + 28)
    second = directory + 46 + sum(lengths)
    data[second + 42 : second + 46] = data[directory + 42 : directory + 46]


def _count(data: bytearray, directory: int) -> None:
    data[-14:-10] = struct.pack("<HH", 1, 1)


def _larger(data: bytearray, directory: int) -> None:
    """Sizes of four gigabytes less one, which stand in no field of zip64."""
    data[directory + 20 : directory + 28] = b"\xfe\xff\xff\xff" * 2


def _second_end(data: bytearray, directory: int) -> None:
    """A comment that is a directory of its own, which readers that search from behind take."""
    data[-2:] = struct.pack("<H", 22)
    data += b"PK\x05\x06" + bytes(18)


def _nested(folder: Path, marker: Path) -> Path:
    """An archive in an archive is no program."""
    path = folder / "model.pt2"
    inner = pt2.written(folder, dict(pt2.good())).read_bytes()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model/models/model.pt2", inner)
        archive.writestr("model/serialized_exported_program.json", b"{}")
    return path


HOSTILE: dict[str, Build] = {
    "twice": _with(lambda archive: archive.writestr("model/models/model.json", b"{}")),
    "other_root": _with(_member("other/models/model.json")),
    "absolute": _with(_member("/tmp/x")),
    "drive": _with(_member("C:/x"), keras_archive=True),
    "backslash": _with(_member("assets\\..\\..\\x"), keras_archive=True),
    "link": _with(_member("assets/x", external_attr=0o120777 << 16), keras_archive=True),
    "device": _with(_member("assets/x/../../y"), keras_archive=True),
    "lzma": _with(_member("assets/x", compress_type=zipfile.ZIP_LZMA), keras_archive=True),
    "encrypted": _changed(_flag),
    "overlap": _changed(_offset),
    "count": _changed(_count),
    "larger": _changed(_larger),
    "second_end": _changed(_second_end),
    "nested": _nested,
}
