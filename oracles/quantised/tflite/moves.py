"""TFLite's operators that only move elements, of levels and of real numbers alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from oracles.quantised.model import NotRecomputed
from oracles.quantised.reference_operators import fixed
from oracles.quantised.tflite.call import Call

Array = np.ndarray


def ints(call: Call, place: int) -> Array:
    """An operand of whole numbers that mean themselves: axes, sizes, indices."""
    return fixed(call.operands[place]).astype(int)


def axes_of(call: Call, rank: int) -> tuple[int, ...]:
    """The axes that the second operand names, counted from the front."""
    return tuple(int(axis) % rank for axis in ints(call, 1).reshape(-1))


def _reshaped(call: Call, v: Array) -> Array:
    return v.reshape(call.seen.shape)


def _transposed(call: Call, v: Array) -> Array:
    return np.transpose(v, ints(call, 1))


def _sliced(call: Call, v: Array) -> Array:
    begin, size = ints(call, 1), ints(call, 2)
    return v[tuple(slice(b, None if n < 0 else b + n) for b, n in zip(begin, size, strict=True))]


def _strided(call: Call, v: Array) -> Array:
    """With bits of axes whose begin or end is left out, and of those that are one place and go."""
    attrs = call.node.attrs
    if attrs.get("ellipsisMask") or attrs.get("newAxisMask") or attrs.get("offset"):
        raise NotRecomputed("STRIDED_SLICE with an ellipsis, new axes or offsets")
    index: list[slice | int] = []
    for axis, (begin, end, step) in enumerate(zip(ints(call, 1), ints(call, 2), ints(call, 3), strict=True)):
        if attrs["shrinkAxisMask"] >> axis & 1:
            index.append(int(begin))
            continue
        first = None if attrs["beginMask"] >> axis & 1 else int(begin)
        index.append(slice(first, None if attrs["endMask"] >> axis & 1 else int(end), int(step)))
    return v[tuple(index)]


def _gathered(call: Call, v: Array) -> Array:
    axis, batch, places = call.node.attrs["axis"], call.node.attrs.get("batchDims", 0), ints(call, 1)
    if not batch:
        return np.take(v, places, axis)
    rows = [np.take(v[at], places[at], axis % v.ndim - batch) for at in np.ndindex(v.shape[:batch])]
    return np.stack(rows).reshape(call.seen.shape)


def _split(call: Call, v: Array) -> Array:
    return np.split(v, len(call.node.results), int(ints(call, 0).reshape(())))[call.index]


def _split_by_sizes(call: Call, v: Array) -> Array:
    sizes, axis = ints(call, 1).reshape(-1), int(ints(call, 2).reshape(()))
    whole = np.where(sizes < 0, v.shape[axis] - sizes[sizes >= 0].sum(), sizes)
    return np.split(v, np.cumsum(whole)[:-1], axis)[call.index]


def _nearest(call: Call, v: Array) -> Array:
    for axis, new in zip((1, 2), ints(call, 1), strict=True):
        v = np.take(v, _places(v.shape[axis], int(new), call), axis)
    return v


def _places(old: int, new: int, call: Call) -> Sequence[int]:
    """Which element a resized image has at each place (`GetNearestNeighbor`). Raises NotRecomputed where float32 may
    come to another one."""
    corners, half = call.node.attrs["alignCorners"], call.node.attrs["halfPixelCenters"]
    factor = (old - 1) / (new - 1) if corners and new > 1 else old / new
    exact = (np.arange(new) + (0.5 if half else 0.0)) * factor + (0.5 if corners else 0.0)
    if (np.abs(exact - np.rint(exact)) < 1e-5 * (1 + exact))[exact != np.rint(exact)].any():
        raise NotRecomputed(f"{call.node.op} between two elements")
    return np.clip(np.floor(exact).astype(int), 0, old - 1).tolist()


MOVES: dict[str, tuple[int, Callable[[Call, Array], Array]]] = {
    "RESHAPE": (0, _reshaped),
    "SQUEEZE": (0, _reshaped),
    "EXPAND_DIMS": (0, _reshaped),
    "TRANSPOSE": (0, _transposed),
    "SLICE": (0, _sliced),
    "STRIDED_SLICE": (0, _strided),
    "GATHER": (0, _gathered),
    "SPLIT": (1, _split),
    "SPLIT_V": (0, _split_by_sizes),
    "RESIZE_NEAREST_NEIGHBOR": (0, _nearest),
}
"""By operator: the place of the operand that is moved, and how."""
