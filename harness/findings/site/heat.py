"""Operator x framework: in how many causes an operator has a part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

SHADES = 6
ANY = "any operator"


@dataclass(frozen=True)
class Heat:
    """rows: operators, what has most first, with a count a framework and the sum; most: the greatest count."""

    frameworks: tuple[str, ...]
    rows: tuple[tuple[str, tuple[int, ...], int], ...]
    most: int

    def shade(self, count: int) -> int:
        """0 for none, up to SHADES for the greatest count; by its root, so that one is seen beside twenty."""
        return 0 if not count else 1 + round((SHADES - 1) * ((count - 1) / max(self.most - 1, 1)) ** 0.5)


def heat_of(causes: Sequence[tuple[str, Sequence[str]]], frameworks: Sequence[str]) -> Heat:
    """causes: (framework, the operators; none: whatever they are)."""
    counts: Counter[tuple[str, str]] = Counter()
    for framework, operators in causes:
        counts.update((operator, framework) for operator in operators or (ANY,))
    totals = Counter({name: 0 for name, _ in counts})
    for (name, _), count in counts.items():
        totals[name] += count
    names = sorted(totals, key=lambda name: (name != ANY, -totals[name], name))
    rows = tuple((name, tuple(counts[name, framework] for framework in frameworks), totals[name]) for name in names)
    inside = [count for (name, _), count in counts.items() if name != ANY]
    return Heat(tuple(frameworks), rows, max(inside, default=1))
