"""Reductions over axes: sums, products, extremes and their places, ranges, counts, logsumexp, all and any."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, add, ends, exact, gamma, holds_zero, rounded, spread
from generators.bounds.extremes import beside_zero, near_zero
from generators.bounds.sums import multiplied, summed
from generators.graph import FLOATS
from generators.ops.reduce.records import (
    along,
    axes_in,
    count,
    filled_axis,
    of_something,
    onnx_reduction,
    reduced_along,
    reducible,
    reduction,
    reduction_of,
)
from generators.ops.slots import NUMBERS, boolean, flag, floating, numeric, tensor
from generators.ops.spec import Call, OpSpec, Reference, unsupported

Array = np.ndarray

# ---- references ---------------------------------------------------------------------------------------


def _wrapping(f: Callable, x: Bounded, call: Call) -> Bounded:
    """An integer reduction in the operand's own dtype: overflow wraps."""
    value = along(partial(f, dtype=x.dtype), call)(x.value)
    return exact(value, x.dtype, along(np.any, call)(x.undetermined))


def _sum(args: Sequence[Bounded], call: Call) -> Bounded:
    x = args[0]
    return summed(x, along(np.sum, call), count(call)) if x.floating else _wrapping(np.sum, x, call)


def _prod(args: Sequence[Bounded], call: Call) -> Bounded:
    x = args[0]
    return multiplied(x, along(np.prod, call), count(call)) if x.floating else _wrapping(np.prod, x, call)


def _mean_of(x: Bounded, collect: Callable[[Array], Array], n: int) -> Bounded:
    """The sum, then a division (2.5 ulp, which covers a product by the rounded 1/n too). NaN for nothing."""
    total = summed(x, collect, n, overflows=False)
    if n == 1:
        return total
    if n == 0:
        return Bounded(total.value * np.nan, total.error, x.dtype)
    with np.errstate(all="ignore"):
        return rounded(total.value / n, total.error / n, x.dtype, 2.5)


def _mean(args: Sequence[Bounded], call: Call) -> Bounded:
    return _mean_of(args[0], along(np.sum, call), count(call))


def _extreme(f: Callable) -> Reference:
    """np.max or np.min, which propagate NaN: monotone in every element, nothing is rounded."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x = args[0]
        extreme, some = along(f, call), along(np.any, call)
        if not x.floating:
            return exact(extreme(x.value), x.dtype, some(x.undetermined))
        with np.errstate(all="ignore"):
            value = extreme(x.value)
            error = spread(value, *(extreme(end) for end in ends(x)))
            error = beside_zero(value, error, some(near_zero(x)), x.dtype)
        nan = some(np.isnan(x.value) & ~x.undetermined)
        value = np.where(nan, np.nan, value)
        return Bounded(value, np.where(nan, 0.0, np.where(some(x.undetermined), np.inf, error)), x.dtype)

    return reference


def _place(sign: float) -> Reference:
    """Of the greatest element (sign 1) or the least (-1): the first of equal ones, and the first NaN before all
    others. Certain only where every other candidate's interval stays below the chosen one's, or touches it
    from behind."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x, axis = args[0], axes_in(call)[0]
        keep = bool(call.attrs["keepdims"])
        find = np.argmax if sign > 0 else np.argmin
        chosen = np.asarray(find(x.value, axis=axis, keepdims=True))
        if x.floating:
            before = np.arange(x.value.shape[axis]).reshape([-1] + [1] * (x.value.ndim - axis - 1)) < chosen
            low, high = ends(x)
            low, high = (low, high) if sign > 0 else (-high, -low)
            floor = np.take_along_axis(low, chosen, axis)
            settled = (high < floor) | ~before & (high <= floor) & ~x.undetermined
            nan = np.isnan(np.take_along_axis(x.value, chosen, axis))
            settled = np.where(nan, ~before | ~x.undetermined, settled & ~x.undetermined)
            np.put_along_axis(settled, chosen, ~np.take_along_axis(x.undetermined, chosen, axis), axis)
            unknown = ~settled.all(axis=axis, keepdims=True)
        else:
            unknown = x.undetermined.any(axis=axis, keepdims=True)
        if not keep:
            chosen, unknown = np.squeeze(chosen, axis=axis), np.squeeze(unknown, axis=axis)
        return exact(chosen, "int64", np.asarray(unknown))

    return reference


def _logsumexp(args: Sequence[Bounded], call: Call) -> Bounded:
    """m + log(sum exp(x - m)), m = max x. It is monotone in every element. The differences (one rounding, which
    exp turns into |x - m| u) and their exponentials (3 ulp) weigh as in softmax; log takes 3 ulp."""
    x, axes = args[0], axes_in(call)
    p = PRECISION[x.dtype]
    collect, n = along(np.sum, call), count(call)

    def evaluate(a: Array) -> tuple[Array, Array, Array]:
        m = np.max(a, axis=axes, keepdims=True)
        m = np.where(np.isfinite(m), m, 0.0)
        return m, a - m, np.log(collect(np.exp(a - m)))

    with np.errstate(all="ignore"):
        m, difference, logarithm = evaluate(x.value)
        m_kept = along(np.max, call)(np.broadcast_to(m, x.value.shape))
        value = m_kept + logarithm
        moved = []
        for end in ends(x):
            m_end, _, log_end = evaluate(end)
            moved.append(along(np.max, call)(np.broadcast_to(m_end, x.value.shape)) + log_end)
        power = np.exp(difference)
        weighted = np.where(power > 0, power * np.abs(difference), 0.0)
        total = collect(power)
        relative = p.unit * collect(weighted) / total + gamma(n + 6, p.unit + U64) + n * p.tiny
        error = relative + (6 * p.unit + U64) * np.abs(logarithm) + 4 * U64 * np.abs(m_kept)
        error = np.where(np.isfinite(value), error + spread(value, *moved), spread(value, *moved))
        nan = collect((np.isnan(x.value) & ~x.undetermined).astype(np.float64)) > 0
        unknown = collect(x.undetermined.astype(np.float64)) > 0
        value = np.where(nan, np.nan, value)
        return rounded(value, np.where(nan, 0.0, np.where(unknown, np.inf, error)), x.dtype)


def _quantifier(f: Callable, deciding: bool) -> Reference:
    """np.all or np.any in three-valued logic: one certain element equal to `deciding` decides."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x, some = args[0], along(np.any, call)
        certain = some((x.value == deciding) & ~x.undetermined)
        value = np.where(certain, deciding, along(f, call)(x.value))
        return exact(value, "bool", some(x.undetermined) & ~certain)

    return reference


# ---- records ------------------------------------------------------------------------------------------


def _argument(name: str, sign: float, kind: str) -> OpSpec:
    return OpSpec(
        name, "reduction", (reducible(NUMBERS, min_rank=1),), reduced_along("int64", empty=False), _place(sign),
        attrs={"axis": filled_axis, "keepdims": flag()},
        torch=f"torch.{name}({{0}}, dim={{axis}}, keepdim={{keepdims}})",
        tensorflow=f"{name}({{0}}, {{axis}}, {{keepdims}})",
        jax=f"jnp.{name}({{0}}, axis={{axis}}, keepdims={{keepdims}})",
        relax=f"relax.op.{name}({{0}}, axis={{axis}}, keepdims={{keepdims}})",
        onnx=f'g.op("{kind}", {{0}}, axis={{axis}}, keepdims=int({{keepdims}}))',
    )  # fmt: skip


argmax = _argument("argmax", 1.0, "ArgMax")
argmin = _argument("argmin", -1.0, "ArgMin")

NARROW = "int32"
"""What places are counted in where that is asked for."""


def _narrow(base: OpSpec) -> OpSpec:
    """Its places in int32. TensorFlow and JAX have an argument for it."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        found = base.reference(args, call)
        return replace(found, value=found.value.astype(NARROW), dtype=NARROW)

    return replace(
        base, name=f"{base.name}_to", base=base.name, result=reduced_along(NARROW, empty=False), reference=reference,
        torch=f"{base.torch}.to({{dtype}})",
        tensorflow=f"{base.name}({{0}}, {{axis}}, {{keepdims}}, {{dtype}})",
        jax=f"{base.name}({{0}}, {{axis}}, {{keepdims}}, {{dtype}})",
        relax=f"relax.op.astype({base.relax}, {{dtype}})", onnx=f'g.op("Cast", {base.onnx}, to=TensorProto.INT32)',
    )  # fmt: skip


_SAME = "axis={axes}, keepdims={keepdims}"

sum_ = reduction(
    "sum", numeric(), _sum,
    torch="torch.sum({0}, dim={axes}, keepdim={keepdims}, dtype={dtype})",
    jax=f"jnp.sum({{0}}, {_SAME}, dtype={{dtype}})",
)  # fmt: skip

mean = reduction("mean", floating(), _mean, onnx=of_something(onnx_reduction("ReduceMean")))

max_ = reduction(
    "max", reducible(NUMBERS), _extreme(np.max), empty=False,
    torch="torch.amax({0}, dim={axes}, keepdim={keepdims})",
)  # fmt: skip

min_ = reduction(
    "min", reducible(NUMBERS), _extreme(np.min), empty=False,
    torch="torch.amin({0}, dim={axes}, keepdim={keepdims})",
)  # fmt: skip

_RELAX = "axis=list({axes}), keepdims={keepdims}"


def _other_than_zero(x: Bounded) -> Bounded:
    """1 or 0. NaN is not 0; what may be a zero is undetermined."""
    unknown = x.undetermined | (holds_zero(x) if x.floating else False)
    return exact(x.value != 0, "int64", unknown)


def _range(x: Bounded, low: Bounded) -> Bounded:
    if x.floating:
        return add(x, low, -1.0)
    with np.errstate(all="ignore"):
        return exact(x.value - low.value, x.dtype, x.undetermined | low.undetermined)


ptp = replace(
    max_, name="ptp",
    reference=lambda args, call: _range(*(record.reference(args, call) for record in (max_, min_))),
    torch="torch.amax({0}, dim={axes}, keepdim={keepdims}) - torch.amin({0}, dim={axes}, keepdim={keepdims})",
    tensorflow=f"tf.reduce_max({{0}}, {_SAME}) - tf.reduce_min({{0}}, {_SAME})", jax=f"jnp.ptp({{0}}, {_SAME})",
    relax=f"relax.op.subtract(relax.op.max({{0}}, {_RELAX}), relax.op.min({{0}}, {_RELAX}))",
    onnx=f'g.op("Sub", {onnx_reduction("ReduceMax")}, {onnx_reduction("ReduceMin")})',
)  # fmt: skip

count_nonzero = replace(
    sum_, name="count_nonzero", operands=(tensor(),),
    result=lambda operands, attrs: replace(sum_.result(operands, attrs), dtype="int64"),
    reference=reduction_of(sum_, _other_than_zero), torch="count_nonzero({0}, {axes}, {keepdims})",
    tensorflow=f"tf.math.count_nonzero({{0}}, {_SAME}, dtype=tf.int64)",
    jax=f"jnp.count_nonzero({{0}}, {_SAME})",
    relax=lambda call: "relax.op.sum(relax.op.astype({counted}, 'int64'), axis=list({axes}), keepdims={keepdims})"
    .replace("{counted}", "{0}" if call.operands[0].dtype == "bool" else
             "relax.op.logical_not(relax.op.equal({0}, relax.const(0, {dtype0})))"),
    onnx=lambda call: onnx_reduction("ReduceSum", 'g.op("Cast", {counted}, to=TensorProto.INT64)')
    .replace("{counted}", "{0}" if call.operands[0].dtype == "bool" else
             'g.op("Not", g.op("Equal", {0}, g.const(0, {name0})))'),
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (
    sum_,
    mean,
    max_,
    min_,
    reduction(
        "prod", numeric(), _prod, signed_zero=True,
        torch="prod({0}, {axes}, {keepdims})", jax=f"jnp.prod({{0}}, {_SAME}, dtype={{dtype}})",
    ),
    argmax,
    argmin,
    reduction(
        "logsumexp", reducible(FLOATS), _logsumexp, empty=False,
        tensorflow=f"tf.reduce_logsumexp({{0}}, {_SAME})", jax=f"jax.nn.logsumexp({{0}}, {_SAME})",
        relax="logsumexp(bb, {0}, {axes}, {keepdims})", onnx=onnx_reduction("ReduceLogSumExp"),
    ),
    reduction(
        "all", boolean(), _quantifier(np.all, False),
        relax=unsupported("Relax has no all, and its min takes no bool"), onnx=onnx_reduction("ReduceMin"),
    ),
    reduction(
        "any", boolean(), _quantifier(np.any, True),
        relax=unsupported("Relax has no any, and its max takes no bool"), onnx=onnx_reduction("ReduceMax"),
    ),
    ptp,
    count_nonzero,
    _narrow(argmax),
    _narrow(argmin),
)  # fmt: skip
