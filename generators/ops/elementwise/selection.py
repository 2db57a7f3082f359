"""Further elementwise functions of two operands, or of three, which broadcast against each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import (
    PRECISION,
    U64,
    Bounded,
    add,
    exact,
    holds_zero,
    monotone,
    multiply,
    rounded,
    settled,
    spread,
)
from generators.bounds.sums import scaled_square
from generators.graph import DTYPES, FLOATS, INTEGERS, Attr, TensorType
from generators.ops.elementwise.arithmetic import FLOAT_PAIR
from generators.ops.elementwise.comparison import extreme, where
from generators.ops.reduce.reductions import root
from generators.ops.slots import broadcast, broadcastable, floating, one_of, tensor, within
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
)

Array = np.ndarray
Attrs = Mapping[str, Attr]


def _nan(x: Bounded) -> Array:
    """Where the element is NaN for certain."""
    return np.isnan(x.value) & ~x.undetermined


def _exactly(value: Array | float, like: Bounded) -> Bounded:
    value = np.broadcast_to(np.asarray(value, np.float64), like.value.shape)
    return Bounded(value, np.zeros(value.shape), like.dtype)


# ---- references ---------------------------------------------------------------------------------------


def _hypot(args: Sequence[Bounded], call: Call) -> Bounded:
    """sqrt(x^2 + y^2), the definition in numpy. Squares may overflow or vanish, or be scaled beforehand. An infinity
    beside NaN is infinite in C (Annex F.10.4.3) and NaN by the definition: undetermined, and so is NaN beside what
    may be infinite."""
    x, y = args
    total = add(scaled_square(x), scaled_square(y))
    finite = np.isfinite(x.value) & np.isfinite(y.value)
    mixed = np.zeros(total.value.shape, bool)
    for one, other in ((x, y), (y, x)):
        mixed |= np.isnan(one.value) & (np.isinf(other.value) | other.undetermined)
    loose = mixed | finite & ~np.isfinite(total.value)
    return root(replace(total, error=np.where(loose, np.inf, total.error)))


def _logaddexp(args: Sequence[Bounded], call: Call) -> Bounded:
    """m + L, m = max(x, y), L = log(1 + exp(-d)), d = |x - y|. Its slopes add up to 1. The difference has one
    rounding, which exp turns into u d exp(-d), exp has 3 ulp, 1 + exp(-d) loses u, log 3 ulp; log1p needs less. By
    definition infinite for two infinities of one sign."""
    x, y = args
    p = PRECISION[x.dtype]
    unit = p.unit + U64
    with np.errstate(all="ignore"):
        value = np.logaddexp(x.value, y.value)
        d = np.abs(x.value - y.value)
        power = np.exp(-d)
        own = unit * (np.where(power > 0, d * power, 0.0) + 6 * power + 1 + 6 * np.log1p(power))
        moved = np.maximum(x.error, y.error)
        error = np.where(np.isfinite(x.value) & np.isfinite(y.value), moved + own, 0.0)
        alone = np.isneginf(x.value) | np.isneginf(y.value)
        error = np.where(alone & np.isfinite(value), moved, error)
    return rounded(value, settled(x, y, error), x.dtype)


def _copysign(args: Sequence[Bounded], call: Call) -> Bounded:
    """The magnitude of x with the sign of y; either sign where y may be a zero of any sign, or is NaN (whose sign no
    operation determines, IEEE 754-2019, 6.3)."""
    x, y = args
    with np.errstate(all="ignore"):
        value = np.copysign(x.value, y.value)
        unsigned = holds_zero(y) | np.isnan(y.value) | y.undetermined
        if not y.zero_sign:
            unsigned |= y.value == 0
        either = np.where(np.isinf(value), np.inf, 2 * np.abs(value) + x.error)
        either = np.where(value == 0, np.maximum(either, PRECISION[x.dtype].tiny), either)
        error = np.where(unsigned, either, x.error)
        error = np.where(x.undetermined, np.inf, error)
        return Bounded(value, np.where(_nan(x), 0.0, error), x.dtype)


def _xlogy(args: Sequence[Bounded], call: Call) -> Bounded:
    """x log(y), 3 ulp and a product; 0 for x = 0, whatever y is. With NaN it is NaN for PyTorch, 0 for TensorFlow:
    undetermined."""
    x, y = args
    result = multiply(x, monotone(np.log, y, 3))
    zero = (x.value == 0) & (x.error == 0)
    maybe = holds_zero(x) & ~np.isfinite(result.value)
    value = np.where(zero, 0.0, result.value)
    error = np.where(zero, np.where(np.isnan(y.value) | y.undetermined, np.inf, 0.0), result.error)
    return Bounded(value, np.where(maybe, np.inf, error), x.dtype)


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
            value = np.where(_nan(one), other.value, value)
            error = np.where(_nan(one), other.error, error)
        return Bounded(value, error, x.dtype)

    return reference


def _lerp(args: Sequence[Bounded], call: Call) -> Bounded:
    """x + w (y - x) as documented, or y - (y - x) (1 - w), which PyTorch takes for w >= 1/2."""
    x, y, w = (_spread_out(a, call) for a in args)
    difference = add(y, x, -1.0)
    first = add(x, multiply(w, difference))
    second = add(y, multiply(difference, add(_exactly(1.0, w), w, -1.0)), -1.0)
    with np.errstate(all="ignore"):
        error = np.maximum(first.error, second.error + spread(first.value, second.value))
    return replace(first, error=error)


def _spread_out(x: Bounded, call: Call) -> Bounded:
    return x.map(lambda a: np.broadcast_to(a, call.result.shape))


def _addcmul(args: Sequence[Bounded], call: Call) -> Bounded:
    """x + value y z, in any order of the products. `value` is a power of two, so that it costs no rounding; a
    product of numbers that overflows in one order need not in another, nor with a fused addition."""
    x, y, z = args
    factor = call.number("value")
    product = multiply(y, z)
    scaled = multiply(product, _exactly(factor, product))
    with np.errstate(all="ignore"):
        numbers = np.isfinite(y.value) & np.isfinite(z.value)
        loose = numbers & ~(np.isfinite(product.value) & np.isfinite(scaled.value))
        result = add(x, replace(scaled, error=np.where(loose, np.inf, scaled.error)))
        nan = _nan(x) | _nan(y) | _nan(z)
    return replace(result, value=np.where(nan, np.nan, result.value), error=np.where(nan, 0.0, result.error))


def _isclose(args: Sequence[Bounded], call: Call) -> Bounded:
    """|x - y| <= atol + rtol |y|; equal infinities are close, others and NaN are not. The left side has one rounding,
    the right one four (both constants, the product, the sum)."""
    x, y = args
    p = PRECISION[x.dtype]
    rtol, atol = (call.number(name) for name in ("rtol", "atol"))
    with np.errstate(all="ignore"):
        finite = np.isfinite(x.value) & np.isfinite(y.value)
        distance = np.where(finite, np.abs(x.value - y.value), np.inf)
        limit = np.where(finite, atol + rtol * np.abs(y.value), 0.0)
        value = np.where(finite, distance <= limit, x.value == y.value)
        error = x.error + (1 + rtol) * y.error + (p.unit + U64) * (distance + 4 * limit) + 4 * p.tiny
        same = (x.value == y.value) & (x.error + y.error == 0)
        unsure = finite & ~same & ~(np.abs(distance - limit) > error)
    return exact(value, "bool", settled(x, y, np.where(unsure, np.inf, 0.0)) > 0)


def _masked_fill(args: Sequence[Bounded], call: Call) -> Bounded:
    x, mask = args
    # the value as a number of the dtype: 65504 is not one of bfloat16
    filling = np.full(call.result.shape, call.attrs["value"], x.dtype).astype(x.value.dtype)
    constant = Bounded(filling, np.zeros(filling.shape), x.dtype)
    return where.reference((mask, constant, _spread_out(x, call)), call)


# ---- attributes and types -----------------------------------------------------------------------------


def _filling(d: Draw, operands: Types, attrs: Attrs) -> Attr:
    if operands[0].dtype in FLOATS:
        return d.choice((0.0, -1.0, 0.5, 65504.0))
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


def _record(
    name: str,
    reference: Reference,
    *,
    torch: Spelling = "",
    tensorflow: Spelling = "",
    jax: Spelling = "",
    relax: Spelling,
    onnx: Spelling,
    operands: tuple[Slot, ...] = FLOAT_PAIR,
    result: ResultRule | None = None,
    attrs: Mapping[str, AttrRule] | None = None,
    signed_zero: bool = False,
) -> OpSpec:
    """PyTorch, and the numpy interfaces of TensorFlow and JAX call it `name`, except where another text is given."""
    return OpSpec(
        name, "binary", operands, result or broadcast(), reference, attrs=attrs or {}, signed_zero=signed_zero,
        torch=torch or f"torch.{name}({{0}}, {{1}})",
        tensorflow=tensorflow or f"tf.experimental.numpy.{name}({{0}}, {{1}})",
        jax=jax or f"jnp.{name}({{0}}, {{1}})", relax=relax, onnx=onnx,
    )  # fmt: skip


def _ignoring(name: str, kind: str) -> OpSpec:
    return _record(
        f"f{name[:3]}", _ignoring_nan(getattr(np, name)), tensorflow=f"ignoring_nan(tf.{name}, {{0}}, {{1}})",
        relax=f"ignoring_nan(bb, relax.op.{name}, {{0}}, {{1}})", onnx=f'ignoring_nan(g, "{kind}", {{0}}, {{1}})',
    )  # fmt: skip


_THREE = (floating(), broadcastable(0), broadcastable(0))

PAIRS: tuple[OpSpec, ...] = (
    _record(
        "hypot", _hypot,
        relax="relax.op.sqrt(relax.op.add(relax.op.square({0}), relax.op.square({1})))", onnx="hypot(g, {0}, {1})",
    ),
    _record("logaddexp", _logaddexp, relax="relax.op.log_add_exp({0}, {1})", onnx="logaddexp(g, {0}, {1}, {name})"),
    _record(
        "copysign", _copysign, signed_zero=True, tensorflow="copysign({0}, {1})",
        relax="copysign({0}, {1}, {dtype})", onnx="copysign(g, {0}, {1}, {name})",
    ),
    _record(
        "xlogy", _xlogy, tensorflow="tf.math.xlogy({0}, {1})", jax="jax.scipy.special.xlogy({0}, {1})",
        relax="xlogy({0}, {1}, {dtype})", onnx="xlogy(g, {0}, {1}, {name})",
    ),
    _record("heaviside", _heaviside, relax="heaviside({0}, {1}, {dtype})", onnx="heaviside(g, {0}, {1}, {name})"),
    _ignoring("maximum", "Max"),
    _ignoring("minimum", "Min"),
    _record(
        "lerp", _lerp, operands=_THREE, torch="torch.lerp({0}, {1}, {2})",
        tensorflow="{0} + {2} * ({1} - {0})", jax="{0} + {2} * ({1} - {0})",
        relax="relax.op.add({0}, relax.op.multiply({2}, relax.op.subtract({1}, {0})))",
        onnx='g.op("Add", {0}, g.op("Mul", {2}, g.op("Sub", {1}, {0})))',
    ),
    _record(
        "addcmul", _addcmul, operands=_THREE, attrs={"value": one_of(1.0, 0.5, -1.0, 2.0)},
        torch="torch.addcmul({0}, {1}, {2}, value={value})",
        tensorflow="{0} + {value} * {1} * {2}", jax="{0} + {value} * {1} * {2}",
        relax="relax.op.add({0}, relax.op.multiply(relax.op.multiply(relax.const({value}, {dtype}), {1}), {2}))",
        onnx='g.op("Add", {0}, g.op("Mul", g.op("Mul", g.const({value}, {name}), {1}), {2}))',
    ),
    _record(
        "isclose", _isclose, result=broadcast("bool"),
        attrs={"rtol": one_of(1e-5, 0.0, 0.5, 1e-3), "atol": one_of(1e-8, 0.0, 0.25, 1e-3)},
        torch="torch.isclose({0}, {1}, rtol={rtol}, atol={atol})",
        tensorflow="isclose({0}, {1}, {rtol}, {atol})", jax="jnp.isclose({0}, {1}, rtol={rtol}, atol={atol})",
        relax="isclose(bb, {0}, {1}, {rtol}, {atol}, {dtype0})", onnx="isclose(g, {0}, {1}, {rtol}, {atol}, {name0})",
    ),
    _record(
        "masked_fill", _masked_fill, operands=(tensor(DTYPES), broadcastable(dtypes=("bool",))), result=_masked_type,
        attrs={"value": _filling}, torch="torch.masked_fill({0}, {1}, {value})",
        tensorflow="tf.where({1}, tf.constant({value}, {dtype}), {0})", jax="jnp.where({1}, {value}, {0})",
        relax="relax.op.where({1}, relax.const({value}, {dtype}), {0})",
        onnx=lambda call: ("where_bool(g, {1}, {filling}, {0})" if call.result.dtype == "bool"
                           else 'g.op("Where", {1}, {filling}, {0})').replace("{filling}", "g.const({value}, {name})"),
    ),
)  # fmt: skip
