"""Blocks of pixels as batches, and back, with zeros around them or cut off: what TensorFlow makes dilated convolutions
of. Images are (N, spatial…, rest…)."""

from __future__ import annotations

from math import prod

import numpy as np

from generators.graph import EVERY, TensorType
from generators.ops.composed import shared
from generators.ops.shape.layout import Array, layout, moved
from generators.ops.slots import draw_dim, draw_dtype, ints_of
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Shape, Slot, Spelling, TypeRuleError, Types

BLOCKS: tuple[Shape, ...] = ((2, 2), (1, 2), (3,), (2,), (2, 3), (1, 1))


def _accepts(type_: TensorType, earlier: Types) -> bool:
    return type_.dtype in EVERY and 3 <= type_.rank <= 4 and 0 < type_.size <= 512


def _fresh(d: Draw, earlier: Types) -> TensorType:
    batch, high, wide = d.choice((1, 2, 4, 6)), draw_dim(d, 6, zero=False), draw_dim(d, 6, zero=False)
    return TensorType(draw_dtype(d, EVERY), (batch, high, wide, *((2,) if d.boolean() else ())))


_IMAGES = Slot(_accepts, _fresh)


def _spatial(operands: Types, attrs: Attrs) -> tuple[Shape, Shape, Shape]:
    """The block, and what is added or cut off in front and behind."""
    if not _accepts(operands[0], ()):
        raise TypeRuleError(f"{operands[0]} has no blocks")
    block = ints_of(attrs, "block", least=1)
    if not 1 <= len(block) <= 2:
        raise TypeRuleError(f"no block {block}")
    pads = ints_of(attrs, "pads", 2 * len(block), 0)
    if any(p > 9 for p in pads):
        raise TypeRuleError(f"no {pads} pixels around")
    return block, pads[::2], pads[1::2]


# ---- to batches ---------------------------------------------------------------------------------------


def _padding(d: Draw, operands: Types, attrs: Attrs) -> Shape:
    """Enough behind to fill the last block, and sometimes a pixel or a block more."""
    pads: list[int] = []
    for size, b in zip(operands[0].shape[1:], ints_of(attrs, "block"), strict=False):
        front = d.choice((0, 1, 3))
        pads += [front, -(size + front) % b + d.choice((0, b))]
    return tuple(pads)


def _batches_type(operands: Types, attrs: Attrs) -> TensorType:
    block, front, behind = _spatial(operands, attrs)
    n, *sizes = operands[0].shape
    for i, b in enumerate(block):
        sizes[i] += front[i] + behind[i]
        if sizes[i] % b:
            raise TypeRuleError(f"blocks of {b} do not fill {sizes[i]} pixels")
        sizes[i] //= b
    return TensorType(operands[0].dtype, (n * prod(block), *sizes))


def _to_batches(x: Array, call: Call) -> Array:
    block, front, behind = _spatial(call.operands, call.attrs)
    m, rest = len(block), x.ndim - len(block) - 1
    x = np.pad(x, [(0, 0), *zip(front, behind, strict=True), *[(0, 0)] * rest])
    split = [x.shape[0]]
    for size, b in zip(x.shape[1:], block, strict=False):
        split += [size // b, b]
    x = x.reshape(*split, *x.shape[m + 1 :])
    order = (*range(2, 2 * m + 1, 2), 0, *range(1, 2 * m + 1, 2), *range(2 * m + 1, x.ndim))
    return x.transpose(order).reshape(call.result.shape)


def _pairs(call: Call) -> tuple[list[int], list[list[int]]]:
    block, front, behind = _spatial(call.operands, call.attrs)
    return list(block), [list(pair) for pair in zip(front, behind, strict=True)]


def _tensorflow(kind: str, pads: str) -> Spelling:
    """The first version, of square blocks, too."""

    def spell(call: Call) -> str:
        block, pairs = _pairs(call)
        if call.result.rank == 4 and len(set(block)) == 1 and len(block) == 2 and block[0] > 1:
            return f"tf.raw_ops.{kind}(input={{0}}, {pads}={pairs}, block_size={block[0]})"
        return f"tf.raw_ops.{kind}ND(input={{0}}, block_shape={block}, {pads}={pairs})"

    return spell


_SPACE, _BATCH = shared("space_to_batch"), shared("batch_to_space")
space_to_batch = layout(
    "space_to_batch", _IMAGES, _batches_type, moved(_to_batches),
    attrs={"block": lambda d, operands, attrs: d.choice(BLOCKS), "pads": _padding},
    **{**_SPACE, "tensorflow": _tensorflow("SpaceToBatch", "paddings")},
)  # fmt: skip

# ---- and back -----------------------------------------------------------------------------------------


def _block(d: Draw, operands: Types, attrs: Attrs) -> Shape:
    return d.choice(tuple(b for b in BLOCKS if operands[0].shape[0] % prod(b) == 0))


def _crops(d: Draw, operands: Types, attrs: Attrs) -> Shape:
    crops: list[int] = []
    for size, b in zip(operands[0].shape[1:], ints_of(attrs, "block"), strict=False):
        crops.append(d.choice(tuple(range(min(3, size * b)))))
        crops.append(d.choice(tuple(range(min(3, size * b - crops[-1])))))
    return tuple(crops)


def _space_type(operands: Types, attrs: Attrs) -> TensorType:
    block, front, behind = _spatial(operands, attrs)
    n, *sizes = operands[0].shape
    if n % prod(block):
        raise TypeRuleError(f"{n} batches are no blocks of {block}")
    for i, b in enumerate(block):
        sizes[i] = sizes[i] * b - front[i] - behind[i]
    if min(sizes) < 1:
        raise TypeRuleError("nothing is left")
    return TensorType(operands[0].dtype, (n // prod(block), *sizes))


def _to_space(x: Array, call: Call) -> Array:
    block, front, behind = _spatial(call.operands, call.attrs)
    m = len(block)
    x = x.reshape(*block, -1, *x.shape[1:])
    order = [m]
    for i in range(m):
        order += [m + 1 + i, i]
    x = x.transpose(*order, *range(2 * m + 1, x.ndim))
    sizes = [x.shape[1 + 2 * i] * b for i, b in enumerate(block)]
    x = x.reshape(x.shape[0], *sizes, *x.shape[2 * m + 1 :])
    kept = (slice(f, s - b) for f, s, b in zip(front, sizes, behind, strict=True))
    return x[(slice(None), *kept)]


batch_to_space = layout(
    "batch_to_space", _IMAGES, _space_type, moved(_to_space), attrs={"block": _block, "pads": _crops},
    **{**_BATCH, "tensorflow": _tensorflow("BatchToSpace", "crops")},
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (space_to_batch, batch_to_space)
