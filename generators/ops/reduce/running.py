"""Running extremes and sums of exponentials along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, ends, exact, rounded, spread
from generators.graph import FLOATS
from generators.ops.elementwise.comparison import beside_zero, near_zero
from generators.ops.reduce.cumulative import cumsum
from generators.ops.slots import normalized, tensor
from generators.ops.spec import Call, OpSpec, Reference, Spelling

Array = np.ndarray


def _axis(call: Call) -> int:
    return normalized(call.attrs["axis"], call.result.rank)[0]


def _so_far(mask: Array, axis: int) -> Array:
    return np.logical_or.accumulate(mask, axis=axis)


def _running_extreme(f: np.ufunc) -> Reference:
    """np.maximum or np.minimum, which propagate NaN: monotone in every element, nothing is rounded."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x, axis = args[0], _axis(call)
        with np.errstate(all="ignore"):
            value = f.accumulate(x.value, axis=axis)
            unknown = _so_far(x.undetermined, axis)
            if not x.floating:
                return exact(value, x.dtype, unknown)
            error = spread(value, *(f.accumulate(end, axis=axis) for end in ends(x)))
            error = beside_zero(value, error, _so_far(near_zero(x), axis), x.dtype)
            nan = _so_far(np.isnan(x.value) & ~x.undetermined, axis)
        value = np.where(nan, np.nan, value)
        return Bounded(value, np.where(nan, 0.0, np.where(unknown, np.inf, error)), x.dtype)

    return reference


def _logcumsumexp(args: Sequence[Bounded], call: Call) -> Bounded:
    """Of k elements: any tree of k - 1 steps m + log(1 + exp(-d)), each of which has slopes that add up to 1, and errs
    by at most u (0.4 + 6 + 1 + 6 log 2) < 12 u of its own (see logaddexp) and a rounding of its result, which is at
    most the greatest magnitude so far and log k. With the running maximum subtracted, m + log(sum exp(x - m)), it errs
    by less: exp turns the rounded differences into u |x - m| exp(x - m), in the mean u log k, beside 6 u for exp,
    (k - 1) u for the sum, 6 u log k for the logarithm."""
    x, axis = args[0], _axis(call)
    p = PRECISION[x.dtype]
    unit = p.unit + U64
    with np.errstate(all="ignore"):
        value = np.logaddexp.accumulate(x.value, axis=axis)
        steps = np.arange(x.value.shape[axis]).reshape([-1] + [1] * (x.value.ndim - axis - 1))
        finite = np.isfinite(x.value)
        size = np.maximum.accumulate(np.where(finite, np.abs(x.value) + x.error, 0.0), axis=axis)
        moved = np.maximum.accumulate(np.where(finite, x.error, 0.0), axis=axis)
        error = moved + steps * unit * (12 + 2 * (size + np.log(steps + 1)))
        error = np.where(np.isfinite(value), error, 0.0)
        unknown = _so_far(x.undetermined, axis)
        nan = _so_far(np.isnan(x.value) & ~x.undetermined, axis)
        value = np.where(nan, np.nan, value)
        result = rounded(value, np.where(nan, 0.0, np.where(unknown, np.inf, error)), x.dtype)
    first = (steps == 0) & ~x.undetermined  # nothing is computed
    return replace(result, error=np.where(first, x.error, result.error))


def _running(name: str, reference: Reference, *, relax: Spelling, onnx: Spelling, **spellings: str) -> OpSpec:
    """With the operand and the axis of a cumulative sum."""
    return replace(cumsum, name=name, reference=reference, relax=relax, onnx=onnx, **spellings)


def _extreme(name: str, f: np.ufunc, kind: str) -> OpSpec:
    full = f.__name__
    return _running(
        name, _running_extreme(f), torch=f"torch.{name}({{0}}, dim={{axis}}).values",
        tensorflow=f"running(tf.{full}, {{0}}, {{axis}})", jax=f"jax.lax.{name}({{0}}, axis={{axis}} % {{rank}})",
        relax=f"running(bb, relax.op.{full}, {{0}}, {{axis}}, {{shape}})",
        onnx=f'running(g, "{kind}", {{0}}, {{axis}}, {{shape}})',
    )  # fmt: skip


RUNNING: tuple[OpSpec, ...] = (
    _extreme("cummax", np.maximum, "Max"),
    _extreme("cummin", np.minimum, "Min"),
    replace(
        _running(
            "logcumsumexp", _logcumsumexp, torch="torch.logcumsumexp({0}, dim={axis})",
            tensorflow="tf.math.cumulative_logsumexp({0}, axis={axis})",
            jax="jax.lax.cumlogsumexp({0}, axis={axis} % {rank})",
            relax="running(bb, stable_log_add_exp, {0}, {axis}, {shape})",
            onnx="running_logaddexp(g, {0}, {axis}, {shape}, {name})",
        ),
        operands=(tensor(FLOATS, min_rank=1),),
    ),
)  # fmt: skip
