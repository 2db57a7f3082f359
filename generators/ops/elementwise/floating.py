"""How floating-point numbers are written: mantissas and exponents, signs, neighbours, and what stands for NaN and
infinities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded, ends, exact, holds_zero, rounded
from generators.graph import TensorType
from generators.ops.elementwise.records import (
    NO_ONNX,
    NO_RELAX,
    NO_TENSORFLOW,
    boolean_result,
    numpy_binary,
    numpy_unary,
)
from generators.ops.elementwise.references import certainly_nan
from generators.ops.slots import computed, floating, like, one_of, same_as
from generators.ops.spec import Attrs, Call, OpSpec, Reference, TypeRuleError, Types, only


def _split(x: Bounded) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mantissas, exponents, and where they are not certain: across a power of two, and of what may be flushed."""
    with np.errstate(all="ignore"):
        mantissa, exponent = np.frexp(x.value)
        low, high = (np.frexp(end)[1] for end in ends(x))
        number = np.isfinite(x.value)
        loose = number & ((low != exponent) | (high != exponent) | (np.abs(x.value) <= x.error) & (x.error > 0))
        loose |= number & (x.value != 0) & (np.abs(x.value) < PRECISION[x.dtype].tiny)
    return mantissa, exponent, loose | x.undetermined


def _mantissa(args: Sequence[Bounded], call: Call) -> Bounded:
    """x / 2^e, exact; NaN and infinities are their own (C11, F.10.3.4)."""
    x = args[0]
    mantissa, exponent, loose = _split(x)
    with np.errstate(all="ignore"):
        error = np.where(x.error > 0, np.ldexp(x.error, -exponent), 0.0)
    return Bounded(mantissa, np.where(loose, np.inf, error), x.dtype)


def _exponent(args: Sequence[Bounded], call: Call) -> Bounded:
    """Of NaN and infinities unspecified (C11, 7.12.6.4)."""
    _, exponent, loose = _split(args[0])
    return exact(exponent, "int32", loose | ~np.isfinite(args[0].value))


def _frexp(name: str, place: int, reference: Reference) -> OpSpec:
    def result(operands: Types, attrs: Attrs) -> TensorType:
        return replace(operands[0], dtype="int32") if place else operands[0]

    return OpSpec(
        f"frexp_{name}", "numerals", (floating(),), result, reference, torch=f"torch.frexp({{0}})[{place}]",
        tensorflow=NO_TENSORFLOW, jax=f"jnp.frexp({{0}})[{place}]", relax=NO_RELAX, onnx=NO_ONNX, signed_zero=not place,
    )  # fmt: skip


def _ldexp(args: Sequence[Bounded], call: Call) -> Bounded:
    """x 2^n, once rounded where it is subnormal. torch.ldexp is documented as x * 2 ** n, a power of 16 ulp."""
    x, n = args
    with np.errstate(all="ignore"):
        value = np.ldexp(x.value, n.value.astype(np.int32))
        error = np.where(np.isfinite(x.value), np.ldexp(x.error, n.value.astype(np.int32)), 0.0)
        error = np.where(x.undetermined, np.inf, error)
    return rounded(value, error, x.dtype, 16.5)


ldexp = OpSpec(
    "ldexp", "numerals",
    (floating(), computed(lambda earlier: replace(earlier[0], dtype="int32"), lambda earlier: (-24, 24))),
    lambda operands, attrs: _scaled_type(operands), _ldexp, signed_zero=True,
    torch=only(("float32", "float64"), "2 ** n is of float32, to which torch.ldexp promotes", "torch.ldexp({0}, {1})"),
    tensorflow=NO_TENSORFLOW, jax="jnp.ldexp({0}, {1})", relax=NO_RELAX, onnx=NO_ONNX,
)  # fmt: skip


def _scaled_type(operands: Types) -> TensorType:
    if operands[1] != replace(operands[0], dtype="int32"):
        raise TypeRuleError(f"{operands[1]} does not scale {operands[0]}")
    return operands[0]


def _signbit(args: Sequence[Bounded], call: Call) -> Bounded:
    """Of NaN (whose sign no operation determines, IEEE 754-2019, 6.3) and of what may be a zero of either sign:
    undetermined."""
    x = args[0]
    unknown = holds_zero(x) | np.isnan(x.value) | x.undetermined
    if not x.zero_sign:
        unknown |= x.value == 0
    return exact(np.signbit(x.value), "bool", unknown)


def _nan_to_num(args: Sequence[Bounded], call: Call) -> Bounded:
    """What replaces them is rounded to the dtype first: 65504 is 65536 in bfloat16."""
    x = args[0]
    numbers = [float(np.float64(call.number(name)).astype(x.dtype)) for name in ("nan", "posinf", "neginf")]
    return Bounded(np.nan_to_num(x.value, True, *numbers), x.error, x.dtype)


def _copysign(args: Sequence[Bounded], call: Call) -> Bounded:
    """The magnitude of x with the sign of y; either sign where y may be a zero of any sign, or is NaN (whose sign no
    operation determines, IEEE 754-2019, 6.3)."""
    x, y = args
    with np.errstate(all="ignore"):
        value = np.copysign(x.value, y.value)
        unsigned = holds_zero(y) | np.isnan(y.value) | y.undetermined
        if not y.zero_sign:
            unsigned |= y.value == 0
        either = np.where(np.isinf(value), np.inf, 2 * np.abs(value) + x.error)
        either = np.where(value == 0, np.maximum(either, PRECISION[x.dtype].tiny), either)
        error = np.where(unsigned, either, x.error)
        error = np.where(x.undetermined, np.inf, error)
        return Bounded(value, np.where(certainly_nan(x), 0.0, error), x.dtype)


def _nextafter(args: Sequence[Bounded], call: Call) -> Bounded:
    """Exact where both operands are; what is subnormal may be flushed."""
    x, y = args
    with np.errstate(all="ignore"):
        a, b = x.value.astype(x.dtype), y.value.astype(x.dtype)
        value = np.where(np.isnan(a) | np.isnan(b), np.nan, np.nextafter(a, b)).astype(np.float64)
        tiny = PRECISION[x.dtype].tiny
        flushed = (np.abs(value) < tiny) | (np.abs(a) < tiny)
        nan = np.isnan(value) & ~x.undetermined & ~y.undetermined
        loose = ((x.error > 0) | (y.error > 0)) & ~nan & ~(flushed & (x.error <= tiny) & (y.error <= tiny))
    return Bounded(value, np.where(loose, np.inf, np.where(flushed & ~nan, 2 * tiny, 0.0)), x.dtype)


OPERATORS: tuple[OpSpec, ...] = (
    _frexp("mantissa", 0, _mantissa),
    _frexp("exponent", 1, _exponent),
    ldexp,
    OpSpec(
        "nextafter", "special", (floating(), like(0)), same_as(0), _nextafter,
        torch="torch.nextafter({0}, {1})", tensorflow="tf.math.nextafter({0}, {1})", jax="jnp.nextafter({0}, {1})",
        relax=NO_RELAX, onnx=NO_ONNX,
    ),
    numpy_binary(
        "copysign", _copysign, signed_zero=True, tensorflow="copysign({0}, {1})",
        relax="copysign({0}, {1}, {dtype})", onnx="copysign(g, {0}, {1}, {name})",
    ),
    numpy_unary(
        "signbit", _signbit, result=boolean_result, tensorflow="signbit({0})",
        relax="signbit({0}, {dtype0})", onnx="signbit(g, {0}, {name0})",
    ),
    numpy_unary(
        "nan_to_num", _nan_to_num,
        attrs={"nan": one_of(0.0, 1.0, -2.5, inf), "posinf": one_of(1.0, 8.0, 0.0, 65504.0, inf),
               "neginf": one_of(-1.0, 0.0, -65504.0, 3.0, -inf)},
        torch="torch.nan_to_num({0}, nan={nan}, posinf={posinf}, neginf={neginf})",
        tensorflow="nan_to_num({0}, {nan}, {posinf}, {neginf})",
        jax="jnp.nan_to_num({0}, nan={nan}, posinf={posinf}, neginf={neginf})",
        relax="nan_to_num({0}, {nan}, {posinf}, {neginf}, {dtype})",
        onnx="nan_to_num(g, {0}, {nan}, {posinf}, {neginf}, {name})",
    ),
)  # fmt: skip
