"""Transposed convolutions of (N, C, spatial…) by (C, O / groups, kernel…)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import TensorType
from generators.ops.nn.conv import convolve
from generators.ops.nn.windows import Ints, activations, extent, given, padded, windows
from generators.ops.slots import MAX_ELEMENTS, int_of, ints_of
from generators.ops.spec import (
    AttrRule,
    Attrs,
    Call,
    Draw,
    OpSpec,
    Slot,
    TypeRuleError,
    Types,
    Unsupported,
    unsupported,
)

Array = np.ndarray


def _transposed_weights() -> Slot:
    """(C, O / groups, kernel…)."""

    def accepts(type_: TensorType, earlier: Types) -> bool:
        x = earlier[0]
        return type_.dtype == x.dtype and type_.rank == x.rank and 0 not in type_.shape and type_.shape[0] == x.shape[1]

    def fresh(d: Draw, earlier: Types) -> TensorType:
        x = earlier[0]
        most = MAX_ELEMENTS // max(1, x.size)
        per_group = min(d.choice((1, 2, 1, 3, 4)), max(1, most))
        kernel = tuple(d.choice((1, 3, 2, 3, 4, 2)) for _ in x.shape[2:])
        if x.shape[1] * per_group * prod(kernel) > MAX_ELEMENTS:
            per_group, kernel = 1, (1,) * len(kernel)
        return TensorType(x.dtype, (x.shape[1], per_group, *kernel))

    return Slot(accepts, fresh)


def _divisor(d: Draw, operands: Types, attrs: Attrs) -> int:
    channels = operands[0].shape[1]
    return d.choice((1, 1, *(g for g in range(1, channels + 1) if channels % g == 0)))


def _few_strides(d: Draw, operands: Types, attrs: Attrs) -> Ints:
    return tuple(d.choice((1, 2, 2, 3)) for _ in operands[0].shape[2:])


def _transposed_dilations(d: Draw, operands: Types, attrs: Attrs) -> Ints:
    return tuple(d.choice((1, 1, 1, 2)) for _ in operands[0].shape[2:])


def _crops(d: Draw, operands: Types, attrs: Attrs) -> Ints:
    """What is cut off: at most the kernel's reach less 1, with something left."""
    stride, dilation = given(attrs, "stride", "dilation")
    crops = []
    for i, (size, kernel) in enumerate(zip(operands[0].shape[2:], operands[1].shape[2:], strict=True)):
        reach = extent(kernel, dilation[i])
        whole = (size - 1) * stride[i] + reach
        crops.append(d.choice(tuple(p for p in range(reach) if whole - 2 * p >= 1)))
    return tuple(crops)


def _extra(d: Draw, operands: Types, attrs: Attrs) -> Ints:
    """Less than the stride, or the dilation."""
    return tuple(d.choice((0, *range(max(pair)))) for pair in zip(*given(attrs, "stride", "dilation"), strict=True))


def _transpose_type(operands: Types, attrs: Attrs) -> TensorType:
    x, weight = operands
    n = x.rank - 2
    if x.dtype != weight.dtype:
        raise TypeRuleError(f"dtypes differ: {x.dtype}, {weight.dtype}")
    if weight.rank != x.rank or 0 in x.shape[1:] or 0 in weight.shape or weight.shape[0] != x.shape[1]:
        raise TypeRuleError(f"cannot convolve {x} with {weight}")
    groups = int_of(attrs, "groups")
    if groups < 1 or x.shape[1] % groups:
        raise TypeRuleError(f"{groups} groups of {x.shape[1]} channels")
    stride, dilation = ints_of(attrs, "stride", n, 1), ints_of(attrs, "dilation", n, 1)
    crop, extra = ints_of(attrs, "padding", n, 0), ints_of(attrs, "output_padding", n, 0)
    sizes = []
    for i in range(n):
        reach = extent(weight.shape[2 + i], dilation[i])
        if crop[i] >= reach or extra[i] >= max(stride[i], dilation[i]):
            raise TypeRuleError(
                f"padding {crop} is not below the kernel, or output padding {extra} below neither stride nor dilation"
            )
        sizes.append((x.shape[2 + i] - 1) * stride[i] + reach - 2 * crop[i] + extra[i])
        if sizes[-1] < 1:
            raise TypeRuleError(f"padding {crop} leaves nothing")
    return TensorType(x.dtype, (x.shape[0], weight.shape[1] * groups, *sizes))


def _transpose(args: Sequence[Bounded], call: Call) -> Bounded:
    """The convolution of x, spread out by the stride, with the flipped kernel."""
    x, weight = args
    stride, dilation, crop, extra = given(call.attrs, "stride", "dilation", "padding", "output_padding")
    groups = int_of(call.attrs, "groups")
    once, spatial = (1,) * len(stride), tuple(range(-len(stride), 0))
    border = tuple(extent(k, r) - 1 - p for k, r, p in zip(weight.value.shape[2:], dilation, crop, strict=True))
    border += tuple(b + e for b, e in zip(border, extra, strict=True))

    def spread_out(array: Array, fill: float | bool) -> Array:
        sizes = ((size - 1) * s + 1 for size, s in zip(array.shape[2:], stride, strict=True))
        wide = np.full((*array.shape[:2], *sizes), fill, array.dtype)
        wide[(..., *(slice(None, None, s) for s in stride))] = array
        return padded(wide, border, fill)

    def flipped(w: Array) -> Array:  # (C, O / groups, kernel) -> (O, C / groups, kernel)
        split = np.flip(w, spatial).reshape(groups, w.shape[0] // groups, *w.shape[1:]).swapaxes(1, 2)
        return split.reshape(-1, split.shape[2], *w.shape[2:])

    hole = spread_out(np.zeros((1, *x.value.shape[1:]), bool), True)
    spaced = x.map(lambda a: spread_out(a, 0.0))
    result = convolve(spaced, hole, weight.map(flipped), groups, once, dilation, None)
    finite = np.isfinite(x.value) & np.isfinite(x.error)  # what is not determined may be an infinity
    if dilation == once or finite.all():
        return result
    # some back ends fill the gaps of a dilated kernel with zeros, by which an infinity of x is multiplied
    wild = spread_out(1.0 * ~finite, 0.0)
    wild = wild.reshape(wild.shape[0], groups, wild.shape[1] // groups, *wild.shape[2:]).sum(axis=2)
    kernel = weight.value.shape[2:]
    reach = tuple(extent(k, r) for k, r in zip(kernel, dilation, strict=True))
    within = windows(wild, reach, once, once).sum(axis=spatial)
    under = windows(wild, kernel, once, dilation).sum(axis=spatial)
    gap = np.repeat(within > under, weight.value.shape[1], axis=1) & ~(np.isnan(result.value) & (result.error == 0))
    return Bounded(result.value, np.where(gap, np.inf, result.error), result.dtype)


_WIDER = unsupported("what it adds at the end has to be less than the stride")


def _beyond_stride(call: Call) -> bool:
    return any(more >= step for more, step in zip(*given(call.attrs, "output_padding", "stride"), strict=True))


def _transpose_tensorflow(call: Call) -> str | Unsupported:
    dilated, dtype = set(given(call.attrs, "dilation")[0]) != {1}, call.result.dtype
    if _beyond_stride(call):
        return _WIDER
    if dilated and (dtype == "float64" or (call.result.rank == 5 and dtype != "float32")):
        return unsupported("on a CPU, TensorFlow transposes dilated convolutions of float32 only")
    return "conv_transpose({0}, {1}, {stride}, {dilation}, {padding}, {output_padding}, {groups})"


def _transposed(spatial: int) -> OpSpec:
    name = f"conv_transpose{spatial}d"
    attrs: dict[str, AttrRule] = {"stride": _few_strides, "dilation": _transposed_dilations, "padding": _crops}
    return OpSpec(
        name,
        "conv",
        operands=(activations(spatial), _transposed_weights()),
        result=_transpose_type,
        reference=_transpose,
        attrs={**attrs, "output_padding": _extra, "groups": _divisor},
        torch=f"torch.nn.functional.{name}({{0}}, {{1}}, None, {{stride}}, {{padding}}, {{output_padding}}, "
        "{groups}, {dilation})",
        tensorflow=_transpose_tensorflow,
        jax="conv_transpose({0}, {1}, {stride}, {dilation}, {padding}, {output_padding}, {groups})",
        relax=lambda call: (
            _WIDER
            if _beyond_stride(call)
            else f"relax.op.nn.conv{spatial}d_transpose({{0}}, {{1}}, {{stride}}, {{padding}}, {{output_padding}}, "
            "{dilation}, {groups})"
        ),
        onnx='g.op("ConvTranspose", {0}, {1}, strides={stride}, dilations={dilation}, pads={padding} * 2, '
        "output_padding={output_padding}, group={groups})",
    )


OPERATORS: tuple[OpSpec, ...] = (
    _transposed(1),
    _transposed(2),
    _transposed(3),
)
