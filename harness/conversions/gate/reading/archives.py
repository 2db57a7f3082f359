"""Zip archives: what stands in them is what every reader sees, and unpacks to a known size."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from harness.conversions.gate.reading.refused import Refused, quoted

MEMBERS = 50_000
LARGE = 256 << 20
"""Bytes: what unpacks to more must not unpack to more than RATIO times its packed size."""
RATIO = 20
_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_END = struct.Struct("<4sHHHHIIH")
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_LINK = 0o120000


@contextmanager
def opened(file: Path | IO[bytes], what: str = "it", deflated: bool = False) -> Iterator[zipfile.ZipFile]:
    """An archive whose members were checked; nothing of them is unpacked yet. what: its name in a refusal; deflated:
    may members be compressed? Raises Refused."""
    try:
        archive = zipfile.ZipFile(file)
    except zipfile.BadZipFile as error:
        raise Refused(f"{what} is no zip archive: {quoted(str(error))}") from error
    with archive:
        _check(archive, what, deflated)
        yield archive


def content(archive: zipfile.ZipFile, name: str, most: int) -> bytes:
    """A member, unpacked. most: bytes. Raises Refused where it is larger."""
    size = archive.getinfo(name).file_size
    if size > most:
        raise Refused(f"{quoted(name)} has {size} bytes, more than {most}")
    with archive.open(name) as file:
        return file.read(most)


def _check(archive: zipfile.ZipFile, what: str, deflated: bool) -> None:
    infos = archive.infolist()
    if not infos or len(infos) > MEMBERS:
        raise Refused(f"{what} has {len(infos)} members")
    file = archive.fp
    assert file is not None
    length = file.seek(0, 2)
    file.seek(max(0, length - _END.size))
    end = file.read(_END.size)
    if len(end) < _END.size or end[:4] != b"PK\x05\x06" or _END.unpack(end)[-1]:
        raise Refused(f"{what} has data behind its directory")
    for told in _END.unpack(end)[3:5]:
        if told not in (len(infos), 0xFFFF):  # all ones: stands in the record of zip64
            raise Refused(f"{what} says that it has {told} members; its directory has {len(infos)}")
    file.seek(0)
    if file.read(4) != b"PK\x03\x04":
        raise Refused(f"{what} has data before its first member")
    seen: dict[str, str] = {}
    for info in infos:
        _named(info.orig_filename, what)
        other = seen.setdefault(info.filename.casefold(), info.filename)
        if len(seen) < len(infos) and other is not info.filename:
            raise Refused(f"{what} has two members of one name: {quoted(info.filename)}")
        _sized(info, what, deflated)
    _located(file, sorted(infos, key=lambda info: info.header_offset), archive.start_dir, what)
    packed, unpacked = sum(info.compress_size for info in infos), sum(info.file_size for info in infos)
    if packed > length:
        raise Refused(f"{what} says that it holds {packed} bytes; the file has {length}")
    if unpacked > LARGE and unpacked > RATIO * packed:
        raise Refused(f"{what} unpacks from {packed} to {unpacked} bytes")


def _named(name: str, what: str) -> None:
    parts = name.removesuffix("/").split("/")
    if "\\" in name or ":" in name or not name.isprintable() or any(part in ("", ".", "..") for part in parts):
        raise Refused(f"{what} has a member of the name {quoted(name)}")


def _sized(info: zipfile.ZipInfo, what: str, deflated: bool) -> None:
    name = quoted(info.filename)
    if info.flag_bits & _ENCRYPTED:
        raise Refused(f"{what}: {name} is encrypted")
    if (info.external_attr >> 16) & 0o170000 == _LINK:
        raise Refused(f"{what}: {name} is a link")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise Refused(f"{what}: {name} is packed by method {info.compress_type}")
    if info.compress_type == zipfile.ZIP_DEFLATED and not deflated:
        raise Refused(f"{what}: {name} is compressed, which this format never is")
    if info.compress_type == zipfile.ZIP_STORED and info.compress_size != info.file_size:
        raise Refused(f"{what}: {name} is stored in {info.compress_size} bytes and unpacks to {info.file_size}")
    if info.file_size > LARGE and info.file_size > RATIO * info.compress_size:
        raise Refused(f"{what}: {name} unpacks from {info.compress_size} to {info.file_size} bytes")


def _located(file: IO[bytes], infos: list[zipfile.ZipInfo], directory: int, what: str) -> None:
    """The header before a member says the same as the directory, and members do not overlap."""
    for info, following in zip(infos, [*(one.header_offset for one in infos[1:]), directory], strict=True):
        file.seek(info.header_offset)
        header = file.read(_LOCAL.size)
        if len(header) < _LOCAL.size or header[:4] != b"PK\x03\x04":
            raise Refused(f"{what}: {quoted(info.filename)} has no header where the directory says")
        _, _, flags, method, _, _, crc, packed, size, name_length, extra = _LOCAL.unpack(header)
        told = file.read(name_length).decode("utf-8" if flags & 0x800 else "cp437", "replace")
        later = flags & 0x8
        same = told == info.orig_filename and method == info.compress_type and not flags & _ENCRYPTED
        for here, there in ((crc, info.CRC), (packed, info.compress_size), (size, info.file_size)):
            # 0: stands behind the member; all ones: stands in the field of zip64
            same = same and (here == there or (bool(later) and here == 0) or here == 0xFFFFFFFF)
        if not same:
            raise Refused(f"{what}: the header of {quoted(info.filename)} differs from the directory")
        if info.header_offset + _LOCAL.size + name_length + extra + info.compress_size > following:
            raise Refused(f"{what}: {quoted(info.filename)} overlaps with what follows it")
