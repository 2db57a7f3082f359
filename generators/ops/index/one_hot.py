"""One-hot vectors of classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import Bounded, exact
from generators.graph import TensorType
from generators.ops.index.gather import indexing
from generators.ops.slots import CLASSES, MAX_ELEMENTS, MAX_RANK, axis_in, draw_dim, index_slot, int_of, one_of
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Slot, TypeRuleError, Types, unsupported


def _one_hot_axis(d: Draw, operands: Types, attrs: Attrs) -> int:
    return d.choice((-1, *range(operands[0].rank + 1)))


def _one_hot_type(operands: Types, attrs: Attrs) -> TensorType:
    depth, axis, shape = int_of(attrs, "depth"), int_of(attrs, "axis"), list(operands[0].shape)
    if depth < CLASSES or not -1 <= axis <= len(shape):
        raise TypeRuleError(f"no one-hot of depth {depth} along axis {axis} for {operands[0]}")
    shape.insert(len(shape) if axis == -1 else axis, depth)
    return TensorType("float32", tuple(shape))


def _one_hot(args: Sequence[Bounded], call: Call) -> Bounded:
    indices, axis = args[0].value, axis_in(call.attrs, call.result.rank)
    classes = np.arange(int_of(call.attrs, "depth")).reshape((-1,) + (1,) * (indices.ndim - axis))
    return exact((np.expand_dims(indices, axis) == classes).astype(np.float64), "float32")


def _torch_one_hot(call: Call) -> str:
    text = "torch.nn.functional.one_hot({0}.long(), {depth}).to({dtype})"
    return text if call.attrs["axis"] in (-1, call.operands[0].rank) else f"torch.movedim({text}, -1, {{axis}})"


one_hot = indexing(
    "one_hot", (index_slot(1, MAX_RANK - 1, lambda earlier: (0, CLASSES - 1)),), _one_hot_type, _one_hot,
    attrs={"depth": lambda d, operands, attrs: d.choice((CLASSES, 5, 9, 17)), "axis": _one_hot_axis},
    torch=_torch_one_hot, tensorflow="tf.one_hot({0}, {depth}, axis={axis})",
    jax="jax.nn.one_hot({0}, {depth}, axis={axis}, dtype={dtype})",
    relax='relax.op.one_hot({0}, tvm.tirx.FloatImm({name}, 1.0), tvm.tirx.FloatImm({name}, 0.0), {depth}, '
    "axis={axis})",
    onnx='g.op("OneHot", {0}, g.const({depth}, {name0}), g.const([0, 1], {name}), axis={axis})',
)  # fmt: skip

# ---- more classes than indices can count ----------------------------------------------------------------

_FEW, _NARROW, _LEAST = 6, ("uint8", "int8"), 101
"""Indices of a byte, and the classes that all of them have."""


def _deep_type(operands: Types, attrs: Attrs) -> TensorType:
    x, depth = operands[0], int_of(attrs, "depth")
    if x.dtype not in _NARROW or x.rank != 1 or x.size > _FEW or not _LEAST <= depth <= MAX_ELEMENTS // _FEW:
        raise TypeRuleError(f"no one-hot of depth {depth} for {x}")
    return _one_hot_type(operands, attrs)


one_hot_deep = indexing(
    "one_hot_deep",
    (Slot(lambda t, e: t.dtype in _NARROW and t.rank == 1 and t.size <= _FEW,
          lambda d, e: TensorType(d.choice(_NARROW), (draw_dim(d, _FEW),)), lambda earlier: (0, _LEAST - 1)),),
    _deep_type, _one_hot, attrs={"depth": one_of(300, 257, 256, 129, 101), "axis": _one_hot_axis},
    torch=one_hot.torch, tensorflow=one_hot.tensorflow, jax=one_hot.jax, relax=one_hot.relax,
    onnx=unsupported("its kernels take indices of 32 and 64 bits"),
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (one_hot, one_hot_deep)
