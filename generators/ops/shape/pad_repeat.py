"""Operators that put elements around others and repeat them: padding, cropping, tile, repeat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf, nan, prod
from typing import Literal

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import FLOATS, Attr, TensorType
from generators.ops.shape.layout import ARRAY, DEEP, layout, moved
from generators.ops.slots import (
    MAX_ELEMENTS,
    MAX_RANK,
    axis_in,
    axis_of,
    floating,
    int_of,
    ints_of,
    numeric,
    tensor,
    within,
)
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Shape, Spelling, TypeRuleError, Types

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
        return d.choice((0.0, 1.0, -0.5, 0.1, -1e4, -0.0, -inf, nan))
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
    "pad", replace(tensor(min_rank=1), usual=DEEP), _pad_type, _pad, attrs={"pads": _pads, "value": _pad_value},
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
        name, numeric(2, MAX_RANK, nonempty=True), result,
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

# ---- padding that cuts off ----------------------------------------------------------------------------


def _crops(d: Draw, operands: Types, attrs: Attrs) -> Shape:
    """One number in front of each axis, then one behind: negative ones cut off. Something is left."""
    front, behind, shape = [], [], list(operands[0].shape)
    for axis, dim in enumerate(operands[0].shape):
        room = MAX_ELEMENTS // prod(shape[:axis] + shape[axis + 1 :])
        front.append(d.choice(tuple(p for p in (-1, 0, 1, -2, 2) if dim + p in range(1, room + 1))))
        left, now = dim + min(0, front[-1]), dim + front[-1]
        behind.append(d.choice(tuple(p for p in (0, -1, 1, -2, 2) if left + p >= 1 and now + p <= room)))
        shape[axis] = now + behind[-1]
    return (*front, *behind)


def _cropped_type(operands: Types, attrs: Attrs) -> TensorType:
    x = operands[0]
    pads = ints_of(attrs, "pads", 2 * x.rank, -4)
    shape = tuple(dim + pads[i] + pads[x.rank + i] for i, dim in enumerate(x.shape))
    kept = [dim + min(pads[i], 0) + min(pads[x.rank + i], 0) for i, dim in enumerate(x.shape)]
    if any(dim < 1 for dim in (*shape, *kept)) or max(pads) > 4:
        raise TypeRuleError(f"cannot pad {x} by {pads}")
    return TensorType(x.dtype, shape)


def _flat(call: Call) -> Shape:
    return ints_of(call.attrs, "pads")


def cropped(args: Sequence[Bounded], call: Call, pads_of: Callable[[Call], Shape] = _flat) -> Bounded:
    """Zeros around, or less, as numbers say: those in front of each axis, then those behind."""
    rank, pads = call.result.rank, pads_of(call)
    kept = tuple(slice(max(0, -pads[i]), dim - max(0, -pads[rank + i])) for i, dim in enumerate(args[0].value.shape))
    width = [(max(0, pads[i]), max(0, pads[rank + i])) for i in range(rank)]
    return args[0].map(lambda a: np.pad(a[kept], width))


def crop_text(text: str, pads_of: Callable[[Call], Shape] = _flat) -> Spelling:
    """`text` with the pairs of numbers of the axes for %p, torch's order of them for %t, and for relax, with `pads`
    apart: where to begin, where to end and what to add."""

    def spell(call: Call) -> str:
        rank, pads = call.result.rank, pads_of(call)
        both = [(pads[i], pads[rank + i]) for i in range(rank)]
        begin = [max(0, -p) for p, _ in both]
        end = [dim - max(0, -p) for dim, (_, p) in zip(call.operands[0].shape, both, strict=True)]
        add = [(max(0, p), max(0, q)) for p, q in both]
        fields = {
            "%p": [(p, q, 0) for p, q in both], "%t": [p for pair in reversed(both) for p in pair], "%b": begin,
            "%e": end, "%w": add, "%f": [p for pair in add for p in pair], "%a": list(range(rank)),
            "%s": ", ".join(f"{b}:{e}" for b, e in zip(begin, end, strict=True)),
        }  # fmt: skip
        result = text
        for key, value in fields.items():
            result = result.replace(key, str(value))
        return result

    return spell


pad_crop = OpSpec(
    "pad_crop", "layout", (floating(1, nonempty=True),), _cropped_type, cropped, attrs={"pads": _crops},
    signed_zero=True,
    torch=crop_text("torch.nn.functional.pad({0}, %t)"), tensorflow=crop_text("tf.pad({0}[%s], %w)"),
    jax=crop_text("jax.lax.pad({0}, jnp.zeros((), {dtype}), %p)"),
    relax=crop_text("relax.op.nn.pad(relax.op.strided_slice({0}, %a, %b, %e), %f)"),
    onnx='g.op("Pad", {0}, g.const({pads}, "int64"))',
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (pad, pad_reflect, pad_edge, pad_wrap, pad_crop, tile, repeat)
