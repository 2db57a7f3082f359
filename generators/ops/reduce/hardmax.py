"""One at the first greatest element along an axis, zero elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import Bounded, exact
from generators.graph import FLOATS, TensorType
from generators.ops.composed import compute
from generators.ops.reduce.records import filled_axis, reducible
from generators.ops.reduce.reductions import argmax
from generators.ops.slots import normalized
from generators.ops.spec import Attrs, Call, OpSpec, Spelling, Types


def _typed(operands: Types, attrs: Attrs) -> TensorType:
    """That of the operand, whose axis has a place for argmax."""
    argmax.result(operands, {**attrs, "keepdims": True})
    return operands[0]


def _hardmax(args: Sequence[Bounded], call: Call) -> Bounded:
    """Beside NaN nothing is said: ONNX does not, and no framework has it as an operator of its own."""
    (axis,) = normalized(call.attrs["axis"], call.result.rank)
    place = compute(argmax, args[0], axis=axis, keepdims=True)
    value = _column(call) == place.value
    unknown = place.undetermined | np.isnan(args[0].value).any(axis, keepdims=True)
    return exact(value.astype(np.float64), call.result.dtype, np.broadcast_to(unknown, value.shape))


def _column(call: Call) -> np.ndarray:
    (axis,) = normalized(call.attrs["axis"], call.result.rank)
    return np.arange(call.result.shape[axis]).reshape([-1] + [1] * (call.result.rank - axis - 1))


def _with_column(text: str, float64: str = "") -> Spelling:
    """{column}: the shape of the places along the axis; {size}: how many these are."""

    def spell(call: Call) -> str:
        spelled = float64 if float64 and call.result.dtype == "float64" else text
        return spelled.replace("{column}", str(_column(call).shape)).replace("{size}", str(_column(call).size))

    return spell


hardmax = OpSpec(
    "hardmax", "reduction", (reducible(FLOATS, min_rank=1),), _typed, _hardmax, attrs={"axis": filled_axis},
    torch=_with_column(
        "(torch.argmax({0}, dim={axis}, keepdim=True) == "
        "torch.arange({size}, device={0}.device).reshape({column})).to({dtype})"
    ),
    tensorflow=_with_column(
        "tf.cast(tf.equal(tf.expand_dims(tf.argmax({0}, {axis}), {axis}), "
        "tf.reshape(tf.range({size}, dtype=tf.int64), {column})), {dtype})"
    ),
    jax=_with_column(
        "(jnp.argmax({0}, axis={axis}, keepdims=True) == jnp.arange({size}).reshape({column})).astype({dtype})"
    ),
    relax=_with_column(
        "relax.op.astype(relax.op.equal(relax.op.argmax({0}, axis={axis}, keepdims=True), "
        'relax.const(np.arange({size}).reshape({column}), "int64")), {dtype})'
    ),
    onnx=_with_column(
        'g.op("Hardmax", {0}, axis={axis})',
        'g.op("Cast", g.op("Equal", g.op("ArgMax", {0}, axis={axis}, keepdims=1), '
        'g.const(np.arange({size}).reshape({column}), "int64")), to={dtype})',
    ),
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (hardmax,)
