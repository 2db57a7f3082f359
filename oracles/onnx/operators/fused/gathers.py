"""What ONNX Runtime takes from a tensor: crops of images, rows of quantised tables."""

from __future__ import annotations

import numpy as np

from oracles.onnx.operators.arguments import integers, positive, refuse
from oracles.onnx.operators.quantised.linear import whole
from oracles.onnx.operators.quantised.runtime import unpacked
from oracles.onnx.rule import Call, Value


def _crop(call: Call) -> list[Value]:
    """Crops whose corners are aligned, between elements linearly; a value of its own outside the image."""
    x, boxes, batch, (height, width) = call.input(0), call.input(1), integers(call.input(2)), integers(call.input(3))
    if call.get("mode", "bilinear") != "bilinear":
        raise refuse(call, "nearest elements, whose ties the text leaves open")
    found = np.zeros((len(batch), x.shape[1], height, width))
    for number, (box, sample) in enumerate(zip(boxes, batch, strict=True)):
        weights, outside = [], []
        for low, high, count, size in ((box[0], box[2], height, x.shape[2]), (box[1], box[3], width, x.shape[3])):
            middle = np.array([(low + high) / 2])
            places = (low + np.arange(count) * (high - low) / (count - 1) if count > 1 else middle) * (size - 1)
            weights.append(np.maximum(0, 1 - np.abs(places[:, None] - np.arange(size))))
            outside.append((places < 0) | (places > size - 1))
        values = weights[0] @ x[sample] @ weights[1].T
        beyond = outside[0][:, None] | outside[1]
        found[number] = np.where(beyond, call.get("extrapolation_value", 0.0), values)
    return [found]


def _gather(call: Call) -> list[Value]:
    """Rows of a table whose numbers are quantised in blocks; zeros for an index that is not there."""
    table, indices, scales, zeros = (call.input(place) for place in range(4))
    bits, block = call.get("bits", 4), call.get("block_size", 128)
    packed = table.dtype == np.uint8 and bits < 8
    default = 1 << (bits - 1) if table.dtype == np.uint8 else 0
    axis = positive(call.get("quantize_axis", 1), table.ndim)
    taken = positive(call.get("gather_axis", 0), table.ndim)
    if not block or (packed and taken):
        raise refuse(call, "one block for a whole axis, or packed rows along it")
    numbers = unpacked(table, bits, table.shape[-1] * 8 // bits) if packed else whole(table)
    where = np.arange(numbers.shape[axis]) // block
    if scales.shape[axis] != where[-1] + 1:
        raise refuse(call, f"scales of {scales.shape} for {numbers.shape} in blocks of {block}")
    if zeros is None:
        moves: np.ndarray = np.full(numbers.shape, default)
    else:
        small = unpacked(zeros, bits, scales.shape[-1]) if packed else whole(zeros)
        moves = np.take(small, where, axis)
    real = (numbers - moves) * np.take(scales, where, axis)
    size = real.shape[taken]
    inside = (indices >= -size) & (indices < size)
    rows = np.take(real, np.where(inside, indices, 0), taken)
    shape = [1] * taken + list(indices.shape) + [1] * (real.ndim - taken - 1)
    return [np.where(inside.reshape(shape), rows, 0.0)]


RULES = {"com.microsoft:CropAndResize": _crop, "com.microsoft:GatherBlockQuantized": _gather}
