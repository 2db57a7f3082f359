"""What of the surface is out of scope, and why: rules in `out_of_scope.toml`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import translate
from functools import cached_property
from pathlib import Path

from msgspec import Struct

from generators.schema import SchemaError, converted
from harness.execute.reading import FileError, read_toml
from harness.studies.surface.cell import Cell, Listed

FILE = Path(__file__).with_name("out_of_scope.toml")
TAG = "is "
"""How a line of a list begins that says something about an operator, and is no feature of it: `is stateful`."""


class Rule(Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """why: the reason. All else are globs: registries; operators by their names, and by a tag that their list has;
    features, where not all cells of these operators are out: one of them, or operator and features together."""

    why: str
    registries: tuple[str, ...] = ("*",)
    operators: tuple[str, ...] = ("*",)
    tags: tuple[str, ...] = ()
    features: tuple[str, ...] = ()

    def covers(self, cell: Cell, tags: Iterable[str]) -> bool:
        """Is this cell out of scope by it?"""
        return (
            bool(self._registries.match(cell.registry))
            and bool(self._operators.match(cell.operator))
            and (not self.tags or any(self._tags.match(tag) for tag in tags))
            and (not self.features or any(self._features.match(text) for text in (*cell.features, str(cell))))
        )

    @cached_property
    def _registries(self) -> re.Pattern[str]:
        return _any_of(self.registries)

    @cached_property
    def _operators(self) -> re.Pattern[str]:
        return _any_of(self.operators)

    @cached_property
    def _tags(self) -> re.Pattern[str]:
        return _any_of(self.tags)

    @cached_property
    def _features(self) -> re.Pattern[str]:
        return _any_of(self.features)


def load(path: Path = FILE) -> list[Rule]:
    """The rules of a file. Raises FileError."""
    try:
        return converted(read_toml(path).get("out", []), list[Rule])
    except SchemaError as error:
        raise FileError(f"{path}: {error}") from error


def tags_of(listed: Listed) -> dict[str, list[str]]:
    """What the list says about its operators."""
    return {
        operator: [line.removeprefix(TAG) for line in lines if line.startswith(TAG)]
        for operator, lines in listed.items()
    }


def features_of(listed: Listed) -> dict[str, list[str]]:
    """The list without that."""
    return {operator: [line for line in lines if not line.startswith(TAG)] for operator, lines in listed.items()}


def excluded(cell: Cell, tags: Mapping[str, Sequence[str]], rules: Sequence[Rule]) -> Rule | None:
    """The first rule by which a cell is out of scope."""
    return next((rule for rule in rules if rule.covers(cell, tags.get(cell.operator, ()))), None)


def _any_of(globs: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(translate(glob) for glob in globs))
