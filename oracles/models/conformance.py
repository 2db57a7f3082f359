"""Values that a model's test expects, and what a run returned: floats within the noise of the model's own dtypes around
the float64 value, or a few roundings around the expected value where there is none; all else exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded
from generators.graph import COMPONENT, TensorType
from oracles.judge.compare import compare
from oracles.models import noise
from oracles.onnx.lost import beside

DOUBTED = {
    "test_averagepool_2d_ceil_last_window_starts_on_pad": "expected values are written down with four digits",
    "test_gridsample_bicubic": "expected values are written down with four digits",
    "test_gridsample_bicubic_align_corners_1_additional_1": "expected values are written down with six digits",
    "test_roialign_aligned_false": "expected values are written down with four digits",
    "test_roialign_aligned_true": "expected values are written down with four digits",
    "test_roialign_mode_max": "the greatest of weighted elements is expected, none of which is a sampled value",
    "test_blackmanwindow_symmetric": "angles in float32 are off by more than the result may be",
    "test_dynamicquantizelinear_expanded": "a tie of 127.5 steps in exact numbers, which float32 breaks before it",
    "test_resize_downsample_scales_cubic_align_corners": "length_resized is no length of the output in it",
    "test_resize_downsample_scales_linear_align_corners": "length_resized is no length of the output in it",
}
"""Tests of onnx whose expected values the specification does not give, or with few digits -> why."""
RANDOM = {"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform"}
RANDOM |= {"RandomUniformLike"}
"""Operators that draw; where there is no rule for a case of them, only chance makes a result the expected one."""


@dataclass
class Told:
    """why: what is wrong, empty where nothing is; elements, undetermined: how many there are, and how many of them may
    be anything."""

    why: str = ""
    elements: int = 0
    undetermined: int = 0

    @property
    def wasted(self) -> bool:
        """Was nothing compared?"""
        return not self.why and 0 < self.elements == self.undetermined


def judge(
    given: Sequence[Any],
    expected: Sequence[Any],
    runs: Sequence[Sequence[Any]] | None,
    narrows: Mapping[str, str] | None = None,
) -> Told:
    """Is it what is expected? runs: the outputs in float64, exact ones first and then with noise (None: there are
    none); narrows: dtypes that the runner documents to compute in narrower ones."""
    told = Told()
    if not expected:
        raise ValueError("nothing to compare")
    if len(given) != len(expected):
        told.why = f"{len(given)} outputs instead of {len(expected)}"
        return told
    for place, (one, right) in enumerate(zip(given, expected, strict=True)):
        around = None if runs is None else [run[place] for run in runs]
        why = _apart(one, right, around, narrows or {}, told)
        if why:
            told.why = f"output {place}: {why}"
            return told
    return told


def around(expected: Sequence[Any], runs: Sequence[Sequence[Any]] | None) -> list[list[Any]] | None:
    """The noise of these runs put around the expected values; None where they do not fit."""
    if runs is None or len(runs[0]) != len(expected):
        return None
    pairs = list(zip(expected, runs[0], strict=True))
    if not all(isinstance(y, np.ndarray) and isinstance(e, np.ndarray) and y.shape == e.shape for y, e in pairs):
        return None
    if any(str(y.dtype) not in PRECISION or str(y.dtype) in COMPONENT for y, _ in pairs):
        return None
    return [
        [y.astype(np.float64) + (beside(e, one) - e) for (y, e), one in zip(pairs, run, strict=True)] for run in runs
    ]


def _apart(given: Any, right: Any, runs: list[Any] | None, narrows: Mapping[str, str], told: Told) -> str:
    """What is wrong with one value."""
    if isinstance(right, list | dict) or right is None:
        return _containers_apart(given, right, runs, narrows, told)
    if not isinstance(given, np.ndarray):
        return f"{_kind(given)} instead of a tensor"
    exact = runs[0] if runs else None
    if runs is not None and not isinstance(exact, np.ndarray):
        return f"a tensor, where the reference has {_kind(exact)}"
    shape = right.shape if exact is None else exact.shape
    told.elements += max(1, int(np.prod(shape)))
    if right.dtype == object:
        truth = right if exact is None else exact
        if given.shape != shape or given.dtype != object:
            return f"{given.dtype}{list(given.shape)} instead of strings{list(shape)}"
        return "" if (given == truth).all() else f"{given[given != truth][:3]} instead of {truth[given != truth][:3]}"
    name = str(right.dtype)
    given = _viewed(given, right.dtype)
    if name not in PRECISION and (str(given.dtype), given.shape) != (name, shape):
        return f"{given.dtype}{list(given.shape)} instead of {name}{list(shape)}"
    bound = _bound(name, right, runs, narrows)
    told.undetermined += int(np.count_nonzero(bound.undetermined))
    if name not in PRECISION:
        free = bound.undetermined
        with np.errstate(all="ignore"):
            nan = _nan(given) & _nan(bound.value)
        wrong = ~free & ~nan & (given != bound.value)
        return f"{given[wrong][:3]} instead of {bound.value[wrong][:3]}" if wrong.any() else ""
    found = compare(given, TensorType(name, shape), bound)
    return f"{found.symptom}: {found.message}" if found else ""


def _containers_apart(given: Any, right: Any, runs: list[Any] | None, narrows: Mapping[str, str], told: Told) -> str:
    if right is None or type(given) is not type(right):
        told.elements += 1
        return "" if given is None and right is None else f"{_kind(given)} instead of {_kind(right)}"
    told.elements += 1
    keys = list(right) if isinstance(right, dict) else list(range(len(right)))
    if (list(given) if isinstance(given, dict) else list(range(len(given)))) != keys:
        return f"{_kind(given)} of {len(given)} instead of {len(keys)}"
    if runs is not None and any(type(run) is not type(right) or len(run) != len(right) for run in runs):
        return f"{len(right)} items, of which the reference has another number"
    for key in keys:
        why = _apart(given[key], right[key], None if runs is None else [run[key] for run in runs], narrows, told)
        if why:
            return f"item {key}: {why}"
    return ""


def _kind(value: Any) -> str:
    names = {list: "a sequence", dict: "a map", np.ndarray: "a tensor", type(None): "nothing"}
    return names.get(type(value), type(value).__name__)


def _viewed(given: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Types that numpy lacks, and so many runners have no name for, come back as another one of the same bits."""
    name = str(dtype)
    if name == "bfloat16" and given.dtype in (np.float16, np.uint16):
        return given.view(dtype)
    if given.dtype not in (np.uint8, np.int8) or given.dtype == dtype or dtype.isbuiltin == 1:
        return given
    return given.astype(dtype) if "int" in name else given.view(dtype)


def _nan(array: np.ndarray) -> np.ndarray:
    """Of types of 8 bits and fewer; integers have none."""
    return np.isnan(array.astype(np.float64)) if array.dtype.kind not in "biu" else np.zeros(array.shape, bool)


def _bound(name: str, right: np.ndarray, runs: list[Any] | None, narrows: Mapping[str, str]) -> Bounded:
    """What a correct run returns."""
    if runs is None:
        bound = _rounded(name, right)
    else:
        exact = runs[0]
        noisy = np.stack([beside(exact, run) for run in runs[1:]])
        if not exact.size:
            bound = _rounded(name, exact)
        elif name in COMPONENT:
            bound = _complex(name, exact, noisy)
        elif name in PRECISION or right.dtype.kind in "biu":
            bound = noise.expect([""], [name], [exact], [noisy]).values[0]
        else:
            moved = (noisy.astype(np.float64) != exact.astype(np.float64)) & ~(_nan(exact) & _nan(noisy))
            bound = Bounded(exact.astype(right.dtype), np.where(moved.any(axis=0), np.inf, 0.0), name)
    return _narrowed(bound, narrows.get(name, name))


def _rounded(name: str, right: np.ndarray) -> Bounded:
    """A few roundings of its dtype."""
    if name not in PRECISION:
        return Bounded(right, np.zeros(right.shape), name)
    value = right.astype(np.complex128 if name in COMPONENT else np.float64)
    with np.errstate(all="ignore"):
        allowed = noise.OWN * PRECISION[name].unit * np.abs(value) + PRECISION[name].tiny
    return Bounded(value, np.where(np.isfinite(value), allowed, 0.0), name)


def _complex(name: str, exact: np.ndarray, noisy: np.ndarray) -> Bounded:
    """By the modulus of what noise moves."""
    with np.errstate(all="ignore"):
        squares = np.mean(np.abs(noisy - exact) ** 2, axis=0)
        moved = np.sqrt((squares + np.mean(squares)) / 2) if exact.size else squares
        allowed = noise.FACTOR * moved + noise.OWN * PRECISION[name].unit * np.abs(exact) + PRECISION[name].tiny
    return Bounded(exact, np.where(np.isfinite(allowed), allowed, np.inf), name)


def _narrowed(bound: Bounded, name: str) -> Bounded:
    """The same where it is computed in a narrower dtype."""
    if name == bound.dtype:
        return bound
    if name in PRECISION:
        ratio, largest = PRECISION[name].unit / PRECISION[bound.dtype].unit, PRECISION[name].largest
        own = noise.OWN * PRECISION[name].unit * np.abs(bound.value) + PRECISION[name].tiny
        with np.errstate(all="ignore"):
            error = np.where(np.isfinite(bound.value), bound.error * ratio + own, bound.error)
        beyond = np.abs(bound.value) > largest
    else:
        limits = np.iinfo(name)
        error, beyond = bound.error, (bound.value < limits.min) | (bound.value > limits.max)
    return Bounded(bound.value, np.where(beyond, np.inf, error), bound.dtype)
