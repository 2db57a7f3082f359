"""Folders of what is known: `known/FRAMEWORK/ID/issue.toml`, with the case that shows it beside it. The key `kind` says
what an entry is about: an issue of targets (the default), a deviation of strategies, a model that is given, or a program
of its own."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from packaging.version import InvalidVersion, Version

from generators.schema import SchemaError, converted
from harness.execute.files import replace_text
from harness.execute.reading import FileError, read_toml
from oracles.judge.discrepancy import SYMPTOMS

FOLDER = Path(__file__).parents[3] / "known"
FILE = "issue.toml"
KINDS = ("issue", "deviation", "model", "program")


@dataclass(frozen=True)
class Entry:
    """folder: of the entry; the rest of a record are the keys of its file. since: the first release that is wrong, where
    the one before it is right, or "<=" and the oldest that could be asked; until: the first that is right again; newest:
    the last that was asked (`python -m harness bisect`)."""

    folder: Path
    since: str = field(default="", kw_only=True)
    until: str = field(default="", kw_only=True)
    newest: str = field(default="", kw_only=True)

    @property
    def id(self) -> str:
        """Its short name, which no other entry has."""
        return self.folder.name

    @property
    def bisection(self) -> str:
        """Which releases are wrong, for people; empty where they were not asked."""
        return told(self.since, self.until, self.newest)

    @property
    def case(self) -> Path:
        """The stored case that shows it."""
        return self.folder / "case.json"

    @property
    def reproducer(self) -> Path:
        """The program that shows it."""
        return self.folder / "reproducer.py"


def told(since: str, until: str, newest: str) -> str:
    """Which releases are wrong, for people; empty where none was asked."""
    if not since:
        return ""
    first = f"{since.removeprefix('<=')} or before" if since.startswith("<=") else since
    return f"wrong from {first}, {f'right again from {until}' if until else f'up to {newest}'}"


def note(folder: Path, keys: Mapping[str, str]) -> None:
    """Write these keys into an entry, in place of what they said; empty ones are left out. Raises OSError."""
    path = folder / FILE
    lines = path.read_text(encoding="utf-8").splitlines()
    lines = [line for line in lines if not any(line.startswith(f"{key} = ") for key in keys)]
    at = next(i for i, line in enumerate(lines) if line.startswith("reason = "))
    lines[at:at] = [f'{key} = "{value}"' for key, value in keys.items() if value]
    replace_text(path, "\n".join(lines) + "\n")


Record = TypeVar("Record", bound=Entry)
Check = Callable[[Mapping[str, Any]], None]


class KnownFileError(FileError):
    """A folder of what is known that cannot be used; the message, a line, names the file and what is wrong with it."""


def load(root: Path, kind: str, record: type[Record], check: Check, stored: bool = True) -> tuple[Record, ...]:
    """The entries of a kind, by framework and id. Those fields of the record that have no default are required, and
    lists become tuples. check: raises ValueError where something is wrong that types do not show. stored: does such an
    entry have a case? Of entries of other kinds only the text, the kind and the id are looked at. Raises
    KnownFileError."""
    found: list[Record] = []
    for folder in _folders(root):
        path = folder / FILE
        try:
            data = dict(_read(path, path.stat().st_mtime_ns))
            said = data.pop("kind", KINDS[0])
            if said not in KINDS:
                raise SchemaError(f"$.kind: unknown kind {said!r}; there are {', '.join(KINDS)}")
            if said != kind:
                continue
            if "folder" in data:
                raise SchemaError("$.folder: unknown key")
            entry = converted({**data, "folder": folder}, record)
            _check(data)
            check(data)
        except FileError as error:
            raise KnownFileError(str(error)) from error
        except ValueError as error:
            raise KnownFileError(f"{path}: {error}") from error
        if stored and not entry.case.is_file():
            raise KnownFileError(f"{folder}: no {entry.case.name}")
        found.append(entry)
    return tuple(found)


@lru_cache(maxsize=4096)
def _read(path: Path, _changed: int) -> dict[str, Any]:
    """A file, once for all kinds that ask for it: most of the time is in its text. Raises FileError."""
    return read_toml(path)


def _check(data: Mapping[str, Any]) -> None:
    """What all kinds have in common, beside types. Raises SchemaError."""
    for key in ("since", "until", "newest"):
        try:
            Version(str(data.get(key) or "0").removeprefix("<=" if key == "since" else ""))
        except InvalidVersion as error:
            raise SchemaError(f"$.{key}: {error}") from error
    for number, symptom in enumerate(data["symptoms"]):
        if symptom not in SYMPTOMS:
            raise SchemaError(f"$.symptoms[{number}]: unknown symptom {symptom!r}")
    try:
        with warnings.catch_warnings(action="error"):
            re.compile(data.get("message", ""))
    except (re.error, Warning, OverflowError, RecursionError) as error:
        raise SchemaError(f"$.message: no regular expression: {error}") from error


def _folders(root: Path) -> list[Path]:
    """The folders of all entries. Raises KnownFileError."""
    seen: dict[str, Path] = {}
    for framework in _inside(root):
        for folder in _inside(framework):
            if not folder.is_dir():
                raise KnownFileError(f"{folder}: entries are folders, {root / 'FRAMEWORK' / 'ID'}")
            if not (folder / FILE).is_file():
                raise KnownFileError(f"{folder}: no {FILE}")
            if folder.name in seen:
                raise KnownFileError(f"{folder}: another entry has this id: {seen[folder.name]}")
            seen[folder.name] = folder
    return list(seen.values())


def _inside(folder: Path) -> list[Path]:
    """What a folder holds, in order, hidden files apart. Raises KnownFileError."""
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise KnownFileError(f"{folder}: {error.strerror}") from error
