"""Linear interpolation between knots, as jnp.interp: a knot's value at the knot, whatever its neighbours are, and that
of the last knot beyond it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded
from generators.graph import TensorType
from generators.ops.composed import undetermined
from generators.ops.slots import MAX_ELEMENTS, draw_dim, floating
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Slot, TypeRuleError, Types, unsupported

_NONE = unsupported("it has no interpolation between given knots")


def _line(t: TensorType, earlier: Types) -> bool:
    return floating().accepts(t, earlier) and t.rank == 1 and t.size > 0


def _fresh_knots(d: Draw, earlier: Types) -> TensorType:
    return TensorType(floating().fresh(d, earlier).dtype, (draw_dim(d, 9, zero=False),))


def _fits(t: TensorType, earlier: Types) -> bool:
    return t.dtype == earlier[0].dtype and t.size * earlier[0].size <= MAX_ELEMENTS


def _fresh_values(d: Draw, earlier: Types) -> TensorType:
    return TensorType(earlier[0].dtype, tuple(draw_dim(d, 9) for _ in range(d.choice((1, 2, 0)))))


def _type(operands: Types, attrs: Attrs) -> TensorType:
    knots, heights, x = operands
    if not _line(knots, ()) or heights != knots or not _fits(x, operands):
        raise TypeRuleError(f"no line through {knots} and {heights} at {x}")
    return x


def _interpolated(args: Sequence[Bounded], call: Call) -> Bounded:
    """Between two knots the numbers are rounded a few times, in one arrangement or another, each by no more than the
    heights of both. Open at knots that are equal, not exact or no numbers, and where a difference overflows or is
    lost."""
    dtype = args[0].dtype
    unit, tiny, largest = PRECISION[dtype].unit, PRECISION[dtype].tiny, PRECISION[dtype].largest
    order = np.argsort(args[0].value, kind="stable")
    knots, (heights, off), x = args[0].value[order], (args[1].value, args[1].error), args[2].value
    n = len(knots)
    with np.errstate(all="ignore"):
        right = np.clip(np.searchsorted(knots, x, "right"), 1, max(n - 1, 1))
        left, right = right - 1, np.minimum(right, n - 1)
        step, rise = knots[right] - knots[left], heights[right] - heights[left]
        size = np.abs(heights[left]) + np.abs(heights[right])
        value = heights[left] + (x - knots[left]) / step * rise
        error = 8 * unit * size + off[left] + off[right] + tiny * (1 + size / np.minimum(step, 1.0))
        open_ = ~np.isfinite(size) | (size > largest / 2) | ~(step <= largest / 2) | (step < tiny / unit)
        low, high = x <= knots[0], x >= knots[-1]
        place = np.where(low, 0, np.where(high, n - 1, np.where(x == knots[left], left, right)))
        at = low | high | (x == knots[place])
        least = np.where(np.isfinite(size), 4 * unit * size, 0.0)
        value, error = np.where(at, heights[place], value), np.where(at, least + off[place], error)
        known = np.isnan(heights[place]) | ~np.isfinite(heights[place])
        error = np.where(at & known, 0.0, error)
        twice = np.sum(np.abs(knots[place][..., None] - knots) < tiny / unit, axis=-1) > 1
        open_ = (
            np.where(at, twice, open_) | (args[2].error > 0) | np.any(args[0].error > 0) | np.any(~np.isfinite(knots))
        )
    value, error = np.where(np.isnan(x), np.nan, value), np.where(np.isnan(x), 0.0, error)
    return undetermined(Bounded(np.where(open_, 0.0, value), np.where(open_, 0.0, error), dtype), open_)


interpolate = OpSpec(
    "interpolate", "statistics",
    (Slot(_line, _fresh_knots), Slot(lambda t, e: t == e[0], lambda d, e: e[0]), Slot(_fits, _fresh_values)),
    _type, _interpolated, torch=_NONE, tensorflow=_NONE, relax=_NONE, onnx=_NONE,
    jax="jnp.interp({2}, jnp.sort({0}), {1})",
)  # fmt: skip
OPERATORS = (interpolate,)
