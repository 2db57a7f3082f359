"""Systems that are solved by way of Cholesky's factors, as the same systems: the derivatives of factor and
substitutions together are those of the solution, and the factors of X X^T + n I, whose condition is the root of that
of the matrix, lose less than the substitutions with it do. Products of reflections, one after the other."""

from __future__ import annotations

import numpy as np

from generators.graph import Node
from generators.ops.linear.matrices import LIMIT
from oracles.decompositions.composite import GraphBuilder, Rule
from oracles.decompositions.expressions import terms


def _cholesky_solve(s: GraphBuilder, node: Node) -> str:
    return s.add("solve", *node.operands, form="gram")


def _cholesky_inverse(s: GraphBuilder, node: Node) -> str:
    return s.add("inverse", *node.operands, form="gram")


def _reflections(s: GraphBuilder, node: Node) -> str:
    """The last one first: x - 2 / |v|^2 v (v^T x), of the first columns of the identity."""
    (a,) = terms(s, node)
    rows, columns = a.shape[-2:]
    last = len(a.shape) - 1
    axis = last - 1
    identity = np.eye(rows, columns).astype(a.dtype)
    found = a.array(identity)
    for i in reversed(range(columns)):
        column = a.part(last, i, i + 1)
        inside = column.op("abs").op("less_equal", LIMIT)
        below = a.array(np.arange(rows)[:, None] > i)
        v = below.where(inside.where(column, 0.0), a.array(identity[:, i : i + 1]))
        factor = (v * v).sum(axis, keepdims=True).op("reciprocal") * 2.0
        found = found - factor * v * (v * found).sum(axis, keepdims=True)
    return found.name


SYSTEMS: dict[str, Rule] = {
    "cholesky_solve": _cholesky_solve,
    "cholesky_inverse": _cholesky_inverse,
    "reflections": _reflections,
}
