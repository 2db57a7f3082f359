"""Results of a study in a file of SQLite: a row for each model, input and setting, written when it is there."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    Integer,
    MetaData,
    String,
    Table,
    create_engine,
    insert,
    select,
)
from sqlalchemy.exc import DatabaseError

from generators.schema import converted
from harness.execute.files import sole
from harness.execute.reading import FileError

VERSION = "1"
PATIENCE = 60.0
"""Seconds that a process waits for others that are writing."""


class StoreError(FileError):
    """A file that cannot be used, or written; the message says why."""


@dataclass(frozen=True)
class Result:
    """One setting on one model and input.

    outcome:  compared, failed (no result: a failure), or left out (the strategy does not support the model)
    reason:   why it failed or was left out
    close:    within D3's thresholds (None: not compared); largest: L-infinity of softmaxed outputs; finite: all of both
              predictions is
    ours:     agree, known, deviates, undetermined; "" where it was not compared
    part:     of what it returned that deviates, or ids of known deviations; ratio: of the greatest error to what is
              allowed; undetermined: part of all elements
    cluster:  of an inconsistency, by either judgement
    cpu:      processor seconds of all ranks"""

    model: int
    input: int
    setting: str
    quarter: str
    outcome: str
    reason: str = ""
    close: bool | None = None
    largest: float | None = None
    finite: bool | None = None
    ours: str = ""
    part: str = ""
    ratio: float | None = None
    undetermined: float | None = None
    cluster: str = ""
    cpu: float = 0.0

    @property
    def inconsistent(self) -> bool:
        """By D3's rule. A missing result is."""
        return self.outcome == "failed" or self.close is False

    @property
    def deviates(self) -> bool:
        """By ours, whether that is known or not."""
        return self.outcome == "failed" or self.ours in ("deviates", "known")


_TYPES = {"int": Integer, "str": String, "float": Float, "float | None": Float, "bool | None": Boolean}
_KEY = ("model", "input", "setting")
_METADATA = MetaData()
_STUDY = Table("study", _METADATA, Column("key", String, primary_key=True), Column("value", String, nullable=False))
_RESULT = Table(
    "result", _METADATA,
    *(
        Column(f.name, _TYPES[str(f.type)], primary_key=f.name in _KEY, nullable=f.name not in _KEY)
        for f in fields(Result)
    ),
)  # fmt: skip


class Store:
    """The file. about: what results depend on; a file of another study is refused; alone: does one command at a time
    use it? Processes that it shares its work out to add to what it has opened. Raises StoreError throughout."""

    def __init__(self, path: Path, about: Mapping[str, str], alone: bool = True) -> None:
        self.path, self.about = path, dict(about)
        if path.exists() and not path.is_file():
            raise StoreError(f"{path}: not a plain file")
        try:
            self._release = weakref.finalize(self, sole(path).close) if alone else None
        except BlockingIOError as error:
            raise StoreError(f"{path}: another process is writing to it") from error
        except OSError as error:
            raise StoreError(f"cannot use {path}: {error.strerror}") from error
        self._engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": PATIENCE})
        wanted = {"version": VERSION, **about}
        try:
            _METADATA.create_all(self._engine)
            with self._engine.begin() as connection:
                found = {row.key: row.value for row in connection.execute(select(_STUDY))}
                if not found:
                    connection.execute(insert(_STUDY), [{"key": k, "value": v} for k, v in wanted.items()])
        except DatabaseError as error:
            raise self._failed(error) from error
        other = [f"{key} {found.get(key)}, not {value}" for key, value in wanted.items() if found.get(key) != value]
        if found and other:
            raise StoreError(f"{path} is of another study: {'; '.join(other)}")

    def _failed(self, error: DatabaseError) -> StoreError:
        return StoreError(f"cannot use {self.path}: {error.orig}")

    def add(self, result: Result) -> None:
        """Keep one result."""
        try:
            with self._engine.begin() as connection:
                connection.execute(insert(_RESULT), asdict(result))
        except DatabaseError as error:
            raise self._failed(error) from error

    def results(self) -> list[Result]:
        """All that there are, by model, input and the order in which they came."""
        try:
            with self._engine.connect() as connection:
                rows = connection.execute(select(_RESULT).order_by(_RESULT.c.model, _RESULT.c.input))
                return [converted({str(key): value for key, value in row._mapping.items()}, Result) for row in rows]
        except DatabaseError as error:
            raise self._failed(error) from error
        except (ValueError, TypeError) as error:  # SQLite keeps any value in any column
            raise StoreError(f"{self.path}: {error}") from error

    def close(self) -> None:
        """Let go of the file."""
        self._engine.dispose()
        if self._release:
            self._release()
