"""Convolutions of (N, C, spatial…) by (O, C / groups, kernel…), and their transposes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from generators.bounds.bounded import Bounded
from generators.bounds.products import bilinear
from generators.graph import Attr, TensorType
from generators.ops.nn.windows import (
    LARGEST_PAD,
    Ints,
    activations,
    extent,
    given,
    number,
    padded,
    slid,
    strides,
    windows,
)
from generators.ops.shape.reshape import ints_of
from generators.ops.slots import MAX_ELEMENTS, computed
from generators.ops.spec import (
    AttrRule,
    Call,
    Draw,
    OpSpec,
    Slot,
    Spelling,
    TypeRuleError,
    Types,
    Unsupported,
    unsupported,
)

Array = np.ndarray

# ---- operands and attributes --------------------------------------------------------------------------


def _weights(spatial: int) -> Slot:
    """(O, C / groups, kernel…) for the activations before it: the number of groups follows from the shape.
    The kernel fits with some padding."""

    def accepts(type_: TensorType, earlier: Types) -> bool:
        x = earlier[0]
        if type_.dtype != x.dtype or type_.rank != x.rank or 0 in type_.shape or x.shape[1] % type_.shape[1]:
            return False
        fits = all(k <= size + 2 * LARGEST_PAD for k, size in zip(type_.shape[2:], x.shape[2:], strict=True))
        return fits and type_.shape[0] % (x.shape[1] // type_.shape[1]) == 0

    def fresh(d: Draw, earlier: Types) -> TensorType:
        x = earlier[0]
        channels = x.shape[1]
        groups = d.choice((1, 1, channels, *(g for g in range(2, channels) if channels % g == 0)))
        per_group = d.choice((1, 2, 1, 3, 4)) if channels <= 64 else 1
        kernel = _fresh_kernel(d, x.shape[2:])
        while groups > 1 and groups * per_group * prod(x.shape[2:]) * max(1, x.shape[0]) > MAX_ELEMENTS:
            groups, per_group = 1, 1
        if groups * per_group * (channels // groups) * prod(kernel) > MAX_ELEMENTS:
            kernel = (1,) * spatial
        return TensorType(x.dtype, (groups * per_group, channels // groups, *kernel))

    return Slot(accepts, fresh)


def _fresh_kernel(d: Draw, sizes: Ints) -> Ints:
    """Small kernels mostly; sometimes as large as the input, or larger, so that only padding makes it fit."""
    kernel = []
    for size in sizes:
        options = (1, 3, 2, 3, 1, 2, 5, 4, size if size <= 9 else 7, min(size, 9) + 1)
        kernel.append(min(d.choice(options), size + 2))
    return tuple(kernel)


def _groups(d: Draw, operands: Types, attrs: Mapping[str, Attr]) -> int:
    return operands[0].shape[1] // operands[1].shape[1]


def _dilations(d: Draw, operands: Types, attrs: Mapping[str, Attr]) -> Ints:
    pairs = zip(operands[0].shape[2:], operands[1].shape[2:], strict=True)
    return tuple(d.choice((1, *(r for r in (1, 2, 3) if extent(k, r) <= size + 2 * LARGEST_PAD))) for size, k in pairs)


def _padding(d: Draw, operands: Types, attrs: Mapping[str, Attr]) -> Ints:
    """Any that lets the kernel fit, just so sometimes; in front and behind often alike."""
    (dilation,) = given(attrs, "dilation")
    front, behind = [], []
    for size, kernel, rate in zip(operands[0].shape[2:], operands[1].shape[2:], dilation, strict=True):
        missing = max(0, extent(kernel, rate) - size)
        least = max(0, missing - LARGEST_PAD)
        first = d.choice(tuple(range(least, LARGEST_PAD + 1)))
        rest = range(max(0, missing - first), LARGEST_PAD + 1)
        front.append(first)
        behind.append(first if first in rest and d.integer(0, 3) < 3 else d.choice(tuple(rest)))
    return (*front, *behind)


# ---- type rule and reference --------------------------------------------------------------------------


def _conv_type(operands: Types, attrs: Mapping[str, Attr]) -> TensorType:
    x, weight = operands[:2]
    if len({t.dtype for t in operands}) > 1:
        raise TypeRuleError(f"dtypes differ: {', '.join(t.dtype for t in operands)}")
    n = x.rank - 2
    if weight.rank != x.rank or 0 in x.shape[1:] or 0 in weight.shape:
        raise TypeRuleError(f"cannot convolve {x} with {weight}")
    groups = number(attrs, "groups")
    if groups < 1 or weight.shape[0] % groups:
        raise TypeRuleError(f"{groups} groups of {weight.shape[0]} output channels")
    if weight.shape[1] * groups != x.shape[1]:
        raise TypeRuleError(f"{groups} groups of {weight.shape[1]} channels are not {x.shape[1]} channels")
    if len(operands) > 2 and operands[2].shape != weight.shape[:1]:
        raise TypeRuleError(f"bias {operands[2]} does not fit weight {weight}")
    stride, dilation = ints_of(attrs, "stride", n, 1), ints_of(attrs, "dilation", n, 1)
    sizes = slid(x.shape[2:], weight.shape[2:], stride, ints_of(attrs, "padding", 2 * n, 0), dilation)
    return TensorType(x.dtype, (x.shape[0], weight.shape[0], *sizes))


def _convolve(
    x: Bounded, hole: Array, weight: Bounded, groups: int, stride: Ints, dilation: Ints, bias: Bounded | None
) -> Bounded:
    """Padded x by weight as a matrix product over the windows (im2col). hole: where x is padding."""
    kernel = weight.value.shape[2:]
    n, batch = len(kernel), x.value.shape[0]
    taps = x.value.shape[1] // groups * prod(kernel)

    def columns(array: Array) -> Array:  # (N, groups, C / groups * kernel, positions)
        view = windows(array, kernel, stride, dilation)
        view = view.reshape(array.shape[0], groups, array.shape[1] // groups, *view.shape[2:])
        moved = np.moveaxis(view, range(3 + n, 3 + 2 * n), range(3, 3 + n))
        return moved.reshape(array.shape[0], groups, taps, prod(view.shape[3 : 3 + n]))

    positions = slid(x.value.shape[2:], kernel, stride, (0,) * (2 * n), dilation)
    gap = columns(hole)
    count = np.count_nonzero(~gap, axis=2)[:, :, None, :]
    row = weight.map(lambda w: w.reshape(groups, -1, taps))
    offset = None if bias is None else bias.map(lambda b: b.reshape(groups, -1, 1))
    result = bilinear(lambda a, b: np.matmul(b, a), x.map(columns), row, count + (bias is not None), gap, offset)
    return result.map(lambda y: y.reshape(batch, weight.value.shape[0], *positions))


def convolved(args: Sequence[Bounded], call: Call) -> Bounded:
    attrs = call.attrs
    padding, stride, dilation = given(attrs, "padding", "stride", "dilation")
    groups = number(attrs, "groups")
    x = args[0].map(lambda a: padded(a, padding, 0.0))
    hole = padded(np.zeros((1, *args[0].value.shape[1:]), bool), padding, True)
    return _convolve(x, hole, args[1], groups, stride, dilation, args[2] if len(args) > 2 else None)


# ---- spellings ----------------------------------------------------------------------------------------


def _torch(spatial: int) -> Spelling:
    def spell(call: Call) -> str:
        (padding,) = given(call.attrs, "padding")
        front, behind = padding[:spatial], padding[spatial:]
        bias = "{2}" if len(call.operands) > 2 else "None"
        tail = "stride={stride}, dilation={dilation}, groups={groups})"
        name = f"torch.nn.functional.conv{spatial}d"
        if front == behind:
            return f"{name}({{0}}, {{1}}, {bias}, padding={front}, {tail}"
        width = tuple(p for pair in reversed(list(zip(front, behind, strict=True))) for p in pair)
        return f"{name}(torch.nn.functional.pad({{0}}, {width}), {{1}}, {bias}, {tail}"

    return spell


_JAX = "convolution({args}, padding={padding}, stride={stride}, dilation={dilation}, groups={groups})"
_ONNX = 'g.op("Conv", {args}, pads={padding}, strides={stride}, dilations={dilation}, group={groups})'

_ATTRS: dict[str, AttrRule] = {"dilation": _dilations, "padding": _padding, "groups": _groups}

conv1d = OpSpec(
    "conv1d",
    "conv",
    operands=(activations(1), _weights(1)),
    result=_conv_type,
    reference=convolved,
    attrs={"stride": strides(1), **_ATTRS},
    torch=_torch(1),
    tensorflow="conv1d({args}, {stride}, {padding}, {dilation}, {groups})",
    jax=_JAX,
    relax="relax.op.nn.conv1d({0}, {1}, {stride}, {padding}, {dilation}, {groups})",
    onnx=_ONNX,
)

conv2d = OpSpec(
    "conv2d",
    "conv",
    operands=(
        activations(2),
        _weights(2),
        computed(lambda earlier: TensorType(earlier[1].dtype, earlier[1].shape[:1])),
    ),
    result=_conv_type,
    reference=convolved,
    attrs={"stride": strides(2), **_ATTRS},
    torch=_torch(2),
    tensorflow="conv2d({args}, {stride}, {padding}, {dilation}, {groups})",
    jax=_JAX,
    relax="conv2d({args}, {stride}, {padding}, {dilation}, {groups})",
    onnx=_ONNX,
)


def _conv3d_tensorflow(call: Call) -> str | Unsupported:
    if call.attrs["dilation"] != (1, 1, 1):
        return unsupported("on a CPU, tf.nn.conv3d has no dilations")
    return "conv3d({0}, {1}, {stride}, {padding}, {groups})"


conv3d = OpSpec(
    "conv3d",
    "conv",
    operands=(activations(3), _weights(3)),
    result=_conv_type,
    reference=convolved,
    attrs={"stride": strides(3), **_ATTRS},
    torch=_torch(3),
    tensorflow=_conv3d_tensorflow,
    jax=_JAX,
    relax="relax.op.nn.conv3d({0}, {1}, {stride}, {padding}, {dilation}, {groups})",
    onnx=_ONNX,
)

# ---- the transpose ------------------------------------------------------------------------------------


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


def _divisor(d: Draw, operands: Types, attrs: Mapping[str, Attr]) -> int:
    channels = operands[0].shape[1]
    return d.choice((1, 1, *(g for g in range(1, channels + 1) if channels % g == 0)))


def _few_strides(d: Draw, operands: Types, attrs: Mapping[str, Attr]) -> Ints:
    return tuple(d.choice((1, 2, 2, 3)) for _ in operands[0].shape[2:])


def _transposed_dilations(d: Draw, operands: Types, attrs: Mapping[str, Attr]) -> Ints:
    return tuple(d.choice((1, 1, 1, 2)) for _ in operands[0].shape[2:])


def _crops(d: Draw, operands: Types, attrs: Mapping[str, Attr]) -> Ints:
    """What is cut off: at most the kernel's reach less 1, with something left."""
    stride, dilation = given(attrs, "stride", "dilation")
    crops = []
    for i, (size, kernel) in enumerate(zip(operands[0].shape[2:], operands[1].shape[2:], strict=True)):
        reach = extent(kernel, dilation[i])
        whole = (size - 1) * stride[i] + reach
        crops.append(d.choice(tuple(p for p in range(reach) if whole - 2 * p >= 1)))
    return tuple(crops)


def _extra(d: Draw, operands: Types, attrs: Mapping[str, Attr]) -> Ints:
    return tuple(d.choice((0, *range(s))) for s in given(attrs, "stride")[0])


def _transpose_type(operands: Types, attrs: Mapping[str, Attr]) -> TensorType:
    x, weight = operands
    n = x.rank - 2
    if x.dtype != weight.dtype:
        raise TypeRuleError(f"dtypes differ: {x.dtype}, {weight.dtype}")
    if weight.rank != x.rank or 0 in x.shape[1:] or 0 in weight.shape or weight.shape[0] != x.shape[1]:
        raise TypeRuleError(f"cannot convolve {x} with {weight}")
    groups = number(attrs, "groups")
    if groups < 1 or x.shape[1] % groups:
        raise TypeRuleError(f"{groups} groups of {x.shape[1]} channels")
    stride, dilation = ints_of(attrs, "stride", n, 1), ints_of(attrs, "dilation", n, 1)
    crop, extra = ints_of(attrs, "padding", n, 0), ints_of(attrs, "output_padding", n, 0)
    sizes = []
    for i in range(n):
        reach = extent(weight.shape[2 + i], dilation[i])
        if crop[i] >= reach or extra[i] >= stride[i]:
            raise TypeRuleError(
                f"padding {crop} is not below the kernel, or output padding {extra} not below the stride"
            )
        sizes.append((x.shape[2 + i] - 1) * stride[i] + reach - 2 * crop[i] + extra[i])
        if sizes[-1] < 1:
            raise TypeRuleError(f"padding {crop} leaves nothing")
    return TensorType(x.dtype, (x.shape[0], weight.shape[1] * groups, *sizes))


def _transpose(args: Sequence[Bounded], call: Call) -> Bounded:
    """The convolution of x, spread out by the stride, with the flipped kernel."""
    x, weight = args
    stride, dilation, crop, extra = given(call.attrs, "stride", "dilation", "padding", "output_padding")
    groups = number(call.attrs, "groups")
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
    result = _convolve(spaced, hole, weight.map(flipped), groups, once, dilation, None)
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


def _transpose_tensorflow(call: Call) -> str | Unsupported:
    dilated, dtype = set(given(call.attrs, "dilation")[0]) != {1}, call.result.dtype
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
        relax=f"relax.op.nn.conv{spatial}d_transpose({{0}}, {{1}}, {{stride}}, {{padding}}, {{output_padding}}, "
        "{dilation}, {groups})",
        onnx='g.op("ConvTranspose", {0}, {1}, strides={stride}, dilations={dilation}, pads={padding} * 2, '
        "output_padding={output_padding}, group={groups})",
    )


CONV = (conv1d, conv2d, _transposed(2))
SELDOM_CONV = (conv3d, _transposed(1), _transposed(3))
