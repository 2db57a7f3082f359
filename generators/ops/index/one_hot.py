"""One-hot vectors of classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import Bounded, exact
from generators.graph import TensorType
from generators.ops.index.gather import indexing
from generators.ops.slots import CLASSES, MAX_RANK, axis_in, index_slot, int_of
from generators.ops.spec import Attrs, Call, Draw, OpSpec, TypeRuleError, Types


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

OPERATORS: tuple[OpSpec, ...] = (one_hot,)
