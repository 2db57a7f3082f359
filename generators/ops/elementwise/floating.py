"""Functions of the digits of numbers: mantissas and exponents, scaling by powers of two, common divisors; and what
array libraries have beside: cube roots, sums of powers of two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, ends, exact, monotone, rounded, settled
from generators.graph import INTEGERS, TensorType
from generators.ops.elementwise.arithmetic import FLOAT_PAIR
from generators.ops.slots import broadcast, broadcastable, computed, floating, numeric, same_as, tensor
from generators.ops.spec import Call, OpSpec, TypeRuleError, Types, only, unsupported

_NO_TF = unsupported("TensorFlow has no such operator")
_NO_RELAX = unsupported("Relax has no such operator")
_NO_ONNX = unsupported("ONNX has no such operator")

# ---- mantissa and exponent ----------------------------------------------------------------------------


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


def _frexp(name: str, place: int, reference) -> OpSpec:
    def result(operands: Types, attrs) -> TensorType:
        return replace(operands[0], dtype="int32") if place else operands[0]

    return OpSpec(
        f"frexp_{name}", "numerals", (floating(),), result, reference, torch=f"torch.frexp({{0}})[{place}]",
        tensorflow=_NO_TF, jax=f"jnp.frexp({{0}})[{place}]", relax=_NO_RELAX, onnx=_NO_ONNX, signed_zero=not place,
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
    tensorflow=_NO_TF, jax="jnp.ldexp({0}, {1})", relax=_NO_RELAX, onnx=_NO_ONNX,
)  # fmt: skip


def _scaled_type(operands: Types) -> TensorType:
    if operands[1] != replace(operands[0], dtype="int32"):
        raise TypeRuleError(f"{operands[1]} does not scale {operands[0]}")
    return operands[0]


# ---- divisors -----------------------------------------------------------------------------------------


def _gcd(args: Sequence[Bounded], call: Call) -> Bounded:
    """Never negative; undetermined for the least integer, whose magnitude wraps."""
    x, y = args
    return exact(np.gcd(*np.broadcast_arrays(x.value, y.value)), x.dtype, _least(x) | _least(y))


def _lcm(args: Sequence[Bounded], call: Call) -> Bounded:
    """|x / gcd| |y|; undetermined where that overflows."""
    x, y = np.broadcast_arrays(args[0].value, args[1].value)
    with np.errstate(all="ignore"):
        divisor = np.maximum(np.gcd(x, y).astype(np.float64), 1.0)
        size = np.abs(x.astype(np.float64)) / divisor * np.abs(y.astype(np.float64))
        over = size > np.iinfo(x.dtype).max * (1 - 2.0**-50)
        return exact(np.lcm(x, y), args[0].dtype, over | _least(args[0]) | _least(args[1]))


def _least(x: Bounded) -> np.ndarray:
    info = np.iinfo(x.dtype)
    return x.undetermined | ((x.value == info.min) & (info.min < 0))


def _divisor(name: str, reference) -> OpSpec:
    return OpSpec(
        name, "numerals", (tensor(INTEGERS), broadcastable(0)), broadcast(), reference,
        torch=f"torch.{name}({{0}}, {{1}})", tensorflow=_NO_TF, jax=f"jnp.{name}({{0}}, {{1}})",
        relax=_NO_RELAX, onnx=_NO_ONNX,
    )  # fmt: skip


# ---- further functions --------------------------------------------------------------------------------


def _cbrt(args: Sequence[Bounded], call: Call) -> Bounded:
    """2 ulp; TensorFlow takes the power 1/3 of |x|: 16 ulp, and u |log x| / 3 of the rounded exponent."""
    x = args[0]
    result = monotone(np.cbrt, x, 16)
    with np.errstate(all="ignore"):
        log = np.abs(np.log(np.where((x.value != 0) & np.isfinite(x.value), np.abs(x.value), 1.0)))
        further = (PRECISION[x.dtype].unit + U64) * log / 3 * np.abs(result.value)
    return replace(result, error=np.where(np.isfinite(result.value), result.error + further, result.error))


def _logaddexp2(args: Sequence[Bounded], call: Call) -> Bounded:
    """m + L, m = max(x, y), L = log2(1 + 2^-d), d = |x - y|. As of logaddexp: slopes add up to 1; the difference has a
    rounding, the power 16 ulp, 1 + 2^-d loses u, the logarithm 3 ulp and its conversion to base 2 another 5."""
    x, y = args
    unit = PRECISION[x.dtype].unit + U64
    with np.errstate(all="ignore"):
        value = np.logaddexp2(x.value, y.value)
        d = np.abs(x.value - y.value)
        power = np.exp2(-d)
        own = unit * (np.where(power > 0, d * power, 0.0) + 50 * power + 1 + 16 * np.log2(1 + power))
        moved = np.maximum(x.error, y.error)
        error = np.where(np.isfinite(x.value) & np.isfinite(y.value), moved + own, 0.0)
        alone = np.isneginf(x.value) | np.isneginf(y.value)
        error = np.where(alone & np.isfinite(value), moved, error)
    return rounded(value, settled(x, y, error), x.dtype)


NUMERALS: tuple[OpSpec, ...] = (
    _frexp("mantissa", 0, _mantissa),
    _frexp("exponent", 1, _exponent),
    ldexp,
    _divisor("gcd", _gcd),
    _divisor("lcm", _lcm),
    OpSpec(
        "cbrt", "numerals", (floating(),), same_as(0), _cbrt, signed_zero=True, torch=unsupported(
            "PyTorch has no cube root"), tensorflow="tf.experimental.numpy.cbrt({0})", jax="jnp.cbrt({0})",
        relax=_NO_RELAX, onnx=_NO_ONNX,
    ),
    OpSpec(
        "logaddexp2", "numerals", FLOAT_PAIR, broadcast(), _logaddexp2, torch="torch.logaddexp2({0}, {1})",
        tensorflow="tf.experimental.numpy.logaddexp2({0}, {1})", jax="jnp.logaddexp2({0}, {1})",
        relax=_NO_RELAX, onnx=_NO_ONNX,
    ),
    OpSpec(
        "positive", "numerals", (numeric(),), same_as(0), lambda args, call: args[0], signed_zero=True,
        torch="torch.positive({0})", tensorflow="tf.experimental.numpy.positive({0})", jax="jnp.positive({0})",
        relax="{0}", onnx='g.op("Identity", {0})',  # as converters write it
    ),
)  # fmt: skip
