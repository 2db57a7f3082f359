"""Channels and blocks of pixels: pixel_shuffle, depth_to_space and their inverses, channel_shuffle."""

from __future__ import annotations

from collections.abc import Callable

from generators.graph import EVERY, FLOATS, TensorType
from generators.ops.shape.layout import Array, layout, moved
from generators.ops.slots import draw_dim, draw_dtype, int_of, tensor
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Shape, Slot, Spelling, TypeRuleError, Types

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
        kernels = (*FLOATS, "int8", "uint8")  # of DepthToSpace and SpaceToDepth
        return lambda call: native["onnx"] if call.result.dtype in kernels else plain(call)

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

OPERATORS: tuple[OpSpec, ...] = (pixel_shuffle, pixel_unshuffle, depth_to_space, space_to_depth, channel_shuffle)
