"""Activation functions in pieces: ReLU and its kin, exponential linear units, shrinking and clamping. u is the unit
roundoff of the dtype; an ulp is at most 2 u |v|. Attributes are numbers that every dtype and ONNX's float attributes
hold exactly."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import (
    PRECISION,
    U64,
    Bounded,
    ends,
    exact,
    holds_zero,
    monotone,
    multiply,
    spread,
)
from generators.bounds.extremes import beside_zero, near_zero
from generators.ops.elementwise.records import activation, by_dtype
from generators.ops.elementwise.references import loose
from generators.ops.slots import floating, numeric, one_of, positive, same_as
from generators.ops.spec import (
    AttrRule,
    Call,
    OpSpec,
    Reference,
    ResultRule,
    Slot,
    Spelling,
)

Array = np.ndarray

# ---- references ---------------------------------------------------------------------------------------


def _softshrink(args: Sequence[Bounded], call: Call) -> Bounded:
    """Nearer to 0 by `lambd`, one rounding; 0 within. NaN is undetermined: "0 otherwise" (PyTorch's documentation,
    ONNX Shrink) makes it 0, PyTorch keeps it."""
    x, lambd = args[0], call.number("lambd")
    result = monotone(lambda v: np.where(np.abs(v) > lambd, v - np.copysign(lambd, v), 0.0), x, 0.5)
    return replace(result, error=np.where(np.isnan(x.value), np.inf, result.error))


def _jump(x: Bounded, passes: Callable[[Array], Array], instead: float) -> Bounded:
    """x where the test holds, else a constant; where it holds at one end of the interval only, the result may be
    either. NaN is undetermined, for the reason that softshrink gives."""
    with np.errstate(all="ignore"):
        through = passes(x.value)
        either = np.any([passes(end) != through for end in ends(x)], axis=0)
        value = np.where(through, x.value, instead)
        error = np.where(through, x.error, 0.0)
        error = np.where(either, np.abs(x.value - instead) + x.error, error)
    return Bounded(value, np.where(np.isnan(x.value) | x.undetermined, np.inf, error), x.dtype)


def _thresholded(args: Sequence[Bounded], call: Call) -> Bounded:
    alpha = call.number("alpha")
    return _jump(args[0], lambda v: v > alpha, 0.0)


def _hardshrink(args: Sequence[Bounded], call: Call) -> Bounded:
    """The interval may reach beyond the threshold on both sides: 0 is asked too."""
    lambd = call.number("lambd")
    result = _jump(args[0], lambda v: np.abs(v) > lambd, 0.0)
    within = holds_zero(args[0]) & ~args[0].undetermined
    return replace(result, error=np.where(within, np.abs(args[0].value) + args[0].error, result.error))


def _threshold(args: Sequence[Bounded], call: Call) -> Bounded:
    limit = call.number("threshold")
    return _jump(args[0], lambda v: v > limit, call.number("value"))


def _tanhshrink(args: Sequence[Bounded], call: Call) -> Bounded:
    """x - tanh(x), where the 5 ulp of tanh stay and the rest cancels."""
    x = args[0]
    p = PRECISION[x.dtype]
    result = monotone(lambda v: v - np.tanh(v), x, 0.5)
    with np.errstate(all="ignore"):
        own = (10 * p.unit + 4 * U64) * np.tanh(np.abs(x.value) + x.error)
        own += np.where((x.value == 0) & (x.error == 0), 0.0, p.tiny)
        own = np.where(np.isfinite(x.value), own, 0.0)
    return replace(result, error=result.error + own)


def _hardtanh(args: Sequence[Bounded], call: Call) -> Bounded:
    """clip: monotone, and nothing is rounded; NaN stays NaN."""
    x, low, high = args[0], call.number("min"), call.number("max")
    with np.errstate(all="ignore"):
        value = np.clip(x.value, low, high)
        error = spread(value, *(np.clip(end, low, high) for end in ends(x)))
        error = beside_zero(value, error, near_zero(x), x.dtype)
    return Bounded(value, np.where(x.undetermined, np.inf, error), x.dtype)


def _celu(args: Sequence[Bounded], call: Call) -> Bounded:
    """x above zero, below it alpha (exp(x / alpha) - 1), where the 3 ulp of exp leave an absolute 6 u alpha; expm1
    (3 ulp of a smaller number) needs less. alpha is a power of two: the quotient is exact, and so is the product."""
    x, alpha = args[0], call.number("alpha")
    with np.errstate(all="ignore"):
        result = monotone(lambda v: np.where(v > 0, v, alpha * np.expm1(v / alpha)), x, 1.5)
        result = loose(result, 6 * alpha, ends(x)[0] < 0)
        above = (ends(x)[0] > 0) & np.isfinite(result.error)  # no rounding, if no overflow
    return replace(result, error=np.where(above, x.error, result.error))


def _relu_squared(args: Sequence[Bounded], call: Call) -> Bounded:
    x = args[0]
    with np.errstate(all="ignore"):
        rest = Bounded(np.maximum(x.value, 0.0), np.where(x.value + x.error < 0, 0.0, x.error), x.dtype)
    return multiply(rest, rest)


# ---- records ------------------------------------------------------------------------------------------


def _piecewise(
    name: str,
    reference: Reference,
    attrs: Mapping[str, AttrRule],
    torch: str,
    tensorflow: Spelling,
    jax: Spelling,
    relax: Spelling,
    onnx: Spelling,
    operand: Slot | None = None,
    result: ResultRule | None = None,
) -> OpSpec:
    return OpSpec(
        name, "activation", (operand or floating(),), result or same_as(0), reference, attrs=attrs,
        torch=torch, tensorflow=tensorflow, jax=jax, relax=relax, onnx=onnx,
    )  # fmt: skip


def _celu_onnx(call: Call) -> str:
    """Celu is an operator of float."""
    return 'g.op("Celu", {0}, alpha={alpha})' if call.result.dtype == "float32" else "celu(g, {0}, {alpha}, {name})"


_ZERO = "relax.const(0, {dtype})"
_LAMBDA = one_of(0.5, 0.25, 2.0, 0.0)


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


def _scaled_elu(args: Sequence[Bounded], call: Call) -> Bounded:
    """By powers of two, which round nothing."""
    return _exponential_unit(args[0], call.number("alpha"), call.number("gamma"), 2.5)


def _elu(args: Sequence[Bounded], call: Call) -> Bounded:
    x = args[0]
    result = _exponential_unit(x, call.number("alpha"), 1.0, 1.5)
    above = (ends(x)[0] > 0) & np.isfinite(result.error)  # no rounding, if no overflow
    return replace(result, error=np.where(above, x.error, result.error))


def _tf_elu(call: Call) -> str:
    if call.attrs["alpha"] == 1.0:
        return "tf.nn.elu({0})"
    return "tf.where({0} > 0, {0}, {alpha} * tf.math.expm1(tf.minimum({0}, 0)))"


_SELU_SCALE = 1.0507009873554805
_SELU_ALPHA = 1.6732632423543772
_ONNX_ELU = "leaky(g, {0}, scaled_exponential(g, {0}, {alpha}, {name}), {name})"
_ONNX_SELU = (
    f'g.op("Mul", g.const({_SELU_SCALE}, {{name}}), '
    f"leaky(g, {{0}}, scaled_exponential(g, {{0}}, {_SELU_ALPHA}, {{name}}), {{name}}))"
)

relu = activation(
    "relu", _relu, "relu({0})", "tf.nn.relu({0})", "jax.nn.relu({0})", "relax.op.nn.relu({0})",
    by_dtype('g.op("Relu", {0})', int64='g.op("Max", {0}, g.const(0, "int64"))'), operands=(numeric(),),
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (
    relu,
    activation("relu6", _relu6, "relu6({0})", "tf.nn.relu6({0})", "jax.nn.relu6({0})",
               "relax.op.nn.relu6({0})", 'g.op("Clip", {0}, g.const(0, {name}), g.const(6, {name}))'),
    _piecewise(
        "relu_squared", _relu_squared, {}, "torch.square(torch.relu({0}))", "tf.square(tf.nn.relu({0}))",
        "jnp.square(jax.nn.relu({0}))", "relax.op.square(relax.op.nn.relu({0}))", "relu_squared(g, {0})",
    ),
    activation("elu", _elu, "elu({0}, alpha={alpha})", _tf_elu, "jax.nn.elu({0}, alpha={alpha})",
               "elu({0}, {alpha}, {dtype})",
               by_dtype('g.op("Elu", {0}, alpha={alpha})', float64=_ONNX_ELU),
               {"alpha": one_of(1.0, 0.5, 2.0, 0.1, 0.0)}),
    _piecewise(
        "celu", _celu, {"alpha": one_of(1.0, 0.5, 2.0, 4.0)}, "torch.nn.functional.celu({0}, alpha={alpha})",
        # the branch that is not taken must not overflow: its gradient is multiplied by 0
        "tf.where({0} > 0, {0}, {alpha} * tf.math.expm1(tf.where({0} > 0, tf.zeros_like({0}), {0}) / {alpha}))",
        "jax.nn.celu({0}, alpha={alpha})",
        "celu(bb, {0}, {alpha}, {dtype})", _celu_onnx, result=positive(same_as(0), "alpha"),
    ),
    activation("selu", lambda args, call: _exponential_unit(args[0], _SELU_ALPHA, _SELU_SCALE, 2.5),
               "selu({0})", "tf.nn.selu({0})", "jax.nn.selu({0})", "relax.op.nn.selu({0})",
               by_dtype('g.op("Selu", {0})', float64=_ONNX_SELU)),
    _piecewise(
        "threshold", _threshold, {"threshold": one_of(0.0, 0.5, -1.0, 2.0), "value": one_of(0.0, -1.0, 20.0, 0.5)},
        "torch.nn.functional.threshold({0}, {threshold}, {value})",
        "tf.where({0} > {threshold}, {0}, tf.constant({value}, {dtype}))",
        "jnp.where({0} > {threshold}, {0}, {value})",
        "relax.op.where(relax.op.greater({0}, relax.const({threshold}, {dtype})), {0}, relax.const({value}, {dtype}))",
        'g.op("Where", g.op("Greater", {0}, g.const({threshold}, {name})), {0}, g.const({value}, {name}))',
    ),
    _piecewise(
        "thresholded_relu", _thresholded, {"alpha": one_of(1.0, 0.5, 0.0, 2.0)},
        "torch.nn.functional.threshold({0}, {alpha}, 0.0)", "tf.where({0} > {alpha}, {0}, tf.zeros_like({0}))",
        "jnp.where({0} > {alpha}, {0}, 0)",
        f"relax.op.where(relax.op.greater({{0}}, relax.const({{alpha}}, {{dtype}})), {{0}}, {_ZERO})",
        by_dtype('g.op("ThresholdedRelu", {0}, alpha={alpha})',
                 float64='g.op("Where", g.op("Greater", {0}, g.const({alpha}, {name})), {0}, g.const(0, {name}))'),
    ),
    _piecewise(
        "scaled_elu", _scaled_elu, {"alpha": one_of(1.0, 0.5, 2.0), "gamma": one_of(2.0, 1.0, 0.5)},
        "torch.ops.aten.elu({0}, alpha={alpha}, scale={gamma})",
        "{gamma} * tf.where({0} > 0, {0}, {alpha} * tf.math.expm1(tf.minimum({0}, 0)))",
        "{gamma} * jax.nn.elu({0}, alpha={alpha})",
        "scaled_elu({0}, {alpha}, {gamma}, {dtype})",
        by_dtype('g.op("Selu", {0}, alpha={alpha}, gamma={gamma})',
                 float64=f'g.op("Mul", g.const({{gamma}}, {{name}}), {_ONNX_ELU})'),
    ),
    _piecewise(
        "hardtanh", _hardtanh, {"min": one_of(-1.0, 0.0, -2.5), "max": one_of(1.0, 0.0, 6.5)},
        "torch.nn.functional.hardtanh({0}, min_val={min}, max_val={max})", "tf.clip_by_value({0}, {min}, {max})",
        "jnp.clip({0}, {min}, {max})", "relax.op.minimum(relax.op.maximum({0}, relax.const({min}, {dtype})), "
        "relax.const({max}, {dtype}))", 'g.op("Min", g.op("Max", {0}, g.const({min}, {name})), g.const({max}, {name}))',
    ),
    _piecewise(
        "softshrink", _softshrink, {"lambd": _LAMBDA}, "torch.nn.functional.softshrink({0}, lambd={lambd})",
        "tf.where(tf.abs({0}) > {lambd}, {0} - tf.sign({0}) * {lambd}, tf.zeros_like({0}))",
        "jnp.where(jnp.abs({0}) > {lambd}, {0} - jnp.sign({0}) * {lambd}, 0)",
        "softshrink(bb, {0}, {lambd}, {dtype})", 'g.op("Shrink", {0}, bias={lambd}, lambd={lambd})',
    ),
    _piecewise(
        "hardshrink", _hardshrink, {"lambd": _LAMBDA}, "torch.nn.functional.hardshrink({0}, lambd={lambd})",
        "tf.where(tf.abs({0}) > {lambd}, {0}, tf.zeros_like({0}))", "jnp.where(jnp.abs({0}) > {lambd}, {0}, 0)",
        f"relax.op.where(relax.op.greater(relax.op.abs({{0}}), relax.const({{lambd}}, {{dtype}})), {{0}}, {_ZERO})",
        'g.op("Shrink", {0}, bias=0.0, lambd={lambd})',
    ),
    _piecewise(
        "tanhshrink", _tanhshrink, {}, "torch.nn.functional.tanhshrink({0})", "{0} - tf.tanh({0})",
        "{0} - jnp.tanh({0})", "relax.op.subtract({0}, relax.op.tanh({0}))", 'g.op("Sub", {0}, g.op("Tanh", {0}))',
    ),
)  # fmt: skip
