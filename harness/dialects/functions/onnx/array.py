"""Functions of arrays that onnx spellings may call. Read as text, like basic.py."""

import numpy as np


def vander(g, x, columns, increasing, dtype):
    """Products of powers."""
    powers = [g.op("Unsqueeze", x, g.const([1], "int64"))]
    for _ in range(columns - 2):
        powers.append(g.op("Mul", powers[-1], powers[0]))
    one = g.op("Expand", g.const([[1]], dtype), g.op("Shape", powers[0]))
    powers = [one, *powers][:columns]
    return g.op("Concat", *(powers if increasing else powers[::-1]), axis=1)


def tensordot(g, x, y, axes, shape, other, result):
    """One product of matrices."""
    terms = int(np.prod(other[:axes]))
    left = g.op("Reshape", x, g.const([int(np.prod(shape)) // terms, terms], "int64"))
    right = g.op("Reshape", y, g.const([terms, int(np.prod(other)) // terms], "int64"))
    return g.op("Reshape", g.op("MatMul", left, right), g.const(np.array(result, "int64"), "int64"))


def corrcoef(g, x):
    """Of the rows."""
    d = g.op("Sub", x, g.op("ReduceMean", x, g.const([1], "int64")))
    products = g.op("MatMul", d, g.op("Transpose", d, perm=[1, 0]))
    size = g.op("Sqrt", g.op("ReduceSum", g.op("Mul", d, d), g.const([1], "int64")))
    return g.op("Div", g.op("Div", products, size), g.op("Transpose", size, perm=[1, 0]))


def nanmedian(g, x, axis, shape, dtype):
    """The lower one of two in the middle."""
    missing = g.op("IsNaN", x)
    filled = g.op("Where", missing, g.const(float("inf"), dtype), x)
    rising = g.op("TopK", filled, g.const([shape[axis]], "int64"), axis=axis, largest=0, outputs=2, pick=0)
    there = g.op("Cast", g.op("Not", missing), to=7)
    count = g.op("ReduceSum", there, g.const([axis], "int64"), keepdims=1)
    before = g.op("Div", g.op("Sub", count, g.const(1, "int64")), g.const(2, "int64"))
    place = g.op("Max", before, g.const(0, "int64"))
    found = g.op("Squeeze", g.op("GatherElements", rising, place, axis=axis), g.const([axis], "int64"))
    none = g.op("Squeeze", g.op("Equal", count, g.const(0, "int64")), g.const([axis], "int64"))
    return g.op("Where", none, g.const(float("nan"), dtype), found)


def histogram(g, x, bins, dtype):
    """How many fall in each place."""
    places = g.op("Floor", g.op("Mul", g.op("Add", x, g.const(2, dtype)), g.const(bins / 4, dtype)))
    places = g.op("Where", g.op("Equal", x, g.const(2, dtype)), g.const(bins - 1, dtype), places)
    same = g.op("Equal", g.op("Unsqueeze", places, g.const([1], "int64")), g.const(np.arange(bins), dtype))
    return g.op("ReduceSum", g.op("Cast", same, to=7), g.const([0], "int64"), keepdims=0)


def index_put(g, x, rows, columns, values, shape):
    """Pairs of places, and what is added there."""
    wide = g.op("Expand", columns, g.const(np.array(shape, "int64"), "int64"))
    pairs = [g.op("Unsqueeze", g.op("Cast", i, to=7), g.const([-1], "int64")) for i in (rows, wide)]
    return g.op("ScatterND", x, g.op("Concat", *pairs, axis=-1), values, reduction="add")


def kept(g, x, mask, make, shape, dtype):
    """What is made of the rows that the mask keeps, at their places."""
    places = g.op("Transpose", g.op("NonZero", mask), perm=[1, 0])
    nothing = g.op("Expand", g.const(0, dtype), g.const(np.array(shape, "int64"), "int64"))
    return g.op("ScatterND", nothing, places, make(g.op("Compress", x, mask, axis=0)))


def roll_rows(g, rows, shift):
    """By one place: the last row first, or the first one last."""
    ends = [g.const([k], "int64") for k in (-(2**63) + 1, -shift, 2**63 - 1)]
    low, high = (g.op("Slice", rows, *ends[k : k + 2], g.const([0], "int64")) for k in (0, 1))
    return g.op("Concat", high, low, axis=0)
