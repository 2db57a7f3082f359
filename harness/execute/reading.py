"""Files that are read: what people hand over, and what an interrupted run may have left."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from generators.schema import converted, one_line, parsed, parsed_toml, text_of

T = TypeVar("T")
LARGEST = 64 << 20
"""Bytes of a file that is read whole."""


class FileError(ValueError):
    """A file that cannot be used; the message is one line: path, place in it, and what is wrong."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


def size_of_plain(path: Path) -> int:
    """Bytes of a file; nothing is waited for, as a pipe would have it. Raises FileError where it is no plain one."""
    try:
        about = path.stat()
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}") from error
    if stat.S_ISDIR(about.st_mode):
        raise FileError(f"{path}: Is a directory")
    if not stat.S_ISREG(about.st_mode):
        raise FileError(f"{path}: not a plain file")
    return about.st_size


def read_text(path: Path, largest: int = LARGEST) -> str:
    """The text of a plain file. Raises FileError."""
    size = size_of_plain(path)
    if size > largest:
        raise FileError(f"{path}: {size} bytes; at most {largest} are read")
    try:
        return text_of(path.read_bytes())
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise error if isinstance(error, FileError) else FileError(f"{path}: {error}") from error


def read_json(path: Path, type_: type[T]) -> T:
    """A file of JSON as a record. Raises FileError."""
    return read_by(path, lambda text: converted(parsed(text), type_))


def read_toml(path: Path) -> dict[str, Any]:
    """A file of TOML. Raises FileError."""
    return read_by(path, parsed_toml)


def read_by(path: Path, read: Callable[[str], T]) -> T:
    """What a function that raises ValueError, in one line, makes of a file's text. Raises FileError."""
    text = read_text(path)
    try:
        return read(text)
    except ValueError as error:
        raise FileError(f"{path}: {error}") from error
