"""What a long command has done so far, line by line in a file, so that it can be gone on with."""

from __future__ import annotations

import errno
import json
import os
import random
import weakref
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from generators.schema import SchemaError, converted, parsed
from harness.execute.files import replace_text, sole
from harness.execute.reading import FileError, read_text

Line = TypeVar("Line")
LARGEST = 1 << 30
"""Bytes of a file that is gone on with."""


class RecordError(FileError):
    """A file that cannot be gone on with; the message says why."""


@dataclass
class Record(Generic[Line]):
    """Lines of one dataclass in a file of JSON lines, the first of which says what was drawn. Each is written when it
    is known, so that whatever ends a command loses none. path: None keeps them in memory only."""

    path: Path | None
    head: dict[str, int]
    runs: list[Line] = field(default_factory=list)
    told: Callable[[Line], object] = field(default=lambda line: None, repr=False, compare=False)
    """Who else is to know of each line that is added: the store."""
    close: Callable[[], object] = field(default=lambda: None, repr=False, compare=False)
    """Let another one have the file; the end of the process does, too."""

    @classmethod
    def opened(cls, path: Path | None, head: dict[str, int], kind: type[Line]) -> Record[Line]:
        """Go on with a file, or begin one. A last line that was cut short is dropped. Raises OSError, and RecordError
        where something else was drawn for it, or another process is writing to it."""
        record = cls(path, head)
        if path is None:
            return record
        if path.parent.is_dir() and (path.is_file() or not path.exists()):
            try:
                record.close = weakref.finalize(record, sole(path).close)
            except BlockingIOError as error:
                raise RecordError(f"{path}: another process is writing to it") from error
        lines = list(_lines(path))
        if not lines:
            replace_text(path, json.dumps(head) + "\n")
            return record
        if lines[0] != head:  # of whatever kind
            raise RecordError(f"{path} is of {lines[0]}, not of {head}: give these, or another file")
        for number, line in enumerate(lines[1:], 2):
            try:
                record.runs.append(converted(line, kind))
            except SchemaError as error:
                raise RecordError(f"{path}: line {number}: {error}") from error
        replace_text(path, "".join(json.dumps(line) + "\n" for line in lines))
        return record

    def add(self, *runs: Line) -> None:
        """Keep these, in one write behind what is there, so that other processes may add to the file, too. Raises
        OSError."""
        self.runs += runs
        if self.path:
            lines: tuple[Any, ...] = runs
            text = "".join(json.dumps(asdict(line)) + "\n" for line in lines).encode()
            with self.path.open("ab", buffering=0) as file:
                if file.write(text) < len(text):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        for run in runs:
            self.told(run)


def lines_of(path: Path, kind: type[Line]) -> list[Line]:
    """What a file has that others are adding to. Raises OSError, RecordError and SchemaError."""
    return [converted(line, kind) for line in list(_lines(path))[1:]]


def head_of(path: Path) -> dict[str, int] | None:
    """What a file was drawn with; None where there is no such file yet. Raises OSError and RecordError."""
    line = next(_lines(path), None)
    try:
        return None if line is None else converted(line, dict[str, int])
    except SchemaError as error:
        raise RecordError(f"{path}: line 1: {error}") from error


def seed_of(seed: int | None, path: Path | None = None) -> int:
    """The seed that is asked for; else that of the file that is gone on with; else a new one. Raises OSError and
    RecordError."""
    if seed is not None:
        return seed
    earlier = head_of(path) if path else None
    if earlier is not None and "seed" not in earlier:
        raise RecordError(f"{path}: line 1: $: no seed")
    return earlier["seed"] if earlier else random.SystemRandom().randrange(2**31)


def _lines(path: Path) -> Iterator[dict]:
    if not path.exists():
        return
    try:
        lines = read_text(path, LARGEST).split("\n")
    except FileError as error:
        raise RecordError(str(error)) from error
    for number, line in enumerate(lines):
        if line.strip():
            try:
                yield converted(parsed(line, finite=False), dict)
            except SchemaError as error:
                if number == len(lines) - 1:  # the write that an interruption cut short
                    return
                raise RecordError(f"{path}: line {number + 1}: {error}") from error
