"""Cells of the surface: an operator of a framework's registry, with features of which a case may have some."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

ASPECTS = ("operator", "operand", "attribute", "type", "attribute x type", "version")
"""What a cell is about, the most useful first."""

Listed = Mapping[str, Sequence[str]]
"""Operator -> its features: lines of a kind and what it is, `type T=float32`, `operand B=absent`."""


@dataclass(frozen=True, order=True)
class Cell:
    """operator: as its registry calls it; features: none for the operator itself, else one, or an attribute and a type
    together."""

    registry: str
    operator: str
    features: tuple[str, ...] = ()

    @property
    def aspect(self) -> str:
        """One of ASPECTS."""
        return " x ".join(feature.split()[0] for feature in self.features) or "operator"

    def __str__(self) -> str:
        return " ".join((self.operator, *self.features))


@dataclass(frozen=True)
class Observation:
    """A call that was met. sources: our operators in whose sweep it was."""

    operator: str
    features: frozenset[str]
    sources: frozenset[str]


def cells_of(registry: str, listed: Listed) -> Iterator[Cell]:
    """Every operator, every feature of it, and every attribute with every type of its first operand."""
    for operator, features in listed.items():
        yield Cell(registry, operator)
        distinct = list(dict.fromkeys(features))
        for feature in distinct:
            yield Cell(registry, operator, (feature,))
        types = [feature for feature in distinct if feature.startswith("type ")]
        first = types[0].rpartition("=")[0] if types else ""
        for attribute in (feature for feature in distinct if feature.startswith("attribute ")):
            for type_ in types:
                if type_.rpartition("=")[0] == first:
                    yield Cell(registry, operator, (attribute, type_))


class Reached:
    """Which of our operators reach a cell."""

    def __init__(self, observations: Sequence[Observation]) -> None:
        self._sources = [observation.sources for observation in observations]
        self._places: dict[tuple[str, str], set[int]] = {}
        for place, observation in enumerate(observations):
            for feature in ("", *observation.features):
                self._places.setdefault((observation.operator, feature), set()).add(place)

    def by(self, cell: Cell) -> frozenset[str]:
        """Names of the operators; empty where none does."""
        found = [self._places.get((cell.operator, feature), set()) for feature in ("", *cell.features)]
        return frozenset().union(*(self._sources[place] for place in set.intersection(*found)))


def with_accepted(listed: Listed, accepted: Listed) -> dict[str, list[str]]:
    """The list with what the framework's own rules accept of the operators that were met."""
    return {operator: list(dict.fromkeys((*had, *accepted.get(operator, ())))) for operator, had in listed.items()}
