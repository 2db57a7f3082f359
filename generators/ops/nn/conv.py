"""Convolutions of (N, C, spatial…) by (O, C / groups, kernel…), and channel by channel."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from generators.bounds.bounded import Bounded
from generators.bounds.products import bilinear
from generators.graph import TensorType
from generators.ops.nn.windows import (
    LARGEST_PAD,
    Ints,
    activations,
    extent,
    given,
    padded,
    slid,
    small_activations,
    strides,
    windows,
)
from generators.ops.slots import MAX_ELEMENTS, computed, int_of, ints_of
from generators.ops.spec import (
    AttrRule,
    Attrs,
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


def _groups(d: Draw, operands: Types, attrs: Attrs) -> int:
    return operands[0].shape[1] // operands[1].shape[1]


def _dilations(d: Draw, operands: Types, attrs: Attrs) -> Ints:
    pairs = zip(operands[0].shape[2:], operands[1].shape[2:], strict=True)
    return tuple(d.choice((1, *(r for r in (1, 2, 3) if extent(k, r) <= size + 2 * LARGEST_PAD))) for size, k in pairs)


def _padding(d: Draw, operands: Types, attrs: Attrs) -> Ints:
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


def _conv_type(operands: Types, attrs: Attrs) -> TensorType:
    x, weight = operands[:2]
    if len({t.dtype for t in operands}) > 1:
        raise TypeRuleError(f"dtypes differ: {', '.join(t.dtype for t in operands)}")
    n = x.rank - 2
    if weight.rank != x.rank or 0 in x.shape[1:] or 0 in weight.shape:
        raise TypeRuleError(f"cannot convolve {x} with {weight}")
    groups = int_of(attrs, "groups")
    if groups < 1 or weight.shape[0] % groups:
        raise TypeRuleError(f"{groups} groups of {weight.shape[0]} output channels")
    if weight.shape[1] * groups != x.shape[1]:
        raise TypeRuleError(f"{groups} groups of {weight.shape[1]} channels are not {x.shape[1]} channels")
    if len(operands) > 2 and operands[2].shape != weight.shape[:1]:
        raise TypeRuleError(f"bias {operands[2]} does not fit weight {weight}")
    stride, dilation = ints_of(attrs, "stride", n, 1), ints_of(attrs, "dilation", n, 1)
    sizes = slid(x.shape[2:], weight.shape[2:], stride, ints_of(attrs, "padding", 2 * n, 0), dilation)
    return TensorType(x.dtype, (x.shape[0], weight.shape[0], *sizes))


def convolve(
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
    groups = int_of(attrs, "groups")
    x = args[0].map(lambda a: padded(a, padding, 0.0))
    hole = padded(np.zeros((1, *args[0].value.shape[1:]), bool), padding, True)
    return convolve(x, hole, args[1], groups, stride, dilation, args[2] if len(args) > 2 else None)


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

# ---- channel by channel -------------------------------------------------------------------------------


def _fresh_filters(d: Draw, earlier: Types) -> TensorType:
    x = earlier[0]
    kernel = (min(size, d.choice((2, 1, 3))) for size in x.shape[2:])
    return TensorType(x.dtype, (x.shape[1] * d.choice((1, 2, 3)), 1, *kernel))


def _accepts_filters(type_: TensorType, earlier: Types) -> bool:
    x = earlier[0]
    if type_.dtype != x.dtype or type_.rank != 4 or type_.shape[1] != 1 or type_.size == 0:
        return False
    fits = all(k <= size for k, size in zip(type_.shape[2:], x.shape[2:], strict=True))
    return fits and type_.shape[0] % x.shape[1] == 0 and type_.shape[0] <= 4 * x.shape[1]


def _depthwise_call(call: Call) -> Call:
    stride, padding = given(call.attrs, "stride", "padding")
    attrs = {"stride": stride, "padding": padding * 2, "dilation": (1, 1), "groups": call.operands[0].shape[1]}
    return Call(call.operands, attrs, call.result)


def _depthwise_type(operands: Types, attrs: Attrs) -> TensorType:
    x, weight = operands
    stride, padding = ints_of(attrs, "stride", 2, 1), ints_of(attrs, "padding", 2, 0)
    if x.rank != 4 or x.size == 0 or not _accepts_filters(weight, (x,)) or stride[0] != stride[1]:
        raise TypeRuleError(f"cannot convolve the channels of {x} with {weight} by {stride}")
    return TensorType(
        x.dtype, (x.shape[0], weight.shape[0], *slid(x.shape[2:], weight.shape[2:], stride, padding * 2, (1, 1)))
    )


def _one_stride(d: Draw, operands: Types, attrs: Attrs) -> Ints:
    return (d.choice((1, 2, 3)),) * 2


depthwise_conv2d = OpSpec(
    "depthwise_conv2d", "conv", (small_activations(2), Slot(_accepts_filters, _fresh_filters)), _depthwise_type,
    lambda args, call: convolved(args, _depthwise_call(call)),
    attrs={"stride": _one_stride, "padding": lambda d, operands, attrs: (d.choice((0, 1, 2)), d.choice((0, 1)))},
    torch="torch.nn.functional.conv2d({0}, {1}, stride={stride}, padding={padding}, groups={shape0}[1])",
    tensorflow="depthwise_conv2d({0}, {1}, {stride}, {padding})",
    jax="convolution({0}, {1}, padding={padding} * 2, stride={stride}, dilation=(1, 1), groups={shape0}[1])",
    relax="relax.op.nn.conv2d({0}, {1}, {stride}, {padding} * 2, (1, 1), {shape0}[1])",
    onnx='g.op("Conv", {0}, {1}, pads={padding} * 2, strides={stride}, group={shape0}[1])',
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (conv1d, conv2d, conv3d, depthwise_conv2d)
