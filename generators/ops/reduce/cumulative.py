"""What runs along an axis: cumulative sums and products, running extremes, logcumsumexp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, ends, exact, rounded, spread
from generators.bounds.extremes import beside_zero, near_zero
from generators.bounds.sums import multiplied, summed
from generators.graph import FLOATS, TensorType
from generators.ops.composed import compute, joined
from generators.ops.slots import (
    MAX_ELEMENTS,
    NUMBERS,
    axis_in,
    axis_of,
    draw_dim,
    draw_dtype,
    normalized,
    numeric,
    tensor,
)
from generators.ops.spec import (
    Attrs,
    Call,
    OpSpec,
    Reference,
    ResultRule,
    Slot,
    Spelling,
    TypeRuleError,
    Types,
)

Array = np.ndarray


def _prefixes(f: Callable, bound: Callable[..., Bounded]) -> Reference:
    """np.cumsum or np.cumprod, inclusive. Parallel scans associate in any way, so that a prefix of k terms is
    any tree of k - 1 additions; none of them may touch later elements."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x = args[0]
        axis = normalized(call.attrs["axis"], x.value.ndim)[0]
        if x.floating:
            terms = np.arange(1, x.value.shape[axis] + 1).reshape([-1] + [1] * (x.value.ndim - axis - 1))
            return bound(x, partial(f, axis=axis), terms)
        unknown = np.logical_or.accumulate(x.undetermined, axis=axis)
        with np.errstate(all="ignore"):
            return exact(f(x.value, axis=axis, dtype=x.dtype), x.dtype, unknown)

    return reference


def _scanned() -> ResultRule:
    def rule(operands: Types, attrs: Attrs) -> TensorType:
        normalized(attrs["axis"], operands[0].rank)
        return operands[0]

    return rule


def _scan(name: str, reference: Reference, tensorflow: str, onnx: Spelling, *, signed_zero: bool = False) -> OpSpec:
    return OpSpec(
        name, "scan", (numeric(min_rank=1),), _scanned(), reference, attrs={"axis": axis_of(0)},
        torch=f"torch.{name}({{0}}, dim={{axis}}, dtype={{dtype}})",
        tensorflow=f"{tensorflow}({{0}}, axis={{axis}})",
        jax=f"jnp.{name}({{0}}, axis={{axis}}, dtype={{dtype}})",
        relax=f"relax.op.{name}({{0}}, axis={{axis}}, dtype={{dtype}})",
        onnx=onnx, signed_zero=signed_zero,
    )  # fmt: skip


cumsum = _scan("cumsum", _prefixes(np.cumsum, summed), "tf.cumsum", 'g.op("CumSum", {0}, g.const({axis}, "int64"))')

cumprod = _scan(
    "cumprod",
    _prefixes(np.cumprod, multiplied),
    "tf.math.cumprod",
    'g.op("CumProd", {0}, g.const({axis}, "int64"))',
    signed_zero=True,
)


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


# ---- sums with a zero before them ---------------------------------------------------------------------


def _initial(shape: Sequence[int], attrs: Attrs) -> tuple[int, ...]:
    axis = axis_in(attrs, len(shape))
    return (*shape[:axis], 1, *shape[axis + 1 :])


def _cumulative_type(operands: Types, attrs: Attrs) -> TensorType:
    x = operands[0]
    axis = axis_in(attrs, x.rank)
    shape = (*x.shape[:axis], x.shape[axis] + 1, *x.shape[axis + 1 :])
    if x.size == 0 or int(np.prod(shape)) > MAX_ELEMENTS:
        raise TypeRuleError(f"no cumulative sums of {x} with a zero before them")
    return TensorType(x.dtype, shape)


def _cumulative(args: Sequence[Bounded], call: Call) -> Bounded:
    """A zero before all sums."""
    axis = axis_in(call.attrs, args[0].value.ndim)
    sums = compute(cumsum, args[0], axis=axis)
    zeros = np.zeros(_initial(sums.value.shape, call.attrs), sums.value.dtype)
    return joined(Bounded(zeros, np.zeros(zeros.shape), sums.dtype), sums, axis=axis)


def _with_zeros(text: str) -> Spelling:
    return lambda call: text.replace("<initial>", repr(_initial(call.operands[0].shape, call.attrs)))


def _room(type_: TensorType, earlier: Types) -> bool:
    return numeric(1, nonempty=True).accepts(type_, earlier) and type_.size <= MAX_ELEMENTS // 2


cumulative_sum = OpSpec(
    "cumulative_sum", "grids",
    (Slot(_room, lambda d, e: TensorType(
        draw_dtype(d, NUMBERS), tuple(draw_dim(d, 9, zero=False) for _ in range(d.choice((2, 1, 3)))))),),
    _cumulative_type, _cumulative, attrs={"axis": axis_of(0)},
    torch=_with_zeros("torch.cat([torch.zeros(<initial>, dtype={dtype}, device={0}.device), "
                      "torch.cumsum({0}, {axis}, dtype={dtype})], {axis})"),
    tensorflow=_with_zeros("tf.concat([tf.zeros(<initial>, {dtype}), tf.cumsum({0}, {axis})], {axis})"),
    jax="jnp.cumulative_sum({0}, axis={axis}, dtype={dtype}, include_initial=True)",
    relax=_with_zeros("relax.op.concat([relax.op.zeros(<initial>, {dtype}), "
                      "relax.op.cumsum({0}, {axis}, dtype={dtype})], axis={axis})"),
    onnx=_with_zeros('g.op("Concat", g.op("Expand", g.const(0, {name}), g.const(<initial>, "int64")), '
                     'g.op("CumSum", {0}, g.const({axis}, "int64")), axis={axis})'),
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (
    cumsum,
    cumprod,
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
    cumulative_sum,
)  # fmt: skip
