"""What keeps parts of a tensor, or puts it into a greater one."""

from __future__ import annotations

import numpy as np

from oracles.onnx.operators.arguments import integer, integers, positive, positives, refuse, stated
from oracles.onnx.rule import Call, Value


def _slice(call: Call) -> list[Value]:
    """Starts and ends count from the back where they are negative, and are then kept within the axis."""
    x = call.input(0)
    starts, ends = stated(call, "starts", 1) or [], stated(call, "ends", 2) or []
    axes = stated(call, "axes", 3)
    steps = integers(call.input(4)) if call.input(4) is not None else [1] * len(starts)
    taken = [slice(None)] * x.ndim
    places = positives(range(len(starts)) if axes is None else axes, x.ndim)
    for axis, start, end, step in zip(places, starts, ends, steps, strict=True):
        size = x.shape[axis]
        start, end = start + size if start < 0 else start, end + size if end < 0 else end
        if step > 0:
            taken[axis] = slice(min(max(start, 0), size), min(max(end, 0), size), step)
        else:
            start, end = min(max(start, 0), size - 1), min(max(end, -1), size - 1)
            taken[axis] = slice(start, None if end < 0 else end, step)
    return [x[tuple(taken)]]


def _sources(size: int, before: int, after: int, mode: str) -> np.ndarray:
    """The places that elements of a padded axis come from."""
    places = np.arange(-before, size + after)
    if mode == "edge":
        return np.clip(places, 0, size - 1)
    if mode == "wrap":
        return places % size
    if size == 1:
        return np.zeros_like(places)
    places = np.abs(places) % (2 * size - 2)  # mirrored at the first and the last element
    return np.minimum(places, 2 * size - 2 - places)


def _pad(call: Call) -> list[Value]:
    """Negative pads remove elements."""
    x, mode = call.input(0), call.get("mode", "constant")
    if mode not in ("constant", "edge", "reflect", "wrap"):
        raise refuse(call, f"mode {mode!r}")
    pads = stated(call, "pads", 1)
    if pads is None:
        pads = integers(call.get("paddings", ()))
    axes = range(x.ndim) if call.input(3) is None else positives(call.input(3), x.ndim)
    value = call.input(2) if call.version >= 11 else call.get("value", 0.0)
    for place, axis in enumerate(axes):
        before, after = pads[place], pads[place + len(pads) // 2]
        if mode == "constant":
            x = _filled(x, axis, before, after, value)
        elif before or after:
            x = np.take(x, _sources(x.shape[axis], before, after, mode), axis)
    return [x]


def _filled(x: np.ndarray, axis: int, before: int, after: int, value: object) -> np.ndarray:
    """One axis with so many elements of a value before and after it."""
    size = x.shape[axis]
    shape = list(x.shape)
    shape[axis] = max(0, size + before + after)
    default = "" if x.dtype == object else 0
    result = np.full(shape, default if value is None else np.asarray(value).ravel()[0], x.dtype)
    taken, given = [slice(None)] * x.ndim, [slice(None)] * x.ndim
    taken[axis] = slice(max(0, -before), max(0, size + min(0, after)))
    given[axis] = slice(max(0, before), max(0, before) + len(range(size)[taken[axis]]))
    result[tuple(given)] = x[tuple(taken)]
    return result


def _center(call: Call) -> list[Value]:
    """CenterCropPad: an odd remainder is cut or added at the end."""
    x, sizes = call.input(0), integers(call.input(1))
    axes = positives(call.get("axes", range(x.ndim)), x.ndim)
    for axis, size in zip(axes, sizes, strict=True):
        more = size - x.shape[axis]
        if more < 0:
            start = -more // 2
            x = np.take(x, np.arange(start, start + size), axis)
        else:
            x = _filled(x, axis, more // 2, more - more // 2, None)
    return [x]


def _compress(call: Call) -> list[Value]:
    """A condition that is shorter than the axis leaves the rest out."""
    x, condition = call.input(0), np.asarray(call.input(1), bool)
    axis = call.get("axis", None)
    if axis is None:
        return [x.ravel()[np.flatnonzero(condition)]]
    return [np.take(x, np.flatnonzero(condition), positive(axis, x.ndim))]


def _nonzero(call: Call) -> list[Value]:
    """Indices in the order of rows, a row for each axis; a scalar has none, and one element."""
    x = call.input(0)
    if x.ndim == 0:
        return [np.zeros((0, int(bool(x))), np.int64)]
    return [np.array(np.nonzero(x), np.int64).reshape(x.ndim, -1)]


def _triangle(call: Call) -> list[Value]:
    """Trilu, of the last two axes."""
    x = call.input(0)
    k = 0 if call.input(1) is None else integer(call.input(1))
    rows, columns = np.arange(x.shape[-2])[:, None], np.arange(x.shape[-1])
    kept = columns - rows >= k if call.get("upper", 1) else columns - rows <= k
    return [np.where(kept, x, np.zeros((), x.dtype)).astype(x.dtype)]


def _reverse(call: Call) -> list[Value]:
    """ReverseSequence: of each part of the batch the first elements in time, as many as its length."""
    x, lengths = call.input(0), integers(call.input(1))
    batch, time = call.get("batch_axis", 1), call.get("time_axis", 0)
    moved = np.moveaxis(x, (batch, time), (0, 1))
    result = moved.copy()
    for place, length in enumerate(lengths):
        result[place, :length] = moved[place, :length][::-1]
    return [np.moveaxis(result, (0, 1), (batch, time))]


RULES = {
    "CenterCropPad": _center,
    "Compress": _compress,
    "NonZero": _nonzero,
    "Pad": _pad,
    "ReverseSequence": _reverse,
    "Slice": _slice,
    "Trilu": _triangle,
}
