"""Known deviations of strategies: what is understood or reported, so that it hides nothing new. One entry of
`known_deviations.toml` matches parts of what a strategy returns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet

from harness.findings import known_file
from oracles.judge.discrepancy import Discrepancy

FILE = Path(__file__).parents[2] / "known_deviations.toml"


@dataclass(frozen=True)
class KnownDeviation:
    """id: a short name; strategies, parts: globs (`state.*`; "" for a run that returns nothing); where: traits that the
    training run has (`Training.traits`); one_of: of which it has one at least (none: any); message: a regular
    expression found in the message; versions: of the framework; world: ranks that show it; case: a stored training run
    that shows it, relative to the file; upstream: link or "not yet reported"."""

    id: str
    strategies: tuple[str, ...]
    parts: tuple[str, ...]
    symptoms: tuple[str, ...]
    reason: str
    case: str
    world: int
    where: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()
    message: str = ""
    versions: str = ""
    upstream: str = "not yet reported"

    def concerns(self, strategy: str, traits: frozenset[str], version: str) -> bool:
        """Are this strategy, in this version of its framework, and a run with these traits the entry's?"""
        return (
            any(fnmatchcase(strategy, glob) for glob in self.strategies)
            and (not self.versions or SpecifierSet(self.versions, prereleases=True).contains(version))
            and traits.issuperset(self.where)
            and (not self.one_of or not traits.isdisjoint(self.one_of))
        )

    def covers(self, part: str, discrepancy: Discrepancy) -> bool:
        """Is this what the entry is about?"""
        return (
            discrepancy.symptom in self.symptoms
            and any(fnmatchcase(part, glob) for glob in self.parts)
            and re.search(self.message, discrepancy.message) is not None
        )


def load(path: Path = FILE) -> tuple[KnownDeviation, ...]:
    """The entries of a file. Raises KnownFileError naming the file and what is wrong."""
    return known_file.load(path, "deviation", KnownDeviation, _check)


def _check(entry: Mapping[str, Any]) -> None:
    """Raises ValueError where something else than its keys and symptoms is wrong with an entry."""
    SpecifierSet(entry.get("versions", ""))
