"""Does it take NaN, infinities or extreme numbers? Most faults that these show are of all numbers: where a case fails
with ordinary ones, too, it is a wrong value like the others of its cause."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from generators.graph import COMPONENT, FLOATS
from generators.graphs import Case

WIDEST = 8.0
"""Of ordinary numbers, which are distinct eighths: small enough for every floating dtype."""


def with_ordinary_numbers(case: Case) -> Iterator[Case]:
    """The case with finite numbers in place of those that are not; then with ordinary numbers of both signs in place of
    all floating ones, and with positive ones below 1. Integers stay as they are."""
    for change in (_finite, _both_signs, _positive):
        arrays = {name: _changed(array, change) for name, array in case.arrays.items()}
        if any(arrays[name] is not array for name, array in case.arrays.items()):
            yield Case(case.graph, arrays)


def _changed(array: np.ndarray, change: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    part = COMPONENT.get(str(array.dtype))
    if part and array.size:  # the parts side by side
        parts = np.ascontiguousarray(array).reshape(-1).view(part)
        return change(parts).astype(part).view(array.dtype).reshape(array.shape)
    return change(array).astype(array.dtype) if str(array.dtype) in FLOATS and array.size else array


def _finite(array: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.where(np.isfinite(array), array, _both_signs(array).astype(array.dtype))


def _both_signs(array: np.ndarray) -> np.ndarray:
    steps = int(16 * WIDEST)
    return ((np.arange(array.size) * 37 + 11) % steps / 8 - WIDEST).reshape(array.shape)  # 37: in no order


def _positive(array: np.ndarray) -> np.ndarray:
    return (np.abs(_both_signs(array)) / (2 * WIDEST) + 1 / 64).reshape(array.shape)
