"""The formulas that frameworks write down for slopes of elementwise functions, with running error bounds: PyTorch's
`derivatives.yaml`, TensorFlow's `math_grad.py` and `nn_grad.py`, JAX' `lax.py` and `nn/functions.py`, TVM's
`_op_gradient.py`, in the releases that docs/gradients.md names. TensorFlow's were compared line by line with its 2.21:
its functions of one kernel (SqrtGrad, TanhGrad, …) are those of Eigen, and gelu, silu, log2, hypot and logaddexp are
composed by its Python code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log, pi, sqrt

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded, gamma
from generators.ops import OPS
from generators.ops.spec import Call
from oracles.derivatives.rounding.running import Number, constant, exactly, of_one_number

Array = np.ndarray

Formula = Callable[[Sequence[Number], Number, int, Call], Sequence[Number] | None]
"""Operands, result of the operator, position of the operand, call -> the ways in which the slope is computed, but for
its sign; None where it is not known."""


def sigmoid_slope(y: Number) -> Number:
    """y (1 - y) of the sigmoid y."""
    return of_one_number(y, lambda v: v * (1.0 - v), lambda v: 1 - 2 * v, 2.0)


def tanh_slopes(y: Number) -> tuple[Number, Number]:
    """1 - y y of the tanh y; XLA multiplies (1 + y) (1 - y)."""
    slope = lambda v: 2 * v  # noqa: E731
    return (
        of_one_number(y, lambda v: 1.0 - v * v, slope, 2.0),
        of_one_number(y, lambda v: (1.0 + v) * (1.0 - v), slope, 2.0),
    )


def _exp2(x: Sequence[Number], y: Number, _: int, call: Call) -> Sequence[Number]:
    two = constant(2.0, y.value.dtype)
    return y * log(2), two.f("log") * y


def _logarithm(base: float) -> Formula:
    def slopes(x: Sequence[Number], y: Number, _: int, call: Call) -> Sequence[Number]:
        scale = constant(base, y.value.dtype).f("log")  # TensorFlow and JAX compute it
        return 1.0 / (x[0] * log(base)), (1.0 / x[0]) / scale, (1.0 / scale) / x[0]

    return slopes


def _tan(x: Sequence[Number], y: Number, _: int, call: Call) -> Sequence[Number]:
    secant = 1.0 / x[0].f("cos")
    return 1.0 + y * y, secant * secant


def _inside_one(x: Sequence[Number], y: Number, _: int, call: Call) -> Sequence[Number]:
    square = 1.0 - x[0] * x[0]
    return square.f("rsqrt"), 1.0 / square.f("sqrt")


def _lerp(x: Sequence[Number], y: Number, position: int, call: Call) -> Sequence[Number]:
    """x + w (z - x): by x, 1 - w, or w taken from 1, each summed where x was broadcast."""
    first, last, w = x
    if position == 2:
        return (last - first,)
    if position == 1:
        return (w,)
    dtype, size = y.value.dtype, np.abs(w.value.value)
    apart = gamma(max(y.value.value.size // max(first.value.value.size, 1), 1), PRECISION[dtype].unit)
    taken = Number(Bounded(w.value.value, w.value.error + 2 * apart * size, dtype))
    return 1.0 - w, 1.0 - taken


def _x_log_y(inner: float) -> Formula:
    """x log(y + inner): log y, and x / y."""

    def slopes(x: Sequence[Number], y: Number, position: int, call: Call) -> Sequence[Number]:
        if position == 0:
            return (x[1].f("log1p" if inner else "log"),)
        below = x[1] + inner if inner else x[1]
        return x[0] / below, x[0] * (1.0 / below)

    return slopes


def _erfinv(x: Sequence[Number], y: Number, _: int, call: Call) -> Sequence[Number]:
    return ((y * y).f("exp") * (sqrt(pi) / 2),)


def _division(x: Sequence[Number], y: Number, position: int, call: Call) -> Sequence[Number]:
    a, b = x
    if position == 0:
        return (1.0 / b,)
    return a / (b * b), (a / b) / b, a * (1.0 / (b * b)), y / b


def _added_quotient(x: Sequence[Number], y: Number, position: int, call: Call) -> Sequence[Number]:
    """By the divisor of x + value b / c: as of a quotient, whose step may overflow."""
    return _division((x[1] * call.number("value"), x[2]), (x[1] / x[2]) * call.number("value"), 1, call)


def _atan2(x: Sequence[Number], y: Number, position: int, call: Call) -> Sequence[Number]:
    square, other = x[0] * x[0] + x[1] * x[1], x[1 - position]
    return other / square, other * (1.0 / square)


def _hypot(x: Sequence[Number], y: Number, position: int, call: Call) -> Sequence[Number]:
    return x[position] / y, (0.5 / y) * (2.0 * x[position])


def _logaddexp(x: Sequence[Number], y: Number, position: int, call: Call) -> Sequence[Number]:
    a, b = x[position], x[1 - position]
    e = (-abs(a - b)).f("exp")
    part = e * (1.0 / (1.0 + e))
    return 1.0 / (1.0 + (b - a).f("exp")), (a - y).f("exp"), part, 1.0 - part


def _left_over(quotient: str) -> Formula:
    """1, and the quotient that is rounded to a whole number. Steps that are longer than the divisor see another slope:
    by x = 2^31 a step of 2^21 moves the remainder by 1 + 2^-23 by nothing."""

    def slopes(x: Sequence[Number], y: Number, position: int, call: Call) -> Sequence[Number]:
        if position == 0:
            return (exactly(np.ones(x[0].shape), y.value.dtype),)
        return (Number(OPS[quotient].reference([one.value for one in x], call)),)

    return slopes


SLOPES: dict[str, Formula] = {
    "exp": lambda x, y, *_: (y,),
    "exp2": _exp2,
    "expm1": lambda x, y, *_: (y + 1.0, x[0].f("exp")),
    "log": lambda x, y, *_: (1.0 / x[0],),
    "log1p": lambda x, y, *_: (1.0 / (x[0] + 1.0),),
    "log2": _logarithm(2.0),
    "log10": _logarithm(10.0),
    "sqrt": lambda x, y, *_: (0.5 / y, 0.5 * x[0].f("rsqrt")),
    "rsqrt": lambda x, y, *_: (0.5 * ((y * y) * y), 0.5 * (y / x[0])),
    "reciprocal": lambda x, y, *_: (y * y, 1.0 / (x[0] * x[0])),
    "square": lambda x, y, *_: (2.0 * x[0],),
    "squared_difference": lambda x, y, *_: (2.0 * (x[0] - x[1]),),
    "sin": lambda x, y, *_: (x[0].f("cos"),),
    "cos": lambda x, y, *_: (x[0].f("sin"),),
    "tan": _tan,
    "asin": _inside_one,
    "acos": _inside_one,
    "atan": lambda x, y, *_: (1.0 / (1.0 + x[0] * x[0]),),
    "sinh": lambda x, y, *_: (x[0].f("cosh"),),
    "cosh": lambda x, y, *_: (x[0].f("sinh"),),
    "tanh": lambda x, y, *_: tanh_slopes(y),
    "asinh": lambda x, y, *_: ((x[0] * x[0] + 1.0).f("rsqrt"), 1.0 / y.f("cosh")),
    "acosh": lambda x, y, *_: ((x[0] * x[0] - 1.0).f("rsqrt"), 1.0 / y.f("sinh")),
    "atanh": lambda x, y, *_: (1.0 / (1.0 - x[0] * x[0]), (1.0 / (1.0 + x[0])) * (1.0 / (1.0 - x[0]))),
    "erf": lambda x, y, *_: ((-(x[0] * x[0])).f("exp") * (2 / sqrt(pi)),),
    "erfc": lambda x, y, *_: ((-(x[0] * x[0])).f("exp") * (2 / sqrt(pi)),),
    "sigmoid": lambda x, y, *_: (sigmoid_slope(y),),
    "lgamma": lambda x, y, *_: (x[0].f("digamma"),),
    "log_beta": lambda x, y, i, *_: (x[i].f("digamma") - (x[0] + x[1]).f("digamma"),),
    "fmod": _left_over("trunc_divide"),
    "remainder": _left_over("floor_divide"),
    "div": _division,
    "addcdiv": _added_quotient,
    "atan2": _atan2,
    "hypot": _hypot,
    "logaddexp": _logaddexp,
    "lerp": _lerp,
    "xlogy": _x_log_y(0.0),
    "xlog1py": _x_log_y(1.0),
    "erfinv": _erfinv,
    "xdivy": _division,
    "inv": lambda x, y, *_: (y * y, 1.0 / (x[0] * x[0])),
    "entr": lambda x, y, *_: (x[0].f("log") + 1.0,),
}
"""By operator. Signs are left out: they are exact."""
