"""Known deviations of strategies: what is understood or reported, so that it hides nothing new. One entry of
`known_deviations.toml` matches parts of what a strategy returns."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from oracles.discrepancy import SYMPTOMS, Discrepancy

FILE = Path(__file__).parents[2] / "known_deviations.toml"


class KnownDeviationError(ValueError):
    """A file of known deviations that cannot be used; the message names the file and the entry."""


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
    """The entries of a file. Raises KnownDeviationError naming the file and what is wrong."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        entries = tuple(_entry(entry) for entry in data.get("deviation", []))
    except OSError as error:
        raise KnownDeviationError(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, InvalidSpecifier, ValueError) as error:
        raise KnownDeviationError(f"{path}: {error}") from error
    if set(data) - {"deviation"}:
        raise KnownDeviationError(f"{path}: only [[deviation]] tables are expected")
    return entries


def _entry(entry: dict[str, Any]) -> KnownDeviation:
    known = {f.name for f in fields(KnownDeviation)}
    required = known - {"where", "one_of", "message", "versions", "upstream"}
    if set(entry) - known or required - set(entry):
        wrong = sorted(set(entry) - known | required - set(entry))
        raise ValueError(f"deviation {entry.get('id', '?')}: keys {', '.join(wrong)} unknown or missing")
    for symptom in entry["symptoms"]:
        if symptom not in SYMPTOMS:
            raise ValueError(f"deviation {entry['id']}: unknown symptom {symptom!r}")
    SpecifierSet(entry.get("versions", ""))
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()}
    return KnownDeviation(**values)
