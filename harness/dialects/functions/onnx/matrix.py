"""Functions of small matrices that onnx spellings may call: decompositions, unrolled. Read as text, as basic.py
is."""

import numpy as np
import onnx


def formed(g, x, form, shape, dtype):
    """Elements beyond 4 as zeros; then x x^T + n I."""
    within = g.op("LessOrEqual", g.op("Abs", x), g.const(4, dtype))
    x = g.op("Where", within, x, g.const(0, dtype))
    if form == "gram":
        x = g.op("MatMul", x, transposed_matrix(g, x, shape))
        x = g.op("Add", x, g.const(shape[-1] * np.eye(shape[-1]), dtype))
    return x


def transposed_matrix(g, x, shape):
    rank = len(shape)
    return g.op("Transpose", x, perm=[*range(rank - 2), rank - 1, rank - 2])


def part(g, x, rank, row=None, column=None):
    """A row or a column of each matrix, or an element."""
    places = [(axis, place) for axis, place in ((rank - 2, row), (rank - 1, column)) if place is not None]
    starts = [place for _, place in places]
    numbers = (starts, [place + 1 for place in starts], [axis for axis, _ in places])
    return g.op("Slice", x, *[g.const(n, "int64") for n in numbers])


def factor(g, a, upper, shape, dtype):
    """Cholesky's: each column is what is left, divided by the root of its diagonal element."""
    rank, n, columns = len(shape), shape[-1], []
    for k in range(n):
        column = g.op("Div", part(g, a, rank, column=k), g.op("Sqrt", part(g, a, rank, k, k)))
        column = g.op("Mul", column, g.const((np.arange(n) >= k)[:, None], dtype))
        a = g.op("Sub", a, g.op("MatMul", column, transposed_matrix(g, column, shape)))
        columns.append(column)
    result = g.op("Concat", *columns, axis=-1)
    return transposed_matrix(g, result, shape) if upper else result


def substituted(g, t, b, rank, n, lower, unit=False):
    """The solution of a triangular system, row by row; each is taken off the rows that are left."""
    rows = {}
    for k in range(n) if lower else reversed(range(n)):
        row = part(g, b, rank, row=k)
        rows[k] = row if unit else g.op("Div", row, part(g, t, rank, k, k))
        b = g.op("Sub", b, g.op("MatMul", part(g, t, rank, column=k), rows[k]))
    return g.op("Concat", *[rows[k] for k in range(n)], axis=-2)


def triangular_solve(g, x, b, lower, unit, transposed, shape, dtype):
    rank, n = len(shape), shape[-1]
    t = formed(g, x, "tamed", shape, dtype)
    if not unit:
        t = g.op("Add", t, g.const(5 * np.eye(n), dtype))
    if transposed:
        t = transposed_matrix(g, t, shape)
    return substituted(g, t, b, rank, n, lower != transposed, unit)


def solved(g, a, b, shape, dtype):
    """Of symmetric, positive definite matrices."""
    rank, n = len(shape), shape[-1]
    lower = factor(g, a, False, shape, dtype)
    y = substituted(g, lower, b, rank, n, True)
    return substituted(g, transposed_matrix(g, lower, shape), y, rank, n, False)


def inverted(g, a, shape, dtype):
    identity = g.const(np.broadcast_to(np.eye(shape[-1]), shape), dtype)
    return solved(g, a, identity, shape, dtype)


def matrix_power(g, x, k, shape, dtype):
    if k == 0:
        x = g.const(np.broadcast_to(np.eye(shape[-1]), shape), dtype)
    y = x
    for _ in range(k - 1):
        y = g.op("MatMul", y, x)
    return g.op("Identity", y)
