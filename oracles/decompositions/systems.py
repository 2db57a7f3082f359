"""Systems that are solved by way of Cholesky's factors, as the same systems: the derivatives of factor and
substitutions together are those of the solution, and the factors of X X^T + n I, whose condition is the root of that
of the matrix, lose less than the substitutions with it do."""

from __future__ import annotations

from generators.graph import Node
from oracles.decompositions.composite import GraphBuilder, Rule


def _cholesky_solve(s: GraphBuilder, node: Node) -> str:
    return s.add("solve", *node.operands, form="gram")


def _cholesky_inverse(s: GraphBuilder, node: Node) -> str:
    return s.add("inverse", *node.operands, form="gram")


SYSTEMS: dict[str, Rule] = {"cholesky_solve": _cholesky_solve, "cholesky_inverse": _cholesky_inverse}
