"""Smooth activation functions and gates: sigmoid, GELU, softplus, GLU and others. Those that are compositions are
bounded as compositions, so that what cancels in their tails is allowed for, and no more. u is the unit roundoff of the
dtype; an ulp is at most 2 u |v|."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, add, divide, ends, monotone, multiply, rounded, spread
from generators.graph import TensorType
from generators.ops.elementwise.records import activation, by_dtype
from generators.ops.elementwise.references import constant, exactly, loose
from generators.ops.elementwise.special import erf_of
from generators.ops.slots import floating, normalized, one_of, same_as
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Reference, Slot, TypeRuleError, Types

Gate = Callable[[Bounded], Bounded]

# ---- references ---------------------------------------------------------------------------------------


def sigmoid(x: Bounded) -> Bounded:
    """1 / (1 + exp(-x)): exp 3 ulp, addition 0.5, division 2.5. Evaluations through tanh, 0.5 tanh(x/2) + 0.5
    (XLA's LogisticExpander knows both), keep an absolute error: half of the 5 ulp of tanh, at most 2.5 u. The
    limits at infinity are exact in both."""
    return loose(monotone(lambda v: 1 / (1 + np.exp(-v)), x, 6), 2.5, np.isfinite(x.value))


def softplus(x: Bounded) -> Bounded:
    """log(1 + exp(x)) (the definition in ONNX): exp 3 ulp, which is 6 u sigmoid(x) <= 6 u softplus(x), log 3
    ulp, and an absolute u where rounding 1 + exp(x) loses the tail. max(x, 0) + log1p(exp(-|x|)) needs less."""
    return loose(monotone(lambda v: np.logaddexp(0, v), x, 6), 1, np.isfinite(x.value))


def _softplus_scaled(args: Sequence[Bounded], call: Call) -> Bounded:
    """softplus(beta x) / beta, and x where beta x is beyond the threshold, as PyTorch defines it; either of both where
    rounding decides. beta is a power of two."""
    x, beta, limit = args[0], exactly(call.number("beta"), args[0]), call.number("threshold")
    scaled = multiply(x, beta)
    smooth = divide(softplus(scaled), beta)
    with np.errstate(all="ignore"):
        beyond = scaled.value > limit
        either = np.any([(end > limit) != beyond for end in ends(scaled)], axis=0)
        value, error = (np.where(beyond, getattr(x, name), getattr(smooth, name)) for name in ("value", "error"))
        error = np.where(either, np.abs(x.value - smooth.value) + x.error + smooth.error, error)
    return Bounded(value, np.where(x.undetermined | np.isnan(error), np.inf, error), x.dtype)


def log_sigmoid(x: Bounded) -> Bounded:
    result = softplus(replace(x, value=-x.value))
    return replace(result, value=-result.value)


def hard_sigmoid(x: Bounded) -> Bounded:
    """clip(x + 3, 0, 6) / 6: addition 0.5 ulp, division 2.5, 6 u in all. Or clip(x / 6 + 1/2, 0, 1), where the
    constant and the product are rounded before they cancel: 2 u |x / 6|, then the sum's u. Exact outside."""
    unit = PRECISION[x.dtype].unit
    with np.errstate(all="ignore"):
        inner = (x.value + 3) / 6
        value = np.clip(inner, 0.0, 1.0)
        own = np.maximum(6 * np.abs(inner), np.abs(x.value) / 3 + np.abs(inner)) * unit
        own = np.where(x.value == -3, unit, own)
        low, high = ends(x)
        error = spread(value, np.clip((low + 3) / 6 - own, 0, 1), np.clip((high + 3) / 6 + own, 0, 1))
        error = np.where(x.undetermined, np.inf, np.where(np.isfinite(x.value), error, 0.0))
        return rounded(value, error, x.dtype, 3)


def _erf_gate(x: Bounded) -> Bounded:
    """(1 + erf(x / sqrt 2)) / 2, where the division may take 2.5 ulp."""
    inner = multiply(x, constant(np.sqrt(0.5), x))
    inner = rounded(inner.value, inner.error, x.dtype, 2)
    return multiply(add(exactly(1.0, x), monotone(erf_of, inner, 16)), exactly(0.5, x))


def _tanh_gate(x: Bounded) -> Bounded:
    """(1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2; one rounding more for x (1 + 0.044715 x^2)."""
    cube = multiply(multiply(multiply(x, x), x), constant(0.044715, x))
    inner = multiply(add(x, cube), constant(np.sqrt(2 / np.pi), x))
    inner = rounded(inner.value, inner.error, x.dtype)
    return multiply(add(exactly(1.0, x), monotone(np.tanh, inner, 5)), exactly(0.5, x))


def _mish_gate(x: Bounded) -> Bounded:
    """tanh(softplus(x)). t / (t + 2) with t = e^x (e^x + 2) needs no more: 21 u against 22 u, relatively."""
    return monotone(np.tanh, softplus(x), 5)


def _gated(gate: Gate, factor: float = 1.0) -> Reference:
    """x * gate(x). At -inf the gate is 0, and the product NaN or the limit 0, as the evaluation goes:
    undetermined. So is an overflow of factor * x, which some evaluations form before they divide."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x = args[0]
        result = multiply(x, gate(x))
        with np.errstate(all="ignore"):
            over = np.isfinite(x.value) & ((np.abs(x.value) + x.error) > PRECISION[x.dtype].largest / factor)
        return replace(result, error=np.where(np.isneginf(x.value) | over, np.inf, result.error))

    return reference


def _linear_gate(args: Sequence[Bounded], call: Call) -> Bounded:
    """clip(alpha x + beta, 0, 1): alpha and the product are rounded, then the sum is, or both at once."""
    x, alpha, beta = args[0], call.number("alpha"), call.number("beta")
    p = PRECISION[x.dtype]
    with np.errstate(all="ignore"):
        inner = alpha * x.value + beta
        own = (2.1 * abs(alpha) * np.abs(x.value) + np.abs(inner)) * (p.unit + U64) + 2 * p.tiny
        own = np.where(np.isfinite(inner), own, 0.0)
        value = np.clip(inner, 0.0, 1.0)
        low, high = (np.clip(alpha * end + beta + move, 0, 1) for end, move in zip(ends(x), (-own, own), strict=True))
        error = np.where(x.undetermined, np.inf, spread(value, low, high))
    return rounded(value, error, x.dtype, 0)


def _swish(args: Sequence[Bounded], call: Call) -> Bounded:
    """x sigmoid(alpha x)."""
    alpha = call.number("alpha")
    return _gated(lambda x: sigmoid(multiply(x, constant(alpha, x))))(args, call)


def _of_operand(f: Gate) -> Reference:
    return lambda args, call: f(args[0])


def _softsign(args: Sequence[Bounded], call: Call) -> Bounded:
    """x / (1 + |x|): addition 0.5, division 2.5 ulp. At infinity NaN, or the limit."""
    x = args[0]
    result = monotone(lambda v: v / (1 + np.abs(v)), x, 3)
    return replace(result, error=np.where(np.isinf(x.value), np.inf, result.error))


# ---- spellings ----------------------------------------------------------------------------------------

_RELAX_ONE = "relax.const(1, {dtype})"
_RELAX_HARD = (
    "relax.op.divide(relax.op.clip(relax.op.add({0}, relax.const(3, {dtype})), 0, 6), relax.const(6, {dtype}))"
)
# threshold=40: softplus is x from there on, which at the default of 20 is too early for float64
_RELAX_SOFTPLUS = "relax.op.nn.softplus({0}, threshold=40.0)"

_ONNX_SOFTPLUS = "log_one_plus_exp(g, {0}, {name})"


def _halves(x: Bounded, axis: int) -> tuple[Bounded, Bounded]:
    return x.map(lambda a: np.split(a, 2, axis)[0]), x.map(lambda a: np.split(a, 2, axis)[1])


def _glu(args: Sequence[Bounded], call: Call) -> Bounded:
    """The first half by the sigmoid of the second one."""
    first, second = _halves(args[0], int(call.attrs["axis"]))  # type: ignore[arg-type]
    return multiply(first, sigmoid(second))


# ---- the axis of glu ----------------------------------------------------------------------------------


def _even_axes(type_: TensorType) -> tuple[int, ...]:
    return tuple(axis for axis, dim in enumerate(type_.shape) if dim and dim % 2 == 0)


def _splittable() -> Slot:
    base = floating(min_rank=1)

    def accepts(type_: TensorType, earlier: Types) -> bool:
        return base.accepts(type_, earlier) and bool(_even_axes(type_))

    def fresh(d: Draw, earlier: Types) -> TensorType:
        type_ = base.fresh(d, earlier)
        return type_ if _even_axes(type_) else TensorType(type_.dtype, (*type_.shape[:-1], 2))

    return Slot(accepts, fresh)


def _even_axis(d: Draw, operands: Types, attrs: Attrs) -> int:
    axes = _even_axes(operands[0])
    return d.choice((*axes, *(axis - operands[0].rank for axis in axes)))


def _glu_type(operands: Types, attrs: Attrs) -> TensorType:
    x = operands[0]
    (axis,) = normalized(attrs["axis"], x.rank)
    if axis not in _even_axes(x):
        raise TypeRuleError(f"dimension {axis} of {x} has no halves")
    return TensorType(x.dtype, (*x.shape[:axis], x.shape[axis] // 2, *x.shape[axis + 1 :]))


OPERATORS: tuple[OpSpec, ...] = (
    activation("sigmoid", _of_operand(sigmoid), "sigmoid({0})", "tf.sigmoid({0})", "jax.nn.sigmoid({0})",
               "relax.op.sigmoid({0})", 'g.op("Sigmoid", {0})'),
    activation("hard_sigmoid", _of_operand(hard_sigmoid), "hardsigmoid({0})", "tf.nn.relu6({0} + 3) / 6",
               "jax.nn.hard_sigmoid({0})", _RELAX_HARD,
               by_dtype('g.op("HardSigmoid", {0}, alpha=1 / 6, beta=0.5)', float64="hard_gate(g, {0}, {name})")),
    OpSpec(
        "hard_sigmoid_linear", "activation", (floating(),), same_as(0), _linear_gate,
        attrs={"alpha": one_of(0.2, 0.25, 1.0), "beta": one_of(0.5, 0.25, 0.0)},
        torch="torch.clamp({alpha} * {0} + {beta}, 0, 1)", tensorflow="tf.clip_by_value({alpha} * {0} + {beta}, 0, 1)",
        jax="jnp.clip({alpha} * {0} + {beta}, 0, 1)",
        relax="relax.op.clip(relax.op.add(relax.op.multiply({0}, relax.const({alpha}, {dtype})), "
        "relax.const({beta}, {dtype})), 0, 1)",
        onnx=by_dtype(
            'g.op("HardSigmoid", {0}, alpha={alpha}, beta={beta})',
            float64='g.op("Clip", g.op("Add", g.op("Mul", {0}, g.const({alpha}, {name})), g.const({beta}, {name})), '
            "g.const(0, {name}), g.const(1, {name}))",
        ),
    ),
    OpSpec(
        "swish", "activation", (floating(),), same_as(0), _swish, attrs={"alpha": one_of(1.0, 0.5, 2.0, 1.75)},
        torch="{0} * torch.sigmoid({alpha} * {0})", tensorflow="tf.nn.silu({0}, beta={alpha})",
        jax="{0} * jax.nn.sigmoid({alpha} * {0})",
        relax="relax.op.multiply({0}, relax.op.sigmoid(relax.op.multiply({0}, relax.const({alpha}, {dtype}))))",
        onnx='g.op("Swish", {0}, alpha={alpha})',
    ),
    activation("hard_swish", _gated(hard_sigmoid, 6.0), "hardswish({0})", "{0} * (tf.nn.relu6({0} + 3) / 6)",
               "jax.nn.hard_swish({0})", f"relax.op.multiply({{0}}, {_RELAX_HARD})",
               by_dtype('g.op("HardSwish", {0})', float64='g.op("Mul", {0}, hard_gate(g, {0}, {name}))')),
    activation("silu", _gated(sigmoid), "silu({0})", "tf.nn.silu({0})", "jax.nn.silu({0})",
               "relax.op.nn.silu({0})", 'g.op("Mul", {0}, g.op("Sigmoid", {0}))'),
    activation("gelu", _gated(_erf_gate, 2.0), "gelu({0})", "tf.nn.gelu({0})",
               "jax.nn.gelu({0}, approximate=False)", "relax.op.nn.gelu({0})", 'g.op("Gelu", {0})'),
    activation("gelu_tanh", _gated(_tanh_gate, 2.0), 'gelu({0}, approximate="tanh")',
               "tf.nn.gelu({0}, approximate=True)", "jax.nn.gelu({0}, approximate=True)",
               "relax.op.nn.gelu_tanh({0})", 'g.op("Gelu", {0}, approximate="tanh")'),
    activation("softplus", _of_operand(softplus), "softplus({0}, threshold=40)", "tf.math.softplus({0})",
               "jax.nn.softplus({0})", _RELAX_SOFTPLUS, by_dtype('g.op("Softplus", {0})', float64=_ONNX_SOFTPLUS)),
    activation("softplus_scaled", _softplus_scaled, "softplus({0}, {beta}, {threshold})",
               "tf.where({0} * {beta} > {threshold}, {0}, tf.math.softplus({0} * {beta}) / {beta})",
               "jnp.where({0} * {beta} > {threshold}, {0}, jax.nn.softplus({0} * {beta}) / {beta})",
               "relax.op.nn.softplus({0}, beta={beta}, threshold={threshold})",
               "softplus_scaled(g, {0}, {beta}, {threshold}, {name})",
               attrs={"beta": one_of(2.0, 0.5, 1.0, 4.0), "threshold": one_of(20.0, 1.0, 40.0, 0.0)}),
    activation("softsign", _softsign, "softsign({0})", "tf.nn.softsign({0})", "jax.nn.soft_sign({0})",
               f"relax.op.divide({{0}}, relax.op.add({_RELAX_ONE}, relax.op.abs({{0}})))",
               by_dtype('g.op("Softsign", {0})',
                         float64='g.op("Div", {0}, g.op("Add", g.const(1, {name}), g.op("Abs", {0})))')),
    activation("mish", _gated(_mish_gate), "mish({0})", "{0} * tf.tanh(tf.math.softplus({0}))",
               "jax.nn.mish({0})", f"relax.op.multiply({{0}}, relax.op.tanh({_RELAX_SOFTPLUS}))",
               by_dtype('g.op("Mish", {0})', float64=f'g.op("Mul", {{0}}, g.op("Tanh", {_ONNX_SOFTPLUS}))')),
    activation("log_sigmoid", _of_operand(log_sigmoid), "logsigmoid({0})", "tf.math.log_sigmoid({0})",
               "jax.nn.log_sigmoid({0})",
               f"relax.op.negative({_RELAX_SOFTPLUS.format('relax.op.negative({0})')})",
               by_dtype('g.op("Neg", g.op("Softplus", g.op("Neg", {0})))',
                         float64='g.op("Neg", log_one_plus_exp(g, g.op("Neg", {0}), {name}))')),
    OpSpec(
        "glu", "activation", (_splittable(),), _glu_type, _glu, attrs={"axis": _even_axis},
        torch="torch.nn.functional.glu({0}, dim={axis})", tensorflow="glu({0}, {axis})",
        jax="jax.nn.glu({0}, axis={axis})", relax="glu({0}, {axis})", onnx="glu(g, {0}, {axis})",
    ),
)  # fmt: skip
