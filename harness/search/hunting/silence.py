"""How often cases of a kind return nothing on a target: those would take a program of many apart."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

OFTEN = 0.25
"""Where a larger part returns nothing, taking programs of 32 apart by halves costs more programs than there are cases:
each such case costs some 2 log2(1 / part) of them."""
MOSTLY = 0.5
"""Where a larger part returns nothing, one set of arrays is tried before all of them."""
ENOUGH = 8
"""So many cases of a target tell something of its others."""

Kind = tuple[str, str, str, str]
"""Question, target, operator and dtype."""


@dataclass
class Silence:
    """seen, nothing: how many cases there were, and of how many nothing came, by question and target, and by operator
    and dtype there"""

    seen: Counter[tuple[str, ...]] = field(default_factory=Counter)
    nothing: Counter[tuple[str, ...]] = field(default_factory=Counter)

    def note(self, kind: Kind, nothing: bool) -> None:
        """A case more."""
        for one in (kind[:2], kind):
            self.seen[one] += 1
            self.nothing[one] += nothing

    def share(self, kind: Kind) -> float:
        """Which part returns nothing: of that kind, else of all on that target; 0 where too little is known."""
        if self.seen[kind]:
            return self.nothing[kind] / self.seen[kind]
        lane = kind[:2]
        return self.nothing[lane] / self.seen[lane] if self.seen[lane] >= ENOUGH else 0.0
