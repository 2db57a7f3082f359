"""Functions of samples that relax spellings may call. Read as text, as basic.py is."""

import numpy as np
from tvm import relax


def quantile(bb, x, q, axis, method, shape, dtype):
    """Between two elements in order."""
    place = q * (shape[axis] - 1)
    low = int(place)
    high = low + (place > low)
    rising = bb.emit(relax.op.sort(x, axis, False))
    a, b = (relax.op.take(rising, relax.const(i, "int64"), axis=axis) for i in (low, high))
    if method in ("lower", "higher") or low == high:
        return b if method == "higher" else a
    w = 0.5 if method == "midpoint" else place - low
    return relax.op.add(relax.op.multiply(a, relax.const(1 - w, dtype)), relax.op.multiply(b, relax.const(w, dtype)))


def neighbours(x, axis, n):
    """All elements but the last, and all but the first."""
    return [relax.op.strided_slice(x, [axis], [start], [start + n - 1]) for start in (0, 1)]


def diff(bb, x, n, axis, shape):
    for i in range(n):
        earlier, later = neighbours(x, axis % len(shape), shape[axis] - i)
        x = bb.emit(relax.op.subtract(later, earlier))
    return x


def trapezoid(bb, x, dx, axis, shape, dtype):
    earlier, later = neighbours(x, axis % len(shape), shape[axis])
    return relax.op.sum(relax.op.multiply(relax.op.add(earlier, later), relax.const(dx / 2, dtype)), axis=axis)


def cov(bb, x, correction, shape, dtype):
    d = bb.emit(relax.op.subtract(x, relax.op.mean(x, 1, keepdims=True)))
    products = relax.op.matmul(d, relax.op.permute_dims(d, [1, 0]))
    return relax.op.divide(products, relax.const(shape[1] - correction, dtype))


def cdist(bb, x, y, p):
    d = bb.emit(relax.op.subtract(relax.op.expand_dims(x, -2), relax.op.expand_dims(y, -3)))
    if p == 1:
        return relax.op.sum(relax.op.abs(d), axis=-1)
    return relax.op.sqrt(relax.op.sum(relax.op.multiply(d, d), axis=-1))


def bincount(x, size, dtype):
    """How many equal each number."""
    same = relax.op.equal(relax.op.expand_dims(x, 1), relax.const(np.arange(size, dtype=dtype)))
    return relax.op.sum(relax.op.astype(same, "int64"), axis=0)
