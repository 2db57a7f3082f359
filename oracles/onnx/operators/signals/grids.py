"""Sampling at the places of a grid."""

from __future__ import annotations

from itertools import product

import numpy as np

from oracles.onnx.operators.arguments import integers, refuse
from oracles.onnx.rule import Call, Value

_MODES = {"bilinear": "linear", "linear": "linear", "nearest": "nearest", "bicubic": "cubic", "cubic": "cubic"}
_A = -0.75  # of the cubic filter, as PyTorch's grid_sample, which the text refers to


def _reflected(x: np.ndarray, low: float, high: float) -> np.ndarray:
    """Mirrored at both borders until it lies between them."""
    span = high - low
    if span == 0:
        return np.full_like(x, low)
    beyond = np.mod(x - low, 2 * span)
    return low + np.where(beyond > span, 2 * span - beyond, beyond)


def _pixels(x: np.ndarray, places: list[np.ndarray], padding: str, corners: bool) -> np.ndarray:
    """Elements of (N, C, D...) at whole places (N, O...) by axis: (N, C, O...)."""
    inside, safe = np.ones(places[0].shape, bool), []
    for place, size in zip(places, x.shape[2:], strict=True):
        inside &= (place >= 0) & (place < size)
        if padding == "reflection":
            low, high = (0, size - 1) if corners else (-0.5, size - 0.5)
            place = _reflected(place.astype(np.float64), low, high).astype(np.int64)
        safe.append(np.clip(place, 0, size - 1))
    samples = np.arange(x.shape[0]).reshape(-1, *[1] * (places[0].ndim - 1))
    taken = np.moveaxis(np.moveaxis(x, 1, -1)[(samples, *safe)], -1, 1)
    return np.where(inside[:, None], taken, np.zeros((), x.dtype)) if padding == "zeros" else taken


def _cubic(distance: np.ndarray) -> np.ndarray:
    """Keys' filter."""
    x = np.abs(distance)
    inner = ((_A + 2) * x - (_A + 3)) * x * x + 1
    return np.where(x <= 1, inner, np.where(x < 2, ((x - 5) * x + 8) * x * _A - 4 * _A, 0))


def _grid_sample(call: Call) -> list[Value]:
    """Coordinates of the grid's last axis go from the innermost axis of the input outwards."""
    x, grid = call.input(0), call.input(1)
    padding, corners = call.get("padding_mode", "zeros"), bool(call.get("align_corners", 0))
    mode = _MODES.get(call.get("mode", "bilinear" if call.version < 20 else "linear"))
    if mode is None or padding not in ("zeros", "border", "reflection"):
        raise refuse(call, f"mode {call.get('mode', '')!r}, padding {padding!r}")
    if x.dtype == object or (x.dtype != np.float64 and mode != "nearest"):
        raise refuse(call, f"elements of {x.dtype} between two places")
    if x.ndim != grid.shape[-1] + 2:
        raise refuse(call, f"an input of rank {x.ndim} and places of {grid.shape[-1]} coordinates")
    where = []
    for number, size in enumerate(x.shape[2:]):
        place = grid[..., grid.shape[-1] - 1 - number]
        place = (place + 1) / 2 * (size - 1) if corners else ((place + 1) * size - 1) / 2
        if mode == "nearest":
            place = np.rint(place)
        low, high = (0, size - 1) if corners else (-0.5, size - 0.5)
        beyond = (place < low) | (place > high)
        if padding == "border" and mode != "cubic":  # whose elements alone are bounded, as in PyTorch
            place = np.where(beyond, np.clip(place, 0, size - 1), place)
        elif padding == "reflection":
            place = np.where(beyond, _reflected(place, low, high), place)
        where.append(place)
    if not all(np.isfinite(place).all() for place in where):
        raise refuse(call, "places that are not finite")
    if mode == "nearest":
        return [_pixels(x, [np.rint(place).astype(np.int64) for place in where], padding, corners)]
    first = [np.floor(place).astype(np.int64) for place in where]
    result = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for steps in product((0, 1) if mode == "linear" else (-1, 0, 1, 2), repeat=len(where)):
        places = [start + step for start, step in zip(first, steps, strict=True)]
        weight = np.ones(where[0].shape)
        for place, target in zip(places, where, strict=True):
            weight = weight * (1 - np.abs(target - place) if mode == "linear" else _cubic(target - place))
        result += weight[:, None] * _pixels(x, places, padding, corners)
    return [result]


def _affine_grid(call: Call) -> list[Value]:
    """Evenly spaced positions between -1 and 1 by each affine matrix."""
    theta, sizes = call.input(0), integers(call.input(1))[2:]
    axes = []
    for size in sizes:
        if call.get("align_corners", 0):
            axes.append(np.arange(size) * 2 / (size - 1) - 1 if size > 1 else np.zeros(1))
        else:
            axes.append((2 * np.arange(size) + 1) / size - 1)
    positions = np.meshgrid(*axes, indexing="ij")[::-1]
    homogeneous = np.stack([*positions, np.ones(sizes)], -1)
    if theta.shape[1:] != (len(sizes), len(sizes) + 1):
        raise refuse(call, f"matrices of {theta.shape[1:]} for {len(sizes)} axes")
    return [np.stack([homogeneous @ matrix.T for matrix in theta])]


RULES = {"AffineGrid": _affine_grid, "GridSample": _grid_sample}
