"""What is chosen element by element: where, masked_fill, infinities by a mask, clip, maximum and minimum, heaviside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf, nan

import numpy as np

from generators.bounds.bounded import Bounded, ends, exact, holds_zero, settled, spread
from generators.bounds.extremes import beside_zero, near_zero
from generators.graph import DTYPES, EVERY, FLOATS, INTEGERS, Attr, TensorType
from generators.ops.composed import left_out
from generators.ops.elementwise.records import numpy_binary
from generators.ops.elementwise.references import certainly_nan, spread_out, wrapping
from generators.ops.slots import NUMBERS, boolean, broadcast, broadcastable, floating, numeric, one_of, tensor, within
from generators.ops.spec import (
    Attrs,
    Call,
    Draw,
    OpSpec,
    Reference,
    TypeRuleError,
    Types,
    Unsupported,
    unsupported,
)

Array = np.ndarray

# ---- references ---------------------------------------------------------------------------------------


def _heaviside(args: Sequence[Bounded], call: Call) -> Bounded:
    """0 below 0, 1 above, y at 0. NaN is undetermined: numpy and JAX keep it, PyTorch makes 0 of it."""
    x, y = args
    zero = x.value == 0
    value = np.where(zero, y.value, np.where(x.value > 0, 1.0, 0.0))
    loose = holds_zero(x) | np.isnan(x.value) | x.undetermined
    return Bounded(value, np.where(loose, np.inf, np.where(zero, y.error, 0.0)), x.dtype)


def _ignoring_nan(f: Callable[[Array, Array], Array]) -> Reference:
    """np.maximum or np.minimum of the operands that are numbers."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x, y = args
        both = extreme(f, x, y)
        value, error = np.broadcast_arrays(both.value, both.error)
        for one, other in ((x, y), (y, x)):
            value = np.where(certainly_nan(one), other.value, value)
            error = np.where(certainly_nan(one), other.error, error)
        return Bounded(value, error, x.dtype)

    return reference


def _masked_fill(args: Sequence[Bounded], call: Call) -> Bounded:
    x, mask = args
    # the value as a number of the dtype: 65504 is not one of bfloat16
    filling = np.full(call.result.shape, call.attrs["value"], x.dtype).astype(x.value.dtype)
    constant = Bounded(filling, np.zeros(filling.shape), x.dtype)
    return where.reference((mask, constant, spread_out(x, call)), call)


FILLS = ("-inf", "inf", "nan")


def _masked_infinity(args: Sequence[Bounded], call: Call) -> Bounded:
    x, mask = args
    filling = np.full(call.result.shape, float(str(call.attrs["fill"])))
    return where.reference((mask, Bounded(filling, np.zeros(filling.shape), x.dtype), spread_out(x, call)), call)


# ---- attributes and types -----------------------------------------------------------------------------


def _filling(d: Draw, operands: Types, attrs: Attrs) -> Attr:
    if operands[0].dtype in FLOATS:
        return d.choice((0.0, -1.0, 0.5, 65504.0, -inf, nan))
    if operands[0].dtype in INTEGERS:
        return d.choice(within(operands[0].dtype, (0, -1, 7, 2**31 - 1)))
    return d.boolean()


def _masked_type(operands: Types, attrs: Attrs) -> TensorType:
    x, mask = operands
    kind = float if x.dtype in FLOATS else int if x.dtype in INTEGERS else bool
    if mask.dtype != "bool" or type(attrs["value"]) is not kind:
        raise TypeRuleError(f"cannot fill {x} with {attrs['value']!r} where {mask} says")
    if kind is int and not np.iinfo(x.dtype).min <= attrs["value"] <= np.iinfo(x.dtype).max:
        raise TypeRuleError(f"{attrs['value']} is not an {x.dtype}")
    shape = broadcast()((replace(x, dtype="bool"), mask), {}).shape
    return TensorType(x.dtype, shape)


# ---- records ------------------------------------------------------------------------------------------


def _ignoring(name: str, kind: str) -> OpSpec:
    return numpy_binary(
        f"f{name[:3]}", _ignoring_nan(getattr(np, name)), tensorflow=f"ignoring_nan(tf.{name}, {{0}}, {{1}})",
        relax=f"ignoring_nan(bb, relax.op.{name}, {{0}}, {{1}})", onnx=f'ignoring_nan(g, "{kind}", {{0}}, {{1}})',
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
    """Monotone, and nothing is rounded but the limits, once; NaN stays NaN."""
    x = args[0]
    with np.errstate(all="ignore"):
        # np.clip would make int64 of int32 by Python's integers
        low, high = np.asarray([call.attrs["min"], call.attrs["max"]], x.dtype).astype(x.value.dtype)
        if not x.floating:
            return exact(np.minimum(np.maximum(x.value, low), high), x.dtype, x.undetermined)
        value = np.clip(x.value, low, high)
        error = spread(value, *(np.clip(end, low, high) for end in ends(x)))
        error = beside_zero(value, error, near_zero(x), x.dtype)
    return Bounded(value, np.where(x.undetermined, np.inf, error), x.dtype)


def _clip_low(d: Draw, operands: Types, attrs: Attrs) -> int | float:
    if operands[0].dtype in INTEGERS:
        return d.choice(within(operands[0].dtype, (0, -2, 1, -100, 7)))
    return d.choice((0.0, -1.0, 0.5, -0.5, -6.0, 3.0))


def _clip_high(d: Draw, operands: Types, attrs: Attrs) -> int | float:
    """At least `min`: equal at times, and for integers at times the greatest of the dtype."""
    low = attrs["min"]
    if isinstance(low, int):
        return d.choice((low + 1, low + 3, low, int(np.iinfo(operands[0].dtype).max)))
    assert isinstance(low, float)
    return low + d.choice((1.0, 6.0, 0.5, 0.0, 100.0))


def _clip_type(operands: Types, attrs: Attrs) -> TensorType:
    low, high = attrs["min"], attrs["max"]
    kind = float if operands[0].dtype in FLOATS else int
    if operands[0].dtype not in NUMBERS or type(low) is not kind or type(high) is not kind:
        raise TypeRuleError(f"cannot clip {operands[0]} to {low!r} and {high!r}")
    if not low <= high:
        raise TypeRuleError(f"min {low} exceeds max {high}")
    if kind is int and not np.iinfo(operands[0].dtype).min <= low <= high <= np.iinfo(operands[0].dtype).max:
        raise TypeRuleError(f"{low} or {high} is not an {operands[0].dtype}")
    return operands[0]


def _infinite_type(operands: Types, attrs: Attrs) -> TensorType:
    if attrs["fill"] not in FILLS or operands[0].dtype not in FLOATS:
        raise TypeRuleError(f"cannot fill {operands[0]} with {attrs['fill']!r}")
    return _masked_type(operands, {"value": 0.0})


def _crossed_low(d: Draw, operands: Types, attrs: Attrs) -> Attr:
    return d.choice((3, 1, 100)) if operands[0].dtype in INTEGERS else d.choice((0.5, 0.0, 6.0, -1.0))


def _crossed_high(d: Draw, operands: Types, attrs: Attrs) -> Attr:
    """Less than `min`."""
    low = attrs["min"]
    return d.choice((low - 1, 0) if isinstance(low, int) else (low - 1.0, low - 0.25, low - 100.0))  # type: ignore


def _crossed_type(operands: Types, attrs: Attrs) -> TensorType:
    low, high = attrs["min"], attrs["max"]
    if isinstance(low, bool) or not isinstance(low, int | float) or not isinstance(high, int | float) or not low > high:
        raise TypeRuleError(f"min {low!r} does not exceed max {high!r}")
    return _clip_type(operands, {"min": high, "max": low})


def _crossed(args: Sequence[Bounded], call: Call) -> Bounded:
    """`max` everywhere, as numpy, PyTorch and ONNX document it. Of NaN they say nothing."""
    x = args[0]
    value = np.full(x.value.shape, call.attrs["max"], x.value.dtype)
    unknown = np.isnan(x.value) if x.floating else np.zeros(x.value.shape, bool)
    return Bounded(value, np.where(unknown, np.inf, 0.0), x.dtype)


def _where_type(operands: Types, attrs: Attrs) -> TensorType:
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


_JAX_CLIP = "jnp.clip({0}, min={min}, max={max})"


def _wide(plain: str, typed: str | Unsupported) -> Callable[[Call], str | Unsupported]:
    """`typed` where the upper limit is beyond int64, which Python's numbers become."""
    return lambda call: typed if isinstance(call.attrs["max"], int) and call.attrs["max"] > 2**63 - 1 else plain


clip = OpSpec(
    "clip", "comparison", (numeric(),), _clip_type, _clip, attrs={"min": _clip_low, "max": _clip_high},
    torch="torch.clamp({0}, min={min}, max={max})", tensorflow="tf.clip_by_value({0}, {min}, {max})",
    jax=_wide(_JAX_CLIP, "jnp.clip({0}, min={min}, max=np.uint64({max}))"),
    relax=_wide("relax.op.clip({0}, {min}, {max})", Unsupported("its literals are of int64")),
    onnx='g.op("Clip", {0}, g.const({min}, {name}), g.const({max}, {name}))',
)  # fmt: skip


def _open_low(d: Draw, operands: Types, attrs: Attrs) -> Attr:
    return _clip_low(d, operands, attrs) if d.boolean() else None


def _open_high(d: Draw, operands: Types, attrs: Attrs) -> Attr:
    """None beside a lower limit."""
    return _clip_low(d, operands, attrs) if attrs["min"] is None else None


def _furthest(end: str) -> Callable[[Types], Attr]:
    """The least or the greatest number of the operand's dtype."""

    def limit(operands: Types) -> Attr:
        dtype = operands[0].dtype
        if dtype in INTEGERS:
            return int(getattr(np.iinfo(dtype), end))
        return -np.inf if end == "min" else np.inf

    return limit


def _one_side(lower: str, upper: str) -> Callable[[Call], str]:
    return lambda call: upper if call.attrs["min"] is None else lower


_one_sided = left_out(
    clip, "clip_one_side", {"min": _furthest("min"), "max": _furthest("max")},
    attrs={"min": _open_low, "max": _open_high}, torch=clip.torch, jax=_JAX_CLIP,
    tensorflow=_one_side("tf.maximum({0}, {min})", "tf.minimum({0}, {max})"),
    relax=_one_side("relax.op.maximum({0}, relax.const({min}, {dtype}))",
                    "relax.op.minimum({0}, relax.const({max}, {dtype}))"),
    onnx=_one_side('g.op("Clip", {0}, g.const({min}, {name}))', 'g.op("Clip", {0}, "", g.const({max}, {name}))'),
)  # fmt: skip


def _open_at_infinity(args: Sequence[Bounded], call: Call) -> Bounded:
    """An infinity on the open side is undetermined: by ONNX the greatest finite number is the limit, by others none."""
    found = _one_sided.reference(args, call)
    beyond = args[0].value == (-np.inf if call.attrs["min"] is None else np.inf)
    return replace(found, error=np.where(beyond, np.inf, found.error))


clip_one_side = replace(_one_sided, reference=_open_at_infinity)

clip_crossed = replace(
    clip, name="clip_crossed", result=_crossed_type, reference=_crossed, jax=_JAX_CLIP,
    attrs={"min": _crossed_low, "max": _crossed_high}, tensorflow="tf.minimum(tf.maximum({0}, {min}), {max})",
    relax=unsupported("it does not say what a lower limit above the upper one does"),
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (
    where,
    numpy_binary(
        "masked_fill", _masked_fill, operands=(tensor(DTYPES), broadcastable(dtypes=("bool",))), result=_masked_type,
        attrs={"value": _filling}, torch="torch.masked_fill({0}, {1}, {value})",
        tensorflow="tf.where({1}, tf.constant({value}, {dtype}), {0})", jax="jnp.where({1}, {value}, {0})",
        relax="relax.op.where({1}, relax.const({value}, {dtype}), {0})",
        onnx=lambda call: ("where_bool(g, {1}, {filling}, {0})" if call.result.dtype == "bool"
                           else 'g.op("Where", {1}, {filling}, {0})').replace("{filling}", "g.const({value}, {name})"),
    ),
    numpy_binary(
        "masked_infinity", _masked_infinity, operands=(floating(), broadcastable(dtypes=("bool",))),
        result=_infinite_type, attrs={"fill": one_of(*FILLS)}, torch="torch.masked_fill({0}, {1}, float({fill}))",
        tensorflow="tf.where({1}, tf.constant(float({fill}), {dtype}), {0})",
        jax="jnp.where({1}, float({fill}), {0})",
        relax="relax.op.where({1}, relax.const(float({fill}), {dtype}), {0})",
        onnx='g.op("Where", {1}, g.const(float({fill}), {name}), {0})',
    ),
    clip,
    clip_one_side,
    clip_crossed,
    _extreme("maximum", "Max"),
    _extreme("minimum", "Min"),
    _ignoring("maximum", "Max"),
    _ignoring("minimum", "Min"),
    numpy_binary("heaviside", _heaviside, relax="heaviside({0}, {1}, {dtype})", onnx="heaviside(g, {0}, {1}, {name})"),
)  # fmt: skip
