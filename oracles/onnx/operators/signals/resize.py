"""Resize: along each axis a matrix of weights, whose coordinates are exact fractions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

import numpy as np

from oracles.onnx.operators.arguments import integers, positives, refuse
from oracles.onnx.rule import Call, Value

_HALF = Fraction(1, 2)


@dataclass(frozen=True)
class _Axis:
    """One axis: lengths before and after, the factor between them as it is given or follows from sizes, the region."""

    before: int
    after: int
    scale: Fraction
    start: Fraction = Fraction(0)
    end: Fraction = Fraction(1)


@dataclass(frozen=True)
class _Way:
    """How to interpolate."""

    mode: str
    transformation: str
    nearest: str
    cubic: float = -0.75
    exclude: bool = False
    antialias: bool = False


def _original(call: Call, axis: _Axis, way: _Way, place: int) -> Fraction:
    """The coordinate in the input of an element of the output."""
    how, last = way.transformation, axis.before - 1
    if how == "half_pixel":
        return (place + _HALF) / axis.scale - _HALF
    if how == "half_pixel_symmetric":
        adjustment = Fraction(axis.after) / (axis.scale * axis.before)
        return Fraction(axis.before, 2) * (1 - adjustment) + (place + _HALF) / axis.scale - _HALF
    if how == "pytorch_half_pixel":
        return (place + _HALF) / axis.scale - _HALF if axis.after > 1 else Fraction(0)
    if how == "align_corners":
        return Fraction(place * last, axis.after - 1) if axis.after > 1 else Fraction(0)
    if how == "asymmetric":
        return place / axis.scale
    if how == "tf_half_pixel_for_nn" and call.version < 13:
        return (place + _HALF) / axis.scale
    if how == "tf_crop_and_resize":
        if axis.after > 1:
            return axis.start * last + place * (axis.end - axis.start) * last / (axis.after - 1)
        return _HALF * (axis.start + axis.end) * last
    raise refuse(call, f"coordinate_transformation_mode {how!r}")


def _nearest(call: Call, way: _Way, coordinate: Fraction) -> int:
    """The element next to a coordinate, which is a float32 as `scales` is: 3 / 0.33333334 is 9."""
    x = Fraction(float(np.float32(float(coordinate))))
    if way.nearest == "simple":  # before version 11 the text has no rule for what shrinks
        if x.denominator != 1 and way.exclude:
            raise refuse(call, "nearest elements of a smaller output, whose choice the text leaves open")
        return floor(x)
    if way.nearest == "round_prefer_floor":
        return ceil(x - _HALF)
    if way.nearest == "round_prefer_ceil":
        return floor(x + _HALF)
    if way.nearest in ("floor", "ceil"):
        return floor(x) if way.nearest == "floor" else ceil(x)
    raise refuse(call, f"nearest_mode {way.nearest!r}")


def _filter(way: _Way, distance: np.ndarray) -> np.ndarray:
    """The weight at a distance: a triangle, or Keys' cubic with the coefficient a."""
    x, a = np.abs(distance), way.cubic
    if way.mode == "linear":
        return np.maximum(0, 1 - x)
    inner = ((a + 2) * x - (a + 3)) * x * x + 1
    outer = ((x - 5) * x + 8) * x * a - 4 * a
    return np.where(x <= 1, inner, np.where(x < 2, outer, 0))


def _weights(call: Call, axis: _Axis, way: _Way) -> tuple[np.ndarray, np.ndarray]:
    """A matrix (after, before), and which elements of the output lie outside the input where that is told apart."""
    matrix, outside = np.zeros((axis.after, axis.before)), np.zeros(axis.after, bool)
    shrink = min(1.0, float(axis.scale)) if way.antialias else 1.0
    reach = ceil((1 if way.mode == "linear" else 2) / shrink) + 1
    for place in range(axis.after):
        x = _original(call, axis, way, place)
        outside[place] = way.transformation == "tf_crop_and_resize" and not 0 <= x <= axis.before - 1
        if way.mode == "nearest":
            matrix[place, min(max(_nearest(call, way, x), 0), axis.before - 1)] = 1
            continue
        near = np.arange(floor(x) - reach, floor(x) + reach + 1)
        weights = _filter(way, (near - floor(x) - float(x - floor(x))) * shrink)
        if way.exclude:
            weights = np.where((near < 0) | (near >= axis.before), 0, weights)
        if way.exclude or way.antialias:
            weights = weights / weights.sum()
        np.add.at(matrix[place], np.clip(near, 0, axis.before - 1), weights)
    return matrix, outside


def _resized(call: Call, x: np.ndarray, axes: Sequence[_Axis], way: _Way, beyond: float) -> np.ndarray:
    if way.mode not in ("nearest", "linear", "cubic"):
        raise refuse(call, f"mode {way.mode!r}")
    if way.mode != "nearest" and x.dtype != np.float64:
        raise refuse(call, "integers between two elements, whose rounding the text leaves open")
    y, missing = x, np.zeros([axis.after for axis in axes], bool)
    for number, axis in enumerate(axes):
        if axis.before == axis.after and axis.scale == 1 and (axis.start, axis.end) == (0, 1):
            continue
        if not axis.before:
            raise refuse(call, "an axis of no elements")
        matrix, outside = _weights(call, axis, way)
        if way.mode == "nearest":
            y = np.take(y, matrix.argmax(1), number)
        else:
            y = np.moveaxis(np.tensordot(matrix, y, (1, number)), 0, number)
        missing |= np.expand_dims(outside, [k for k in range(len(axes)) if k != number])
    return np.where(missing, beyond, y).astype(x.dtype) if missing.any() else y


def _grown(size: int, scale: float, part: Fraction = Fraction(1)) -> int:
    """floor(size * part * scale) in float32, as onnx's shape inference computes it (onnx/defs/tensor/utils.cc)."""
    return floor(np.float32(size) * np.float32(float(part)) * np.float32(scale))


def _resize(call: Call) -> list[Value]:
    x = call.input(0)
    if call.version < 11:
        return [_early(call, x, [float(scale) for scale in call.input(1)])]
    roi, scales, sizes = call.input(1), call.input(2), call.input(3)
    chosen = positives(call.get("axes", list(range(x.ndim))), x.ndim)
    how = call.get("coordinate_transformation_mode", "half_pixel")
    crops = how == "tf_crop_and_resize"
    if crops and (roi is None or roi.size != 2 * len(chosen)):
        raise refuse(call, "a crop without its region")
    regions = [(Fraction(0), Fraction(1))] * x.ndim
    for number, axis in enumerate(chosen):
        if crops:
            regions[axis] = Fraction(float(roi[number])), Fraction(float(roi[number + len(chosen)]))
    parts = [_Axis(size, size, Fraction(1), *region) for size, region in zip(x.shape, regions, strict=True)]
    if scales is not None and scales.size:
        for axis, scale in zip(chosen, scales, strict=True):
            start, end = regions[axis]
            after = _grown(x.shape[axis], float(scale), end - start)
            parts[axis] = _Axis(x.shape[axis], after, Fraction(float(scale)), start, end)
    elif sizes is not None and sizes.size:
        for axis, (after, scale) in zip(chosen, _stretched(call, x, chosen, integers(sizes)), strict=True):
            parts[axis] = _Axis(x.shape[axis], after, scale, *regions[axis])
    else:
        raise refuse(call, "neither scales nor sizes")
    way = _Way(
        mode=call.get("mode", "nearest"),
        transformation=how,
        nearest=call.get("nearest_mode", "round_prefer_floor"),
        cubic=call.get("cubic_coeff_a", -0.75),
        exclude=bool(call.get("exclude_outside", 0)),
        antialias=bool(call.get("antialias", 0)),
    )
    return [_resized(call, x, parts, way, call.get("extrapolation_value", 0.0))]


def _stretched(call: Call, x: np.ndarray, axes: list[int], sizes: list[int]) -> list[tuple[int, Fraction]]:
    """By axis, the length of the output and the factor."""
    policy = call.get("keep_aspect_ratio_policy", "stretch")
    factors = [Fraction(size, x.shape[axis]) for axis, size in zip(axes, sizes, strict=True)]
    if policy == "stretch":
        return list(zip(sizes, factors, strict=True))
    if policy not in ("not_larger", "not_smaller"):
        raise refuse(call, f"keep_aspect_ratio_policy {policy!r}")
    factor = min(factors) if policy == "not_larger" else max(factors)
    return [(floor(factor * x.shape[axis] + _HALF), factor) for axis in axes]


def _early(call: Call, x: np.ndarray, scales: list[float]) -> np.ndarray:
    """Before version 11: by scales alone, from the first element on."""
    mode = call.get("mode", "nearest")
    if mode not in ("nearest", "linear"):
        raise refuse(call, f"mode {mode!r}")
    parts = [_Axis(size, _grown(size, scale), Fraction(scale)) for size, scale in zip(x.shape, scales, strict=True)]
    shrinks = any(scale < 1 for scale in scales)
    return _resized(call, x, parts, _Way(mode, "asymmetric", "simple", exclude=shrinks and mode == "nearest"), 0.0)


RULES = {"Resize": _resize}
