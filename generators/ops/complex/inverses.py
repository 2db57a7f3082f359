"""Inverse functions of complex numbers, element by element, and those that are small beside their terms. Bounds:
`complex_inverses.py`."""

from __future__ import annotations

from generators.bounds import complex_inverses
from generators.ops.complex.elementwise import NUMBER, spelled, unary
from generators.ops.slots import same_as
from generators.ops.spec import OpSpec

OPERATORS: tuple[OpSpec, ...] = (
    spelled("complex_sigmoid", (NUMBER,), same_as(0), lambda args, call: complex_inverses.logistic(args[0]),
            "torch.sigmoid({0})", "tf.math.sigmoid({0})", "jax.nn.sigmoid({0})"),
    unary("complex_log1p", complex_inverses.logarithm_of_more, "log1p", "log1p", "log1p"),
    unary("complex_expm1", complex_inverses.exponential_less_one, "expm1", "expm1", "expm1"),
    unary("complex_asin", complex_inverses.arc_sine, "asin", "asin", "arcsin"),
    unary("complex_acos", complex_inverses.arc_cosine, "acos", "acos", "arccos"),
    unary("complex_atan", complex_inverses.arc_tangent, "atan", "atan", "arctan"),
    unary("complex_asinh", complex_inverses.arc_hyperbolic_sine, "asinh", "asinh", "arcsinh"),
    unary("complex_acosh", complex_inverses.arc_hyperbolic_cosine, "acosh", "acosh", "arccosh"),
    unary("complex_atanh", complex_inverses.arc_hyperbolic_tangent, "atanh", "atanh", "arctanh"),
)  # fmt: skip
