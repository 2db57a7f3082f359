"""The normal distribution and entropies: ndtr, log_ndtr, ndtri, erfcx, entr; and products that are 0 for an operand 0,
whatever the other one is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from scipy import special

from generators.bounds.bounded import PRECISION, U64, Bounded, divide, holds_zero, monotone, multiply
from generators.ops.elementwise.records import FLOAT_PAIR, NO_ONNX, NO_RELAX
from generators.ops.elementwise.references import certainly_nan, exponential
from generators.ops.slots import broadcast, floating, same_as
from generators.ops.spec import Call, OpSpec, Reference, Spelling, unsupported

Array = np.ndarray


def _scaled(x: Bounded) -> Bounded:
    """x, off by what x / sqrt(2) loses: a constant that is rounded, and a product; and the square of it, which is in
    the exponent of the tails."""
    with np.errstate(all="ignore"):
        further = np.where(np.isfinite(x.value), 3 * (PRECISION[x.dtype].unit + U64) * np.abs(x.value), 0.0)
    return replace(x, error=x.error + further)


def _ndtr(args: Sequence[Bounded], call: Call) -> Bounded:
    """erfc(-x / sqrt 2) / 2: 16 ulp as erfc; scipy's value has as many of float64."""
    return _vanishing(monotone(special.ndtr, _scaled(args[0]), 32), args[0])


def _log_ndtr(args: Sequence[Bounded], call: Call) -> Bounded:
    """log(ndtr(x)), of terms of one sign: in the tail -x^2 / 2 and a logarithm."""
    return _vanishing(monotone(special.log_ndtr, _scaled(args[0]), 32), args[0])


def _vanishing(result: Bounded, x: Bounded) -> Bounded:
    tiny = np.where(np.isfinite(x.value) & (np.abs(result.value) < PRECISION[x.dtype].tiny), 1.0, 0.0)
    return replace(result, error=result.error + tiny * PRECISION[x.dtype].tiny)


def _erfcx(args: Sequence[Bounded], call: Call) -> Bounded:
    """exp(x^2) erfc(x), falling. Below 0 it is 2 exp(x^2) - erfcx(-x), which loses 2 u x^2 by the square."""
    x = args[0]
    with np.errstate(all="ignore"):
        square = 4 * (PRECISION[x.dtype].unit + U64) * np.minimum(x.value**2, 1e4)
        result = exponential(special.erfcx, 32)(args, call)
        further = np.where((x.value < 0) & np.isfinite(result.value), square * np.abs(result.value), 0.0)
        largest = PRECISION[x.dtype].largest
        edge = (x.value < 0) & np.isfinite(x.value) & (special.erfcx(x.value * (1 - 2.0**-6)) < largest)
        edge &= special.erfcx(x.value * (1 + 2.0**-6)) > largest / 4
    return replace(result, error=np.where(edge, np.inf, result.error + further))


def _ndtri(args: Sequence[Bounded], call: Call) -> Bounded:
    """Cephes: 4.5e-16 to 1e-15 in double, as many ulp in single precision, and scipy's own."""
    return monotone(special.ndtri, args[0], 32)


def _entr(args: Sequence[Bounded], call: Call) -> Bounded:
    """-x log(x): 3 ulp and a product; 0 at 0, -inf below."""
    x = args[0]
    with np.errstate(all="ignore"):
        product = multiply(Bounded(-x.value, x.error, x.dtype), monotone(np.log, x, 3))
        below, zero = x.value + x.error < 0, (x.value == 0) & (x.error == 0)
        value = np.where(below, -np.inf, np.where(zero, 0.0, product.value))
        error = np.where(below | zero, 0.0, product.error)
        error = np.where(~below & ~zero & holds_zero(x) | x.undetermined, np.inf, error)
    return Bounded(value, error, x.dtype)


def _zero_first(product: Callable[[Bounded, Bounded], Bounded], second: bool = False) -> Reference:
    """`product`, but 0 where one operand (the first, or the second) is 0. Where the other one is NaN then the
    frameworks differ: undetermined. A subnormal operand that is taken for 0 may be returned as it is (Eigen's packets
    select the operand)."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x, y = args
        deciding, other = (y, x) if second else (x, y)
        result = product(x, y)
        zero = (deciding.value == 0) & (deciding.error == 0)
        maybe = holds_zero(deciding)
        loose = certainly_nan(other) | other.undetermined
        size = np.abs(deciding.value)
        kept = np.where(size < PRECISION[x.dtype].tiny, size, 0.0)
        error = np.where(zero, np.where(loose, np.inf, 0.0), result.error + kept)
        error = np.where(maybe & ~np.isfinite(result.value), np.inf, error)
        return Bounded(np.where(zero, 0.0, result.value), error, x.dtype)

    return reference


def _unary(name: str, reference: Reference, torch: Spelling, tensorflow: Spelling, jax: Spelling) -> OpSpec:
    return OpSpec(
        name, "special", (floating(),), same_as(0), reference,
        torch=torch, tensorflow=tensorflow, jax=jax, relax=NO_RELAX, onnx=NO_ONNX,
    )  # fmt: skip


def _binary(name: str, reference: Reference, torch: Spelling, tensorflow: Spelling, jax: Spelling) -> OpSpec:
    return OpSpec(
        name, "special", FLOAT_PAIR, broadcast(), reference,
        torch=torch, tensorflow=tensorflow, jax=jax, relax=NO_RELAX, onnx=NO_ONNX,
    )  # fmt: skip


NO_TENSORFLOW = unsupported("TensorFlow has no such function")
NO_TORCH = unsupported("PyTorch has no such function")
NO_JAX = unsupported("JAX has no such function")

OPERATORS: tuple[OpSpec, ...] = (
    _unary("ndtr", _ndtr, "torch.special.ndtr({0})", NO_TENSORFLOW, "jax.scipy.special.ndtr({0})"),
    _unary("log_ndtr", _log_ndtr, "torch.special.log_ndtr({0})", NO_TENSORFLOW, "jax.scipy.special.log_ndtr({0})"),
    _unary("ndtri", _ndtri, "torch.special.ndtri({0})", "tf.math.ndtri({0})", "jax.scipy.special.ndtri({0})"),
    _unary("erfcx", _erfcx, "torch.special.erfcx({0})", NO_TENSORFLOW, "jax.scipy.special.erfcx({0})"),
    _unary("entr", _entr, "torch.special.entr({0})", NO_TENSORFLOW, "jax.scipy.special.entr({0})"),
    _binary(
        "xlog1py", _zero_first(lambda x, y: multiply(x, monotone(np.log1p, y, 2))), "torch.special.xlog1py({0}, {1})",
        "tf.math.xlog1py({0}, {1})", "jax.scipy.special.xlog1py({0}, {1})",
    ),
    _binary("xdivy", _zero_first(divide), NO_TORCH, "tf.math.xdivy({0}, {1})", NO_JAX),
    _binary("multiply_no_nan", _zero_first(multiply, second=True), NO_TORCH, "tf.math.multiply_no_nan({0}, {1})",
            NO_JAX),
)  # fmt: skip
