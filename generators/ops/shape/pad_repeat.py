"""Operators that copy elements by a pattern: padding, repeating, diagonals, blocks of pixels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import EVERY, FLOATS, Attr, TensorType
from generators.ops.shape.reshape import ARRAY, DEEP, Array, Attrs, Shape, axis_in, int_of, ints_of, layout, moved
from generators.ops.slots import MAX_ELEMENTS, axis_of, draw_dim, draw_dtype, numeric, tensor, within
from generators.ops.spec import Call, Draw, OpSpec, Slot, Spelling, TypeRuleError, Types

# ---- padding ------------------------------------------------------------------------------------------


def pairs(attrs: Attrs) -> list[tuple[int, int]]:
    """The attribute `pads`, (before, after) of each axis."""
    flat = ints_of(attrs, "pads")
    return list(zip(flat[::2], flat[1::2], strict=True))


def _padded_type(operands: Types, attrs: Attrs) -> TensorType:
    ints_of(attrs, "pads", 2 * operands[0].rank, least=0)
    shape = (dim + sum(pair) for dim, pair in zip(operands[0].shape, pairs(attrs), strict=True))
    return TensorType(operands[0].dtype, tuple(shape))


def _pad_type(operands: Types, attrs: Attrs) -> TensorType:
    value, dtype = attrs["value"], operands[0].dtype
    kind = float if dtype in FLOATS else bool if dtype == "bool" else int
    if type(value) is not kind:
        raise TypeRuleError(f"cannot pad {operands[0]} with {value!r}")
    if kind is int and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
        raise TypeRuleError(f"{value} is not an {dtype}")
    return _padded_type(operands, attrs)


def _pads(d: Draw, operands: Types, attrs: Attrs) -> Shape:
    return tuple(d.choice((0, 1, 2, 0, 3)) for _ in range(2 * operands[0].rank))


def _pad_value(d: Draw, operands: Types, attrs: Attrs) -> Attr:
    dtype = operands[0].dtype
    if dtype == "bool":
        return d.boolean()
    if dtype in FLOATS:
        return d.choice((0.0, 1.0, -0.5, 0.1, -1e4, -0.0))
    return d.choice(within(dtype, (0, 1, -1, 100, 2**31 - 1)))


def _pad(args: Sequence[Bounded], call: Call) -> Bounded:
    x, where, value = args[0], pairs(call.attrs), call.attrs["value"]
    # the value as a number of the dtype: 0.1 is not one of float32
    fill = np.asarray(value, x.dtype).astype(x.value.dtype)
    return Bounded(np.pad(x.value, where, constant_values=fill), np.pad(x.error, where), x.dtype)


def _torch_pads(call: Call) -> list[int]:
    """torch.nn.functional.pad counts the axes from the last one; leading axes without padding are left out, but
    its modes other than "constant" want exactly 1, 2 or 3 axes for inputs of rank 2-3, 3-4 and 4-5."""
    where = pairs(call.attrs)
    while len(where) > max(1, call.result.rank - 2) and where[0] == (0, 0):
        where = where[1:]
    return [n for pair in reversed(where) for n in pair]


def _torch_pad(call: Call) -> str:
    return f"torch.nn.functional.pad({{0}}, {_torch_pads(call)}, value={{value}})"


def _begins_ends(call: Call) -> list[int]:
    """ONNX wants all numbers before, then all after."""
    where = pairs(call.attrs)
    return [before for before, _ in where] + [after for _, after in where]


def _onnx_pad(call: Call) -> str:
    return f'g.op("Pad", {{0}}, g.const({_begins_ends(call)}, "int64"), g.const({{value}}, {{name}}))'


pad = layout(
    "pad", tensor(min_rank=1, max_rank=DEEP), _pad_type, _pad, attrs={"pads": _pads, "value": _pad_value},
    torch=_torch_pad,
    tensorflow=lambda call: f"tf.pad({{0}}, {pairs(call.attrs)}, constant_values={{value}})",
    jax=lambda call: f"jnp.pad({{0}}, {pairs(call.attrs)}, constant_values={{value}})",
    relax='relax.op.nn.pad({0}, {pads}, pad_mode="constant", pad_value={value})', onnx=_onnx_pad,
)  # fmt: skip


Modes = tuple[str, Literal["reflect", "edge", "wrap"], str, str]


def _mirrored(name: str, modes: Modes, most: Callable[[int], int], tensorflow: Spelling) -> OpSpec:
    """Padding with what is there. modes: its names in torch, numpy and JAX, relax, ONNX; most: the greatest
    padding of a dimension that all of them allow. PyTorch pads all axes but the first, of rank 2 to 4."""
    torch, numpy, relax, onnx = modes

    def rule(d: Draw, operands: Types, attrs: Attrs) -> Shape:
        dims = operands[0].shape[1:]
        flat = [min(d.choice((0, 1, 2, 0, 3, 100)), most(dim)) for dim in dims for _ in (0, 1)]
        return (0, 0, *flat)

    def result(operands: Types, attrs: Attrs) -> TensorType:
        type_ = _padded_type(operands, attrs)
        for dim, pair in zip(operands[0].shape, pairs(attrs), strict=True):
            if max(pair) > most(dim):
                raise TypeRuleError(f"cannot pad a dimension of {dim} by {max(pair)}")
        if pairs(attrs)[0] != (0, 0) or operands[0].size == 0:
            raise TypeRuleError("neither the first axis nor an empty tensor can be padded")
        return type_

    return layout(
        name, numeric(min_rank=2, nonempty=True), result,
        moved(lambda x, call: np.pad(x, pairs(call.attrs), mode=numpy)),
        attrs={"pads": rule},
        torch=lambda call: f'torch.nn.functional.pad({{0}}, {_torch_pads(call)}, mode="{torch}")',
        tensorflow=tensorflow,
        jax=lambda call: f'jnp.pad({{0}}, {pairs(call.attrs)}, mode="{numpy}")',
        relax=f'relax.op.nn.pad({{0}}, {{pads}}, pad_mode="{relax}")',
        onnx=lambda call: f'g.op("Pad", {{0}}, g.const({_begins_ends(call)}, "int64"), mode="{onnx}")',
    )  # fmt: skip


pad_reflect = _mirrored(
    "pad_reflect", ("reflect", "reflect", "reflect", "reflect"), lambda dim: dim - 1,
    lambda call: f'tf.pad({{0}}, {pairs(call.attrs)}, mode="REFLECT")',
)  # fmt: skip
pad_edge = _mirrored(
    "pad_edge", ("replicate", "edge", "replicate", "edge"), lambda dim: 4,
    lambda call: f"pad_edge({{0}}, {pairs(call.attrs)})",
)  # fmt: skip
pad_wrap = _mirrored(
    "pad_wrap", ("circular", "wrap", "circular", "wrap"), lambda dim: dim,
    lambda call: f"pad_wrap({{0}}, {pairs(call.attrs)})",
)  # fmt: skip


# ---- repeating ----------------------------------------------------------------------------------------


def _repeats(d: Draw, operands: Types, attrs: Attrs) -> Shape:
    room = MAX_ELEMENTS // max(1, operands[0].size)
    times = []
    for _ in range(operands[0].rank):
        times.append(min(d.choice((1, 2, 1, 3, 5, 0)), max(1, room)))
        room //= max(1, times[-1])
    return tuple(times)


def _tile_type(operands: Types, attrs: Attrs) -> TensorType:
    repeats = ints_of(attrs, "repeats", operands[0].rank, least=0)
    shape = (dim * times for dim, times in zip(operands[0].shape, repeats, strict=True))
    return TensorType(operands[0].dtype, tuple(shape))


tile = layout(
    "tile", ARRAY, _tile_type, moved(lambda x, call: np.tile(x, ints_of(call.attrs, "repeats"))),
    attrs={"repeats": _repeats},
    torch="torch.tile({0}, {repeats})", tensorflow="tf.tile({0}, {repeats})", jax="jnp.tile({0}, {repeats})",
    relax="relax.op.tile({0}, {repeats})", onnx='g.op("Tile", {0}, g.const({repeats}, "int64"))',
)  # fmt: skip


def _repeat_type(operands: Types, attrs: Attrs) -> TensorType:
    times = int_of(attrs, "repeats")
    if times < 1:
        raise TypeRuleError(f"cannot repeat {times} times")
    shape = list(operands[0].shape)
    shape[axis_in(attrs, len(shape))] *= times
    return TensorType(operands[0].dtype, tuple(shape))


def _onnx_repeat(call: Call) -> str:
    axis, times = axis_in(call.attrs, call.result.rank), int_of(call.attrs, "repeats")
    shape = [*call.operands[0].shape]
    shape.insert(axis + 1, times)
    apart = f'g.op("Unsqueeze", {{0}}, g.const([{axis + 1}], "int64"))'
    wide = f'g.op("Expand", {apart}, g.const({shape}, "int64"))'
    zero = ", allowzero=1" if 0 in shape else ""
    return f'g.op("Reshape", {wide}, g.const({{shape}}, "int64"){zero})'


repeat = layout(
    "repeat", ARRAY, _repeat_type,
    moved(lambda x, call: np.repeat(x, int_of(call.attrs, "repeats"), int_of(call.attrs, "axis"))),
    attrs={"repeats": lambda d, operands, attrs: d.choice((2, 1, 3)), "axis": axis_of(0)},
    torch="torch.repeat_interleave({0}, {repeats}, dim={axis})",
    tensorflow="tf.repeat({0}, {repeats}, axis={axis})", jax="jnp.repeat({0}, {repeats}, axis={axis})",
    relax="relax.op.repeat({0}, {repeats}, axis={axis})", onnx=_onnx_repeat,
)  # fmt: skip


# ---- diagonals ----------------------------------------------------------------------------------------


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


# ---- blocks of pixels ---------------------------------------------------------------------------------

BLOCKS = (2, 3)


def _folds(type_: TensorType, block: int) -> bool:
    """Do the channels of this NCHW tensor make up blocks of pixels?"""
    return type_.rank == 4 and type_.size > 0 and type_.shape[1] % (block * block) == 0


def _unfolds(type_: TensorType, block: int) -> bool:
    """Is this NCHW image made of blocks?"""
    return type_.rank == 4 and type_.size > 0 and all(dim % block == 0 for dim in type_.shape[2:])


def _block_slot(fits: Callable[[TensorType, int], bool], channels: bool) -> Slot:
    def fresh(d: Draw, earlier: Types) -> TensorType:
        block = d.choice(BLOCKS)
        n, c = d.choice((1, 2)), d.choice((1, 2, 3))
        h, w = draw_dim(d, 5, zero=False), draw_dim(d, 5, zero=False)
        shape = (n, c * block**2, h, w) if channels else (n, c, h * block, w * block)
        return TensorType(draw_dtype(d, EVERY), shape)

    return Slot(lambda type_, earlier: any(fits(type_, block) for block in BLOCKS), fresh)


TEXTS = {
    "torch": "torch.reshape(torch.permute(torch.reshape({{0}}, {apart}), {perm}), {{shape}})",
    "tensorflow": "tf.reshape(tf.transpose(tf.reshape({{0}}, {apart}), {perm}), {{shape}})",
    "jax": "jnp.reshape(jnp.transpose(jnp.reshape({{0}}, {apart}), {perm}), {{shape}})",
    "relax": "relax.op.reshape(relax.op.permute_dims(relax.op.reshape({{0}}, {apart}), {perm}), {{shape}})",
    "onnx": 'g.op("Reshape", g.op("Transpose", g.op("Reshape", {{0}}, g.const({apart}, "int64")), '
    'perm={perm}), g.const({{shape}}, "int64"))',
}
"""reshape, transpose, reshape: how to say it where there is no operator of its own."""

Apart = Callable[[Shape, int], Shape]


def _blocks(name: str, channels: bool, apart: Apart, perm: Shape, **native: str) -> OpSpec:
    """channels: are blocks made of channels (or channels of blocks)? apart: the operand's shape with blocks as
    axes of their own, which then go through `perm`; native: spellings other than those of TEXTS."""
    fits = _folds if channels else _unfolds

    def block_rule(d: Draw, operands: Types, attrs: Attrs) -> int:
        return d.choice([block for block in BLOCKS if fits(operands[0], block)])

    def result(operands: Types, attrs: Attrs) -> TensorType:
        block = int_of(attrs, "block")
        if block not in BLOCKS or not fits(operands[0], block):
            raise TypeRuleError(f"{operands[0]} has no blocks of {block} by {block}")
        n, c, h, w = operands[0].shape
        s = block**2
        shape = (n, c // s, h * block, w * block) if channels else (n, c * s, h // block, w // block)
        return TensorType(operands[0].dtype, shape)

    def move(x: Array, call: Call) -> Array:
        blocks = x.reshape(apart(call.operands[0].shape, int_of(call.attrs, "block")))
        return blocks.transpose(perm).reshape(call.result.shape)

    def spelling(dialect: str) -> Spelling:
        def plain(call: Call) -> str:
            split = apart(call.operands[0].shape, int_of(call.attrs, "block"))
            return TEXTS[dialect].format(apart=split, perm=perm)

        if dialect != "onnx" or "onnx" not in native:
            return native.get(dialect, plain)
        # DepthToSpace and SpaceToDepth have kernels for floating dtypes only
        return lambda call: native["onnx"] if call.result.dtype in FLOATS else plain(call)

    return layout(
        name, _block_slot(fits, channels), result, moved(move), attrs={"block": block_rule},
        torch=spelling("torch"), tensorflow=spelling("tensorflow"), jax=spelling("jax"),
        relax=spelling("relax"), onnx=spelling("onnx"),
    )  # fmt: skip


def _nhwc(name: str) -> str:
    """TensorFlow's operator between two transpositions: on a CPU it knows NHWC only."""
    return f"tf.transpose(tf.nn.{name}(tf.transpose({{0}}, (0, 2, 3, 1)), {{block}}), (0, 3, 1, 2))"


pixel_shuffle = _blocks(
    "pixel_shuffle", True, lambda s, b: (s[0], s[1] // b**2, b, b, s[2], s[3]), (0, 1, 4, 2, 5, 3),
    torch="torch.pixel_shuffle({0}, {block})", relax="relax.op.nn.pixel_shuffle({0}, {block})",
    onnx='g.op("DepthToSpace", {0}, blocksize={block}, mode="CRD")',
)  # fmt: skip
depth_to_space = _blocks(
    "depth_to_space", True, lambda s, b: (s[0], b, b, s[1] // b**2, s[2], s[3]), (0, 3, 4, 1, 5, 2),
    tensorflow=_nhwc("depth_to_space"), onnx='g.op("DepthToSpace", {0}, blocksize={block}, mode="DCR")',
)  # fmt: skip
pixel_unshuffle = _blocks(
    "pixel_unshuffle", False, lambda s, b: (s[0], s[1], s[2] // b, b, s[3] // b, b), (0, 1, 3, 5, 2, 4),
    torch="torch.pixel_unshuffle({0}, {block})",
)  # fmt: skip
space_to_depth = _blocks(
    "space_to_depth", False, lambda s, b: (s[0], s[1], s[2] // b, b, s[3] // b, b), (0, 3, 5, 1, 2, 4),
    tensorflow=_nhwc("space_to_depth"), onnx='g.op("SpaceToDepth", {0}, blocksize={block})',
)  # fmt: skip

REARRANGE: tuple[OpSpec, ...] = (
    pad, pad_reflect, pad_edge, pad_wrap, tile, repeat, diagonal,
    pixel_shuffle, depth_to_space, pixel_unshuffle, space_to_depth,
)  # fmt: skip
