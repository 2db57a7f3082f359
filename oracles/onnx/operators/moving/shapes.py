"""What gives elements another shape or order, repeats them or joins tensors."""

from __future__ import annotations

import numpy as np

from oracles.onnx.operators.arguments import integer, integers, positive, positives, refuse, stated
from oracles.onnx.rule import Call, Value


def _reshape(call: Call) -> list[Value]:
    """0 stands for the size that the input has there, unless `allowzero` says that it is a size."""
    x = call.input(0)
    shape = stated(call, "shape", 1) or []
    if not call.get("allowzero", 0):
        shape = [x.shape[place] if size == 0 else size for place, size in enumerate(shape)]
    if -1 in shape and 0 in shape:
        raise ValueError(f"the size of -1 in the shape {shape} cannot be told")
    return [x.reshape(shape)]


def _flatten(call: Call) -> list[Value]:
    x = call.input(0)
    axis = call.get("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    return [x.reshape(int(np.prod(x.shape[:axis])), int(np.prod(x.shape[axis:])))]


def _squeeze(call: Call) -> list[Value]:
    x, axes = call.input(0), stated(call, "axes", 1)
    found = [axis for axis, size in enumerate(x.shape) if size == 1] if axes is None else positives(axes, x.ndim)
    return [np.squeeze(x, tuple(found))]


def _unsqueeze(call: Call) -> list[Value]:
    x, axes = call.input(0), stated(call, "axes", 1) or []
    rank = x.ndim + len(axes)
    sizes = iter(x.shape)
    new = set(positives(axes, rank))
    return [x.reshape([1 if axis in new else next(sizes) for axis in range(rank)])]


def _transpose(call: Call) -> list[Value]:
    return [np.transpose(call.input(0), call.get("perm", None))]


def _expand(call: Call) -> list[Value]:
    """Both ways: the shape may have 1 where the tensor has another size."""
    x = call.input(0)
    return [np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(integers(call.input(1))))).copy()]


def _tile(call: Call) -> list[Value]:
    x = call.input(0)
    if call.version < 6:
        repeats = [1] * x.ndim
        repeats[integer(call.input(2))] = integer(call.input(1))
    else:
        repeats = integers(call.input(1))
    if len(repeats) != x.ndim:
        raise ValueError(f"{len(repeats)} repeats for a tensor of rank {x.ndim}")
    return [np.tile(x, repeats)]


def _concat(call: Call) -> list[Value]:
    axis = call.get("axis", 1 if call.version < 4 else None)
    if axis is None:
        raise refuse(call, "it has no axis")
    return [np.concatenate([np.asarray(x) for x in call.inputs], axis)]


def _split(call: Call) -> list[Value]:
    """Into stated sizes, else into as many parts as there are outputs or as `num_outputs` says, of which the last one
    may be smaller (version 18)."""
    x = call.input(0)
    axis = positive(call.get("axis", 0), x.ndim)
    sizes = stated(call, "split", 1)
    if sizes is None:
        count = call.get("num_outputs", len(call.outputs))
        part = -(-x.shape[axis] // count)
        sizes = [max(0, min(part, x.shape[axis] - part * place)) for place in range(count)]
    if sum(sizes) != x.shape[axis]:
        raise ValueError(f"parts of {sizes} of an axis of {x.shape[axis]}")
    return list(np.split(x, np.cumsum(sizes)[:-1], axis))


def _depth_to_space(call: Call) -> list[Value]:
    x, block = call.input(0), call.get("blocksize", 1)
    mode = call.get("mode", "DCR")
    if mode not in ("DCR", "CRD"):
        raise refuse(call, f"mode {mode!r}")
    n, c, *sizes = x.shape
    rank, depth = len(sizes), c // block ** len(sizes)
    blocks = [block] * rank
    parts = x.reshape(n, *blocks, depth, *sizes) if mode == "DCR" else x.reshape(n, depth, *blocks, *sizes)
    channel, first = (1 + rank, 1) if mode == "DCR" else (1, 2)
    pairs = [axis for place in range(rank) for axis in (2 + rank + place, first + place)]
    return [parts.transpose(0, channel, *pairs).reshape(n, depth, *[size * block for size in sizes])]


def _space_to_depth(call: Call) -> list[Value]:
    x, block = call.input(0), call.get("blocksize", 1)
    n, c, *sizes = x.shape
    rank = len(sizes)
    mode = call.get("mode", "DCR")
    if mode not in ("DCR", "CRD"):
        raise refuse(call, f"mode {mode!r}")
    parts = x.reshape(n, c, *[part for size in sizes for part in (size // block, block)])
    inner, outer = [3 + 2 * place for place in range(rank)], [2 + 2 * place for place in range(rank)]
    order = (0, *inner, 1, *outer) if mode == "DCR" else (0, 1, *inner, *outer)
    return [parts.transpose(order).reshape(n, c * block**rank, *[size // block for size in sizes])]


def _shape(call: Call) -> list[Value]:
    """From `start` to `end`, both kept within the rank."""
    sizes = np.array(call.input(0).shape, np.int64)
    return [sizes[slice(call.get("start", 0), call.get("end", None))]]


def _size(call: Call) -> list[Value]:
    return [np.array(call.input(0).size, np.int64)]


RULES = {
    "Concat": _concat,
    "DepthToSpace": _depth_to_space,
    "Expand": _expand,
    "Flatten": _flatten,
    "Reshape": _reshape,
    "Shape": _shape,
    "Size": _size,
    "SpaceToDepth": _space_to_depth,
    "Split": _split,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
