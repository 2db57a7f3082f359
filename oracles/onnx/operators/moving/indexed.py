"""What reads or writes at indices."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oracles.onnx.operators.arguments import integers, positive, refuse
from oracles.onnx.rule import Call, Value

_COMBINED: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


def _within(indices: np.ndarray, size: int) -> np.ndarray:
    """Indices counted from the front. Raises IndexError for one outside of the axis."""
    indices = indices.astype(np.int64)
    if ((indices < -size) | (indices >= size)).any():
        raise IndexError(f"an index is outside of an axis of {size}")
    return np.where(indices < 0, indices + size, indices)


def _gather(call: Call) -> list[Value]:
    x = call.input(0)
    axis = positive(call.get("axis", 0), x.ndim)
    return [np.take(x, _within(call.input(1), x.shape[axis]), axis)]


def _gather_elements(call: Call) -> list[Value]:
    x, indices = call.input(0), call.input(1)
    axis = positive(call.get("axis", 0), x.ndim)
    places = list(np.indices(indices.shape, sparse=True))
    places[axis] = _within(indices, x.shape[axis])
    return [x[tuple(places)]]


def _gather_nd(call: Call) -> list[Value]:
    """Each last row of the indices is a place in the tensor behind the batch axes."""
    x, indices, batch = call.input(0), call.input(1), call.get("batch_dims", 0)
    depth = indices.shape[-1]
    places = [_within(indices[..., k], x.shape[batch + k]) for k in range(depth)]
    shape = indices.shape[:-1]
    fronts = [
        np.arange(x.shape[k]).reshape([-1 if k == axis else 1 for axis in range(len(shape))]) for k in range(batch)
    ]
    if not depth and not batch:
        return [np.broadcast_to(x, (*shape, *x.shape)).copy()]
    return [x[tuple(np.broadcast_arrays(*fronts, *places))]]


def _written(result: np.ndarray, places: tuple, updates: np.ndarray, reduction: str, call: Call) -> np.ndarray:
    """The updates put or combined in order at places, which may repeat."""
    if reduction == "none":
        result[places] = updates
        return result
    if reduction not in _COMBINED:
        raise refuse(call, f"reduction {reduction!r}")
    combine = _COMBINED[reduction]
    if isinstance(combine, np.ufunc) and result.dtype.kind in "biuf":
        combine.at(result, places, updates)
        return result
    raise refuse(call, f"reduction {reduction!r} of {result.dtype}")


def _scatter_elements(call: Call) -> list[Value]:
    x, indices, updates = call.input(0), call.input(1), call.input(2)
    if not x.ndim:
        return [updates.reshape(())]
    axis = positive(call.get("axis", 0), x.ndim)
    places = list(np.indices(indices.shape))
    places[axis] = _within(indices, x.shape[axis])
    return [_written(x.copy(), tuple(places), updates, call.get("reduction", "none"), call)]


def _scatter_nd(call: Call) -> list[Value]:
    """Each last row of the indices is a place in the tensor, from the first axis on."""
    x, indices, updates = call.input(0), call.input(1), call.input(2)
    depth = indices.shape[-1]
    places = tuple(_within(indices[..., k], x.shape[k]) for k in range(depth))
    if not depth:
        raise refuse(call, "indices of no axis")
    return [_written(x.copy(), places, updates, call.get("reduction", "none"), call)]


def _tensor_scatter(call: Call) -> list[Value]:
    """An update written into a cache along the sequence axis, from an index of each sample on."""
    cache, update, mode = call.input(0).copy(), call.input(1), call.get("mode", "linear")
    axis = positive(call.get("axis", -2), cache.ndim)
    starts = [0] * cache.shape[0] if call.input(2) is None else integers(call.input(2))
    size = cache.shape[axis]
    for sample, start in enumerate(starts):
        places = start + np.arange(update.shape[axis])
        if mode == "circular":
            places = places % size
        elif mode != "linear":
            raise refuse(call, f"mode {mode!r}")
        elif start + update.shape[axis] > size or start < 0:
            raise IndexError(f"an update from {start} on does not fit into a cache of {size}")
        np.moveaxis(cache[sample], axis - 1, 0)[places] = np.moveaxis(update[sample], axis - 1, 0)
    return [cache]


def _one_hot(call: Call) -> list[Value]:
    """Indices outside of the depth make no element hot; they are truncated where they are floats."""
    indices = np.trunc(call.input(0)).astype(np.int64) if call.input(0).dtype.kind == "f" else call.input(0)
    depth = int(np.asarray(call.input(1)).ravel()[0])
    off, on = call.input(2)
    axis = positive(call.get("axis", -1), indices.ndim + 1)
    indices = np.expand_dims(indices.astype(np.int64), axis)
    classes = np.arange(depth).reshape([-1 if k == axis else 1 for k in range(indices.ndim)])
    hot = (indices == classes) | (indices + depth == classes)
    return [np.where(hot, on, off).astype(call.input(2).dtype)]


RULES = {
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "OneHot": _one_hot,
    "Scatter": _scatter_elements,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "TensorScatter": _tensor_scatter,
}
