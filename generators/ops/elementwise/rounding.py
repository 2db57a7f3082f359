"""Rounding to integers, and the fraction that it leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from generators.bounds.bounded import Bounded, ends
from generators.ops.elementwise.records import numpy_unary, unary
from generators.ops.elementwise.references import unrounded
from generators.ops.slots import floating, same_as
from generators.ops.spec import Call, OpSpec, Reference, unsupported

Array = np.ndarray
_NONE = unsupported("it has no modf")
Function = Callable[[Array], Array]


def _frac(args: Sequence[Bounded], call: Call) -> Bounded:
    """x - trunc(x), exact; NaN for an infinity, by this definition. Where the interval crosses an integer, the
    result is anything between 0 and 1 (or -1 and 1 beside zero)."""
    x = args[0]
    with np.errstate(all="ignore"):
        value = x.value - np.trunc(x.value)
        low, high = (np.trunc(end) for end in ends(x))
        error = np.where(low == high, x.error, 1 + np.abs(value))
        error = np.where(np.isnan(value), 0.0, error)
    return Bounded(value, np.where(x.undetermined, np.inf, error), x.dtype)


def _fraction(args: Sequence[Bounded], call: Call) -> Bounded:
    """As C's modf (Annex F, 7.6.12): a zero of its sign for an infinity."""
    x, rest = args[0], _frac(args, call)
    far = np.isinf(x.value) & (x.error == 0)
    return Bounded(np.where(far, np.copysign(0.0, x.value), rest.value), np.where(far, 0.0, rest.error), x.dtype)


def _step(f: Function) -> Reference:
    return lambda args, call: unrounded(f, args[0])


# IEEE 754-2019, 5.9: the sign of a zero result is the sign of the operand
OPERATORS: tuple[OpSpec, ...] = (
    unary("floor", _step(np.floor), "Floor"),
    unary("ceil", _step(np.ceil), "Ceil"),
    unary("round", _step(np.rint), "Round", tensorflow="tf.round"),
    unary("trunc", _step(np.trunc),
          'g.op("Where", g.op("Less", {0}, g.const(0, {name})), g.op("Ceil", {0}), g.op("Floor", {0}))',
          tensorflow="tf.where({0} < 0, tf.math.ceil({0}), tf.math.floor({0}))"),
    numpy_unary(
        "frac", _frac,
        tensorflow="{0} - tf.where({0} < 0, tf.math.ceil({0}), tf.math.floor({0}))", jax="{0} - jnp.trunc({0})",
        relax="relax.op.subtract({0}, relax.op.trunc({0}))", onnx="frac(g, {0}, {name})",
    ),
    OpSpec(
        "fraction", "unary", (floating(),), same_as(0), _fraction, signed_zero=True, torch=_NONE, tensorflow=_NONE,
        jax="jnp.modf({0})[0]", relax=_NONE, onnx=_NONE,
    ),
)  # fmt: skip
