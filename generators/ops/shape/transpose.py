"""Axes in another order: transpose, swapaxes, moveaxis."""

from __future__ import annotations

import numpy as np

from generators.graph import TensorType
from generators.ops.shape.layout import ARRAY, layout, moved
from generators.ops.slots import ints_of, normalized
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Shape, TypeRuleError, Types


def _pair(d: Draw, operands: Types, attrs: Attrs) -> Shape:
    """Two axes, which may be the same one."""
    rank = operands[0].rank
    return d.choice((*range(rank), *range(-rank, 0))), d.choice((*range(rank), *range(-rank, 0)))


def _two(attrs: Attrs, rank: int) -> tuple[int, int]:
    first, second = ints_of(attrs, "axes", 2)
    return normalized(first, rank)[0], normalized(second, rank)[0]


def _swapped(call: Call) -> list[int]:
    rank = call.result.rank
    first, second = _two(call.attrs, rank)
    perm = list(range(rank))
    perm[first], perm[second] = second, first
    return perm


def _moved(call: Call) -> list[int]:
    """The first of the axes goes where the second is; the others stay in order."""
    rank = call.result.rank
    source, target = _two(call.attrs, rank)
    perm = [axis for axis in range(rank) if axis != source]
    perm.insert(target, source)
    return perm


def _swapped_type(operands: Types, attrs: Attrs) -> TensorType:
    shape = list(operands[0].shape)
    first, second = _two(attrs, len(shape))
    shape[first], shape[second] = shape[second], shape[first]
    return TensorType(operands[0].dtype, tuple(shape))


def _moved_type(operands: Types, attrs: Attrs) -> TensorType:
    shape = list(operands[0].shape)
    source, target = _two(attrs, len(shape))
    shape.insert(target, shape.pop(source))
    return TensorType(operands[0].dtype, tuple(shape))


swapaxes = layout(
    "swapaxes", ARRAY, _swapped_type, moved(lambda x, call: np.swapaxes(x, *_two(call.attrs, x.ndim))),
    attrs={"axes": _pair},
    torch="torch.swapaxes({0}, *{axes})", tensorflow=lambda call: f"tf.transpose({{0}}, {_swapped(call)})",
    jax="jnp.swapaxes({0}, *{axes})", relax=lambda call: f"relax.op.permute_dims({{0}}, {_swapped(call)})",
    onnx=lambda call: f'g.op("Transpose", {{0}}, perm={_swapped(call)})',
)  # fmt: skip

moveaxis = layout(
    "moveaxis", ARRAY, _moved_type, moved(lambda x, call: np.moveaxis(x, *_two(call.attrs, x.ndim))),
    attrs={"axes": _pair},
    torch="torch.movedim({0}, *{axes})", tensorflow=lambda call: f"tf.transpose({{0}}, {_moved(call)})",
    jax="jnp.moveaxis({0}, *{axes})", relax=lambda call: f"relax.op.permute_dims({{0}}, {_moved(call)})",
    onnx=lambda call: f'g.op("Transpose", {{0}}, perm={_moved(call)})',
)  # fmt: skip


def _perm(d: Draw, operands: Types, attrs: Attrs) -> Shape:
    """First that which turns all axes on by one: no axis stays, and the inverse is another one."""
    left = list(range(operands[0].rank))
    left = left[-1:] + left[:-1]
    return tuple(left.pop(d.integer(0, len(left) - 1)) for _ in range(operands[0].rank))


def _transpose_type(operands: Types, attrs: Attrs) -> TensorType:
    perm = ints_of(attrs, "perm")
    if sorted(perm) != list(range(operands[0].rank)):
        raise TypeRuleError(f"{perm} is no permutation of the axes of {operands[0]}")
    return TensorType(operands[0].dtype, tuple(operands[0].shape[axis] for axis in perm))


transpose = layout(
    "transpose", ARRAY, _transpose_type, moved(lambda x, call: x.transpose(ints_of(call.attrs, "perm"))),
    attrs={"perm": _perm},
    torch="torch.permute({0}, {perm})", tensorflow="tf.transpose({0}, {perm})",
    jax="jnp.transpose({0}, {perm})", relax="relax.op.permute_dims({0}, {perm})",
    onnx='g.op("Transpose", {0}, perm={perm})',
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (transpose, swapaxes, moveaxis)
