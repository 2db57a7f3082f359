"""A bounded reader of protobuf's wire format: over a mapped file, so that tensors are never copied."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path

MOST_FIELDS = 4_000_000
"""Fields of one file that are looked at."""
LARGEST = 8 << 30
"""Bytes of all files of a model together, and of what they declare."""

Value = int | memoryview


class Refused(ValueError):
    """Why a file is refused, in one line."""


def quoted(text: str | bytes | memoryview) -> str:
    """Text of a file, shortened, with all that is no plain character escaped."""
    plain = text if isinstance(text, str) else bytes(text[:200]).decode("utf-8", "backslashreplace")
    return ascii(plain if len(plain) <= 60 else plain[:57] + "...")


def name_of(raw: memoryview | bytes, where: str) -> str:
    """A name. Raises Refused where it is no text, very long, or has characters that control a terminal."""
    if len(raw) > 4096:
        raise Refused(f"{where}: a name of {len(raw)} characters")
    try:
        text = bytes(raw).decode()
    except UnicodeDecodeError as error:
        raise Refused(f"{where}: a name is not UTF-8: {quoted(raw)}") from error
    if not text.isprintable():
        raise Refused(f"{where}: a name with control characters: {quoted(text)}")
    return text


def mapped(path: Path) -> memoryview:
    """The bytes of a file, which are read when they are looked at. Raises Refused."""
    size = path.stat().st_size
    if not path.is_file() or size == 0:
        raise Refused(f"{path.name} is empty or no file")
    if size > LARGEST:
        raise Refused(f"{path.name} has {size} bytes, more than {LARGEST}")
    with path.open("rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


class Reader:
    """Counts what it reads of one file."""

    def __init__(self) -> None:
        self.left = MOST_FIELDS

    def fields(self, data: memoryview, where: str) -> Iterator[tuple[int, Value]]:
        """(number, integer or bytes) of each field of a message. Raises Refused where it is none."""
        at, end = 0, len(data)
        while at < end:
            self.left -= 1
            if self.left < 0:
                raise Refused(f"{where}: more than {MOST_FIELDS} fields in the file")
            key, at = self._integer(data, at, where)
            number, kind = key >> 3, key & 7
            if number == 0:
                raise Refused(f"{where}: not protobuf at byte {at}")
            if kind == 0:
                value, at = self._integer(data, at, where)
                yield number, value
                continue
            if kind == 2:
                size, at = self._integer(data, at, where)
            elif kind in (1, 5):
                size = 8 if kind == 1 else 4
            else:
                raise Refused(f"{where}: not protobuf at byte {at}")
            if at + size > end:
                raise Refused(f"{where}: a field of {size} bytes is cut short")
            yield number, data[at : at + size]
            at += size

    def integers(self, value: Value, where: str) -> Iterator[int]:
        """Of a repeated field, packed or not."""
        if isinstance(value, int):
            yield value
            return
        at = 0
        while at < len(value):
            self.left -= 1
            if self.left < 0:
                raise Refused(f"{where}: more than {MOST_FIELDS} fields in the file")
            one, at = self._integer(value, at, where)
            yield one

    @staticmethod
    def _integer(data: memoryview, at: int, where: str) -> tuple[int, int]:
        value = shift = 0
        while at < len(data) and shift < 70:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value, at
            shift += 7
        raise Refused(f"{where}: not protobuf at byte {at}")


def message(value: Value, where: str) -> memoryview:
    """A field that is text or a message. Raises Refused where it is a number."""
    if isinstance(value, int):
        raise Refused(f"{where}: a number where text or a message belongs")
    return value


def signed(value: int) -> int:
    """A varint as int64."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value
