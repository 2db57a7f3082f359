"""The same ONNX model with operators that do nothing before its nodes: over no axes, by ones, of one part. Read as
text, behind onnx_equals.py."""

import zlib
from itertools import count


def idle(model):
    """Before the first operand of each node one of IDLE, of those that fit in turn."""
    turns = count()

    def change(node, around):
        shape, dtype = (around.shape(node.input[0]), around.types.get(node.input[0])) if node.input else (None, None)
        if node.op_type == "Identity" or shape is None or dtype is None or dtype.name not in EVERYWHERE:
            return
        fitting = [rule for since, least, rule in IDLE if around.opset >= since and len(shape) >= least]
        rule = fitting[(zlib.crc32(node.op_type.encode()) + next(turns)) % len(fitting)]
        node.input[0] = rule(node.input[0], around, shape)

    rewritten(model, change)


EVERYWHERE = "float32", "float64", "int32", "int64", "bool"
"""Dtypes of which runtimes have all these operators."""


def over_none(kind):
    """Over axes of which there are none."""
    return lambda x, around, shape: around.op(kind, x, around.const([], "int64"))


def sliced(x, around, shape):
    """Of no axes."""
    return around.op("Slice", x, *[around.const([], "int64")] * 3)


def turned_to_itself(x, around, shape):
    return around.op("Transpose", x, perm=list(range(len(shape))))


def by_ones(x, around, shape):
    return around.op("Tile", x, around.const([1] * len(shape), "int64"))


def to_one(x, around, shape):
    """Expanded to a shape of one place."""
    return around.op("Expand", x, around.const([1], "int64"))


def all_places(x, around, shape):
    """Its rows, each by its place."""
    return around.op("GatherND", x, around.const(np.arange(shape[0])[:, None], "int64"))


def alone(x, around, shape):
    """Joined of one part."""
    return around.op("Concat", x, axis=-1)


IDLE = (
    (13, 0, over_none("Squeeze")),
    (13, 0, over_none("Unsqueeze")),
    (13, 1, sliced),
    (13, 1, turned_to_itself),
    (13, 1, by_ones),
    (13, 1, to_one),
    (13, 1, all_places),
    (13, 1, alone),
)
"""Opset, least number of dimensions, and what does nothing to operand, around it, of this shape."""
