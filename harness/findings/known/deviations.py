"""Known deviations of strategies: what is understood or reported, so that it hides nothing new. An entry matches parts
of what a strategy returns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet

from harness.findings.known import entry
from harness.strategies import STRATEGIES
from oracles.judge.discrepancy import Discrepancy


@dataclass(frozen=True)
class KnownDeviation(entry.Entry):
    """strategies, parts: globs (`state.*`; "" for a run that returns nothing); where: traits that the training run has
    (`Training.traits`); one_of: of which it has one at least (none: any); message: a regular expression found in the
    message; versions: of the framework; world: ranks that show it; upstream: link or "not yet reported". Its case is a
    training run."""

    strategies: tuple[str, ...]
    parts: tuple[str, ...]
    symptoms: tuple[str, ...]
    reason: str
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


def load(root: Path = entry.FOLDER) -> tuple[KnownDeviation, ...]:
    """The deviations in a folder of what is known, in the order in which they are asked: those that ask for more traits
    first, then by framework and id. Raises KnownFileError naming the file and what is wrong."""
    found = entry.load(root, "deviation", KnownDeviation, _check)
    return tuple(sorted(found, key=lambda known: -len(known.where) - bool(known.one_of)))


def _check(data: Mapping[str, Any]) -> None:
    """Raises ValueError where something else than its keys, symptoms and message is wrong with an entry."""
    for glob in data["strategies"]:
        if not any(fnmatchcase(name, glob) for name in STRATEGIES):
            raise ValueError(f"no strategy matches {glob!r}")
    SpecifierSet(data.get("versions", ""))
