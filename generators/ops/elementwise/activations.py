"""Activation functions. Those that are compositions are bounded as compositions, so that what cancels in their
tails is allowed for, and no more. u is the unit roundoff of the dtype; an ulp is at most 2 u |v|."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded, add, ends, exact, monotone, multiply, rounded, spread
from generators.graph import Attr, TensorType
from generators.ops.elementwise.trigonometric import erf_of
from generators.ops.slots import floating, numeric, one_of, same_as
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
Function = Callable[[Array], Array]
Gate = Callable[[Bounded], Bounded]


# ---- references ---------------------------------------------------------------------------------------


def loose(result: Bounded, units: float, where: Array) -> Bounded:
    """`result` with an absolute error of so many unit roundoffs more where the mask holds."""
    return replace(result, error=result.error + np.where(where, units * PRECISION[result.dtype].unit, 0.0))


def constant(value: float, like: Bounded) -> Bounded:
    """A constant that every back end rounds to the dtype first, once."""
    return rounded(np.full(like.value.shape, value), np.zeros(like.value.shape), like.dtype)


def exactly(value: float, like: Bounded) -> Bounded:
    return Bounded(np.full(like.value.shape, value), np.zeros(like.value.shape), like.dtype)


def sigmoid(x: Bounded) -> Bounded:
    """1 / (1 + exp(-x)): exp 3 ulp, addition 0.5, division 2.5. Evaluations through tanh, 0.5 tanh(x/2) + 0.5
    (XLA's LogisticExpander knows both), keep an absolute error: half of the 5 ulp of tanh, at most 2.5 u. The
    limits at infinity are exact in both."""
    return loose(monotone(lambda v: 1 / (1 + np.exp(-v)), x, 6), 2.5, np.isfinite(x.value))


def softplus(x: Bounded) -> Bounded:
    """log(1 + exp(x)) (the definition in ONNX): exp 3 ulp, which is 6 u sigmoid(x) <= 6 u softplus(x), log 3
    ulp, and an absolute u where rounding 1 + exp(x) loses the tail. max(x, 0) + log1p(exp(-|x|)) needs less."""
    return loose(monotone(lambda v: np.logaddexp(0, v), x, 6), 1, np.isfinite(x.value))


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


def _of_operand(f: Gate) -> Reference:
    return lambda args, call: f(args[0])


def _softsign(args: Sequence[Bounded], call: Call) -> Bounded:
    """x / (1 + |x|): addition 0.5, division 2.5 ulp. At infinity NaN, or the limit."""
    x = args[0]
    result = monotone(lambda v: v / (1 + np.abs(v)), x, 3)
    return replace(result, error=np.where(np.isinf(x.value), np.inf, result.error))


def _clamped(x: Bounded, low: float, high: float) -> Bounded:
    """Nothing is rounded: the result is the operand or a limit. A back end that reads a subnormal as zero may
    find it equal to a limit of zero, and give either."""
    with np.errstate(all="ignore"):
        far = (x.value + x.error < low) | (x.value - x.error > high)
        return Bounded(np.clip(x.value, low, high), np.where(far, 0.0, x.error), x.dtype)


def _relu(args: Sequence[Bounded], call: Call) -> Bounded:
    x = args[0]
    if not x.floating:
        return exact(np.maximum(x.value, 0), x.dtype, x.undetermined)
    return _clamped(x, 0.0, np.inf)


def _relu6(args: Sequence[Bounded], call: Call) -> Bounded:
    return _clamped(args[0], 0.0, 6.0)


def _exponential_unit(x: Bounded, alpha: float, scale: float, ulps: float) -> Bounded:
    """scale * x above zero, below it scale * alpha (exp(x) - 1), the definition in ONNX, where the 3 ulp of exp
    leave an absolute 6 u; expm1 (3 ulp of a smaller number) needs less. `ulps`: the difference, the products
    and the constants."""
    with np.errstate(all="ignore"):
        result = monotone(lambda v: scale * np.where(v > 0, v, alpha * np.expm1(v)), x, ulps)
        return loose(result, 6 * alpha * scale, ends(x)[0] < 0)


def _elu(args: Sequence[Bounded], call: Call) -> Bounded:
    x = args[0]
    result = _exponential_unit(x, call.number("alpha"), 1.0, 1.5)
    above = (ends(x)[0] > 0) & np.isfinite(result.error)  # no rounding, if no overflow
    return replace(result, error=np.where(above, x.error, result.error))


def _leaky(x: Bounded, below: Bounded, steepness: Array | float) -> Bounded:
    """x above zero, `below` under it. Where x may be on either side the result moves by at most
    max(1, steepness) * x.error, beside the errors of `below`."""
    with np.errstate(all="ignore"):
        above = (ends(x)[0] >= 0) & (x.value > 0)
        either = (x.error > 0) & (np.abs(x.value) <= x.error)
        value = np.where(x.value > 0, x.value, below.value)
        error = np.where(above, x.error, below.error)
        across = np.maximum(1.0, steepness) * x.error * (1 + 4 * PRECISION[x.dtype].unit) + below.error
        error = np.where(either, np.maximum(error, across), error)
        error = np.where(x.undetermined, np.inf, np.where(np.isnan(error), np.inf, error))
    return Bounded(value, error, x.dtype)


def _leaky_relu(args: Sequence[Bounded], call: Call) -> Bounded:
    """alpha is rounded to the dtype, then the product is. 0 * -inf is NaN, or 0 for those who make relu of it."""
    x, alpha = args[0], call.number("alpha")
    with np.errstate(all="ignore"):
        own = 0.0 if (2 * alpha).is_integer() else 0.5
        moved = np.where(x.error == 0, 0.0, abs(alpha) * x.error)
        below = rounded(alpha * x.value, np.where(np.isfinite(x.value), moved, x.error), x.dtype, 0.5 + own)
    result = _leaky(x, below, abs(alpha))
    return replace(result, error=np.where(np.isneginf(x.value) & (alpha == 0), np.inf, result.error))


def _prelu(args: Sequence[Bounded], call: Call) -> Bounded:
    """0 times an infinite or undetermined slope is NaN for those who take the product at 0 (x > 0 or x >= 0)."""
    x, given = args
    column = (-1,) + (1,) * (x.value.ndim - 2)
    slope = given.map(lambda a: np.broadcast_to(a.reshape(column), x.value.shape))
    result = _leaky(x, multiply(x, slope), np.abs(slope.value) + slope.error)
    with np.errstate(all="ignore"):
        zero = (np.abs(x.value) <= x.error) & ~(np.isfinite(slope.value) & np.isfinite(slope.error))
    return replace(result, error=np.where(zero, np.inf, result.error))


# ---- spellings ----------------------------------------------------------------------------------------


def _activation(
    name: str,
    reference: Reference,
    torch: str,
    tensorflow: Spelling,
    jax: Spelling,
    relax: Spelling,
    onnx: Spelling,
    attrs: Mapping[str, AttrRule] | None = None,
    operands: tuple[Slot, ...] | None = None,
    result: ResultRule | None = None,
) -> OpSpec:
    return OpSpec(
        name, "activation", operands or (floating(),), result or same_as(0), reference, attrs=attrs or {},
        torch=f"torch.nn.functional.{torch}", tensorflow=tensorflow, jax=jax, relax=relax, onnx=onnx,
    )  # fmt: skip


def _by_dtype(text: str, **others: str) -> Spelling:
    """`text`, or another one for the dtypes named. In ONNX attributes are float32, too short for double, and
    ONNX Runtime has few kernels for double: that is spelled out in arithmetic instead."""
    return lambda call: others.get(call.result.dtype, text)


def _tf_elu(call: Call) -> str:
    if call.attrs["alpha"] == 1.0:
        return "tf.nn.elu({0})"
    return "tf.where({0} > 0, {0}, {alpha} * tf.math.expm1({0}))"


def _column(text: str, double: str | None = None) -> Spelling:
    """`text` with {column}: the shape in which the slopes broadcast against the channels, dimension 1."""

    def spell(call: Call) -> str:
        shape = (*call.operands[1].shape, *(1,) * (call.operands[0].rank - 2))
        chosen = double if double and call.result.dtype == "float64" else text
        return chosen.replace("{column}", str(list(shape)))

    return spell


def _one_or_per_channel() -> Slot:
    def accepts(type_: TensorType, earlier: Types) -> bool:
        return type_.dtype == earlier[0].dtype and type_.shape in ((earlier[0].shape[1],), (1,))

    def fresh(d: Draw, earlier: Types) -> TensorType:
        return TensorType(earlier[0].dtype, (earlier[0].shape[1] if d.integer(0, 3) < 3 else 1,))

    return Slot(accepts, fresh)


def _prelu_type(operands: Types, attrs: Mapping[str, Attr]) -> TensorType:
    x, slope = operands
    if x.rank < 2 or slope.dtype != x.dtype or slope.shape not in ((x.shape[1],), (1,)):
        raise TypeRuleError(f"{slope} is no slope for the channels of {x}")
    return x


_RELAX_ONE = "relax.const(1, {dtype})"
_RELAX_HARD = (
    "relax.op.divide(relax.op.clip(relax.op.add({0}, relax.const(3, {dtype})), 0, 6), relax.const(6, {dtype}))"
)
_RELAX_ELU = (
    "relax.op.where(relax.op.greater({0}, relax.const(0, {dtype})), {0}, relax.op.multiply("
    f"relax.const({{alpha}}, {{dtype}}), relax.op.subtract(relax.op.exp({{0}}), {_RELAX_ONE})))"
)
_RELAX_SOFTPLUS = "relax.op.nn.softplus({0}, threshold=40.0)"
_SELU_SCALE = 1.0507009873554805
_SELU_ALPHA = 1.6732632423543772
_ONNX_LEAKY = 'leaky(g, {0}, g.op("Mul", {0}, g.const({alpha}, {name})), {name})'
_ONNX_ELU = "leaky(g, {0}, scaled_exponential(g, {0}, {alpha}, {name}), {name})"
_ONNX_SELU = (
    f'g.op("Mul", g.const({_SELU_SCALE}, {{name}}), '
    f"leaky(g, {{0}}, scaled_exponential(g, {{0}}, {_SELU_ALPHA}, {{name}}), {{name}}))"
)
_ONNX_SOFTPLUS = "log_one_plus_exp(g, {0}, {name})"
_ONNX_COLUMN = 'g.op("Reshape", {1}, g.const({column}, "int64"), allowzero=1)'
_LEAKY_SLOPES = one_of(0.5, 0.01, 0.2, 0.0, 1.0, 2.0, -0.5)

relu = _activation(
    "relu", _relu, "relu({0})", "tf.nn.relu({0})", "jax.nn.relu({0})", "relax.op.nn.relu({0})",
    _by_dtype('g.op("Relu", {0})', int64='g.op("Max", {0}, g.const(0, "int64"))'), operands=(numeric(),),
)  # fmt: skip

# threshold=40: softplus is x from there on, which at the default of 20 is too early for float64
ACTIVATIONS: tuple[OpSpec, ...] = (
    relu,
    _activation("relu6", _relu6, "relu6({0})", "tf.nn.relu6({0})", "jax.nn.relu6({0})",
                "relax.op.nn.relu6({0})", 'g.op("Clip", {0}, g.const(0, {name}), g.const(6, {name}))'),
    _activation("leaky_relu", _leaky_relu, "leaky_relu({0}, negative_slope={alpha})",
                "tf.nn.leaky_relu({0}, alpha={alpha})", "jax.nn.leaky_relu({0}, negative_slope={alpha})",
                "relax.op.nn.leakyrelu({0}, alpha={alpha})",
                _by_dtype('g.op("LeakyRelu", {0}, alpha={alpha})', float64=_ONNX_LEAKY), {"alpha": _LEAKY_SLOPES}),
    _activation("prelu", _prelu, "prelu({0}, {1})", _column("tf.where({0} > 0, {0}, {0} * tf.reshape({1}, {column}))"),
                _column("jnp.where({0} > 0, {0}, {0} * jnp.reshape({1}, {column}))"),
                "relax.op.nn.prelu({0}, {1}, axis=1)",
                _column(f'g.op("PRelu", {{0}}, {_ONNX_COLUMN})',
                        f'leaky(g, {{0}}, g.op("Mul", {{0}}, {_ONNX_COLUMN}), {{name}})'),
                operands=(floating(min_rank=2), _one_or_per_channel()), result=_prelu_type),
    _activation("elu", _elu, "elu({0}, alpha={alpha})", _tf_elu, "jax.nn.elu({0}, alpha={alpha})", _RELAX_ELU,
                _by_dtype('g.op("Elu", {0}, alpha={alpha})', float64=_ONNX_ELU), {"alpha": one_of(1.0, 0.5, 2.0, 0.1)}),
    _activation("selu", lambda args, call: _exponential_unit(args[0], _SELU_ALPHA, _SELU_SCALE, 2.5),
                "selu({0})", "tf.nn.selu({0})", "jax.nn.selu({0})", "relax.op.nn.selu({0})",
                _by_dtype('g.op("Selu", {0})', float64=_ONNX_SELU)),
    _activation("sigmoid", _of_operand(sigmoid), "sigmoid({0})", "tf.sigmoid({0})", "jax.nn.sigmoid({0})",
                "relax.op.sigmoid({0})", 'g.op("Sigmoid", {0})'),
    _activation("hard_sigmoid", _of_operand(hard_sigmoid), "hardsigmoid({0})", "tf.nn.relu6({0} + 3) / 6",
                "jax.nn.hard_sigmoid({0})", _RELAX_HARD,
                _by_dtype('g.op("HardSigmoid", {0}, alpha=1 / 6, beta=0.5)', float64="hard_gate(g, {0}, {name})")),
    _activation("hard_swish", _gated(hard_sigmoid, 6.0), "hardswish({0})", "{0} * (tf.nn.relu6({0} + 3) / 6)",
                "jax.nn.hard_swish({0})", f"relax.op.multiply({{0}}, {_RELAX_HARD})",
                _by_dtype('g.op("HardSwish", {0})', float64='g.op("Mul", {0}, hard_gate(g, {0}, {name}))')),
    _activation("silu", _gated(sigmoid), "silu({0})", "tf.nn.silu({0})", "jax.nn.silu({0})",
                "relax.op.nn.silu({0})", 'g.op("Mul", {0}, g.op("Sigmoid", {0}))'),
    _activation("gelu", _gated(_erf_gate, 2.0), "gelu({0})", "tf.nn.gelu({0})",
                "jax.nn.gelu({0}, approximate=False)", "relax.op.nn.gelu({0})", 'g.op("Gelu", {0})'),
    _activation("gelu_tanh", _gated(_tanh_gate, 2.0), 'gelu({0}, approximate="tanh")',
                "tf.nn.gelu({0}, approximate=True)", "jax.nn.gelu({0}, approximate=True)",
                "relax.op.nn.gelu_tanh({0})", 'g.op("Gelu", {0}, approximate="tanh")'),
    _activation("softplus", _of_operand(softplus), "softplus({0}, threshold=40)", "tf.math.softplus({0})",
                "jax.nn.softplus({0})", _RELAX_SOFTPLUS, _by_dtype('g.op("Softplus", {0})', float64=_ONNX_SOFTPLUS)),
    _activation("softsign", _softsign, "softsign({0})", "tf.nn.softsign({0})", "jax.nn.soft_sign({0})",
                f"relax.op.divide({{0}}, relax.op.add({_RELAX_ONE}, relax.op.abs({{0}})))",
                _by_dtype('g.op("Softsign", {0})',
                          float64='g.op("Div", {0}, g.op("Add", g.const(1, {name}), g.op("Abs", {0})))')),
    _activation("mish", _gated(_mish_gate), "mish({0})", "{0} * tf.tanh(tf.math.softplus({0}))",
                "jax.nn.mish({0})", f"relax.op.multiply({{0}}, relax.op.tanh({_RELAX_SOFTPLUS}))",
                _by_dtype('g.op("Mish", {0})', float64=f'g.op("Mul", {{0}}, g.op("Tanh", {_ONNX_SOFTPLUS}))')),
    _activation("log_sigmoid", _of_operand(log_sigmoid), "logsigmoid({0})", "tf.math.log_sigmoid({0})",
                "jax.nn.log_sigmoid({0})",
                f"relax.op.negative({_RELAX_SOFTPLUS.format('relax.op.negative({0})')})",
                _by_dtype('g.op("Neg", g.op("Softplus", g.op("Neg", {0})))',
                          float64='g.op("Neg", log_one_plus_exp(g, g.op("Neg", {0}), {name}))')),
)  # fmt: skip
