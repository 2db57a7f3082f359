"""Pooling over the spatial dimensions of (N, C, spatial…), and unpooling to where maxima stood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded, monotone
from generators.bounds.extremes import greatest, highest
from generators.bounds.products import sum_of
from generators.bounds.sums import average, scaled_square
from generators.graph import TensorType
from generators.ops.composed import negated, shared
from generators.ops.nn.windows import (
    Ints,
    activations,
    covered,
    extent,
    float32_or,
    given,
    padded,
    product_of,
    slid,
    small_activations,
    small_kernel,
    strides,
    windows,
    without_stride,
)
from generators.ops.slots import flag, ints_of
from generators.ops.spec import AttrRule, Attrs, Call, Draw, OpSpec, ResultRule, TypeRuleError, Types, unsupported

Array = np.ndarray


def _pads(size: int, kernel: int, dilation: int) -> tuple[int, ...]:
    """Padding (alike in front and behind) that lets the kernel fit: at most half of the kernel, as PyTorch
    demands, and so that no window holds padding alone, for which ONNX has no value."""
    return tuple(
        p
        for p in range(kernel // 2 + 1)
        if extent(kernel, dilation) <= size + 2 * p and covered(size, kernel, 1, p, p, dilation).all()
    )


def _kernel(d: Draw, operands: Types, attrs: Attrs) -> Ints:
    """Small mostly; sometimes the whole input, or more than it, so that only padding makes it fit."""
    kernel = []
    for size in operands[0].shape[2:]:
        options = (2, 3, 1, 2, 3, size if size <= 9 else 7, min(size, 9) + 1)
        k = d.choice(options)
        kernel.append(k if _pads(size, k, 1) else size)
    return tuple(kernel)


def _dilation(d: Draw, operands: Types, attrs: Attrs) -> Ints:
    pairs = zip(operands[0].shape[2:], given(attrs, "kernel")[0], strict=True)
    return tuple(d.choice((1, *(r for r in (1, 2, 3) if _pads(size, k, r)))) for size, k in pairs)


def _padding(d: Draw, operands: Types, attrs: Attrs) -> Ints:
    sizes, kernel = operands[0].shape[2:], given(attrs, "kernel")[0]
    dilation = given(attrs, "dilation")[0] if "dilation" in attrs else (1,) * len(kernel)
    return tuple(d.choice(_pads(*axis)) for axis in zip(sizes, kernel, dilation, strict=True))


def _type(spatial: int) -> ResultRule:
    def rule(operands: Types, attrs: Attrs) -> TensorType:
        x = operands[0]
        if x.rank != spatial + 2 or 0 in x.shape[1:]:
            raise TypeRuleError(f"cannot pool {x} over {spatial} dimensions")
        kernel, stride = ints_of(attrs, "kernel", spatial, 1), ints_of(attrs, "stride", spatial, 1)
        padding = ints_of(attrs, "padding", spatial, 0)
        dilation = ints_of(attrs, "dilation", spatial, 1) if "dilation" in attrs else (1,) * spatial
        sizes = slid(x.shape[2:], kernel, stride, padding * 2, dilation)
        for i, size in enumerate(x.shape[2:]):
            if padding[i] > kernel[i] // 2:
                raise TypeRuleError(f"padding {padding} is more than half of the kernel {kernel}")
            if not covered(size, kernel[i], stride[i], padding[i], padding[i], dilation[i]).all():
                raise TypeRuleError("a window holds padding alone")
        return TensorType(x.dtype, (*x.shape[:2], *sizes))

    return rule


def _max(args: Sequence[Bounded], call: Call) -> Bounded:
    attrs = call.attrs
    kernel, stride, dilation = given(attrs, "kernel", "stride", "dilation")
    axes = tuple(range(-len(kernel), 0))

    def pooled(array: Array) -> Array:
        view = windows(padded(array, given(attrs, "padding")[0] * 2, -np.inf), kernel, stride, dilation)
        return view.max(axis=axes)

    return highest(args[0], pooled)


def _max_place(args: Sequence[Bounded], call: Call) -> Bounded:
    """Where, counted along the flattened image, the greatest element of a window stands."""
    x = args[0]
    kernel, stride, dilation, padding = given(call.attrs, "kernel", "stride", "dilation", "padding")

    def flat(a: Array, fill: float) -> Array:
        view = windows(padded(np.ascontiguousarray(a), padding * 2, fill), kernel, stride, dilation)
        return view.reshape(*call.result.shape, prod(kernel))

    sizes = call.operands[0].shape
    numbers = np.broadcast_to(np.arange(prod(sizes[2:])).reshape(sizes[2:]), sizes)
    return greatest(Bounded(flat(x.value, -np.inf), flat(x.error, 0.0), x.dtype), flat(numbers, 0))


def _avg(args: Sequence[Bounded], call: Call) -> Bounded:
    x, attrs = args[0], call.attrs
    kernel, stride, padding = given(attrs, "kernel", "stride", "padding")
    sizes = call.operands[0].shape[2:]
    axes = zip(sizes, kernel, stride, padding, strict=True)
    count = product_of([covered(size, k, s, p, p, 1) for size, k, s, p in axes])

    def flat(array: Array) -> Array:
        view = windows(padded(array, padding * 2, 0.0), kernel, stride, (1,) * len(kernel))
        return view.reshape(*call.result.shape, prod(kernel))

    total = sum_of(x.map(flat), count - 1)
    if attrs["count_include_pad"]:
        return average(total, prod(kernel))
    # the average with the padding may be flushed before it is divided by the share of the window that is not padding
    with np.errstate(all="ignore"):
        flushed = np.where((total.value != 0) | (total.error > 0), prod(kernel) / count * PRECISION[x.dtype].tiny, 0.0)
    result = average(total, count)
    return Bounded(result.value, result.error + np.where(prod(kernel) > count, flushed, 0.0), x.dtype)


def _global_avg(args: Sequence[Bounded], call: Call) -> Bounded:
    count = prod(call.operands[0].shape[2:])
    x = args[0].map(lambda a: a.reshape(*call.result.shape, count))
    return average(sum_of(x, count - 1), count)


def max_pool(spatial: int) -> OpSpec:
    """Over so many dimensions."""
    attrs: dict[str, AttrRule] = {"kernel": _kernel, "dilation": _dilation, "padding": _padding}
    return OpSpec(
        f"max_pool{spatial}d",
        "pooling",
        operands=(activations(spatial),),
        result=_type(spatial),
        reference=_max,
        attrs={**attrs, "stride": strides(spatial)},
        torch=without_stride(
            f"torch.nn.functional.max_pool{spatial}d({{0}}, {{kernel}}, {{stride}}, {{padding}}, {{dilation}})"
        ),
        tensorflow="max_pool({0}, {kernel}, {stride}, {padding}, {dilation})",
        jax="max_pool({0}, {kernel}, {stride}, {padding}, {dilation})",
        relax=f"relax.op.nn.max_pool{spatial}d({{0}}, {{kernel}}, {{stride}}, {{padding}} * 2, {{dilation}})",
        onnx='g.op("MaxPool", {0}, kernel_shape={kernel}, strides={stride}, pads={padding} * 2, dilations={dilation})',
    )


_NO_PLACES = unsupported("its pooling gives no places, or counts them otherwise")


def _max_pool_places(spatial: int) -> OpSpec:
    def result(operands: Types, attrs: Attrs) -> TensorType:
        return replace(_type(spatial)(operands, attrs), dtype="int64")

    return replace(
        max_pool(spatial), name=f"max_pool{spatial}d_places", result=result, reference=_max_place,
        torch=f"torch.nn.functional.max_pool{spatial}d({{0}}, {{kernel}}, {{stride}}, {{padding}}, {{dilation}}, "
        "return_indices=True)[1]",
        tensorflow=_NO_PLACES, jax=_NO_PLACES, relax=_NO_PLACES, onnx=_NO_PLACES,
    )  # fmt: skip


def _min_pool(args: Sequence[Bounded], call: Call) -> Bounded:
    return negated(_max([negated(args[0])], call))


_POOL = "{kernel}, {stride}, {padding}, {dilation}"
min_pool2d = replace(
    max_pool(2), name="min_pool2d", reference=_min_pool,
    torch=f"-torch.nn.functional.max_pool2d(-{{0}}, {_POOL})", tensorflow=f"-max_pool(-{{0}}, {_POOL})",
    jax="jax.lax.reduce_window({0}, np.array(np.inf, {dtype0}), jax.lax.min, (1, 1, *{kernel}), (1, 1, *{stride}), "
    "((0, 0), (0, 0), *((p, p) for p in {padding})), window_dilation=(1, 1, *{dilation}))",
    relax="relax.op.negative(relax.op.nn.max_pool2d(relax.op.negative({0}), {kernel}, {stride}, "
    "{padding} * 2, {dilation}))",
    onnx='g.op("Neg", g.op("MaxPool", g.op("Neg", {0}), kernel_shape={kernel}, strides={stride}, pads={padding} * 2, '
    "dilations={dilation}))",
)  # fmt: skip


def _avg_pool(spatial: int) -> OpSpec:
    attrs: dict[str, AttrRule] = {"kernel": _kernel, "padding": _padding, "stride": strides(spatial)}
    name = f"avg_pool{spatial}d"
    include = "count_include_pad={count_include_pad}"
    return OpSpec(
        name,
        "pooling",
        operands=(activations(spatial),),
        result=_type(spatial),
        reference=_avg,
        attrs={**attrs, "count_include_pad": flag()},
        torch=without_stride(f"torch.nn.functional.{name}({{0}}, {{kernel}}, {{stride}}, {{padding}}, {include})"),
        tensorflow="avg_pool({0}, {kernel}, {stride}, {padding}, {count_include_pad})",
        jax="avg_pool({0}, {kernel}, {stride}, {padding}, {count_include_pad})",
        relax=f"relax.op.nn.{name}({{0}}, {{kernel}}, {{stride}}, {{padding}} * 2, {include})",
        onnx='g.op("AveragePool", {0}, kernel_shape={kernel}, strides={stride}, pads={padding} * 2, '
        "count_include_pad=int({count_include_pad}))",
    )


def _global_type(operands: Types, attrs: Attrs) -> TensorType:
    x = operands[0]
    if x.rank != 4 or 0 in x.shape[1:]:
        raise TypeRuleError(f"cannot pool {x} over 2 dimensions")
    return TensorType(x.dtype, (*x.shape[:2], 1, 1))


def _global_onnx(call: Call) -> str:
    if call.result.dtype in ("float32", "float16"):
        return 'g.op("GlobalAveragePool", {0})'
    # ONNX Runtime has GlobalAveragePool for float only, and casts float16 around it
    return 'g.op("ReduceMean", {0}, g.const([2, 3], "int64"), keepdims=1)'


global_avg_pool = OpSpec(
    "global_avg_pool",
    "pooling",
    operands=(activations(2),),
    result=_global_type,
    reference=_global_avg,
    torch="torch.nn.functional.adaptive_avg_pool2d({0}, 1)",
    tensorflow="tf.reduce_mean({0}, axis=[2, 3], keepdims=True)",
    jax="jnp.mean({0}, axis=(2, 3), keepdims=True)",
    relax="relax.op.nn.adaptive_avg_pool2d({0}, (1, 1))",
    onnx=_global_onnx,
)

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
    kernel, stride = given(call.attrs, "kernel", "stride")

    def flat(a: Array) -> Array:
        return windows(np.ascontiguousarray(a), kernel, stride, (1,) * len(kernel)).reshape(*call.result.shape, -1)

    return norm_of(args[0].map(flat), call)


def norm_of(rows: Bounded, call: Call) -> Bounded:
    """The root (3 ulp, OpenCL; or pow, 16 ulp) of the sum of squares along the last axis; or of their mean by their
    number, which takes two roundings more. Squares may overflow, or be summed in a wider dtype."""
    total = sum_of(scaled_square(rows), prod(given(call.attrs, "kernel")[0]) + 2)
    return monotone(lambda v: np.sqrt(np.maximum(v, 0.0)), total, 16)


def _lp(spatial: int) -> OpSpec:
    composed = shared("lp_pool")
    first = "[0]" if spatial == 1 else ""
    return OpSpec(
        f"lp_pool{spatial}d", "pooling", (small_activations(spatial),), _window_type(spatial), _lp_pool,
        attrs={"kernel": small_kernel, "stride": strides(spatial)},
        torch=f"torch.nn.functional.lp_pool{spatial}d({{0}}, 2.0, {{kernel}}{first}, {{stride}}{first})",
        tensorflow=composed["tensorflow"], jax=composed["jax"], relax=composed["relax"],
        onnx=float32_or('g.op("LpPool", {0}, kernel_shape={kernel}, strides={stride}, p=2)', composed["onnx"]),
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
    "max_unpool2d", "pooling", (small_activations(2),), _window_type(2, whole=True), _unpooled,
    attrs={"kernel": _divisors},
    torch="torch.nn.functional.max_unpool2d(*torch.nn.functional.max_pool2d({0}, {kernel}, return_indices=True), "
    "{kernel})",
    tensorflow=_UNPOOL["tensorflow"], jax=_UNPOOL["jax"], relax=_UNPOOL["relax"],
    onnx=float32_or("max_unpool_native(g, {0}, {kernel})", _UNPOOL["onnx"]),
)  # fmt: skip

_NO_UNPOOL = unsupported("its composition is of images")


def _unpool(spatial: int) -> OpSpec:
    pool = f"torch.nn.functional.max_pool{spatial}d({{0}}, {{kernel}}, return_indices=True)"
    return replace(
        max_unpool2d, name=f"max_unpool{spatial}d", operands=(small_activations(spatial),),
        result=_window_type(spatial, whole=True),
        torch=f"torch.nn.functional.max_unpool{spatial}d(*{pool}, {{kernel}})",
        tensorflow=_NO_UNPOOL, jax=_NO_UNPOOL, relax=_NO_UNPOOL, onnx=_NO_UNPOOL,
    )  # fmt: skip


OPERATORS: tuple[OpSpec, ...] = (
    max_pool(1),
    max_pool(2),
    max_pool(3),
    _avg_pool(1),
    _avg_pool(2),
    _avg_pool(3),
    global_avg_pool,
    _lp(1),
    _lp(2),
    max_unpool2d,
    min_pool2d,
    _unpool(1),
    _unpool(3),
    *(_max_pool_places(spatial) for spatial in (1, 2, 3)),
)
