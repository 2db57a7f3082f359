"""Elementwise arithmetic: add to div, negatives and magnitudes, squares, and what is composed of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded, add, divide, exact, multiply, rounded, settled, spread
from generators.bounds.sums import scaled_product
from generators.ops.elementwise.records import FLOAT_PAIR, NUMERIC_PAIR, binary, numpy_binary, unary
from generators.ops.elementwise.references import certainly_nan, exactly, spread_out, unrounded, wrapping
from generators.ops.slots import broadcastable, floating, numeric, one_of, same_as
from generators.ops.spec import Call, OpSpec, Reference

Array = np.ndarray


def _arithmetic(f: Callable[[Array, Array], Array], bound: Callable[[Bounded, Bounded], Bounded]) -> Reference:
    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x, y = args
        return bound(x, y) if x.floating else wrapping(f, x, y)

    return reference


def _subtract(x: Bounded, y: Bounded) -> Bounded:
    return add(x, y, -1.0)


def _squared_difference(args: Sequence[Bounded], call: Call) -> Bounded:
    """The difference is rounded, then its square: d^2 moves by (2 |d| + e) e over [d - e, d + e]."""
    x, y = args
    if not x.floating:
        with np.errstate(all="ignore"):
            difference = x.value - y.value
            return exact(difference * difference, x.dtype, x.undetermined | y.undetermined)
    d = add(x, y, -1.0)
    with np.errstate(all="ignore"):
        value = d.value * d.value
        error = np.where(np.isfinite(d.value), d.error * (2 * np.abs(d.value) + d.error), 0.0)
        error += np.where((value == 0) & (d.value != 0), PRECISION[x.dtype].tiny, 0.0)
    return rounded(value, settled(d, d, error), x.dtype)


add_ = binary(
    "add", NUMERIC_PAIR, _arithmetic(np.add, add), signed_zero=True,
    torch="torch.add({0}, {1})", tensorflow="tf.add({0}, {1})", jax="jnp.add({0}, {1})",
    relax="relax.op.add({0}, {1})", onnx='g.op("Add", {0}, {1})',
)  # fmt: skip

sub = binary(
    "sub", NUMERIC_PAIR, _arithmetic(np.subtract, _subtract), signed_zero=True,
    torch="torch.sub({0}, {1})", tensorflow="tf.subtract({0}, {1})", jax="jnp.subtract({0}, {1})",
    relax="relax.op.subtract({0}, {1})", onnx='g.op("Sub", {0}, {1})',
)  # fmt: skip

mul = binary(
    "mul", NUMERIC_PAIR, _arithmetic(np.multiply, multiply), signed_zero=True,
    torch="torch.mul({0}, {1})", tensorflow="tf.multiply({0}, {1})", jax="jnp.multiply({0}, {1})",
    relax="relax.op.multiply({0}, {1})", onnx='g.op("Mul", {0}, {1})',
)  # fmt: skip

div = binary(
    "div", FLOAT_PAIR, lambda args, call: divide(args[0], args[1]), signed_zero=True,
    torch="torch.div({0}, {1})", tensorflow="tf.divide({0}, {1})", jax="jnp.divide({0}, {1})",
    relax="relax.op.divide({0}, {1})", onnx='g.op("Div", {0}, {1})',
)  # fmt: skip

squared_difference = binary(
    "squared_difference", NUMERIC_PAIR, _squared_difference,
    torch="torch.square(torch.sub({0}, {1}))", tensorflow="tf.math.squared_difference({0}, {1})",
    jax="jnp.square(jnp.subtract({0}, {1}))",
    relax="relax.op.square(relax.op.subtract({0}, {1}))", onnx="squared_difference(g, {0}, {1})",
)  # fmt: skip


def _lerp(args: Sequence[Bounded], call: Call) -> Bounded:
    """x + w (y - x) as documented, or y - (y - x) (1 - w), which PyTorch takes for w >= 1/2."""
    x, y, w = (spread_out(a, call) for a in args)
    difference = add(y, x, -1.0)
    first = add(x, multiply(w, difference))
    second = add(y, multiply(difference, add(exactly(1.0, w), w, -1.0)), -1.0)
    with np.errstate(all="ignore"):
        error = np.maximum(first.error, second.error + spread(first.value, second.value))
    return replace(first, error=error)


def _addcmul(args: Sequence[Bounded], call: Call) -> Bounded:
    """x + value y z, in any order of the products. `value` is a power of two, so that it costs no rounding; a
    product of numbers that overflows in one order need not in another, nor with a fused addition."""
    x, y, z = args
    product, number = scaled_product(y, z), call.number("value")
    with np.errstate(all="ignore"):
        result = add(x, scaled_product(product, exactly(number, product)))
        large = PRECISION[x.dtype].largest
        early, late = (np.isfinite(one.value) & (np.abs(number * one.value) > large) for one in (y, z))
        result = replace(result, error=np.where(early | late, np.inf, result.error))
        nan = certainly_nan(x) | certainly_nan(y) | certainly_nan(z)
    return replace(result, value=np.where(nan, np.nan, result.value), error=np.where(nan, 0.0, result.error))


_THREE = (floating(), broadcastable(0), broadcastable(0))


def _neg(args: Sequence[Bounded], call: Call) -> Bounded:
    x = args[0]
    with np.errstate(all="ignore"):
        return Bounded(-x.value, x.error, x.dtype)


def _abs(args: Sequence[Bounded], call: Call) -> Bounded:
    """Never further from |x| than the operand is from x; the least integer is its own magnitude (it wraps)."""
    x = args[0]
    with np.errstate(all="ignore"):
        return Bounded(np.abs(x.value), x.error, x.dtype)


def _sign(args: Sequence[Bounded], call: Call) -> Bounded:
    """NaN is undetermined: PyTorch documents no value for it (and gives 0), numpy, TF and JAX give NaN."""
    x = args[0]
    if not x.floating:
        return exact(np.sign(x.value), x.dtype, x.undetermined)
    result = unrounded(np.sign, x)
    return replace(result, error=np.where(np.isnan(x.value), np.inf, result.error))


def _square(args: Sequence[Bounded], call: Call) -> Bounded:
    """x^2 moves by (2 |x| + e) e over [x - e, x + e]."""
    x = args[0]
    with np.errstate(all="ignore"):
        value = x.value * x.value
        if not x.floating:
            return exact(value, x.dtype, x.undetermined)
        error = np.where(x.error == 0, 0.0, x.error * (2 * np.abs(x.value) + x.error))
        error += np.where((value == 0) & (x.value != 0), PRECISION[x.dtype].tiny, 0.0)
        return rounded(value, np.where(np.isnan(error), np.inf, error), x.dtype)


def _reciprocal(args: Sequence[Bounded], call: Call) -> Bounded:
    x = args[0]
    one = Bounded(np.ones(x.value.shape), np.zeros(x.value.shape), x.dtype, zero_sign=True)
    return divide(one, x)


OPERATORS: tuple[OpSpec, ...] = (
    add_,
    sub,
    mul,
    div,
    unary("neg", _neg, "Neg", tensorflow="tf.negative", jax="jnp.negative", relax="relax.op.negative",
          operand=numeric()),
    OpSpec(
        "positive", "numerals", (numeric(),), same_as(0), lambda args, call: args[0], signed_zero=True,
        torch="torch.positive({0})", tensorflow="tf.experimental.numpy.positive({0})", jax="jnp.positive({0})",
        relax="{0}", onnx='g.op("Identity", {0})',  # as converters write it
    ),
    unary("abs", _abs, "Abs", operand=numeric()),
    unary("sign", _sign, "Sign", operand=numeric(), signed_zero=False),
    unary("square", _square, 'g.op("Mul", {0}, {0})', operand=numeric()),
    unary("reciprocal", _reciprocal, "Reciprocal", relax="relax.op.divide(relax.const(1.0, {name}), {0})"),
    squared_difference,
    numpy_binary(
        "lerp", _lerp, operands=_THREE, torch="torch.lerp({0}, {1}, {2})",
        tensorflow="{0} + {2} * ({1} - {0})", jax="{0} + {2} * ({1} - {0})",
        relax="relax.op.add({0}, relax.op.multiply({2}, relax.op.subtract({1}, {0})))",
        onnx='g.op("Add", {0}, g.op("Mul", {2}, g.op("Sub", {1}, {0})))',
    ),
    numpy_binary(
        "addcmul", _addcmul, operands=_THREE, attrs={"value": one_of(1.0, 0.5, -1.0, 2.0)},
        torch="torch.addcmul({0}, {1}, {2}, value={value})",
        tensorflow="{0} + {value} * {1} * {2}", jax="{0} + {value} * {1} * {2}",
        relax="relax.op.add({0}, relax.op.multiply(relax.op.multiply(relax.const({value}, {dtype}), {1}), {2}))",
        onnx='g.op("Add", {0}, g.op("Mul", g.op("Mul", g.const({value}, {name}), {1}), {2}))',
    ),
)  # fmt: skip
