"""Files of what is known: of targets (known_issues.toml), of models that are given (known_models.toml) and of
strategies (known_deviations.toml). Each is a list of TOML tables of one name, an entry each."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, TypeVar

from oracles.judge.discrepancy import SYMPTOMS

Entry = TypeVar("Entry")
Check = Callable[[Mapping[str, Any]], None]


class KnownFileError(ValueError):
    """A file of what is known that cannot be used; the message names the file and the entry."""


def load(path: Path, table: str, record: type[Entry], check: Check) -> tuple[Entry, ...]:
    """The entries of a file, tables of that name. record: a dataclass with `id` and `symptoms`; the fields that have no
    default are required, and lists become tuples. check: raises ValueError or re.error where the rest of an entry is
    wrong. Raises KnownFileError."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise KnownFileError(f"{path}: {error.strerror}") from error
    except ValueError as error:  # no TOML, or no text
        raise KnownFileError(f"{path}: {error}") from error
    entries = data.get(table, [])
    if set(data) - {table} or not isinstance(entries, list):
        raise KnownFileError(f"{path}: only [[{table}]] tables are expected")
    seen: set[str] = set()
    for entry in entries:
        try:
            _check(entry, record)
            check(entry)
        except (ValueError, re.error) as error:
            raise KnownFileError(f"{path}: {table} {entry.get('id', '?')}: {error}") from error
        if entry["id"] in seen:
            raise KnownFileError(f"{path}: two {table}s are called {entry['id']!r}")
        seen.add(entry["id"])
    return tuple(record(**{k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()}) for entry in entries)


def _check(entry: Mapping[str, Any], record: type) -> None:
    """What all files have in common."""
    keys = {one.name for one in fields(record)}
    required = {one.name for one in fields(record) if one.default is MISSING and one.default_factory is MISSING}
    if wrong := set(entry) - keys | required - set(entry):
        raise ValueError(f"keys {sorted(wrong)} unknown or missing")
    for symptom in entry["symptoms"]:
        if symptom not in SYMPTOMS:
            raise ValueError(f"unknown symptom {symptom!r}")
