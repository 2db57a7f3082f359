"""Elementwise arithmetic and logic of two operands, which broadcast against each other both ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from generators.bounds.bounded import (
    PRECISION,
    SMALLEST,
    Bounded,
    add,
    divide,
    ends,
    exact,
    holds_zero,
    multiply,
    rounded,
    settled,
    spread,
)
from generators.ops.slots import boolean, broadcast, broadcastable, floating, numeric
from generators.ops.spec import Call, OpSpec, Reference, Slot, Spelling, unsupported

Array = np.ndarray

NUMERIC_PAIR = (numeric(), broadcastable(0))
FLOAT_PAIR = (floating(), broadcastable(0))


def wrapping(f: Callable[[Array, Array], Array], x: Bounded, y: Bounded) -> Bounded:
    """f of integers or booleans in their own dtype: overflow wraps, nothing is rounded."""
    with np.errstate(all="ignore"):
        return exact(f(x.value, y.value), x.dtype, x.undetermined | y.undetermined)


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


def _corners(f: Callable[[Array, Array], Array], x: Bounded, y: Bounded, value: Array) -> Array:
    """The spread over a rectangle of an f that is monotone in each operand (in a direction that may depend on
    the other one): its extremes lie at corners. NaN at a corner of a number is infinitely far."""
    (x_low, x_high), (y_low, y_high) = ends(x), ends(y)
    return spread(value, f(x_low, y_low), f(x_low, y_high), f(x_high, y_low), f(x_high, y_high))


def _pow(args: Sequence[Bounded], call: Call) -> Bounded:
    """C Annex F.10.4.4 in every special case (pow(x, 0) = pow(1, y) = 1 even for NaN); 16 ulp.

    x^y is monotone in x on each side of 0, and in y. A negative base takes an exact exponent: an inexact one
    is an integer for some back ends, and for others a hair beside it, where the result is NaN.
    np.power, unlike np.float_power, takes the root where one exponent, 0.5, goes with all: NaN of -inf, -0 of -0."""
    x, y = args
    with np.errstate(all="ignore"):
        value = np.float_power(x.value, y.value)
        error = _corners(np.float_power, x, y, value)
        low, high = ends(x)
        across = (low < 0) & (high > 0)  # the turning point, or the pole
        at_zero = np.where(across, 0.0, x.value)
        y_low, y_high = ends(y)
        error = np.maximum(error, spread(value, np.float_power(at_zero, y_low), np.float_power(at_zero, y_high)))
        error = np.where((low < 0) & (y.error > 0), np.inf, error)
        odd = np.isfinite(y.value) & (np.fmod(y.value, 2.0) != 0) & (np.floor(y.value) == y.value)
        unsigned = np.zeros(np.shape(value), bool) if x.zero_sign else (x.value == 0) & odd
        error = np.where((x.value == 0) & (y.value < 0) & ((y.error > 0) | unsigned), np.inf, error)
        underflow = (value == 0) & (x.value != 0) & np.isfinite(x.value) & np.isfinite(y.value)
        error += np.where(underflow, PRECISION[x.dtype].tiny, 0.0)
        # NaN operands: certain unless the other one may make 1 of them
        loose_one = (x.error > 0) & (np.abs(x.value - 1.0) <= x.error)
        error = np.where(np.isnan(y.value) & loose_one | np.isnan(x.value) & holds_zero(y), np.inf, error)
        error = np.where(x.undetermined | y.undetermined, np.inf, error)
        one = (x.value == 1) & (x.error == 0) | (y.value == 0) & (y.error == 0)
        value, error = np.where(one, 1.0, value), np.where(one, 0.0, error)
        sign = (value == 0) & (error == 0) & (x.value == 0) & (y.error > 0)
        result = rounded(value, np.where(sign, SMALLEST, error), x.dtype, 16)
        return Bounded(result.value, np.where(one, 0.0, result.error), x.dtype)


def _atan2(args: Sequence[Bounded], call: Call) -> Bounded:
    """The angle of the point (x, y); 6 ulp. Undetermined where the rectangle of errors holds the origin or
    meets the cut along the negative x axis; on the cut the sign of a zero y decides, at the origin x's too."""
    y, x = args
    with np.errstate(all="ignore"):
        value = np.arctan2(y.value, x.value)
        error = _corners(np.arctan2, y, x, value)
        x_low, x_high = ends(x)
        loose = holds_zero(y)
        cut = loose & (x_low <= 0)
        zero = (y.value == 0) & (y.error == 0)
        if not y.zero_sign:
            cut |= zero & (x_low < 0)
        if not (x.zero_sign and y.zero_sign):
            cut |= zero & (x_low <= 0) & (x_high >= 0)
        error = np.where(cut | zero & (x_low <= 0) & (x_high >= 0) & (x.error > 0), np.inf, error)
        # y / x may underflow on the way
        error += np.where((value == 0) & (y.value != 0) & np.isfinite(x.value), PRECISION[x.dtype].tiny, 0.0)
        error = np.where((value == 0) & (error == 0) & loose, SMALLEST, error)
    return rounded(value, settled(x, y, error), x.dtype, 6)


def logic(f: Callable[[Array, Array], Array], deciding: bool | None) -> Reference:
    """Three-valued logic: a certain operand equal to `deciding` decides alone."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x, y = args
        unknown = x.undetermined | y.undetermined
        if deciding is not None:
            certain = (~x.undetermined & (x.value == deciding)) | (~y.undetermined & (y.value == deciding))
            return exact(np.where(certain, deciding, f(x.value, y.value)), "bool", unknown & ~certain)
        return exact(f(x.value, y.value), "bool", unknown)

    return reference


def _binary(
    name: str,
    operands: tuple[Slot, ...],
    reference: Reference,
    *,
    torch: Spelling,
    tensorflow: Spelling,
    jax: Spelling,
    relax: Spelling,
    onnx: Spelling,
    signed_zero: bool = False,
) -> OpSpec:
    return OpSpec(
        name, "binary", operands, broadcast(), reference,
        torch=torch, tensorflow=tensorflow, jax=jax, relax=relax, onnx=onnx, signed_zero=signed_zero,
    )  # fmt: skip


add_ = _binary(
    "add", NUMERIC_PAIR, _arithmetic(np.add, add), signed_zero=True,
    torch="torch.add({0}, {1})", tensorflow="tf.add({0}, {1})", jax="jnp.add({0}, {1})",
    relax="relax.op.add({0}, {1})", onnx='g.op("Add", {0}, {1})',
)  # fmt: skip

sub = _binary(
    "sub", NUMERIC_PAIR, _arithmetic(np.subtract, _subtract), signed_zero=True,
    torch="torch.sub({0}, {1})", tensorflow="tf.subtract({0}, {1})", jax="jnp.subtract({0}, {1})",
    relax="relax.op.subtract({0}, {1})", onnx='g.op("Sub", {0}, {1})',
)  # fmt: skip

mul = _binary(
    "mul", NUMERIC_PAIR, _arithmetic(np.multiply, multiply), signed_zero=True,
    torch="torch.mul({0}, {1})", tensorflow="tf.multiply({0}, {1})", jax="jnp.multiply({0}, {1})",
    relax="relax.op.multiply({0}, {1})", onnx='g.op("Mul", {0}, {1})',
)  # fmt: skip

div = _binary(
    "div", FLOAT_PAIR, lambda args, call: divide(args[0], args[1]), signed_zero=True,
    torch="torch.div({0}, {1})", tensorflow="tf.divide({0}, {1})", jax="jnp.divide({0}, {1})",
    relax="relax.op.divide({0}, {1})", onnx='g.op("Div", {0}, {1})',
)  # fmt: skip

pow_ = _binary(
    "pow", FLOAT_PAIR, _pow, signed_zero=True,
    torch="torch.pow({0}, {1})", tensorflow="tf.pow({0}, {1})", jax="jnp.power({0}, {1})",
    relax="relax.op.power({0}, {1})", onnx='g.op("Pow", {0}, {1})',
)  # fmt: skip

atan2 = _binary(
    "atan2", FLOAT_PAIR, _atan2, signed_zero=True,
    torch="torch.atan2({0}, {1})", tensorflow="tf.math.atan2({0}, {1})", jax="jnp.arctan2({0}, {1})",
    relax="relax.op.atan2({0}, {1})", onnx=unsupported("ONNX has no Atan2"),
)  # fmt: skip

squared_difference = _binary(
    "squared_difference", NUMERIC_PAIR, _squared_difference,
    torch="torch.square(torch.sub({0}, {1}))", tensorflow="tf.math.squared_difference({0}, {1})",
    jax="jnp.square(jnp.subtract({0}, {1}))",
    relax="relax.op.square(relax.op.subtract({0}, {1}))", onnx="squared_difference(g, {0}, {1})",
)  # fmt: skip


def _logical(name: str, f: Callable[[Array, Array], Array], deciding: bool | None, onnx: str) -> OpSpec:
    return _binary(
        name, (boolean(), broadcastable(0)), logic(f, deciding),
        torch=f"torch.{name}({{0}}, {{1}})", tensorflow=f"tf.math.{name}({{0}}, {{1}})",
        jax=f"jnp.{name}({{0}}, {{1}})", relax=f"relax.op.{name}({{0}}, {{1}})",
        onnx=f'g.op("{onnx}", {{0}}, {{1}})',
    )  # fmt: skip


BINARY: tuple[OpSpec, ...] = (
    add_,
    sub,
    mul,
    div,
    pow_,
    atan2,
    squared_difference,
    _logical("logical_and", np.logical_and, False, "And"),
    _logical("logical_or", np.logical_or, True, "Or"),
    _logical("logical_xor", np.logical_xor, None, "Xor"),
)
