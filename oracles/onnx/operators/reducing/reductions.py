"""Sums, products, extremes and norms along axes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oracles.onnx.operators.arguments import integers, positive, positives
from oracles.onnx.rule import Call, Rule, Value

Reduction = Callable[[np.ndarray, tuple[int, ...]], np.ndarray]

_AXES_AS_INPUT = 18
"""Of all but ReduceSum, which has them as an input since version 13."""


def axes_of(call: Call) -> tuple[int, ...] | None:
    """The axes that a call reduces; None where it is to reduce none."""
    rank = call.input(0).ndim
    since = 13 if call.operator == "ReduceSum" else _AXES_AS_INPUT
    axes = call.get("axes", None) if call.version < since else call.input(1)
    if axes is None or not integers(axes):
        if axes is not None and call.version < since:  # an empty attribute, as an absent one
            axes = None
        return None if call.get("noop_with_empty_axes", 0) else tuple(range(rank))
    return tuple(positives(axes, rank))


def _reduction(function: Reduction) -> Rule:
    def rule(call: Call) -> list[Value]:
        x, axes = call.input(0), axes_of(call)
        if axes is None:
            return [np.asarray(function(x[..., None], (x.ndim,)).reshape(x.shape)).astype(x.dtype)]
        result = np.asarray(function(x, axes))
        if not call.get("keepdims", 1):
            result = result.reshape([size for axis, size in enumerate(x.shape) if axis not in axes])
        return [result.astype(x.dtype)]

    return rule


def _sum(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    return np.sum(x, axes, x.dtype, keepdims=True)


def _product(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    return np.prod(x, axes, x.dtype, keepdims=True)


def _mean(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Of integers the quotient of their sum towards zero."""
    if x.dtype.kind == "f":
        return np.mean(x, axes, keepdims=True)
    return np.trunc(np.mean(x.astype(np.float64), axes, keepdims=True))


def _extreme(x: np.ndarray, axes: tuple[int, ...], greatest: bool) -> np.ndarray:
    """Of nothing it is the least or greatest value that the type has."""
    if x.dtype == np.bool_:
        return (np.any if greatest else np.all)(x, axes, keepdims=True)
    limits = (-np.inf, np.inf) if x.dtype.kind == "f" else (np.iinfo(x.dtype).min, np.iinfo(x.dtype).max)
    if greatest:
        return np.max(x, axes, keepdims=True, initial=limits[0])
    return np.min(x, axes, keepdims=True, initial=limits[1])


def _log_sum_exp(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    x = x.astype(np.float64)
    top = np.max(x, axes, keepdims=True, initial=-np.inf)
    finite = np.where(np.isfinite(top), top, 0)
    return np.log(np.sum(np.exp(x - finite), axes, keepdims=True)) + finite


def _float(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64)


def _placed(call: Call, greatest: bool) -> list[Value]:
    """ArgMax and ArgMin: of equals the first one, or the last one where that is asked for. NaN is the greatest and the
    least, as numpy has it; the specification does not say."""
    x = call.input(0)
    axis = positive(call.get("axis", 0), x.ndim)
    find = np.argmax if greatest else np.argmin
    last = call.get("select_last_index", 0)
    found = x.shape[axis] - 1 - find(np.flip(x, axis), axis) if last else find(x, axis)
    found = np.asarray(found, np.int64)
    return [np.expand_dims(found, axis) if call.get("keepdims", 1) else found]


RULES = {
    "ArgMax": lambda call: _placed(call, greatest=True),
    "ArgMin": lambda call: _placed(call, greatest=False),
    "ReduceL1": _reduction(lambda x, axes: _sum(np.abs(x), axes)),
    "ReduceL2": _reduction(lambda x, axes: np.sqrt(_sum(_float(x) ** 2, axes))),
    "ReduceLogSum": _reduction(lambda x, axes: np.log(_sum(_float(x), axes))),
    "ReduceLogSumExp": _reduction(_log_sum_exp),
    "ReduceMax": _reduction(lambda x, axes: _extreme(x, axes, greatest=True)),
    "ReduceMean": _reduction(_mean),
    "ReduceMin": _reduction(lambda x, axes: _extreme(x, axes, greatest=False)),
    "ReduceProd": _reduction(_product),
    "ReduceSum": _reduction(_sum),
    "ReduceSumSquare": _reduction(lambda x, axes: _sum(x * x, axes)),
}
