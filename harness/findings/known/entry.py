"""Folders of what is known: `known/FRAMEWORK/ID/issue.toml`, with the case that shows it beside it. The key `kind` says
what an entry is about: an issue of targets (the default), a deviation of strategies, or a model that is given."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from oracles.judge.discrepancy import SYMPTOMS

FOLDER = Path(__file__).parents[3] / "known"
FILE = "issue.toml"
KINDS = ("issue", "deviation", "model")


@dataclass(frozen=True)
class Entry:
    """folder: of the entry; the rest of a record are the keys of its file."""

    folder: Path

    @property
    def id(self) -> str:
        """Its short name, which no other entry has."""
        return self.folder.name

    @property
    def case(self) -> Path:
        """The stored case that shows it."""
        return self.folder / "case.json"

    @property
    def reproducer(self) -> Path:
        """The program that shows it."""
        return self.folder / "reproducer.py"


Record = TypeVar("Record", bound=Entry)
Check = Callable[[Mapping[str, Any]], None]


class KnownFileError(ValueError):
    """A folder of what is known that cannot be used; the message names the file and what is wrong with it."""


def load(root: Path, kind: str, record: type[Record], check: Check, stored: bool = True) -> tuple[Record, ...]:
    """The entries of a kind, by framework and id. Those fields of the record that have no default are required, and
    lists become tuples. check: raises ValueError where something is wrong that types do not show. stored: does such an
    entry have a case? Of entries of other kinds only the text, the kind and the id are looked at. Raises
    KnownFileError."""
    found: list[Record] = []
    for folder in _folders(root):
        try:
            data = tomllib.loads((folder / FILE).read_text(encoding="utf-8"))
            said = data.pop("kind", KINDS[0])
            if said not in KINDS:
                raise ValueError(f"unknown kind {said!r}; there are {', '.join(KINDS)}")
            if said != kind:
                continue
            _check(data, record)
            check(data)
        except OSError as error:
            raise KnownFileError(f"{folder / FILE}: {error.strerror}") from error
        except ValueError as error:  # no text and no TOML, too
            raise KnownFileError(f"{folder / FILE}: {error}") from error
        entry = record(folder, **{key: tuple(v) if isinstance(v, list) else v for key, v in data.items()})
        if stored and not entry.case.is_file():
            raise KnownFileError(f"{folder}: no {entry.case.name}")
        found.append(entry)
    return tuple(found)


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


_TYPES: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "str": ("a text", lambda value: isinstance(value, str)),
    "tuple[str, ...]": ("a list of texts", lambda value: isinstance(value, list) and all(map(_is_text, value))),
    "bool": ("true or false", lambda value: isinstance(value, bool)),
    "int": ("a whole number", lambda value: type(value) is int),
    "float": ("a number", lambda value: type(value) in (int, float)),
}
"""What a key may hold by the type of its field, in words and as a test; other types are the record's own matter."""


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _check(data: Mapping[str, Any], record: type[Entry]) -> None:
    """What all kinds have in common: their keys and what these hold. Raises ValueError."""
    keys = {one.name: one for one in fields(record) if one.name != "folder"}
    required = {name for name, one in keys.items() if _required(one)}
    if wrong := set(data) - set(keys) | required - set(data):
        raise ValueError(f"keys {sorted(wrong)} unknown or missing")
    for key, value in data.items():
        told, holds = _TYPES.get(str(keys[key].type), ("", lambda _: True))
        if not holds(value):
            raise ValueError(f"{key} must be {told}")
    for symptom in data["symptoms"]:
        if symptom not in SYMPTOMS:
            raise ValueError(f"unknown symptom {symptom!r}")
    try:
        re.compile(data.get("message", ""))
    except re.error as error:
        raise ValueError(f"message is no regular expression: {error}") from error


def _required(one: Field[Any]) -> bool:
    return one.default is MISSING and one.default_factory is MISSING
