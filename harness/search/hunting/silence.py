"""How often cases of a kind return nothing on a target: those would take a program of many apart."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from generators.graph import Graph
from harness.backends import Target
from harness.questions.question import Question
from harness.search.coverage import dtype_of

OFTEN = 0.25
"""Where a larger part returns nothing, taking programs of 32 apart by halves costs more programs than there are cases:
each such case costs some 2 log2(1 / part) of them."""
MOSTLY = 0.5
"""Where a larger part returns nothing, one set of arrays is tried before all of them."""
ENOUGH = 8
"""So many cases of a target tell something of its others."""

Kind = tuple[str, str, str, str]
"""Question, target, operator and dtype."""


def kind_of(question: Question, target: Target, graph: Graph) -> Kind:
    """Of a case, by its first node."""
    node = graph.nodes[0]
    return question.name, target.name, node.op, dtype_of(graph, node)


def _doubted(kind: Kind) -> tuple[str, ...]:
    return (*kind[:2], "", "doubted")


@dataclass
class Silence:
    """seen, nothing: how many cases there were, and of how many nothing came, by question and target, by operator
    there, and by dtype of that; doubted: kinds that are thought to return nothing until one of them is seen, as long as
    most of the target's doubted kinds that were seen did"""

    seen: Counter[tuple[str, ...]] = field(default_factory=Counter)
    nothing: Counter[tuple[str, ...]] = field(default_factory=Counter)
    doubted: set[Kind] = field(default_factory=set)

    def note(self, kind: Kind, nothing: bool) -> None:
        """A case more. What was doubted says nothing of others."""
        for one in (_doubted(kind), kind) if kind in self.doubted else (kind[:2], kind[:3], kind):
            self.seen[one] += 1
            self.nothing[one] += nothing

    def share(self, kind: Kind) -> float:
        """Which part returns nothing: of that kind, else of its operator, else of all on that target; 0 where too
        little is known."""
        if kind in self.doubted and not self.seen[kind]:
            return (self.nothing[_doubted(kind)] + 1) / (self.seen[_doubted(kind)] + 1)
        for one, enough in ((kind, 1), (kind[:3], 1), (kind[:2], ENOUGH)):
            if self.seen[one] >= enough:
                return self.nothing[one] / self.seen[one]
        return 0.0
