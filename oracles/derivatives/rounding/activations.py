"""The formulas that frameworks write down for slopes of activation functions, with running error bounds: those of
PyTorch's kernels (`aten/src/ATen/native/cpu/Activation.cpp`), of TensorFlow's (`relu_op_functor.h`: EluGrad, SeluGrad)
and `nn_impl.py`, of JAX' `nn/functions.py`, and of compositions by the chain rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi, sqrt

import numpy as np

from generators.bounds.bounded import Bounded
from generators.ops.spec import Call
from oracles.derivatives.rounding.elementwise import Formula, sigmoid_slope, tanh_slopes
from oracles.derivatives.rounding.running import Number, chosen, constant, exactly

Array = np.ndarray


def _softplus(x: Sequence[Number], y: Number, _: int, call: Call) -> Sequence[Number]:
    grown = x[0].at_most(20.0).f("exp")  # PyTorch's threshold
    return grown / (grown + 1.0), 1.0 / ((-x[0]).f("exp") + 1.0), (x[0] - y).f("exp"), x[0].f("sigmoid")


def _softplus_scaled(x: Sequence[Number], y: Number, _: int, call: Call) -> Sequence[Number]:
    """1 beyond the threshold; its factors by beta are exact."""
    limit = call.number("threshold")
    v = x[0] * call.number("beta")
    beyond, flat = v.value.value > limit, exactly(np.ones(v.value.value.shape), x[0].value.dtype)
    grown = v.at_most(limit).f("exp")
    ways = (grown / (grown + 1.0), 1.0 / ((-v).f("exp") + 1.0), (v - v.f("softplus")).f("exp"), v.f("sigmoid"))
    return [chosen(beyond, flat, way) for way in ways]


def _log_sigmoid(x: Sequence[Number], y: Number, _: int, call: Call) -> Sequence[Number]:
    shrunk = (-abs(x[0])).f("exp")
    part = shrunk / (1.0 + shrunk)
    chosen = Bounded(part.value.value, np.where(x[0].value.value < 0, (1.0 - part).value.error, part.value.error), "")
    return Number(chosen), (-x[0]).f("sigmoid"), (y - x[0]).f("exp")


def _silu(x: Sequence[Number], y: Number, _: int, call: Call) -> Sequence[Number]:
    s = x[0].f("sigmoid")
    rest = 1.0 - s
    return s * (1.0 + x[0] * rest), s + y * rest, s + x[0] * (s * rest)


def _gelu(x: Sequence[Number], y: Number, _: int, call: Call) -> Sequence[Number]:
    u = x[0] * sqrt(0.5)
    density = (-(0.5 * (x[0] * x[0]))).f("exp") * (1 / sqrt(2 * pi))
    composed = ((0.5 * x[0]) * ((-(u * u)).f("exp") * (2 / sqrt(pi)))) * sqrt(0.5)
    return (
        0.5 * (1.0 + u.f("erf")) + x[0] * density,
        0.5 * (-u).f("erfc") + composed,
        0.5 * (1.0 + u.f("erf")) + composed,
    )


def _softsign(x: Sequence[Number], y: Number, _: int, call: Call) -> Sequence[Number]:
    d = 1.0 + abs(x[0])
    return 1.0 / (d * d), 1.0 / d - abs(x[0]) / (d * d), 1.0 / d - abs(y) / d


def _exponential(alpha: Callable[[Call], float], scale: Callable[[Call], float], inner: bool = False) -> Formula:
    """scale x above zero, scale alpha (exp(x / b) - 1) below, b = alpha where it is `inner` (CELU), else 1: PyTorch has
    the exponential, TensorFlow and JAX add one to expm1, or alpha to the result."""

    def slopes(x: Sequence[Number], y: Number, _: int, call: Call) -> Sequence[Number]:
        a, s = alpha(call), scale(call)
        x_ = x[0].map(lambda v: np.minimum(v, 0.0))
        x_ = x_ * (1 / a) if inner else x_
        factor = s if inner else s * a
        above = x[0].value.value > 0
        flat = constant(s, y.value.dtype)
        ways = [x_.f("exp") * factor, (x_.f("expm1") + 1.0) * factor, ((x_.f("expm1") + 1.0) * a) * s]
        if inner:
            ways.pop()
        else:
            ways.append(chosen(above, flat, y + s * a))
        return [chosen(above, flat, way) for way in ways]

    return slopes


def _gelu_tanh(x: Sequence[Number], y: Number, _: int, call: Call) -> Sequence[Number]:
    v = x[0]
    square, scale = v * v, sqrt(2 / pi)
    tanh = ((v + (square * v) * 0.044715) * scale).f("tanh")
    steep = (1.0 + square * (3 * 0.044715)) * scale
    return [0.5 * (1.0 + tanh) + ((0.5 * v) * slope) * steep for slope in tanh_slopes(tanh)]


def _mish(x: Sequence[Number], y: Number, _: int, call: Call) -> Sequence[Number]:
    tanh = x[0].f("softplus").f("tanh")
    ways = _softplus(x, x[0].f("softplus"), 0, call)
    return [tanh + (x[0] * slope) * inner for slope in tanh_slopes(tanh) for inner in ways]


def _swish(x: Sequence[Number], y: Number, _: int, call: Call) -> Sequence[Number]:
    alpha = call.number("alpha")
    s = (x[0] * alpha).f("sigmoid")
    rest = 1.0 - s
    return s * (1.0 + (x[0] * alpha) * rest), s + (x[0] * sigmoid_slope(s)) * alpha


def _hard_swish(x: Sequence[Number], y: Number, _: int, call: Call) -> Sequence[Number]:
    """x / 3 + 1 / 2 between -3 and 3, or (x + 3) / 6 and x / 6; 0 below, 1 above."""
    v, dtype = x[0].value.value, x[0].value.dtype
    flat = exactly((v >= 3) * 1.0, dtype)
    ways = (x[0] / 3.0 + 0.5, (x[0] + 3.0) / 6.0 + x[0] / 6.0, (x[0] + 3.0) * (1 / 6) + x[0] * (1 / 6))
    return [chosen(np.abs(v) >= 3, flat, way) for way in ways]


def _tanhshrink(x: Sequence[Number], y: Number, _: int, call: Call) -> Sequence[Number]:
    tanh = x[0].f("tanh")
    return tanh * tanh, *(1.0 - slope for slope in tanh_slopes(tanh))


_ALPHA, _SCALE = 1.6732632423543772, 1.0507009873554805

ACTIVATIONS: dict[str, Formula] = {
    "log_sigmoid": _log_sigmoid,
    "softplus": _softplus,
    "softplus_scaled": _softplus_scaled,
    "softsign": _softsign,
    "silu": _silu,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "mish": _mish,
    "swish": _swish,
    "hard_swish": _hard_swish,
    "tanhshrink": _tanhshrink,
    "elu": _exponential(lambda call: call.number("alpha"), lambda call: 1.0),
    "celu": _exponential(lambda call: call.number("alpha"), lambda call: 1.0, inner=True),
    "selu": _exponential(lambda call: _ALPHA, lambda call: _SCALE),
    "scaled_elu": _exponential(lambda call: call.number("alpha"), lambda call: call.number("gamma")),
}
"""By operator. Signs are left out: they are exact."""
