"""Diagonals of matrices: taken, laid out, of blocks; and what lies on one side of them (tril, triu)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import EVERY, TensorType
from generators.ops.shape.layout import Array, joined, layout, moved
from generators.ops.slots import draw_dim, draw_dtype, int_of, tensor
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Slot, TypeRuleError, Types

# ---- laid out -----------------------------------------------------------------------------------------


def _embedded_type(operands: Types, attrs: Attrs) -> TensorType:
    *batch, n = operands[0].shape
    size = n + abs(int_of(attrs, "offset"))
    return TensorType(operands[0].dtype, (*batch, size, size))


def _embedded(x: Array, call: Call) -> Array:
    offset, n = int_of(call.attrs, "offset"), x.shape[-1]
    result = np.zeros(call.result.shape, x.dtype)
    index = np.arange(n)
    result[..., index + max(0, -offset), index + max(0, offset)] = x
    return result


def _few(type_: TensorType, earlier: Types) -> bool:
    return type_.rank in (1, 2) and 0 not in type_.shape and type_.shape[-1] <= 9 and type_.size <= 32


def _fresh_few(d: Draw, earlier: Types) -> TensorType:
    n = draw_dim(d, 9, zero=False)
    batch = (draw_dim(d, 3, zero=False),) if d.boolean() else ()
    return TensorType(draw_dtype(d, EVERY), (*batch, n))


diag_embed = layout(
    "diag_embed", Slot(_few, _fresh_few), _embedded_type, moved(_embedded),
    attrs={"offset": lambda d, operands, attrs: d.choice((0, 1, -1, 2, -3))},
    torch="torch.diag_embed({0}, {offset})", tensorflow="tf.linalg.diag({0}, k={offset})",
    jax="diag_embed({0}, {offset})", relax="diag_embed(bb, {0}, {offset}, {shape0}, {name0})",
    onnx="diag_embed(g, {0}, {offset}, {shape0}, {name0})",
)  # fmt: skip


def _block_type(operands: Types, attrs: Attrs) -> TensorType:
    if any(t.rank != 2 or t.dtype != operands[0].dtype for t in operands):
        raise TypeRuleError(f"no blocks of one dtype: {', '.join(map(str, operands))}")
    shape = (sum(t.shape[0] for t in operands), sum(t.shape[1] for t in operands))
    return TensorType(operands[0].dtype, shape)


def _blocks(arrays: list[Array], call: Call) -> Array:
    result = np.zeros(call.result.shape, arrays[0].dtype)
    row = column = 0
    for array in arrays:
        rows, columns = array.shape
        result[row : row + rows, column : column + columns] = array
        row, column = row + rows, column + columns
    return result


def _accepts_block(type_: TensorType, earlier: Types) -> bool:
    same = not earlier or type_.dtype == earlier[0].dtype
    return same and type_.rank == 2 and type_.size > 0 and sum(type_.shape) <= 30


def _fresh_block(d: Draw, earlier: Types) -> TensorType:
    dtype = earlier[0].dtype if earlier else draw_dtype(d, EVERY)
    return TensorType(dtype, (draw_dim(d, 9, zero=False), draw_dim(d, 9, zero=False)))


block_diag = OpSpec(
    "block_diag", "layout", (Slot(_accepts_block, _fresh_block), Slot(_accepts_block, _fresh_block)), _block_type,
    joined(_blocks), signed_zero=True,
    torch="torch.block_diag({0}, {1})", tensorflow="block_diag({0}, {1})",
    jax="jax.scipy.linalg.block_diag({0}, {1})",
    relax="block_diag({0}, {1}, {shape0}, {shape1}, {name})",
    onnx="block_diag(g, {0}, {1}, {shape0}, {shape1}, {name})",
)  # fmt: skip


def _diagonal(d: Draw, operands: Types, attrs: Attrs) -> int:
    """From beyond the lower left corner, which leaves nothing, to beyond the upper right one."""
    rows, columns = operands[0].shape[-2:]
    return d.choice((0, 1, -1, 2, -2, columns, -rows, columns - 1, 1 - rows))


def _matrices(operands: Types, attrs: Attrs) -> TensorType:
    if operands[0].rank < 2:
        raise TypeRuleError(f"{operands[0]} holds no matrix")
    if type(attrs["k"]) is not int:
        raise TypeRuleError(f"diagonal {attrs['k']!r} is not an int")
    return operands[0]


def _triangle(name: str, upper: int) -> OpSpec:
    """`k` counts diagonals upwards from the main one. Elements are copied or zero."""
    f = getattr(np, name)

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        return args[0].map(lambda array: f(array, call.attrs["k"]).astype(array.dtype))

    return OpSpec(
        name, "scan", (tensor(min_rank=2),), _matrices, reference, attrs={"k": _diagonal}, signed_zero=True,
        torch=f"torch.{name}({{0}}, diagonal={{k}})", tensorflow=f"{name}({{0}}, {{k}})",
        jax=f"jnp.{name}({{0}}, k={{k}})", relax=f"relax.op.{name}({{0}}, k={{k}})",
        onnx=f'g.op("Trilu", {{0}}, g.const({{k}}, "int64"), upper={upper})',
    )  # fmt: skip


# ---- taken --------------------------------------------------------------------------------------------


def _offset(d: Draw, operands: Types, attrs: Attrs) -> int:
    rows, columns = operands[0].shape[-2:]
    return d.choice((0, *range(1, columns), *range(-1, -rows, -1)))


def _diagonal_type(operands: Types, attrs: Attrs) -> TensorType:
    offset, (*batch, rows, columns) = int_of(attrs, "offset"), operands[0].shape
    length = min(rows + min(offset, 0), columns - max(offset, 0))
    if length < 1:
        raise TypeRuleError(f"{operands[0]} has no diagonal {offset}")
    return TensorType(operands[0].dtype, (*batch, length))


def _diagonal_text(call: Call, reshaped: str, taken: str) -> str:
    """Through the matrix as a row: elements of a diagonal lie one more than a row apart."""
    *batch, length = call.result.shape
    rows, columns = call.operands[0].shape[-2:]
    offset = int_of(call.attrs, "offset")
    first = offset if offset >= 0 else -offset * columns
    places = [first + i * (columns + 1) for i in range(length)]
    return taken.format(reshaped.format((*batch, rows * columns)), places)


diagonal = layout(
    "diagonal", tensor(min_rank=2, nonempty=True), _diagonal_type,
    moved(lambda x, call: np.diagonal(x, int_of(call.attrs, "offset"), -2, -1)),
    attrs={"offset": _offset},
    torch="torch.diagonal({0}, {offset}, -2, -1)", tensorflow="tf.linalg.diag_part({0}, k={offset})",
    jax="jnp.diagonal({0}, {offset}, -2, -1)",
    relax=lambda call: _diagonal_text(
        call, "relax.op.reshape({{0}}, {0})", 'relax.op.take({0}, relax.const({1}, "int64"), axis=-1)'
    ),
    onnx=lambda call: _diagonal_text(
        call, 'g.op("Reshape", {{0}}, g.const({0}, "int64"))',
        'g.op("Gather", {0}, g.const({1}, "int64"), axis=-1)',
    ),
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (
    diagonal,
    diag_embed,
    block_diag,
    _triangle("tril", 0),
    _triangle("triu", 1),
)
