"""Comparisons and the elementwise choices that rest on them: where, clip, maximum, minimum."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, ends, exact, settled, spread
from generators.graph import EVERY, FLOATS, INTEGERS, Attr, TensorType
from generators.ops.elementwise.arithmetic import wrapping
from generators.ops.slots import NUMBERS, boolean, broadcast, broadcastable, numeric, within
from generators.ops.spec import Call, Draw, OpSpec, Reference, TypeRuleError, Types

Array = np.ndarray


def _compare(f: Callable[[Array, Array], Array]) -> Reference:
    """Undetermined where the two intervals meet, unless both are points. NaN compares the same way with all."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x, y = args
        if not x.floating:
            return exact(f(x.value, y.value), "bool", x.undetermined | y.undetermined)
        with np.errstate(all="ignore"):
            error = x.error + y.error
            meet = (error > 0) & ~(np.abs(x.value - y.value) > error * (1 + 4 * U64))
            return exact(f(x.value, y.value), "bool", settled(x, y, np.where(meet, np.inf, 0.0)) > 0)

    return reference


def _comparison(name: str, torch: str, onnx: str | tuple[str, str]) -> OpSpec:
    """onnx: the operator, or the one to negate before it (for not_equal)."""
    text = f'g.op("{onnx}", {{0}}, {{1}})'
    if isinstance(onnx, tuple):
        text = f'g.op("{onnx[0]}", g.op("{onnx[1]}", {{0}}, {{1}}))'
    return OpSpec(
        name, "comparison", (numeric(), broadcastable(0)), broadcast("bool"), _compare(getattr(np, name)),
        torch=f"torch.{torch}({{0}}, {{1}})", tensorflow=f"tf.{name}({{0}}, {{1}})",
        jax=f"jnp.{name}({{0}}, {{1}})", relax=f"relax.op.{name}({{0}}, {{1}})", onnx=text,
    )  # fmt: skip


def extreme(f: Callable[[Array, Array], Array], x: Bounded, y: Bounded) -> Bounded:
    """np.maximum or np.minimum, which propagate NaN. Monotone in both operands, and nothing is rounded: the
    spread of the lower and of the upper ends, which is never more than the greater error."""
    if not x.floating:
        return wrapping(f, x, y)
    (x_low, x_high), (y_low, y_high) = ends(x), ends(y)
    with np.errstate(all="ignore"):
        value = f(x.value, y.value)
        error = spread(value, f(x_low, y_low), f(x_high, y_high))
        error = beside_zero(value, error, near_zero(x) | near_zero(y), x.dtype)
    return Bounded(value, settled(x, y, error), x.dtype)


def near_zero(x: Bounded) -> Array:
    """Where an element may be a subnormal number."""
    return (np.abs(x.value) - x.error < PRECISION[x.dtype].tiny) & ((x.value != 0) | (x.error > 0))


def beside_zero(value: Array, error: Array, near: Array, dtype: str) -> Array:
    """The error of a choice among numbers: a processor that reads subnormals as zero compares them as equal to
    zero and each other, and may return the wrong one of them unchanged."""
    tiny = PRECISION[dtype].tiny
    return np.where(near & (np.abs(value) < tiny), np.maximum(error, 2 * tiny), error)


def _extreme(name: str, onnx: str) -> OpSpec:
    f = getattr(np, name)
    return OpSpec(
        name, "comparison", (numeric(), broadcastable(0)), broadcast(),
        lambda args, call: extreme(f, args[0], args[1]),
        torch=f"torch.{name}({{0}}, {{1}})", tensorflow=f"tf.{name}({{0}}, {{1}})",
        jax=f"jnp.{name}({{0}}, {{1}})", relax=f"relax.op.{name}({{0}}, {{1}})",
        onnx=f'g.op("{onnx}", {{0}}, {{1}})',
    )  # fmt: skip


def _where(args: Sequence[Bounded], call: Call) -> Bounded:
    """The chosen operand as it is. Where the condition is undetermined the result is one of both: any float
    result is as wide as the distance of the other one, an integer or boolean is certain if both are equal."""
    condition, a, b = args
    value = np.where(condition.value, a.value, b.value)
    error = np.where(condition.value, a.error, b.error)
    if condition.undetermined.any():
        with np.errstate(all="ignore"):
            other = np.where(condition.value, b.value, a.value)
            if a.floating:
                either = np.maximum(error, spread(value, other) + np.where(condition.value, b.error, a.error))
                either = np.where(np.isfinite(value) | (either == 0), either, np.inf)
            else:
                either = np.where((value == other) & (a.error + b.error == 0), 0.0, np.inf)
            error = np.where(condition.undetermined, either, error)
    return Bounded(value, error, a.dtype)


def _clip(args: Sequence[Bounded], call: Call) -> Bounded:
    """Monotone, and nothing is rounded; NaN stays NaN."""
    x = args[0]
    low, high = call.attrs["min"], call.attrs["max"]
    if not x.floating:
        # not np.clip(x, low, high), whose Python integers make int64 of int32
        bounds = np.asarray([low, high], x.dtype)
        return exact(np.minimum(np.maximum(x.value, bounds[0]), bounds[1]), x.dtype, x.undetermined)
    with np.errstate(all="ignore"):
        value = np.clip(x.value, low, high)
        error = spread(value, *(np.clip(end, low, high) for end in ends(x)))
        error = beside_zero(value, error, near_zero(x), x.dtype)
    return Bounded(value, np.where(x.undetermined, np.inf, error), x.dtype)


def _clip_low(d: Draw, operands: Types, attrs: Mapping[str, Attr]) -> int | float:
    if operands[0].dtype in INTEGERS:
        return d.choice(within(operands[0].dtype, (0, -2, 1, -100, 7)))
    return d.choice((0.0, -1.0, 0.5, -0.5, -6.0, 3.0))


def _clip_high(d: Draw, operands: Types, attrs: Mapping[str, Attr]) -> int | float:
    """At least `min`: equal at times, and for integers at times the greatest of the dtype."""
    low = attrs["min"]
    if isinstance(low, int):
        return d.choice((low + 1, low + 3, low, int(np.iinfo(operands[0].dtype).max)))
    assert isinstance(low, float)
    return low + d.choice((1.0, 6.0, 0.5, 0.0, 100.0))


def _clip_type(operands: Types, attrs: Mapping[str, Attr]) -> TensorType:
    low, high = attrs["min"], attrs["max"]
    kind = float if operands[0].dtype in FLOATS else int
    if operands[0].dtype not in NUMBERS or type(low) is not kind or type(high) is not kind:
        raise TypeRuleError(f"cannot clip {operands[0]} to {low!r} and {high!r}")
    if not low <= high:
        raise TypeRuleError(f"min {low} exceeds max {high}")
    if kind is int and not np.iinfo(operands[0].dtype).min <= low <= high <= np.iinfo(operands[0].dtype).max:
        raise TypeRuleError(f"{low} or {high} is not an {operands[0].dtype}")
    return operands[0]


def _where_type(operands: Types, attrs: Mapping[str, Attr]) -> TensorType:
    if operands[0].dtype != "bool":
        raise TypeRuleError(f"the condition is {operands[0]}, not bool")
    return broadcast(skip=1)(operands, attrs)


def _onnx_where(call: Call) -> str:
    """ONNX Runtime's Where has no kernel for bool, for which three connectives say the same."""
    return "where_bool(g, {0}, {1}, {2})" if call.result.dtype == "bool" else 'g.op("Where", {0}, {1}, {2})'


where = OpSpec(
    "where", "comparison", (boolean(), broadcastable(dtypes=EVERY), broadcastable(1)), _where_type, _where,
    torch="torch.where({0}, {1}, {2})", tensorflow="tf.where({0}, {1}, {2})", jax="jnp.where({0}, {1}, {2})",
    relax="relax.op.where({0}, {1}, {2})", onnx=_onnx_where, signed_zero=True,
)  # fmt: skip

clip = OpSpec(
    "clip", "comparison", (numeric(),), _clip_type, _clip, attrs={"min": _clip_low, "max": _clip_high},
    torch="torch.clamp({0}, min={min}, max={max})", tensorflow="tf.clip_by_value({0}, {min}, {max})",
    jax="jnp.clip({0}, min={min}, max={max})", relax="relax.op.clip({0}, {min}, {max})",
    onnx='g.op("Clip", {0}, g.const({min}, {name}), g.const({max}, {name}))',
)  # fmt: skip

COMPARISON: tuple[OpSpec, ...] = (
    _comparison("equal", "eq", "Equal"),
    _comparison("not_equal", "ne", ("Not", "Equal")),
    _comparison("less", "lt", "Less"),
    _comparison("less_equal", "le", "LessOrEqual"),
    _comparison("greater", "gt", "Greater"),
    _comparison("greater_equal", "ge", "GreaterOrEqual"),
    _extreme("maximum", "Max"),
    _extreme("minimum", "Min"),
    where,
    clip,
)
