"""What orders elements, or goes through them in order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oracles.onnx.operators.arguments import integer, positive
from oracles.onnx.rule import Call, Rule, Value


def _top(call: Call) -> list[Value]:
    """TopK: of equals the one with the lower index comes first. k is an attribute before version 10."""
    x = call.input(0)
    axis = positive(call.get("axis", -1), x.ndim)
    k = call.get("k", None) if call.version < 10 else integer(call.input(1))
    if call.get("largest", 1):  # the stable order of the reverse, reversed, has the lower index first
        order = x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
    else:
        order = np.argsort(x, axis, kind="stable")
    if not 0 <= k <= x.shape[axis]:
        raise ValueError(f"the first {k} of {x.shape[axis]}")
    places = np.take(order, np.arange(k), axis)
    return [np.take_along_axis(x, places, axis), places.astype(np.int64)]


def _unique(call: Call) -> list[Value]:
    """Y, first indices, inverse indices, counts; sorted, or in the order in which they first occur."""
    x, axis = call.input(0), call.get("axis", None)
    axis = None if axis is None else positive(axis, x.ndim)
    if axis is not None and x.shape[axis] == 0:
        return [x, *[np.zeros(0, np.int64)] * 3]
    y, first, inverse, counts = np.unique(x, True, True, True, axis, equal_nan=False)
    inverse = inverse.ravel()
    if not call.get("sorted", 1):
        order = np.argsort(first, kind="stable")
        y, first, counts = np.take(y, order, 0 if axis is None else axis), first[order], counts[order]
        inverse = np.argsort(order, kind="stable")[inverse]
    return [y, *(array.astype(np.int64) for array in (first, inverse, counts))]


def _running(function: Callable[..., np.ndarray], start: int) -> Rule:
    """CumSum and CumProd."""

    def rule(call: Call) -> list[Value]:
        x, axis = call.input(0), positive(integer(call.input(1)), call.input(0).ndim)
        x = np.flip(x, axis) if call.get("reverse", 0) else x
        if call.get("exclusive", 0):
            first = np.full_like(np.take(x, [0] if x.shape[axis] else [], axis), start)
            x = np.concatenate([first, np.take(x, np.arange(max(0, x.shape[axis] - 1)), axis)], axis)
        y = function(x, axis, x.dtype)
        return [np.flip(y, axis) if call.get("reverse", 0) else y]

    return rule


RULES = {
    "CumProd": _running(np.cumprod, 1),
    "CumSum": _running(np.cumsum, 0),
    "TopK": _top,
    "Unique": _unique,
}
