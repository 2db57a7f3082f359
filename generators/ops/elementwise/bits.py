"""The bits of numbers: how many are set, how many zeros lead, the upper half of a product, fewer bits of a float."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded, ends, exact, spread
from generators.graph import INTEGERS
from generators.ops.elementwise.records import NO_ONNX, NO_RELAX
from generators.ops.elementwise.references import wrapping
from generators.ops.slots import broadcast, broadcastable, floating, one_of, same_as, tensor
from generators.ops.spec import Call, OpSpec, Reference, Spelling, unsupported

Array = np.ndarray
NO_TORCH = unsupported("PyTorch has no such operator")
NO_TENSORFLOW = unsupported("TensorFlow has no such operator")


def _bits(x: Array) -> Array:
    """The bits of each integer along a last axis, the highest first."""
    width = np.iinfo(x.dtype).bits
    unsigned = x.view(f"u{x.dtype.itemsize}").astype(np.uint64)
    return (unsigned[..., None] >> np.arange(width - 1, -1, -1, dtype=np.uint64)) & np.uint64(1)


def _counted(count: Callable[[Array], Array]) -> Reference:
    return lambda args, call: exact(count(_bits(args[0].value)), args[0].dtype, args[0].undetermined)


def _leading(bits: Array) -> Array:
    return np.where(bits.any(-1), np.argmax(bits, -1), bits.shape[-1])


def _upper(x: Array, y: Array) -> Array:
    """What a product of twice as many bits has in its upper half."""
    x, y = np.broadcast_arrays(x, y)
    width = np.iinfo(x.dtype).bits
    whole = [(int(a) * int(b)) >> width for a, b in zip(x.ravel(), y.ravel(), strict=True)]
    return np.array(whole, dtype=object).astype(x.dtype).reshape(x.shape)


def _narrowed(value: Array, exponent: int, mantissa: int) -> Array:
    """To the nearest number with so many bits, ties to even; beyond the largest infinite. float64 holds the steps."""
    fraction, power = np.frexp(value)
    near = np.ldexp(np.rint(np.ldexp(fraction, mantissa + 1)), power - mantissa - 1)
    bias = 2 ** (exponent - 1) - 1
    largest = (2 - 2.0**-mantissa) * 2.0**bias
    return np.where(np.abs(near) > largest, np.copysign(np.inf, value), np.where(np.isfinite(value), near, value))


def _reduce_precision(args: Sequence[Bounded], call: Call) -> Bounded:
    """XLA's ReducePrecision: rising, so that an interval moves as its ends do. What falls below the least normal number
    of the format is undetermined: whether it becomes a zero is not said. NaN needs a mantissa to stay one."""
    x = args[0]
    exponent, mantissa = int(call.number("exponent")), int(call.number("mantissa"))
    with np.errstate(all="ignore"):
        value = _narrowed(x.value, exponent, mantissa)
        error = spread(value, *(_narrowed(end, exponent, mantissa) for end in ends(x)))
        least = max(2.0 ** (2 - 2 ** (exponent - 1)), PRECISION[x.dtype].tiny)
        low = (np.abs(x.value) - x.error < least) & ~((x.value == 0) & (x.error == 0))
        low |= np.isnan(x.value) & (mantissa == 0)
    return Bounded(value, np.where(x.undetermined | low, np.inf, error), x.dtype)


def _record(name: str, reference: Reference, jax: Spelling, tensorflow: Spelling = NO_TENSORFLOW) -> OpSpec:
    return OpSpec(
        name, "bitwise", (tensor(INTEGERS),), same_as(0), reference,
        torch=NO_TORCH, tensorflow=tensorflow, jax=jax, relax=NO_RELAX, onnx=NO_ONNX,
    )  # fmt: skip


OPERATORS: tuple[OpSpec, ...] = (
    _record("population_count", _counted(lambda bits: bits.sum(-1)), "jax.lax.population_count({0})",
            "tf.cast(tf.raw_ops.PopulationCount(x={0}), {dtype})"),
    _record("count_leading_zeros", _counted(_leading), "jax.lax.clz({0})"),
    OpSpec(
        "multiply_high", "bitwise", (tensor(INTEGERS), broadcastable(0)), broadcast(),
        lambda args, call: wrapping(_upper, args[0], args[1]), torch=NO_TORCH, tensorflow=NO_TENSORFLOW,
        jax="jax.lax.mulhi(*jnp.broadcast_arrays({0}, {1}))", relax=NO_RELAX, onnx=NO_ONNX,
    ),
    OpSpec(
        "reduce_precision", "rounding", (floating(),), same_as(0), _reduce_precision,
        attrs={"exponent": one_of(8, 5, 4, 11), "mantissa": one_of(7, 10, 3, 2, 23, 0)},
        torch=NO_TORCH, tensorflow=NO_TENSORFLOW,
        jax="jax.lax.reduce_precision({0}, {exponent}, {mantissa})", relax=NO_RELAX, onnx=NO_ONNX,
    ),
)  # fmt: skip
