"""Reductions over axes: sums, products, extremes and their places, moments and norms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, ends, exact, gamma, monotone, rounded, spread
from generators.bounds.sums import multiplied, scaled_square, summed, variance_of
from generators.graph import FLOATS, Attr, TensorType
from generators.ops.elementwise.comparison import beside_zero, near_zero
from generators.ops.slots import (
    NUMBERS,
    axes_of,
    boolean,
    flag,
    floating,
    normalized,
    numeric,
    reduced,
    tensor,
)
from generators.ops.spec import (
    AttrRule,
    Call,
    Draw,
    OpSpec,
    Reference,
    ResultRule,
    Slot,
    Spelling,
    TypeRuleError,
    Types,
    Unsupported,
    unsupported,
)

Array = np.ndarray


def axes_in(call: Call) -> tuple[int, ...]:
    """The axes of the call's `axes` or `axis`, counted from the front."""
    return normalized(call.attrs.get("axes", call.attrs.get("axis")), call.operands[0].rank)


def count(call: Call) -> int:
    """How many elements go into one of the result."""
    return prod(call.operands[0].shape[axis] for axis in axes_in(call))


def _along(f: Callable, call: Call) -> Callable[[Array], Array]:
    """f, a numpy reduction, along the call's axes."""
    keep = bool(call.attrs["keepdims"])
    axes = axes_in(call)
    return lambda array: np.asarray(f(array, axis=axes, keepdims=keep))


# ---- operands that leave something to reduce ----------------------------------------------------------


def reducible(dtypes: Sequence[str], min_rank: int = 0) -> Slot:
    """A scalar, or a tensor with an axis of at least one element."""
    base = tensor(dtypes, min_rank)

    def accepts(type_: TensorType, earlier: Types) -> bool:
        return base.accepts(type_, earlier) and (type_.rank == 0 or max(type_.shape) > 0)

    def fresh(d: Draw, earlier: Types) -> TensorType:
        type_ = base.fresh(d, earlier)
        return type_ if accepts(type_, earlier) else TensorType(type_.dtype, (1,) * type_.rank)

    return Slot(accepts, fresh)


def _filled(operands: Types) -> tuple[int, ...]:
    """Axes of at least one element."""
    return tuple(i for i, dim in enumerate(operands[0].shape) if dim > 0)


def _filled_axis(d: Draw, operands: Types, attrs: Mapping[str, Attr]) -> int:
    axes, rank = _filled(operands), operands[0].rank
    return d.choice((*axes, *(a - rank for a in axes)))


def _filled_axes(d: Draw, operands: Types, attrs: Mapping[str, Attr]) -> tuple[int, ...]:
    axes, rank = _filled(operands), operands[0].rank
    if not axes:
        return ()
    first = d.choice(axes)
    chosen = [a for a in axes if a == first or d.integer(0, 3) == 3]
    return tuple(a - rank if d.integer(0, 3) == 3 else a for a in chosen)


def _reduced(dtype: str | None = None, empty: bool = True) -> ResultRule:
    """The common rule, without what dialects read in two ways: no axes of a tensor (all of them, or none?).
    `empty`: the reduction of nothing has a value."""

    def rule(operands: Types, attrs: Mapping[str, Attr]) -> TensorType:
        result = reduced(dtype)(operands, attrs)
        axes = normalized(attrs.get("axes", attrs.get("axis")), operands[0].rank)
        if operands[0].rank and not axes:
            raise TypeRuleError(f"no axes of {operands[0]} to reduce")
        if not empty and any(operands[0].shape[axis] == 0 for axis in axes):
            raise TypeRuleError(f"nothing to reduce: {operands[0]} along {axes}")
        return result

    return rule


# ---- references ---------------------------------------------------------------------------------------


def _wrapping(f: Callable, x: Bounded, call: Call) -> Bounded:
    """An integer reduction in the operand's own dtype: overflow wraps."""
    value = _along(partial(f, dtype=x.dtype), call)(x.value)
    return exact(value, x.dtype, _along(np.any, call)(x.undetermined))


def _sum(args: Sequence[Bounded], call: Call) -> Bounded:
    x = args[0]
    return summed(x, _along(np.sum, call), count(call)) if x.floating else _wrapping(np.sum, x, call)


def _prod(args: Sequence[Bounded], call: Call) -> Bounded:
    x = args[0]
    return multiplied(x, _along(np.prod, call), count(call)) if x.floating else _wrapping(np.prod, x, call)


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
    return _mean_of(args[0], _along(np.sum, call), count(call))


def _extreme(f: Callable) -> Reference:
    """np.max or np.min, which propagate NaN: monotone in every element, nothing is rounded."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x = args[0]
        along, some = _along(f, call), _along(np.any, call)
        if not x.floating:
            return exact(along(x.value), x.dtype, some(x.undetermined))
        with np.errstate(all="ignore"):
            value = along(x.value)
            error = spread(value, *(along(end) for end in ends(x)))
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


def _variance(args: Sequence[Bounded], call: Call) -> Bounded:
    return variance_of(args[0], axes_in(call), bool(call.attrs["keepdims"]))


def root(x: Bounded) -> Bounded:
    """The square root of what is never negative in a correct evaluation; 3 ulp."""
    return monotone(lambda v: np.sqrt(np.maximum(v, 0.0)), x, 3)


def _std(args: Sequence[Bounded], call: Call) -> Bounded:
    return root(_variance(args, call))


def _l2_norm(args: Sequence[Bounded], call: Call) -> Bounded:
    """sqrt(sum x^2). Squares may overflow or vanish, or be scaled beforehand."""
    return root(summed(scaled_square(args[0]), _along(np.sum, call), count(call), overflows=False))


def _logsumexp(args: Sequence[Bounded], call: Call) -> Bounded:
    """m + log(sum exp(x - m)), m = max x. It is monotone in every element. The differences (one rounding, which
    exp turns into |x - m| u) and their exponentials (3 ulp) weigh as in softmax; log takes 3 ulp."""
    x, axes = args[0], axes_in(call)
    p = PRECISION[x.dtype]
    collect, n = _along(np.sum, call), count(call)

    def evaluate(a: Array) -> tuple[Array, Array, Array]:
        m = np.max(a, axis=axes, keepdims=True)
        m = np.where(np.isfinite(m), m, 0.0)
        return m, a - m, np.log(collect(np.exp(a - m)))

    with np.errstate(all="ignore"):
        m, difference, logarithm = evaluate(x.value)
        m_kept = _along(np.max, call)(np.broadcast_to(m, x.value.shape))
        value = m_kept + logarithm
        moved = []
        for end in ends(x):
            m_end, _, log_end = evaluate(end)
            moved.append(_along(np.max, call)(np.broadcast_to(m_end, x.value.shape)) + log_end)
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
        x, some = args[0], _along(np.any, call)
        certain = some((x.value == deciding) & ~x.undetermined)
        value = np.where(certain, deciding, _along(f, call)(x.value))
        return exact(value, "bool", some(x.undetermined) & ~certain)

    return reference


# ---- records ------------------------------------------------------------------------------------------


def _record(
    name: str,
    slot: Slot,
    reference: Reference,
    *,
    torch: Spelling = "",
    tensorflow: Spelling = "",
    jax: Spelling = "",
    relax: Spelling = "",
    onnx: Spelling = "",
    empty: bool = True,
    signed_zero: bool = False,
) -> OpSpec:
    """A reduction with attributes `axes` and `keepdims`. `empty`: it is defined for nothing."""
    rule: AttrRule = axes_of(0) if empty else _filled_axes
    along = "axis={axes}, keepdims={keepdims}"
    return OpSpec(
        name, "reduction", (slot,), _reduced(empty=empty), reference,
        attrs={"axes": rule, "keepdims": flag()}, signed_zero=signed_zero,
        torch=torch or f"torch.{name}({{0}}, dim={{axes}}, keepdim={{keepdims}})",
        tensorflow=tensorflow or f"tf.reduce_{name}({{0}}, {along})",
        jax=jax or f"jnp.{name}({{0}}, {along})",
        relax=relax or f"relax.op.{name}({{0}}, axis=list({{axes}}), keepdims={{keepdims}})",
        onnx=onnx or _reduce(f"Reduce{name.capitalize()}"),
    )  # fmt: skip


def _reduce(kind: str) -> str:
    return f'g.op("{kind}", {{0}}, g.const({{axes}}, "int64"), keepdims=int({{keepdims}}))'


def _argument(name: str, sign: float, kind: str) -> OpSpec:
    return OpSpec(
        name, "reduction", (reducible(NUMBERS, min_rank=1),), _reduced("int64", empty=False), _place(sign),
        attrs={"axis": _filled_axis, "keepdims": flag()},
        torch=f"torch.{name}({{0}}, dim={{axis}}, keepdim={{keepdims}})",
        tensorflow=f"{name}({{0}}, {{axis}}, {{keepdims}})",
        jax=f"jnp.{name}({{0}}, axis={{axis}}, keepdims={{keepdims}})",
        relax=f"relax.op.{name}({{0}}, axis={{axis}}, keepdims={{keepdims}})",
        onnx=f'g.op("{kind}", {{0}}, axis={{axis}}, keepdims=int({{keepdims}}))',
    )  # fmt: skip


def _of_something(text: str) -> Spelling:
    """A spelling with ReduceMean."""

    def spell(call: Call) -> str | Unsupported:
        return text if count(call) else Unsupported("ONNX leaves ReduceMean of an empty set undefined")

    return spell


_SAME = "axis={axes}, keepdims={keepdims}"

sum_ = _record(
    "sum", numeric(), _sum,
    torch="torch.sum({0}, dim={axes}, keepdim={keepdims}, dtype={dtype})",
    jax=f"jnp.sum({{0}}, {_SAME}, dtype={{dtype}})",
)  # fmt: skip

mean = _record("mean", floating(), _mean, onnx=_of_something(_reduce("ReduceMean")))

max_ = _record(
    "max", reducible(NUMBERS), _extreme(np.max), empty=False,
    torch="torch.amax({0}, dim={axes}, keepdim={keepdims})",
)  # fmt: skip

min_ = _record(
    "min", reducible(NUMBERS), _extreme(np.min), empty=False,
    torch="torch.amin({0}, dim={axes}, keepdim={keepdims})",
)  # fmt: skip

l2_norm = _record(
    "l2_norm", floating(), _l2_norm,
    torch="torch.linalg.vector_norm({0}, dim={axes}, keepdim={keepdims})",
    tensorflow=f"tf.sqrt(tf.reduce_sum(tf.square({{0}}), {_SAME}))",
    jax=f"jnp.sqrt(jnp.sum(jnp.square({{0}}), {_SAME}))",
    relax="relax.op.sqrt(relax.op.sum(relax.op.square({0}), axis=list({axes}), keepdims={keepdims}))",
    onnx=_reduce("ReduceL2"),
)  # fmt: skip

REDUCTION: tuple[OpSpec, ...] = (
    sum_,
    mean,
    max_,
    min_,
    _record(
        "prod", numeric(), _prod, signed_zero=True,
        torch="prod({0}, {axes}, {keepdims})", jax=f"jnp.prod({{0}}, {_SAME}, dtype={{dtype}})",
    ),
    _argument("argmax", 1.0, "ArgMax"),
    _argument("argmin", -1.0, "ArgMin"),
    _record(
        "variance", floating(), _variance,
        torch="torch.var({0}, dim={axes}, correction=0, keepdim={keepdims})",
        tensorflow=f"tf.math.reduce_variance({{0}}, {_SAME})", jax=f"jnp.var({{0}}, {_SAME})",
        onnx=_of_something("variance(g, {0}, {axes}, {keepdims})"),
    ),
    _record(
        "std", floating(), _std,
        torch="torch.std({0}, dim={axes}, correction=0, keepdim={keepdims})",
        tensorflow=f"tf.math.reduce_std({{0}}, {_SAME})", jax=f"jnp.std({{0}}, {_SAME})",
        onnx=_of_something('g.op("Sqrt", variance(g, {0}, {axes}, {keepdims}))'),
    ),
    _record(
        "logsumexp", reducible(FLOATS), _logsumexp, empty=False,
        tensorflow=f"tf.reduce_logsumexp({{0}}, {_SAME})", jax=f"jax.nn.logsumexp({{0}}, {_SAME})",
        relax="logsumexp(bb, {0}, {axes}, {keepdims})", onnx=_reduce("ReduceLogSumExp"),
    ),
    _record(
        "all", boolean(), _quantifier(np.all, False),
        relax=unsupported("Relax has no all, and its min takes no bool"), onnx=_reduce("ReduceMin"),
    ),
    _record(
        "any", boolean(), _quantifier(np.any, True),
        relax=unsupported("Relax has no any, and its max takes no bool"), onnx=_reduce("ReduceMax"),
    ),
    l2_norm,
)  # fmt: skip
