"""Windows beside pooling and convolution: patches laid out and added up again (im2col, col2im), power pooling,
unpooling to where maxima stood, convolution channel by channel, padding that cuts off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from generators.bounds.bounded import Bounded, monotone
from generators.bounds.sums import scaled_square, summed
from generators.graph import FLOATS, Attr, TensorType
from generators.ops.composed import shared
from generators.ops.nn.conv import convolved
from generators.ops.nn.pooling import sum_of
from generators.ops.nn.windows import Ints, activations, extent, given, padded, slid, strides, windows
from generators.ops.shape.reshape import ints_of
from generators.ops.slots import MAX_ELEMENTS, draw_dtype, floating
from generators.ops.spec import AttrRule, Call, Draw, OpSpec, ResultRule, Slot, Spelling, TypeRuleError, Types

Array = np.ndarray
Attrs = Mapping[str, Attr]


def _float32_or(single: str, composed: Spelling) -> Spelling:
    """ONNX Runtime has these kernels for float only."""
    assert callable(composed)
    return lambda call: single if call.result.dtype == "float32" else composed(call)


# ---- patches ------------------------------------------------------------------------------------------


def _patch_table(sizes: Ints, attrs: Attrs) -> Array:
    """(kernel, positions) -> the place in the image laid out as a row, or its size where padding is."""
    kernel, stride, padding, dilation = given(attrs, "kernel", "stride", "padding", "dilation")
    image = padded(np.arange(prod(sizes)).reshape(1, 1, *sizes), padding * 2, prod(sizes))
    view = windows(np.ascontiguousarray(image), kernel, stride, dilation)[0, 0]
    return view.reshape(-1, prod(kernel)).T


def _geometry(sizes: Ints, attrs: Attrs) -> tuple[int, int]:
    """Elements of the kernel, and how many positions it has."""
    kernel, stride = ints_of(attrs, "kernel", 2, 1), ints_of(attrs, "stride", 2, 1)
    padding, dilation = ints_of(attrs, "padding", 2, 0), ints_of(attrs, "dilation", 2, 1)
    return prod(kernel), prod(slid(sizes, kernel, stride, padding * 2, dilation))


def _padding(d: Draw, operands: Types, attrs: Attrs) -> Ints:
    (kernel,) = given(attrs, "kernel")
    return tuple(d.choice(tuple(range(k // 2 + 1))) for k in kernel)


def _dilation_of(sizes: Ints, d: Draw, attrs: Attrs) -> Ints:
    kernel, padding = given(attrs, "kernel", "padding")
    axes = zip(sizes, kernel, padding, strict=True)
    return tuple(d.choice((1, *(r for r in (1, 2) if extent(k, r) <= size + 2 * p))) for size, k, p in axes)


def _kernel(d: Draw, operands: Types, attrs: Attrs) -> Ints:
    return tuple(min(size, d.choice((2, 1, 3, 2))) for size in operands[0].shape[2:])


def _unfold_type(operands: Types, attrs: Attrs) -> TensorType:
    x = operands[0]
    if x.rank != 4 or 0 in x.shape:
        raise TypeRuleError(f"no patches of {x}")
    taps, positions = _geometry(x.shape[2:], attrs)
    return TensorType(x.dtype, (x.shape[0], x.shape[1] * taps, positions))


def _unfold(args: Sequence[Bounded], call: Call) -> Bounded:
    table, shape = _patch_table(call.operands[0].shape[2:], call.attrs), call.operands[0].shape

    def laid_out(a: Array) -> Array:
        row = np.pad(a.reshape(*shape[:2], -1), [(0, 0), (0, 0), (0, 1)])
        return row[:, :, table].reshape(call.result.shape)

    return args[0].map(laid_out)


def _image(attrs: Attrs) -> Ints:
    return ints_of(attrs, "image", 2, 1)


def _fold_type(operands: Types, attrs: Attrs) -> TensorType:
    x = operands[0]
    taps, positions = _geometry(_image(attrs), attrs)
    if x.rank != 3 or 0 in x.shape or x.shape[1] % taps or x.shape[2] != positions:
        raise TypeRuleError(f"{x} holds no patches of {taps} elements at {positions} positions")
    return TensorType(x.dtype, (x.shape[0], x.shape[1] // taps, *_image(attrs)))


def _fold(args: Sequence[Bounded], call: Call) -> Bounded:
    """Every pixel is the sum of the elements of all patches that cover it, in any order."""
    size = prod(_image(call.attrs))
    table = _patch_table(_image(call.attrs), call.attrs)
    x = args[0].map(lambda a: a.reshape(*call.result.shape[:2], -1))

    def collect(a: Array) -> Array:
        result = np.zeros((*a.shape[:2], size + 1), a.dtype)
        places: Any = (slice(None), slice(None), table.ravel())  # which numpy's stubs do not know `at` to take
        np.add.at(result, places, a)
        return result[:, :, :size]

    terms = collect(np.ones(x.value.shape))
    return summed(x, collect, terms).map(lambda a: a.reshape(call.result.shape))


def _fresh_patches(d: Draw, earlier: Types) -> TensorType:
    positions = prod(size - 1 for size in d.choice(((3, 3), (2, 2), (4, 3), (2, 5))))
    return TensorType(draw_dtype(d, FLOATS), (d.choice((1, 2)), d.choice((4, 8)), positions))


def _settings(d: Draw, operands: Types, attrs: Attrs) -> Ints:
    """Kernel, image, stride, padding and dilation that make as many positions as there are: for `fold`."""
    return d.choice(tuple(_fitting(operands[0])))


def _fitting(x: TensorType) -> list[Ints]:
    """All small ones: kernel, image, stride, padding, dilation, each of two numbers."""
    found = []
    for kernel in ((2, 2), (1, 1), (1, 2), (2, 1), (4, 1)):
        if x.shape[1] % prod(kernel):
            continue
        for high in range(1, 7):
            for wide in range(1, 7):
                for stride, padding, dilation in (((1, 1), (0, 0), (1, 1)), ((2, 1), (1, 0), (1, 1)),
                                                  ((1, 2), (0, 0), (2, 1)), ((1, 1), (1, 1), (1, 2))):  # fmt: skip
                    try:
                        positions = prod(slid((high, wide), kernel, stride, padding * 2, dilation))
                    except TypeRuleError:
                        continue
                    if positions == x.shape[2] and all(p <= k // 2 for p, k in zip(padding, kernel, strict=True)):
                        found.append((*kernel, high, wide, *stride, *padding, *dilation))
    return found


def _setting(place: int) -> AttrRule:
    return lambda d, operands, attrs: given(attrs, "geometry")[0][2 * place : 2 * place + 2]


PATCHED = Slot(
    lambda t, earlier: t.dtype in FLOATS and t.rank == 3 and 0 < t.size <= MAX_ELEMENTS // 4 and bool(_fitting(t)),
    _fresh_patches,
)
_NAMES = ("kernel", "image", "stride", "padding", "dilation")
_UNFOLD, _FOLD = shared("unfold"), shared("fold")
_KEYS = "dilation={dilation}, padding={padding}, stride={stride}"


def _small(spatial: int) -> Slot:
    """Activations of which every patch fits into a result."""
    slot = activations(spatial)

    def fresh(d: Draw, earlier: Types) -> TensorType:
        type_ = slot.fresh(d, earlier)
        sizes = (min(7, dim) for dim in type_.shape[2:])
        return TensorType(type_.dtype, (max(1, type_.shape[0]), min(3, type_.shape[1]), *sizes))

    def accepts(type_: TensorType, earlier: Types) -> bool:
        return slot.accepts(type_, earlier) and 0 < type_.size <= 512 and all(dim <= 9 for dim in type_.shape[2:])

    return Slot(accepts, fresh)


unfold = OpSpec(
    "unfold", "layout", (_small(2),), _unfold_type, _unfold,
    attrs={
        "kernel": _kernel, "padding": _padding, "stride": strides(2),
        "dilation": lambda d, operands, attrs: _dilation_of(operands[0].shape[2:], d, attrs),
    },
    torch=f"torch.nn.functional.unfold({{0}}, {{kernel}}, {_KEYS})", tensorflow=_UNFOLD["tensorflow"],
    jax="patches({0}, {kernel}, {stride}, {padding}, {dilation})", relax=_UNFOLD["relax"], onnx=_UNFOLD["onnx"],
)  # fmt: skip

fold = OpSpec(
    "fold", "layout", (PATCHED,), _fold_type, _fold,
    attrs={"geometry": _settings, **{name: _setting(i) for i, name in enumerate(_NAMES)}},
    torch=f"torch.nn.functional.fold({{0}}, {{image}}, {{kernel}}, {_KEYS})", tensorflow=_FOLD["tensorflow"],
    jax=_FOLD["jax"], relax=_FOLD["relax"],
    onnx=_float32_or(
        'g.op("Col2Im", {0}, g.const({image}, "int64"), g.const({kernel}, "int64"), strides={stride}, '
        "pads={padding} * 2, dilations={dilation})", _FOLD["onnx"],
    ),
)  # fmt: skip

# ---- power pooling, unpooling -------------------------------------------------------------------------


def _window_type(spatial: int, whole: bool = False) -> ResultRule:
    """whole: the windows do not overlap, and the result is as large as the operand."""

    def rule(operands: Types, attrs: Attrs) -> TensorType:
        x, kernel = operands[0], ints_of(attrs, "kernel", spatial, 1)
        stride = kernel if whole else ints_of(attrs, "stride", spatial, 1)
        if x.rank != spatial + 2 or 0 in x.shape:
            raise TypeRuleError(f"cannot pool {x} over {spatial} dimensions")
        sizes = slid(x.shape[2:], kernel, stride, (0,) * (2 * spatial), (1,) * spatial)
        if whole and any(size % k for size, k in zip(x.shape[2:], kernel, strict=True)):
            raise TypeRuleError(f"windows of {kernel} do not fill {x}")
        return x if whole else TensorType(x.dtype, (*x.shape[:2], *sizes))

    return rule


def _lp_pool(args: Sequence[Bounded], call: Call) -> Bounded:
    """The root (3 ulp, OpenCL; or pow, 16 ulp) of the sum of squares; or of their mean by their number, which takes
    two roundings more. Squares may overflow, or be summed in a wider dtype."""
    kernel, stride = given(call.attrs, "kernel", "stride")

    def flat(a: Array) -> Array:
        return windows(np.ascontiguousarray(a), kernel, stride, (1,) * len(kernel)).reshape(*call.result.shape, -1)

    total = sum_of(scaled_square(args[0].map(flat)), prod(kernel) + 2)
    return monotone(lambda v: np.sqrt(np.maximum(v, 0.0)), total, 16)


def _lp(spatial: int) -> OpSpec:
    composed = shared("lp_pool")
    first = "[0]" if spatial == 1 else ""
    return OpSpec(
        f"lp_pool{spatial}d", "pooling", (_small(spatial),), _window_type(spatial), _lp_pool,
        attrs={"kernel": _kernel, "stride": strides(spatial)},
        torch=f"torch.nn.functional.lp_pool{spatial}d({{0}}, 2.0, {{kernel}}{first}, {{stride}}{first})",
        tensorflow=composed["tensorflow"], jax=composed["jax"], relax=composed["relax"],
        onnx=_float32_or('g.op("LpPool", {0}, kernel_shape={kernel}, strides={stride}, p=2)', composed["onnx"]),
    )  # fmt: skip


def _divisors(d: Draw, operands: Types, attrs: Attrs) -> Ints:
    return tuple(d.choice(tuple(k for k in (2, 1, 3, 4) if size % k == 0)) for size in operands[0].shape[2:])


def _unpooled(args: Sequence[Bounded], call: Call) -> Bounded:
    """Every window's maximum where it stood, zeros around it. Which of two it was is undetermined where they may be
    equal, and so is a window with NaN."""
    x, (kernel,) = args[0], given(call.attrs, "kernel")
    sizes = [(size // k, k) for size, k in zip(x.value.shape[2:], kernel, strict=True)]
    split = (*x.value.shape[:2], *(n for pair in sizes for n in pair))
    axes = tuple(range(3, len(split), 2))
    value, error = x.value.reshape(split), x.error.reshape(split)
    with np.errstate(all="ignore"):
        low = np.max(value - error, axes, keepdims=True)
        possible = (value + error >= low) | np.isnan(value) | np.isinf(error)
        loose = possible & (np.count_nonzero(possible, axes, keepdims=True) > 1)
        loose |= np.any(np.isnan(value) | np.isinf(error), axes, keepdims=True)
        result = np.where(possible, value, 0.0)
        bound = np.where(loose, np.inf, np.where(possible, error, 0.0))
    return Bounded(result.reshape(x.value.shape), bound.reshape(x.value.shape), x.dtype)


_UNPOOL = shared("max_unpool")
max_unpool2d = OpSpec(
    "max_unpool2d", "pooling", (_small(2),), _window_type(2, whole=True), _unpooled, attrs={"kernel": _divisors},
    torch="torch.nn.functional.max_unpool2d(*torch.nn.functional.max_pool2d({0}, {kernel}, return_indices=True), "
    "{kernel})",
    tensorflow=_UNPOOL["tensorflow"], jax=_UNPOOL["jax"], relax=_UNPOOL["relax"],
    onnx=_float32_or("max_unpool_native(g, {0}, {kernel})", _UNPOOL["onnx"]),
)  # fmt: skip

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
    "depthwise_conv2d", "conv", (_small(2), Slot(_accepts_filters, _fresh_filters)), _depthwise_type,
    lambda args, call: convolved(args, _depthwise_call(call)),
    attrs={"stride": _one_stride, "padding": lambda d, operands, attrs: (d.choice((0, 1, 2)), d.choice((0, 1)))},
    torch="torch.nn.functional.conv2d({0}, {1}, stride={stride}, padding={padding}, groups={shape0}[1])",
    tensorflow="depthwise_conv2d({0}, {1}, {stride}, {padding})",
    jax="convolution({0}, {1}, padding={padding} * 2, stride={stride}, dilation=(1, 1), groups={shape0}[1])",
    relax="relax.op.nn.conv2d({0}, {1}, {stride}, {padding} * 2, (1, 1), {shape0}[1])",
    onnx='g.op("Conv", {0}, {1}, pads={padding} * 2, strides={stride}, group={shape0}[1])',
)  # fmt: skip

# ---- padding that cuts off ----------------------------------------------------------------------------


def _crops(d: Draw, operands: Types, attrs: Attrs) -> Ints:
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


def _cropped(args: Sequence[Bounded], call: Call) -> Bounded:
    rank = call.result.rank
    pads = ints_of(call.attrs, "pads", 2 * rank, -4)
    kept = tuple(slice(max(0, -pads[i]), dim - max(0, -pads[rank + i])) for i, dim in enumerate(args[0].value.shape))
    width = [(max(0, pads[i]), max(0, pads[rank + i])) for i in range(rank)]
    return args[0].map(lambda a: np.pad(a[kept], width))


def _crop_text(text: str) -> Spelling:
    """`text` with the pairs of numbers of the axes for %p, torch's order of them for %t, and for relax, with `pads`
    apart: where to begin, where to end and what to add."""

    def spell(call: Call) -> str:
        rank, (pads,) = call.result.rank, given(call.attrs, "pads")
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
    "pad_crop", "layout", (floating(1, nonempty=True),), _cropped_type, _cropped, attrs={"pads": _crops},
    signed_zero=True,
    torch=_crop_text("torch.nn.functional.pad({0}, %t)"), tensorflow=_crop_text("tf.pad({0}[%s], %w)"),
    jax=_crop_text("jax.lax.pad({0}, jnp.zeros((), {dtype}), %p)"),
    relax=_crop_text("relax.op.nn.pad(relax.op.strided_slice({0}, %a, %b, %e), %f)"),
    onnx='g.op("Pad", {0}, g.const({pads}, "int64"))',
)  # fmt: skip

PATCHES: tuple[OpSpec, ...] = (unfold, fold, _lp(1), _lp(2), max_unpool2d, depthwise_conv2d, pad_crop)
