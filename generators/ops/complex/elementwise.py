"""Operators of complex numbers, element by element. Bounds: `complex_values.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from generators.bounds import complex_values
from generators.bounds.bounded import PRECISION, Bounded, exact, rounded, smooth
from generators.graph import COMPLEX, COMPONENT, TensorType
from generators.ops.composed import compute, given
from generators.ops.elementwise.cast import cast
from generators.ops.slots import broadcast, broadcastable, like, one_of, same_as, tensor
from generators.ops.spec import Attrs, Call, OpSpec, Slot, TypeRuleError, Types, unsupported

NO_ONNX = unsupported("ONNX has complex tensors, and hardly an operator that takes them")
NO_RELAX = unsupported("Relax has no complex numbers")

NUMBER = tensor(COMPLEX)
PARTS = tensor(tuple(COMPONENT.values()))
WHOLE = {part: dtype for dtype, part in COMPONENT.items()}
"""The complex dtype of each dtype of parts."""


def spelled(
    name: str,
    operands: tuple[Slot, ...],
    result: Callable[[Types, Attrs], TensorType],
    reference: Callable[[Sequence[Bounded], Call], Bounded],
    torch: str,
    tensorflow: str,
    jax: str,
    *,
    signed_zero: bool = False,
) -> OpSpec:
    return OpSpec(
        name, "complex", operands, result, reference, signed_zero=signed_zero,
        torch=torch, tensorflow=tensorflow, jax=jax, relax=NO_RELAX, onnx=NO_ONNX,
    )  # fmt: skip


def part_type(operands: Types, attrs: Attrs) -> TensorType:
    """The type of the parts of a complex operand."""
    if operands[0].dtype not in COMPONENT:
        raise TypeRuleError(f"{operands[0]} is not complex")
    return TensorType(COMPONENT[operands[0].dtype], operands[0].shape)


def whole_type(operands: Types, attrs: Attrs) -> TensorType:
    """The complex type of two parts."""
    if operands[0].dtype not in WHOLE or operands[0] != operands[1]:
        raise TypeRuleError(f"no complex number has the parts {operands[0]} and {operands[1]}")
    return TensorType(WHOLE[operands[0].dtype], operands[0].shape)


# ---- from and to real numbers -------------------------------------------------------------------------


def _made(args: Sequence[Bounded], call: Call) -> Bounded:
    return complex_values.joined(args[0], args[1], call.result.dtype)


def _polar(args: Sequence[Bounded], call: Call) -> Bounded:
    """r cos a, r sin a: sine and cosine of 4 ulp, one product."""
    r, a = args
    with np.errstate(all="ignore"):
        size = np.abs(r.value)
        cosine = smooth(np.cos, np.sin, 1.0, a, 4)
        sine = smooth(np.sin, np.cos, 1.0, a, 4)
        off = [size * t.error + r.error * (np.abs(t.value) + t.error) for t in (cosine, sine)]
        loose = ~np.isfinite(size + r.error) | ~np.isfinite(a.value + a.error)
        value = np.where(loose, 0.0, r.value) * (cosine.value + 1j * sine.value)
        return complex_values.rounded(value, np.hypot(*off), call.result.dtype, 1.0, loose, 4.0)


def _modulus(args: Sequence[Bounded], call: Call) -> Bounded:
    """4 ulp, as hypot; infinite where a part is, be the other one NaN (C11, annex G: cabs is hypot)."""
    x = args[0]
    with np.errstate(all="ignore"):
        return rounded(np.abs(x.value), np.where(complex_values.finite_size(x.value) + x.error > 0, x.error, 0.0),
                       call.result.dtype, 4)  # fmt: skip


def _phase(args: Sequence[Bounded], call: Call) -> Bounded:
    """atan2 of 6 ulp; a number that is off by e moves by asin(e / |x|), but across the cut."""
    x, tiny = args[0], PRECISION[call.result.dtype].tiny
    with np.errstate(all="ignore"):
        value = np.arctan2(np.imag(x.value), np.real(x.value))
        size = np.abs(x.value)
        moved = np.where(x.error == 0, 0.0, np.arcsin(x.error / size))
        loose = complex_values.crosses_cut(x) | np.isnan(moved) | ((x.value == 0) & (not x.zero_sign))
        loose |= ~np.isfinite(x.value) & (x.error > 0)
        moved = moved + np.where((np.imag(x.value) != 0) & np.isfinite(x.value), tiny, 0.0)  # a quotient may underflow
        return rounded(value, np.where(loose, np.inf, moved), call.result.dtype, 6)


_make = spelled(
    "complex", (PARTS, like(0)), whole_type, _made,
    "torch.complex({0}, {1})", "tf.complex({0}, {1})", "jax.lax.complex({0}, {1})", signed_zero=True,
)  # fmt: skip

_FROM_AND_TO = (
    _make,
    spelled(
        "polar", (PARTS, like(0)), whole_type, _polar, "torch.polar({0}, {1})",
        "tf.complex({0} * tf.cos({1}), {0} * tf.sin({1}))", "jax.lax.complex({0} * jnp.cos({1}), {0} * jnp.sin({1}))",
    ),
    spelled("real_part", (NUMBER,), part_type, lambda args, call: complex_values.parts(args[0])[0], "torch.real({0})",
            "tf.math.real({0})", "jnp.real({0})", signed_zero=True),
    spelled("imaginary_part", (NUMBER,), part_type, lambda args, call: complex_values.parts(args[0])[1],
            "torch.imag({0})", "tf.math.imag({0})", "jnp.imag({0})", signed_zero=True),
    spelled("modulus", (NUMBER,), part_type, _modulus, "torch.abs({0})", "tf.math.abs({0})", "jnp.abs({0})"),
    spelled("phase", (NUMBER,), part_type, _phase, "torch.angle({0})", "tf.math.angle({0})", "jnp.angle({0})"),
)  # fmt: skip

# ---- numbers to numbers -------------------------------------------------------------------------------


def unary(
    name: str, f: Callable[[Bounded], Bounded], torch: str, tensorflow: str, jax: str, signed: bool = False
) -> OpSpec:
    return spelled(name, (NUMBER,), same_as(0), lambda args, call: f(args[0]), f"torch.{torch}({{0}})",
                   f"tf.math.{tensorflow}({{0}})", f"jnp.{jax}({{0}})", signed_zero=signed)  # fmt: skip


def _reciprocal(x: Bounded) -> Bounded:
    one = Bounded(np.ones(x.value.shape, np.complex128), np.zeros(x.value.shape), x.dtype)
    return complex_values.divide(one, x)


def _sign(x: Bounded) -> Bounded:
    """x / |x|, 0 of 0: 8 u for the modulus (hypot of 4 ulp), 5 u for the quotients (2.5 ulp), or 10 u for one of
    complex numbers. The direction of x moves by 2 e / |x| at most."""
    with np.errstate(all="ignore"):
        size = np.abs(x.value)
        zero = (size == 0) & (x.error == 0)
        value = np.where(zero, 0.0, x.value / np.where(zero, 1.0, size))
        error = np.where(zero, 0.0, 2 * complex_values.flushed(x) / size)
        loose = ~zero & complex_values.beyond(x)
        return complex_values.rounded(np.where(loose, 0.0, value), error, x.dtype, 8 + complex_values.QUOTIENT, loose)


_UNARY = (
    unary("conj", lambda x: Bounded(np.conj(x.value), x.error, x.dtype), "conj", "conj", "conj", signed=True),
    unary("complex_neg", lambda x: Bounded(-x.value, x.error, x.dtype), "neg", "negative", "negative", signed=True),
    unary(
        "complex_square", lambda x: complex_values.multiply(x, x, complex_values.SQUARE), "square", "square", "square"
    ),
    unary("complex_reciprocal", _reciprocal, "reciprocal", "reciprocal", "reciprocal"),
    unary("complex_exp", complex_values.exponential, "exp", "exp", "exp"),
    unary("complex_log", complex_values.logarithm, "log", "log", "log"),
    unary("complex_sqrt", complex_values.root, "sqrt", "sqrt", "sqrt"),
    unary("complex_sign", _sign, "sgn", "sign", "sign"),
)


def binary(name: str, f: Callable[[Bounded, Bounded], Bounded], torch: str, tensorflow: str, jax: str) -> OpSpec:
    return spelled(name, (NUMBER, broadcastable(0)), broadcast(), lambda args, call: f(args[0], args[1]),
                   f"torch.{torch}({{0}}, {{1}})", f"tf.math.{tensorflow}({{0}}, {{1}})",
                   f"jnp.{jax}({{0}}, {{1}})")  # fmt: skip


_BINARY = (
    binary("complex_add", complex_values.add, "add", "add", "add"),
    binary("complex_sub", lambda x, y: complex_values.add(x, y, -1.0), "sub", "subtract", "subtract"),
    binary("complex_mul", complex_values.multiply, "mul", "multiply", "multiply"),
    binary("complex_div", complex_values.divide, "div", "divide", "divide"),
)


def _equal(args: Sequence[Bounded], call: Call) -> Bounded:
    """Both parts are; certain where the numbers are exact, or farther apart than they may be off."""
    x, y = args
    with np.errstate(all="ignore"):
        off = x.error + y.error
        loose = (off > 0) & ~(np.abs(x.value - y.value) > off)
    return exact(x.value == y.value, "bool", loose)


_EQUAL = spelled(
    "complex_equal", (NUMBER, broadcastable(0)), broadcast("bool"), _equal,
    "torch.eq({0}, {1})", "tf.math.equal({0}, {1})", "jnp.equal({0}, {1})",
)  # fmt: skip


def _converted_type(operands: Types, attrs: Attrs) -> TensorType:
    to, dtype = attrs["to"], operands[0].dtype
    if to not in COMPLEX and (to not in WHOLE or dtype not in COMPLEX):
        raise TypeRuleError(f"no conversion of {operands[0]} to {to!r} that concerns complex numbers")
    return TensorType(str(to), operands[0].shape)


def _converted(args: Sequence[Bounded], call: Call) -> Bounded:
    """Part by part; the imaginary part of a real number is 0, that of a number that becomes real is lost."""
    x, to = args[0], call.result.dtype
    real, imag = complex_values.parts(x) if x.complex else (x, given(np.zeros(x.value.shape), x.dtype))
    if to not in COMPLEX:
        return compute(cast, real, to=to)
    real, imag = (compute(cast, part, to=COMPONENT[to]) for part in (real, imag))
    return complex_values.joined(real, imag, to)


def _conversion(name: str, operand: Slot, to: tuple[str, ...]) -> OpSpec:
    return OpSpec(
        name, "complex", (operand,), _converted_type, _converted, signed_zero=True, attrs={"to": one_of(*to)},
        torch="{0}.to({dtype})", tensorflow="tf.cast({0}, {dtype})", jax="{0}.astype({dtype})", relax=NO_RELAX,
        onnx=NO_ONNX,
    )  # fmt: skip


_CONVERSIONS = (_conversion("to_complex", PARTS, COMPLEX), _conversion("complex_cast", NUMBER, (*COMPLEX, *WHOLE)))

OPERATORS: tuple[OpSpec, ...] = (*_FROM_AND_TO, *_UNARY, *_BINARY, _EQUAL, *_CONVERSIONS)
