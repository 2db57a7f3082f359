"""Vandermonde matrices: the powers of a vector."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import Bounded, multiply, rounded
from generators.graph import TensorType
from generators.ops.composed import given, stacked
from generators.ops.slots import flag, floating, int_of
from generators.ops.spec import Attrs, Call, OpSpec, TypeRuleError, Types


def _vander_type(operands: Types, attrs: Attrs) -> TensorType:
    columns = int_of(attrs, "columns")
    if operands[0].rank != 1 or not 1 <= columns <= 6:
        raise TypeRuleError(f"no {columns} powers of {operands[0]}")
    return TensorType(operands[0].dtype, (operands[0].shape[0], columns))


def _vander(args: Sequence[Bounded], call: Call) -> Bounded:
    """Products, one after the other, or pow, of 16 ulp; the power 0 is 1 of NaN, too."""
    x, powers = args[0], [given(np.ones(args[0].value.shape), args[0].dtype), args[0]]
    for k in range(2, int_of(call.attrs, "columns")):
        power = multiply(powers[-1], x)
        with np.errstate(all="ignore"):
            value = np.where(np.isinf(power.value), power.value, x.value**k)
        powers.append(rounded(value, power.error, x.dtype, 16))
    powers = powers[: int_of(call.attrs, "columns")]
    return stacked(*(powers if call.attrs["increasing"] else powers[::-1]), axis=1)


vander = OpSpec(
    "vander", "linalg", (floating(1, 1),), _vander_type, _vander,
    attrs={"columns": lambda d, operands, attrs: d.integer(1, 5), "increasing": flag()},
    torch="torch.vander({0}, {columns}, {increasing})",
    tensorflow="tf.experimental.numpy.vander({0}, {columns}, {increasing})",
    jax="jnp.vander({0}, {columns}, increasing={increasing})",
    relax="vander(bb, {0}, {columns}, {increasing}, {name})", onnx="vander(g, {0}, {columns}, {increasing}, {name})",
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (vander,)
