"""Grids of coordinates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import TensorType
from generators.ops.slots import MAX_ELEMENTS, draw_dim, int_of, one_of, tensor
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Slot, Spelling, TypeRuleError, Types


def _beside(type_: TensorType, earlier: Types) -> bool:
    return type_.dtype == earlier[0].dtype and type_.rank == 1 and type_.size * earlier[0].size <= MAX_ELEMENTS


def _fresh_beside(d: Draw, earlier: Types) -> TensorType:
    return TensorType(earlier[0].dtype, (draw_dim(d, max(1, MAX_ELEMENTS // max(1, earlier[0].size))),))


def _grid_type(operands: Types, attrs: Attrs) -> TensorType:
    if any(o.rank != 1 for o in operands) or not _beside(operands[1], operands[:1]):
        raise TypeRuleError(f"no grid of {operands[0]} and {operands[1]}")
    if attrs["indexing"] not in ("ij", "xy") or attrs["pick"] not in (0, 1):
        raise TypeRuleError(f"no grid by {attrs['indexing']!r} and {attrs['pick']}")
    shape = (operands[0].size, operands[1].size)
    return TensorType(operands[0].dtype, shape if attrs["indexing"] == "ij" else shape[::-1])


def _along(call: Call) -> int:
    """The axis of the grid along which the picked operand lies."""
    return int_of(call.attrs, "pick") if call.attrs["indexing"] == "ij" else 1 - int_of(call.attrs, "pick")


def _grid(args: Sequence[Bounded], call: Call) -> Bounded:
    x, other = args[int_of(call.attrs, "pick")], 1 - _along(call)
    return x.map(lambda array: np.broadcast_to(np.expand_dims(array, other), call.result.shape))


def _spread(text: str) -> Spelling:
    """The picked operand with a new axis."""
    return lambda call: text.replace("<x>", f"{{{call.attrs['pick']}}}").replace("<axis>", str(1 - _along(call)))


meshgrid = OpSpec(
    "meshgrid", "grids", (tensor(min_rank=1, max_rank=1), Slot(_beside, _fresh_beside)), _grid_type, _grid,
    attrs={"indexing": one_of("ij", "xy"), "pick": one_of(0, 1)}, signed_zero=True,
    torch="torch.meshgrid({0}, {1}, indexing={indexing})[{pick}].contiguous()",
    tensorflow="tf.meshgrid({0}, {1}, indexing={indexing})[{pick}]",
    jax="jnp.meshgrid({0}, {1}, indexing={indexing})[{pick}]",
    relax=_spread("relax.op.broadcast_to(relax.op.expand_dims(<x>, <axis>), {shape})"),
    onnx=_spread('g.op("Expand", g.op("Unsqueeze", <x>, g.const([<axis>], "int64")), g.const({shape}, "int64"))'),
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (meshgrid,)
