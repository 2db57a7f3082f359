"""Faults that a program of its own shows, which no question of Dissent asks for yet. They explain nothing that is found:
they are kept, shown and run again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from harness.findings.known import entry


@dataclass(frozen=True)
class KnownProgram(entry.Entry):
    """symptoms: keys of SYMPTOMS; targets: names of those that show it; package: the distribution whose `versions` show
    it; message: what it says, a regular expression; upstream: link or "not yet reported"."""

    symptoms: tuple[str, ...]
    reason: str
    targets: tuple[str, ...]
    package: str
    versions: str
    message: str = ""
    upstream: str = "not yet reported"


def load(root: Path = entry.FOLDER) -> tuple[KnownProgram, ...]:
    """All of them. Raises KnownFileError."""
    found = entry.load(root, "program", KnownProgram, _check, stored=False)
    for one in found:
        if not one.reproducer.is_file():
            raise entry.KnownFileError(f"{one.folder}: no {one.reproducer.name}")
    return found


def _check(data: Mapping[str, Any]) -> None:
    """Raises ValueError."""
    try:
        SpecifierSet(data["versions"])
    except InvalidSpecifier as error:
        raise ValueError(f"$.versions: {error}") from error
