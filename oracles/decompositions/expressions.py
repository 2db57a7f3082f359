"""Expressions over values of a graph, which become nodes: what rules of several steps are written in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from generators.graph import Attr, Node
from oracles.decompositions.composite import GraphBuilder


@dataclass(frozen=True)
class Term:
    """One value among the steps. Numbers beside it become constants of its dtype."""

    steps: GraphBuilder
    name: str

    @property
    def shape(self) -> tuple[int, ...]:
        return self.steps.types[self.name].shape

    @property
    def dtype(self) -> str:
        return self.steps.types[self.name].dtype

    @property
    def axes(self) -> tuple[int, ...]:
        """All of them."""
        return tuple(range(len(self.shape)))

    def op(self, operator: str, *others: Term | float, **attrs: Attr) -> Term:
        """That operator of this value and others."""
        names = [self.of(other).name for other in others]
        return Term(self.steps, self.steps.add(operator, self.name, *names, **attrs))

    def of(self, other: Term | float) -> Term:
        """A term as it is, a number as a constant of this dtype."""
        return other if isinstance(other, Term) else Term(self.steps, self.steps.constant(other, self.name))

    def array(self, values: np.ndarray) -> Term:
        """A constant array."""
        return Term(self.steps, self.steps.array(values))

    def __add__(self, other: Term | float) -> Term:
        return self.op("add", other)

    def __sub__(self, other: Term | float) -> Term:
        return self.op("sub", other)

    def __rsub__(self, other: float) -> Term:
        return self.of(other) - self

    def __mul__(self, other: Term | float) -> Term:
        return self.op("mul", other)

    def __truediv__(self, other: Term | float) -> Term:
        return self.op("div", other)

    def __neg__(self) -> Term:
        return self.op("neg")

    def __matmul__(self, other: Term) -> Term:
        return self.op("matmul", other)

    def sum(self, *axes: int, keepdims: bool = False) -> Term:
        return self.op("sum", axes=axes, keepdims=keepdims)

    def mean(self, *axes: int, keepdims: bool = False) -> Term:
        return self.op("mean", axes=axes, keepdims=keepdims)

    def relu(self) -> Term:
        return self.op("relu")

    def sqrt(self) -> Term:
        return self.op("sqrt")

    def reshape(self, *shape: int) -> Term:
        return self if shape == self.shape else self.op("reshape", shape=shape)

    def transposed(self) -> Term:
        """The last two axes swapped."""
        rank = len(self.shape)
        return self.op("swapaxes", axes=(rank - 2, rank - 1))

    def part(self, axis: int, start: int, stop: int) -> Term:
        """Places start to stop of one axis."""
        return Term(self.steps, self.steps.slice(self.name, axis, start, stop))

    def at(self, axis: int, place: int) -> Term:
        """One place of an axis, which is left out."""
        shape = self.shape
        return self.part(axis, place, place + 1).reshape(*shape[:axis], *shape[axis + 1 :])

    def where(self, yes: Term | float, no: Term | float) -> Term:
        """Of a boolean: one or the other."""
        known = yes if isinstance(yes, Term) else no
        assert isinstance(known, Term)
        return self.op("where", known.of(yes), known.of(no))

    def joined(self, *others: Term, axis: int) -> Term:
        """Stacked along a new axis."""
        return self.op("stack", *others, axis=axis) if others else self.op("unsqueeze", axis=axis)

    def open(self, where: Term) -> Term:
        """The same, but with its derivative left open there, whatever follows it: 0 is added, at a jump of floor."""
        return where.where(self + where.where(self * 0.0, self.of(0.5)).op("floor"), self)


def terms(steps: GraphBuilder, node: Node) -> list[Term]:
    """The operands."""
    return [Term(steps, name) for name in node.operands]


def number(node: Node, name: str) -> float:
    """An attribute that is a number."""
    return float(node.attributes[name])  # type: ignore[arg-type]


def whole(node: Node, name: str) -> int:
    """An attribute that is a whole number."""
    return int(node.attributes[name])  # type: ignore[arg-type]
