"""Trigonometric and hyperbolic functions, their inverses, sinc, and degrees."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import (
    PRECISION,
    SMALLEST,
    U64,
    Bounded,
    ends,
    holds_zero,
    monotone,
    multiply,
    rounded,
    settled,
    smooth,
)
from generators.ops.elementwise.records import FLOAT_PAIR, binary, numpy_unary, unary
from generators.ops.elementwise.references import constant, corners, exponential, ulps
from generators.ops.spec import Call, OpSpec, Reference, unsupported

Array = np.ndarray
Function = Callable[[Array], Array]


def _on_unit_interval(f: Function, ulps: float) -> Reference:
    """Monotone on [-1, 1]; NaN outside, unless the operand's interval reaches across."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x = args[0]
        result = monotone(f, x, ulps)
        with np.errstate(all="ignore"):
            reaches = np.isnan(result.value) & (x.error > 0) & (np.abs(x.value) - x.error <= 1)
        return replace(result, error=np.where(reaches, np.inf, result.error))

    return reference


def _wave(f: Function, slope: Function) -> Reference:
    """sin and cos: |f''| <= 1, and no two values are further apart than 2; 4 ulp."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x = args[0]
        result = smooth(f, slope, 1.0, x, 4)
        with np.errstate(all="ignore"):
            most = (1 + np.abs(result.value)) * (1 + 8 * PRECISION[x.dtype].unit)
            known = np.isfinite(x.error) & np.isfinite(result.value)
            error = np.where(known, np.minimum(result.error, most), result.error)
        return replace(result, error=error)

    return reference


def _tan(args: Sequence[Bounded], call: Call) -> Bounded:
    """Monotone between poles; the distance to the nearest one is asin |cos x|. 5 ulp."""
    x = args[0]
    result = monotone(np.tan, x, 5)
    with np.errstate(all="ignore"):
        pole = (x.error > 0) & ~(np.arcsin(np.abs(np.cos(x.value))) > x.error)
    return replace(result, error=np.where(pole, np.inf, result.error))


def _atan2(args: Sequence[Bounded], call: Call) -> Bounded:
    """The angle of the point (x, y); 6 ulp. Undetermined where the rectangle of errors holds the origin or
    meets the cut along the negative x axis; on the cut the sign of a zero y decides, at the origin x's too."""
    y, x = args
    with np.errstate(all="ignore"):
        value = np.arctan2(y.value, x.value)
        error = corners(np.arctan2, y, x, value)
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


atan2 = binary(
    "atan2", FLOAT_PAIR, _atan2, signed_zero=True,
    torch="torch.atan2({0}, {1})", tensorflow="tf.math.atan2({0}, {1})", jax="jnp.arctan2({0}, {1})",
    relax="relax.op.atan2({0}, {1})", onnx=unsupported("ONNX has no Atan2"),
)  # fmt: skip


def _sinc(args: Sequence[Bounded], call: Call) -> Bounded:
    """sin(pi x) / (pi x), 1 at 0. pi and the product are rounded: an argument off by 2 u |pi x| moves the result by
    2 u, and no two sines are further apart than 2. |sinc'| < 1.4. Sine 4 ulp, division 2.5, the divisor 1.
    At infinity NaN or the limit, as is where the product overflows: undetermined."""
    x, unit = args[0], PRECISION[args[0].dtype].unit + U64
    with np.errstate(all="ignore"):
        size = np.abs(x.value)
        value = np.sinc(x.value)
        most = 2 / (np.pi * np.maximum(size - x.error, 0.0)) * (1 + 16 * unit)
        error = np.minimum(1.4 * x.error + np.where(size > 0, 2 * unit, 0.0), most)
        error = np.where(x.value == 0, 1.4 * x.error, error)
        far = ~(size + x.error < PRECISION[x.dtype].largest / 4) & ~np.isnan(x.value)
        result = rounded(value, np.where(far | x.undetermined, np.inf, error), x.dtype, 7.5)
    one = (x.value == 0) & (x.error == 0)
    return replace(result, error=np.where(one, 0.0, result.error))


def _conversion(name: str, factor: float) -> OpSpec:
    return numpy_unary(
        name, lambda args, call: multiply(args[0], constant(factor, args[0])), signed_zero=True,
        relax=f"relax.op.multiply({{0}}, relax.const({factor!r}, {{dtype}}))",
        onnx=f'g.op("Mul", {{0}}, g.const({factor!r}, {{name}}))',
    )  # fmt: skip


# C Annex F.10 gives all of these a zero of the operand's sign for a zero, unless signed_zero=False (f(0) != 0,
# or a zero that comes from elsewhere than a zero)
OPERATORS: tuple[OpSpec, ...] = (
    unary("sin", _wave(np.sin, np.cos), "Sin"),
    unary("cos", _wave(np.cos, np.sin), "Cos", signed_zero=False),
    unary("tan", _tan, "Tan"),
    unary("asin", _on_unit_interval(np.arcsin, 4), "Asin", jax="jnp.arcsin"),
    unary("acos", _on_unit_interval(np.arccos, 4), "Acos", jax="jnp.arccos", signed_zero=False),
    unary("atan", ulps(np.arctan, 5), "Atan", jax="jnp.arctan"),
    atan2,
    unary("sinh", exponential(np.sinh, 4), "Sinh"),
    unary("cosh", exponential(np.cosh, 4), "Cosh", signed_zero=False),
    unary("tanh", ulps(np.tanh, 5), "Tanh"),
    unary("asinh", ulps(np.arcsinh, 4), "Asinh", jax="jnp.arcsinh"),
    unary("acosh", ulps(np.arccosh, 4), "Acosh", jax="jnp.arccosh", signed_zero=False),
    unary("atanh", _on_unit_interval(np.arctanh, 5), "Atanh", jax="jnp.arctanh"),
    numpy_unary("sinc", _sinc, relax="sinc(bb, {0}, {dtype})", onnx="sinc(g, {0}, {name})"),
    _conversion("deg2rad", math.pi / 180),
    _conversion("rad2deg", 180 / math.pi),
)  # fmt: skip
