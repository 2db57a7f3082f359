"""What stands beside a node of a graph, for expressions of entries that show beside other nodes only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from generators.graph import Graph, Leaf, Node
from harness.execute.globs import any_of
from harness.findings.known.issues import EARLIER, known_as
from harness.findings.known.predicate import AFTER, BEFORE


@dataclass(frozen=True)
class Neighbours:
    """Of a node in a graph."""

    graph: Graph
    node: Node

    @property
    def facts(self) -> dict[str, Any]:
        """What the names of an expression stand for: the functions of `BEFORE` and `AFTER`, and the attributes of the
        nearest node of the same operator above, through first operands."""
        functions: tuple[Callable[..., bool], ...] = (self._before, self._above, self._after, self._below)
        return dict(zip(BEFORE + AFTER, functions, strict=True)) | self._earlier

    @cached_property
    def _values(self) -> Mapping[str, Leaf | Node]:
        return {value.name: value for value in (*self.graph.leaves, *self.graph.nodes)}

    def _before(self, globs: str, place: int | None = None) -> bool:
        """Is an operand, or that in this place, the result of such a node?"""
        return any(self._is(name, globs) for name in self._operands(place))

    def _above(self, globs: str, place: int | None = None) -> bool:
        """Does an operand, or that in this place, come from such a node?"""
        return any(self._is(name, globs) for name in self._sources(self._operands(place)))

    def _after(self, globs: str) -> bool:
        """Does such a node take the result?"""
        return any(self.node.name in node.operands and self._is(node.name, globs) for node in self.graph.nodes)

    def _below(self, globs: str) -> bool:
        """Does such a node take the result, or what is made of it?"""
        reached = {self.node.name}
        for node in self.graph.nodes:
            if not reached.isdisjoint(node.operands):
                reached.add(node.name)
                if self._is(node.name, globs):
                    return True
        return False

    def _operands(self, place: int | None) -> tuple[str, ...]:
        operands = self.node.operands
        return operands if place is None else operands[place : place + 1]

    def _sources(self, names: tuple[str, ...]) -> Iterator[str]:
        """These values, and all that they come from."""
        left, seen = [*names], set[str]()
        while left:
            name = left.pop()
            if name not in seen:
                seen.add(name)
                yield name
                value = self._values[name]
                left += value.operands if isinstance(value, Node) else ()

    def _is(self, name: str, globs: str) -> bool:
        """Is a value the result of an operator that one of the globs matches, or a leaf of a kind that one names?"""
        value, wanted = self._values[name], tuple(globs.split(","))
        if isinstance(value, Node) and any(map(any_of(wanted).match, known_as(value.op))):
            return True
        return ("constant" in wanted and name in self.graph.constants) or ("input" in wanted and name in self._inputs)

    @cached_property
    def _inputs(self) -> frozenset[str]:
        return frozenset(leaf.name for leaf in self.graph.inputs)

    @cached_property
    def _earlier(self) -> dict[str, Any]:
        above = self.node
        while above.operands and isinstance(one := self._values[above.operands[0]], Node):
            above = one
            if above.op == self.node.op:
                return {f"{EARLIER}{name}": value for name, value in above.attributes.items()}
        return {}
