"""What a findings folder tells of its hunts: outcomes by target, places of the plan, and who agrees with whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement

RIGHT = ("agree", "within_bound_only", "undetermined")
OUTCOMES = ("right", "unsupported", "wrong")
"""How a row of outcomes is told."""


@dataclass(frozen=True)
class Hunted:
    """outcomes: question -> target -> outcome -> nodes in cases with it; plan: question -> (places done, of how many
    that were begun); elements, undetermined: of outputs; votes: by finding, target -> status; folder: where it lies."""

    folder: str
    outcomes: Mapping[str, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)
    plan: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    elements: int = 0
    undetermined: int = 0
    votes: Sequence[Mapping[str, str]] = ()

    @property
    def agreement(self) -> tuple[tuple[str, ...], Mapping[tuple[str, str], tuple[int, int]]]:
        """Targets that voted on findings, and by pair of them: on how many both had the same to say, of how many they
        voted on."""
        counts: Counter[tuple[str, str]] = Counter()
        same: Counter[tuple[str, str]] = Counter()
        for votes in self.votes:
            said = {name: _outcome(status) for name, status in sorted(votes.items()) if status != "unsupported"}
            for first, second in combinations_with_replacement(said, 2):
                counts[first, second] += 1
                same[first, second] += said[first] == said[second]
        names = tuple(sorted({name for pair in counts for name in pair}))
        square = {}
        for first, second in counts:
            square[first, second] = square[second, first] = (same[first, second], counts[first, second])
        return names, square


def outcomes_of(cells: Mapping[tuple[str, ...], int]) -> dict[str, dict[str, int]]:
    """By target: how many nodes were in cases that ended right, that are not supported, and that ended otherwise.
    cells: (operator, dtype, target, status) -> nodes."""
    found: dict[str, dict[str, int]] = {}
    for (_, _, target, status), count in sorted(cells.items()):
        counts = found.setdefault(target, dict.fromkeys(OUTCOMES, 0))
        counts[_outcome(status)] += count
    return found


def counted(outcomes: Mapping[str, int]) -> dict[str, int]:
    """The same, as rows tell them."""
    found: dict[str, int] = dict.fromkeys(OUTCOMES, 0)
    for status, count in outcomes.items():
        found[_outcome(status)] += count
    return found


def _outcome(status: str) -> str:
    return "right" if status in RIGHT else "unsupported" if status == "unsupported" else "wrong"
