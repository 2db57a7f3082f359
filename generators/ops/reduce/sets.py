"""Tensors as sets: membership, and where an element stands among the distinct ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import Bounded, exact
from generators.graph import INTEGERS, TensorType
from generators.ops.slots import draw_dim, flag, numeric, tensor
from generators.ops.spec import Attrs, Call, OpSpec, Slot, Spelling, TypeRuleError, Types, unsupported


def _of_set(type_: TensorType, earlier: Types) -> bool:
    return type_.dtype == earlier[0].dtype and type_.rank == 1 and type_.size <= 9


def _isin_type(operands: Types, attrs: Attrs) -> TensorType:
    if not _of_set(operands[1], operands[:1]):
        raise TypeRuleError(f"{operands[1]} is no set for {operands[0]}")
    return TensorType("bool", operands[0].shape)


def _isin(args: Sequence[Bounded], call: Call) -> Bounded:
    """Equal to an element for certain, or farther from all than either may be off; NaN equals nothing."""
    x, members = (a.map(lambda array: array[..., None]) if i == 0 else a for i, a in enumerate(args))
    with np.errstate(all="ignore"):
        equal = x.value == members.value
        off = x.error + members.error
        sure = equal & (off == 0)
        near = (off > 0) & ~(np.abs(x.value.astype(np.float64) - members.value) > off)
        near &= ~((np.isnan(x.value) & (x.error == 0)) | (np.isnan(members.value) & (members.error == 0)))
    found = np.any(sure, axis=-1)
    return exact(found != bool(call.attrs["invert"]), "bool", np.any(near, axis=-1) & ~found)


def _inverted(negation: str, found: str) -> Spelling:
    return lambda call: negation.replace("<found>", found) if call.attrs["invert"] else found


isin = OpSpec(
    "isin", "grids",
    (numeric(), Slot(_of_set, lambda d, earlier: TensorType(earlier[0].dtype, (draw_dim(d, 9),)))), _isin_type, _isin,
    attrs={"invert": flag()}, torch="torch.isin({0}, {1}, invert={invert})",
    tensorflow="tf.not_equal(tf.reduce_any(tf.equal({0}[..., tf.newaxis], {1}), -1), {invert})",
    jax="jnp.isin({0}, {1}, invert={invert})",
    relax=_inverted("relax.op.logical_not(<found>)", "relax.op.greater(relax.op.sum(relax.op.astype(relax.op.equal("
                    "relax.op.expand_dims({0}, -1), {1}), 'int32'), axis=[-1]), relax.const(0, 'int32'))"),
    onnx=_inverted('g.op("Not", <found>)', 'g.op("Greater", g.op("ReduceSum", g.op("Cast", g.op("Equal", '
                   'g.op("Unsqueeze", {0}, g.const([-1], "int64")), {1}), to=TensorProto.INT64), '
                   'g.const([{rank}], "int64"), keepdims=0), g.const(0, "int64"))'),
)  # fmt: skip


def _inverse_type(operands: Types, attrs: Attrs) -> TensorType:
    if operands[0].dtype not in INTEGERS:
        raise TypeRuleError(f"{operands[0]} holds no integers")
    return TensorType("int64", operands[0].shape)


unique_inverse = OpSpec(
    "unique_inverse", "grids", (tensor(INTEGERS, nonempty=True),), _inverse_type,
    lambda args, call: exact(
        np.unique(args[0].value, return_inverse=True)[1].reshape(call.result.shape), "int64",
        bool(args[0].undetermined.any()),
    ),
    torch="torch.unique({0}, return_inverse=True)[1]",
    tensorflow=unsupported("tf.unique numbers elements in the order in which they come"),
    jax="jnp.unique({0}, return_inverse=True, size={0}.size)[1].reshape({shape}).astype(jnp.int64)",
    relax=unsupported("the results of relax.op.unique are of unknown shape"),
    onnx='g.op("Reshape", g.op("Unique", {0}, outputs=3, pick=2, sorted=1), g.const({shape}, "int64"))',
)  # fmt: skip

_NUMBERS = ("float32", "float64", "float16")


def _inverse_of_floats(operands: Types, attrs: Attrs) -> TensorType:
    if operands[0].dtype not in _NUMBERS:
        raise TypeRuleError(f"{operands[0]} holds no floating numbers")
    return TensorType("int64", operands[0].shape)


def _places(args: Sequence[Bounded], call: Call) -> Bounded:
    """NaN equals nothing, or itself; numbers that may be off may be equal: undetermined."""
    x = args[0]
    loose = bool(np.isnan(x.value).any() or x.error.any())
    return exact(np.unique(x.value, return_inverse=True)[1].reshape(call.result.shape), "int64", loose)


unique_inverse_of_floats = replace(
    unique_inverse, name="unique_inverse_of_floats", operands=(tensor(_NUMBERS, nonempty=True),),
    result=_inverse_of_floats, reference=_places,
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (isin, unique_inverse, unique_inverse_of_floats)
