"""Functions of samples that onnx spellings may call. Read as text, as basic.py is."""

import numpy as np
import onnx
from onnx import TensorProto


def quantile(g, x, q, axis, method, shape, dtype):
    """Between two elements in order."""
    n = shape[axis]
    low = int(q * (n - 1))
    high = low + (q * (n - 1) > low)
    rising = g.op("TopK", x, g.const([n], "int64"), outputs=2, pick=0, axis=axis, largest=0)
    a, b = (g.op("Gather", rising, g.const(place, "int64"), axis=axis) for place in (low, high))
    if method in ("lower", "higher") or low == high:
        return b if method == "higher" else a
    w = 0.5 if method == "midpoint" else q * (n - 1) - low
    return g.op("Add", g.op("Mul", a, g.const(1 - w, dtype)), g.op("Mul", b, g.const(w, dtype)))


def neighbours(g, x, axis, n):
    """All elements but the last, and all but the first."""
    return [
        g.op("Slice", x, *[g.const([place], "int64") for place in (start, start + n - 1, axis)]) for start in (0, 1)
    ]


def diff(g, x, n, axis, shape):
    for i in range(n):
        earlier, later = neighbours(g, x, axis, shape[axis] - i)
        x = g.op("Sub", later, earlier)
    return x


def trapezoid(g, x, dx, axis, shape, dtype):
    pairs = g.op("Mul", g.op("Add", *neighbours(g, x, axis, shape[axis])), g.const(dx / 2, dtype))
    return g.op("ReduceSum", pairs, g.const([axis], "int64"), keepdims=0)


def cov(g, x, correction, shape, dtype):
    d = g.op("Sub", x, g.op("ReduceMean", x, g.const([1], "int64")))
    products = g.op("MatMul", d, g.op("Transpose", d, perm=[1, 0]))
    return g.op("Div", products, g.const(shape[1] - correction, dtype))


def cdist(g, x, y, p):
    d = g.op("Sub", g.op("Unsqueeze", x, g.const([-2], "int64")), g.op("Unsqueeze", y, g.const([-3], "int64")))
    return g.op("ReduceL1" if p == 1 else "ReduceL2", d, g.const([-1], "int64"), keepdims=0)


def bincount(g, x, size, dtype):
    """How many equal each number."""
    same = g.op("Equal", g.op("Unsqueeze", x, g.const([1], "int64")), g.const(range(size), dtype))
    counted = g.op("Cast", same, to=TensorProto.INT64)
    return g.op("ReduceSum", counted, g.const([0], "int64"), keepdims=0)


def searchsorted(g, sequence, values, rank, right):
    """How many are below each value, or equal to it if `right`."""
    apart = g.op("Unsqueeze", values, g.const([rank], "int64"))
    below = g.op("GreaterOrEqual" if right else "Greater", apart, sequence)
    counted = g.op("Cast", below, to=TensorProto.INT64)
    return g.op("ReduceSum", counted, g.const([rank], "int64"), keepdims=0)
