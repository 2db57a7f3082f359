"""Softmax and its logarithm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, gamma, rounded
from generators.graph import TensorType
from generators.ops.slots import axis_of, floating, int_of, normalized
from generators.ops.spec import Attrs, Call, OpSpec, Types

Array = np.ndarray


def _axis_type(operands: Types, attrs: Attrs) -> TensorType:
    normalized(attrs["axis"], operands[0].rank)
    return operands[0]


@dataclass(frozen=True)
class _Shifted:
    """t = x - max(x) along an axis, y = exp(t) / sum(exp(t)), and the bounds that softmax and log_softmax share.

    An error of the maximum cancels. The exponential of t_j carries a factor exp(+-h_j):
    h = e (of x_j) + u |t_j| (the difference is rounded) + 3 ulp of exp (OpenCL), and gamma_n for the sum.
    rise, fall: the sum of the exponentials is between S (1 - fall) and S (1 + rise).
    nan: the axis holds NaN, or -infinity only, or the element itself is +infinity.
    loose: an operand along the axis is undetermined, or the axis holds +infinity: beside it the definition,
    exp(x) by the sum of all, gives 0 and the shifted form NaN."""

    t: Array
    y: Array
    log_sum: Array
    h: Array
    rise: Array
    fall: Array
    nan: Array
    loose: Array


def _shifted(x: Bounded, axis: int) -> _Shifted:
    unit = PRECISION[x.dtype].unit + U64
    certain = ~x.undetermined
    bad = np.isnan(x.value) | (x.value == np.inf)
    endless = certain & (x.value == np.inf)
    nan = np.any(certain & np.isnan(x.value), axis, keepdims=True) | endless
    nan |= np.all(certain & (x.value == -np.inf), axis, keepdims=True)
    value = np.where(certain & ~bad, x.value, -np.inf)
    e = np.where(np.isfinite(value), x.error, 0.0)
    top = np.max(value, axis, keepdims=True, initial=-np.inf)
    t = np.where(np.isfinite(value), value - top, -np.inf)
    raised = np.exp(t)
    total = np.sum(raised, axis, keepdims=True)
    y = raised / total
    # the maximum of the perturbed operands is off by at most the greatest of their errors
    distance = np.where(np.isfinite(t), np.abs(t), 0.0) + e + np.max(e, axis, keepdims=True, initial=0.0)
    h = e + unit * distance + 7 * unit
    count = gamma(x.value.shape[axis], unit)
    with np.errstate(all="ignore"):
        # an exponential that is 0 in float64 may still be there if its argument is uncertain enough
        lost = np.where(np.isfinite(t), np.exp(np.minimum(t + h, 700.0)), 0.0)
        rise = np.sum(np.where(y > 0, y * np.expm1(h), lost), axis, keepdims=True)
        fall = -np.sum(y * np.expm1(-h), axis, keepdims=True)
        tiny = PRECISION[x.dtype].tiny * x.value.shape[axis]  # exponentials that are flushed
        rise, fall = rise * (1 + count) + count, fall + count + tiny
    loose = np.any(x.undetermined | endless, axis, keepdims=True)
    return _Shifted(t, y, np.log(total), h, rise, fall, nan, loose)


def _softmax(args: Sequence[Bounded], call: Call) -> Bounded:
    """exp(t) by the sum (2.5 ulp, or a product with the reciprocal). A softmax never leaves [0, 1]."""
    x, axis = args[0], int_of(call.attrs, "axis")
    p = PRECISION[x.dtype]
    with np.errstate(all="ignore"):
        s = _shifted(x, axis)
        above = (np.expm1(s.h) + s.fall) / (1 - s.fall)
        below = (s.rise - np.expm1(-s.h)) / (1 + s.rise)
        lost = np.where(np.isfinite(s.t), np.exp(np.minimum(s.t + s.h, 0.0)), 0.0)
        error = np.where(s.y > 0, s.y * np.maximum(np.where(s.fall < 1, above, np.inf), below), lost)
        error = np.fmin(error, 1.0) + p.tiny
        value = np.where(s.nan, np.nan, s.y)
        return rounded(value, np.where(s.nan, 0.0, np.where(s.loose, np.inf, error)), x.dtype, 3)


def _log_softmax(args: Sequence[Bounded], call: Call) -> Bounded:
    """t - log(sum(exp(t))); 3 ulp for the logarithm (OpenCL)."""
    x, axis = args[0], int_of(call.attrs, "axis")
    p = PRECISION[x.dtype]
    with np.errstate(all="ignore"):
        s = _shifted(x, axis)
        logarithm = np.maximum(np.log1p(s.rise), np.where(s.fall < 1, -np.log1p(-s.fall), np.inf))
        logarithm += 6 * (p.unit + U64) * (s.log_sum + logarithm)
        finite = np.isfinite(s.t)
        error = np.where(finite, s.h - 7 * (p.unit + U64) + logarithm, 0.0)
        value = np.where(s.nan, np.nan, s.t - s.log_sum)
        return rounded(value, np.where(s.nan, 0.0, np.where(s.loose, np.inf, error)), x.dtype)


softmax = OpSpec(
    "softmax",
    "norm",
    operands=(floating(min_rank=1),),
    result=_axis_type,
    reference=_softmax,
    attrs={"axis": axis_of(0)},
    torch="torch.softmax({0}, dim={axis})",
    tensorflow="tf.nn.softmax({0}, axis={axis})",
    jax="jax.nn.softmax({0}, axis={axis})",
    relax="relax.op.nn.softmax({0}, axis={axis})",
    onnx='g.op("Softmax", {0}, axis={axis})',
)

log_softmax = OpSpec(
    "log_softmax",
    "norm",
    operands=(floating(min_rank=1),),
    result=_axis_type,
    reference=_log_softmax,
    attrs={"axis": axis_of(0)},
    torch="torch.log_softmax({0}, dim={axis})",
    tensorflow="tf.nn.log_softmax({0}, axis={axis})",
    jax="jax.nn.log_softmax({0}, axis={axis})",
    relax="relax.op.nn.log_softmax({0}, axis={axis})",
    onnx='g.op("LogSoftmax", {0}, axis={axis})',
)

OPERATORS: tuple[OpSpec, ...] = (softmax, log_softmax)
