"""Layout operators beside those of layout, pieces and rearrange: swapped and moved axes, turned matrices, slices
with negative steps, matrices on a diagonal, shuffled channels, windows as columns."""

from __future__ import annotations

from math import prod

import numpy as np

from generators.graph import EVERY, TensorType
from generators.ops.shape.join_split import joined
from generators.ops.shape.pad_repeat import TEXTS
from generators.ops.shape.reshape import ARRAY, Array, Attrs, Shape, axis_in, int_of, ints_of, layout, moved
from generators.ops.slots import axes_of, axis_of, draw_dim, draw_dtype, normalized, tensor
from generators.ops.spec import Call, Draw, OpSpec, Slot, Spelling, TypeRuleError, Types

# ---- axes ---------------------------------------------------------------------------------------------


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


def _turned_type(operands: Types, attrs: Attrs) -> TensorType:
    *rest, rows, columns = operands[0].shape
    turned = (columns, rows) if int_of(attrs, "k") % 2 else (rows, columns)
    return TensorType(operands[0].dtype, (*rest, *turned))


def _turn(flip: str, transpose: str) -> Spelling:
    """Counter-clockwise by k quarters: transposed and flipped, or flipped both ways. %x: operand, %a: axes."""

    def spell(call: Call) -> str:
        rank, k = call.result.rank, int_of(call.attrs, "k") % 4
        rows, columns = rank - 2, rank - 1
        if k == 0:
            return "{0}"
        if k == 2:
            return flip.replace("%x", "{0}").replace("%a", f"({rows}, {columns})")
        perm = (*range(rows), columns, rows)
        swapped = transpose.replace("%x", "{0}").replace("%a", str(perm))
        return flip.replace("%x", swapped).replace("%a", f"({rows if k == 1 else columns},)")

    return spell


rot90 = layout(
    "rot90", tensor(min_rank=2), _turned_type, moved(lambda x, call: np.rot90(x, int_of(call.attrs, "k"), (-2, -1))),
    attrs={"k": lambda d, operands, attrs: d.choice((1, 2, 3, -1, 5))},
    torch="torch.rot90({0}, {k}, (-2, -1))", tensorflow=_turn("tf.reverse(%x, %a)", "tf.transpose(%x, %a)"),
    jax="jnp.rot90({0}, {k}, (-2, -1))", relax=_turn("flip(%x, %a)", "relax.op.permute_dims(%x, %a)"),
    onnx=_turn("flip(g, %x, %a)", 'g.op("Transpose", %x, perm=%a)'),
)  # fmt: skip


def _unflattened(d: Draw, operands: Types, attrs: Attrs) -> Shape:
    dim = operands[0].shape[axis_in(attrs, operands[0].rank)]
    factors = tuple(n for n in range(1, dim + 1) if dim % n == 0)
    first = d.choice(factors) if factors else 2
    return first, dim // first


def _unflatten_type(operands: Types, attrs: Attrs) -> TensorType:
    axis, sizes = axis_in(attrs, operands[0].rank), ints_of(attrs, "sizes", least=0)
    shape = operands[0].shape
    if not sizes or prod(sizes) != shape[axis]:
        raise TypeRuleError(f"cannot make {sizes} of a dimension of {shape[axis]}")
    return TensorType(operands[0].dtype, (*shape[:axis], *sizes, *shape[axis + 1 :]))


unflatten = layout(
    "unflatten", tensor(min_rank=1), _unflatten_type, moved(lambda x, call: x.reshape(call.result.shape)),
    attrs={"axis": axis_of(0), "sizes": _unflattened},
    torch="torch.unflatten({0}, {axis}, {sizes})", tensorflow="tf.reshape({0}, {shape})",
    jax="jnp.reshape({0}, {shape})", relax="relax.op.reshape({0}, {shape})",
    onnx='g.op("Reshape", {0}, g.const({shape}, "int64"), allowzero=1)',
)  # fmt: skip


def _shifts(d: Draw, operands: Types, attrs: Attrs) -> Shape:
    return tuple(d.choice((1, -1, 2, 0, 40, -7)) for _ in ints_of(attrs, "axes"))


def _roll_type(operands: Types, attrs: Attrs) -> TensorType:
    axes = normalized(ints_of(attrs, "axes"), operands[0].rank)
    ints_of(attrs, "shifts", len(axes))
    if not axes:
        raise TypeRuleError("no axes to roll")
    return operands[0]


def _rolled(roll: str, close: str) -> Spelling:
    """`roll` of operand, place and axis, once for each axis: the elements from that place on come first."""

    def spell(call: Call) -> str:
        text, shape = "{0}", call.result.shape
        axes, shifts = ints_of(call.attrs, "axes"), ints_of(call.attrs, "shifts")
        for axis, shift in zip(normalized(axes, len(shape)), shifts, strict=True):
            text = f"{roll}{text}, {-shift % shape[axis] if shape[axis] else 0}, {axis}{close}"
        return text

    return spell


roll_axes = layout(
    "roll_axes", ARRAY, _roll_type,
    moved(lambda x, call: np.roll(x, ints_of(call.attrs, "shifts"), ints_of(call.attrs, "axes"))),
    attrs={"axes": axes_of(0), "shifts": _shifts},
    torch="torch.roll({0}, {shifts}, {axes})", tensorflow="tf.roll({0}, {shifts}, {axes})",
    jax="jnp.roll({0}, {shifts}, {axes})",
    relax=_rolled("bb.emit(roll(", "))"), onnx=_rolled("roll(g, ", ")"),
)  # fmt: skip


# ---- backwards ----------------------------------------------------------------------------------------


def _backward_starts(d: Draw, operands: Types, attrs: Attrs) -> Shape:
    return tuple(d.choice((dim - 1, 0, dim // 2)) for dim in operands[0].shape)


def _backward_type(operands: Types, attrs: Attrs) -> TensorType:
    rank = operands[0].rank
    starts, steps = ints_of(attrs, "starts", rank, least=0), ints_of(attrs, "steps", rank, least=1)
    if any(start >= dim for start, dim in zip(starts, operands[0].shape, strict=True)):
        raise TypeRuleError(f"{starts} lies outside {operands[0]}")
    return TensorType(operands[0].dtype, tuple(start // step + 1 for start, step in zip(starts, steps, strict=True)))


def _backward(x: Array, call: Call) -> Array:
    starts, steps = ints_of(call.attrs, "starts"), ints_of(call.attrs, "steps")
    return x[tuple(slice(start, None, -step) for start, step in zip(starts, steps, strict=True))]


def _subscript(call: Call) -> str:
    starts, steps = ints_of(call.attrs, "starts"), ints_of(call.attrs, "steps")
    return f"{{0}}[{', '.join(f'{start}::{-step}' for start, step in zip(starts, steps, strict=True))}]"


def _backward_torch(call: Call) -> str:
    """PyTorch has no negative steps: what comes before the start is flipped first."""
    starts, steps = ints_of(call.attrs, "starts"), ints_of(call.attrs, "steps")
    before = ", ".join(f":{start + 1}" for start in starts)
    after = ", ".join(f"::{step}" for step in steps)
    return f"torch.flip({{0}}[{before}], {tuple(range(len(starts)))})[{after}]"


slice_backwards = layout(
    "slice_backwards", tensor(min_rank=1, nonempty=True), _backward_type, moved(_backward),
    attrs={"starts": _backward_starts, "steps": lambda d, operands, attrs: tuple(
        d.choice((1, 2, 1, 3, 40)) for _ in operands[0].shape)},
    torch=_backward_torch, tensorflow=_subscript, jax=_subscript,
    relax="slice_backwards({0}, {starts}, {steps})", onnx="slice_backwards(g, {0}, {starts}, {steps})",
)  # fmt: skip

# ---- diagonals ----------------------------------------------------------------------------------------


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

# ---- channels -----------------------------------------------------------------------------------------


def _groups(d: Draw, operands: Types, attrs: Attrs) -> int:
    channels = operands[0].shape[1]
    return d.choice(tuple(g for g in (2, 3, 1, 4, channels) if channels % g == 0))


def _shuffle_type(operands: Types, attrs: Attrs) -> TensorType:
    groups = int_of(attrs, "groups")
    if operands[0].rank != 4 or groups < 1 or operands[0].shape[1] % groups:
        raise TypeRuleError(f"{operands[0]} has no {groups} groups of channels")
    return operands[0]


def _apart(call: Call) -> tuple[int, ...]:
    n, channels, *spatial = call.result.shape
    groups = int_of(call.attrs, "groups")
    return (n, groups, channels // groups, *spatial)


def _shuffled(x: Array, call: Call) -> Array:
    return x.reshape(_apart(call)).swapaxes(1, 2).reshape(x.shape)


def _shuffle_text(dialect: str) -> Spelling:
    return lambda call: TEXTS[dialect].format(apart=_apart(call), perm=(0, 2, 1, 3, 4))


channel_shuffle = layout(
    "channel_shuffle", tensor(min_rank=4, nonempty=True), _shuffle_type, moved(_shuffled), attrs={"groups": _groups},
    torch="torch.nn.functional.channel_shuffle({0}, {groups})", tensorflow=_shuffle_text("tensorflow"),
    jax=_shuffle_text("jax"), relax=_shuffle_text("relax"), onnx=_shuffle_text("onnx"),
)  # fmt: skip

PLACES: tuple[OpSpec, ...] = (
    swapaxes, moveaxis, rot90, unflatten, roll_axes, slice_backwards, diag_embed, block_diag, channel_shuffle,
)  # fmt: skip
