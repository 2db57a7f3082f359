"""Functions of complex numbers, element by element, whose parts grow and overflow by themselves. Bounds:
`complex_functions.py`."""

from __future__ import annotations

from generators.bounds import complex_functions
from generators.ops.complex.elementwise import NUMBER, binary, spelled, unary
from generators.ops.slots import same_as
from generators.ops.spec import OpSpec

OPERATORS: tuple[OpSpec, ...] = (
    unary("complex_sin", complex_functions.sine, "sin", "sin", "sin"),
    unary("complex_cos", complex_functions.cosine, "cos", "cos", "cos"),
    unary("complex_tan", complex_functions.tangent, "tan", "tan", "tan"),
    unary("complex_sinh", complex_functions.hyperbolic_sine, "sinh", "sinh", "sinh"),
    unary("complex_cosh", complex_functions.hyperbolic_cosine, "cosh", "cosh", "cosh"),
    unary("complex_tanh", complex_functions.hyperbolic_tangent, "tanh", "tanh", "tanh"),
    spelled("complex_rsqrt", (NUMBER,), same_as(0), lambda args, call: complex_functions.inverse_root(args[0]),
            "torch.rsqrt({0})", "tf.math.rsqrt({0})", "jax.lax.rsqrt({0})"),
    binary("complex_pow", complex_functions.power, "pow", "pow", "power"),
)  # fmt: skip
