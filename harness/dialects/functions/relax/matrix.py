"""Functions of small matrices that relax spellings may call: decompositions, unrolled. Read as text, as
basic.py is."""

import numpy as np
from tvm import relax


def formed(bb, x, form, shape, dtype):
    """Elements beyond 4 as zeros; then x x^T + n I."""
    within = relax.op.less_equal(relax.op.abs(x), relax.const(4, dtype))
    x = bb.emit(relax.op.where(within, x, relax.const(0, dtype)))
    if form == "gram":
        square = relax.op.matmul(x, transposed_matrix(x, shape))
        identity = np.eye(shape[-1], dtype=dtype)
        x = bb.emit(relax.op.add(square, relax.const(shape[-1] * identity, dtype)))
    return x


def transposed_matrix(x, shape):
    rank = len(shape)
    return relax.op.permute_dims(x, [*range(rank - 2), rank - 1, rank - 2])


def part(x, rank, row=None, column=None):
    """A row or a column of each matrix, or an element."""
    places = [(axis, place) for axis, place in ((rank - 2, row), (rank - 1, column)) if place is not None]
    starts = [place for _, place in places]
    return relax.op.strided_slice(x, [axis for axis, _ in places], starts, [place + 1 for place in starts])


def factor(bb, a, upper, shape, dtype):
    """Cholesky's: each column is what is left, divided by the root of its diagonal element."""
    rank, n, columns = len(shape), shape[-1], []
    for k in range(n):
        mask = relax.const((np.arange(n) >= k)[:, None].astype(dtype), dtype)
        column = relax.op.divide(part(a, rank, column=k), relax.op.sqrt(part(a, rank, k, k)))
        column = bb.emit(relax.op.multiply(column, mask))
        a = bb.emit(relax.op.subtract(a, relax.op.matmul(column, transposed_matrix(column, shape))))
        columns.append(column)
    result = bb.emit(relax.op.concat(columns, axis=rank - 1))
    return transposed_matrix(result, shape) if upper else result


def substituted(bb, t, b, rank, n, lower, unit=False):
    """The solution of a triangular system, row by row; each is taken off the rows that are left."""
    rows = {}
    for k in range(n) if lower else reversed(range(n)):
        row = part(b, rank, row=k)
        rows[k] = bb.emit(row if unit else relax.op.divide(row, part(t, rank, k, k)))
        b = bb.emit(relax.op.subtract(b, relax.op.matmul(part(t, rank, column=k), rows[k])))
    return relax.op.concat([rows[k] for k in range(n)], axis=rank - 2)


def triangular_solve(bb, x, b, lower, unit, transposed, shape, dtype):
    rank, n = len(shape), shape[-1]
    t = formed(bb, x, "tamed", shape, dtype)
    if not unit:
        t = bb.emit(relax.op.add(t, relax.const(5 * np.eye(n, dtype=dtype), dtype)))
    if transposed:
        t = bb.emit(transposed_matrix(t, shape))
    return substituted(bb, t, b, rank, n, lower != transposed, unit)


def solved(bb, a, b, shape, dtype):
    """Of symmetric, positive definite matrices."""
    rank, n = len(shape), shape[-1]
    lower = bb.emit(factor(bb, a, False, shape, dtype))
    y = bb.emit(substituted(bb, lower, b, rank, n, True))
    return substituted(bb, bb.emit(transposed_matrix(lower, shape)), y, rank, n, False)


def inverted(bb, a, shape, dtype):
    identity = np.ascontiguousarray(np.broadcast_to(np.eye(shape[-1], dtype=dtype), shape))
    return solved(bb, a, relax.const(identity, dtype), shape, dtype)


def determinant(bb, x, shape, dtype):
    """Leibniz' sum: for every permutation, the product of the elements that it picks, with its sign."""
    n = shape[-1]
    orders = [order for order in np.ndindex(*[n] * n) if len(set(order)) == n]
    places = [[i * n + order[i] for i in range(n)] for order in orders]
    signs = [round(np.linalg.det(np.eye(n)[list(order)])) for order in orders]
    row = relax.op.reshape(x, (*shape[:-2], n * n))
    products = relax.op.prod(relax.op.take(row, relax.const(places, "int64"), axis=-1), axis=-1)
    return bb.emit(relax.op.sum(relax.op.multiply(products, relax.const(np.array(signs, dtype), dtype)), axis=-1))


def matrix_power(bb, x, k, shape, dtype):
    if k == 0:
        return relax.const(np.ascontiguousarray(np.broadcast_to(np.eye(shape[-1], dtype=dtype), shape)), dtype)
    y = x
    for _ in range(k - 1):
        y = bb.emit(relax.op.matmul(y, x))
    return y
