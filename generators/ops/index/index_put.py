"""Sums into places that one tensor of indices names (index_add), or several (index_put)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import Bounded
from generators.bounds.sums import summed
from generators.graph import FLOATS, TensorType
from generators.ops.index.gather import least
from generators.ops.index.scatter import summed_at
from generators.ops.shape.layout import joinable
from generators.ops.slots import INDEX_DTYPES, MAX_ELEMENTS, axis_in, computed, draw_dim, numeric, tensor
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Slot, TypeRuleError, Types

# ---- several tensors of indices -----------------------------------------------------------------------


def _least_side(earlier: Types) -> tuple[int, int]:
    return 0, min(earlier[0].shape[:2]) - 1


def _places(rank: int) -> Slot:
    """Indices of the first two axes; those of rank 2 and 1 broadcast with each other."""

    def accepts(type_: TensorType, earlier: Types) -> bool:
        if type_.dtype not in INDEX_DTYPES or type_.rank != rank or type_.size > 32:
            return False
        return len(earlier) < 2 or (type_.dtype == earlier[1].dtype and type_.shape == earlier[1].shape[1:])

    def fresh(d: Draw, earlier: Types) -> TensorType:
        if len(earlier) < 2:
            return TensorType(d.choice(INDEX_DTYPES), tuple(draw_dim(d, 4) for _ in range(rank)))
        return TensorType(earlier[1].dtype, earlier[1].shape[1:])

    return Slot(accepts, fresh, _least_side)


def _added(earlier: Types) -> TensorType:
    return TensorType(earlier[0].dtype, (*earlier[1].shape, *earlier[0].shape[2:]))


def _index_put_type(operands: Types, attrs: Attrs) -> TensorType:
    x, rows, columns, values = operands
    if x.dtype not in FLOATS or x.rank < 2 or columns.shape != rows.shape[1:] or values != _added(operands):
        raise TypeRuleError(f"{values} cannot be added to {x} at {rows} and {columns}")
    return x


def _index_put(args: Sequence[Bounded], call: Call) -> Bounded:
    """Each place a sum of what was there and all that is added, in any order."""
    x, rows, columns, values = args
    at = np.broadcast_arrays(rows.value.astype(np.int64), columns.value.astype(np.int64))
    most = int(np.bincount(np.ravel_multi_index([a.ravel() for a in at], x.value.shape[:2]), minlength=1).max())
    layers = [x.map(lambda a: a[None])]
    # the terms of one place side by side, zeros where there are fewer
    seen: dict[tuple[int, int], int] = {}
    extra, error = (np.zeros((most, *x.value.shape)) for _ in range(2))
    for place in np.ndindex(*at[0].shape):
        spot = (int(at[0][place]), int(at[1][place]))
        layer = seen[spot] = seen.get(spot, -1) + 1
        extra[(layer, *spot)], error[(layer, *spot)] = values.value[place], values.error[place]
    layers.append(Bounded(extra, error, x.dtype))
    value, bound = (np.concatenate([getattr(b, k) for b in layers]) for k in ("value", "error"))
    return summed(Bounded(value, bound, x.dtype), lambda array: np.sum(array, axis=0), most + 1)


index_put = OpSpec(
    "index_put", "indexing",
    (tensor(FLOATS, 2, 3, nonempty=True), _places(2), _places(1), computed(_added)), _index_put_type, _index_put,
    torch="torch.index_put({0}, ({1}, {2}), {3}, accumulate=True)",
    tensorflow="tf.tensor_scatter_nd_add({0}, tf.stack([{1}, tf.broadcast_to({2}, {shape1})], -1), {3})",
    jax="jnp.asarray({0}).at[{1}, {2}].add({3})", relax="index_put({0}, {1}, {2}, {3}, {shape1})",
    onnx="index_put(g, {0}, {1}, {2}, {3}, {shape1})",
)  # fmt: skip

# ---- one tensor of indices ----------------------------------------------------------------------------


def _row_axes(operands: Types) -> tuple[int, ...]:
    """The axes of operand 0 on which the rows of operand 2 may be those that operand 1 counts."""
    x, indices, update = operands
    return tuple(a for a in joinable([x.shape, update.shape]) if (update.shape[a],) == indices.shape)


def _accepts_rows(type_: TensorType, earlier: Types) -> bool:
    return type_.dtype == earlier[0].dtype and bool(_row_axes((*earlier[:2], type_)))


def _fresh_rows(d: Draw, earlier: Types) -> TensorType:
    shape = list(earlier[0].shape)
    axis = d.choice([*(a for a, dim in enumerate(shape) if dim == min(shape)), *range(len(shape))])
    shape[axis] = earlier[1].shape[0]
    return TensorType(earlier[0].dtype, tuple(shape))


def _row_axis(d: Draw, operands: Types, attrs: Attrs) -> int:
    axes = _row_axes(operands)
    return d.choice((*axes, *(axis - operands[0].rank for axis in axes)))


def _index_add_type(operands: Types, attrs: Attrs) -> TensorType:
    if operands[0].dtype != operands[2].dtype or axis_in(attrs, operands[0].rank) not in _row_axes(operands):
        raise TypeRuleError(f"{operands[2]} holds no {operands[1].size} rows of {operands[0]}")
    return operands[0]


def _index_add(args: Sequence[Bounded], call: Call) -> Bounded:
    x, indices, update = args
    return summed_at(x, update, (*(slice(None),) * axis_in(call.attrs, x.value.ndim), indices.value))


def _jax_index_add(call: Call) -> str:
    return f"{{0}}.at[{':, ' * axis_in(call.attrs, call.result.rank)}{{1}}].add({{2}})"


index_add = OpSpec(
    "index_add", "indexing",
    (
        numeric(min_rank=1, nonempty=True),
        Slot(
            lambda type_, earlier: type_.dtype in INDEX_DTYPES and type_.rank == 1,
            lambda d, earlier: TensorType(
                d.choice(INDEX_DTYPES), (draw_dim(d, MAX_ELEMENTS * min(earlier[0].shape) // earlier[0].size),)
            ),
            least,
        ),
        Slot(_accepts_rows, _fresh_rows),
    ),
    _index_add_type, _index_add, attrs={"axis": _row_axis},
    torch="torch.index_add({0}, {axis}, {1}, {2})", tensorflow="index_add({0}, {axis}, {1}, {2})",
    jax=_jax_index_add, relax="index_add({0}, {axis}, {1}, {2})",
    onnx="index_add(g, {0}, {axis}, {1}, {2}, {shape2})",
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (index_put, index_add)
