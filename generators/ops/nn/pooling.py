"""Pooling over the spatial dimensions of (N, C, spatial…)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded, ends, rounded, spread
from generators.bounds.products import bilinear
from generators.graph import Attr, TensorType
from generators.ops.nn.windows import (
    Ints,
    activations,
    covered,
    extent,
    given,
    padded,
    product_of,
    slid,
    strides,
    windows,
)
from generators.ops.shape.reshape import ints_of
from generators.ops.slots import flag
from generators.ops.spec import AttrRule, Call, Draw, OpSpec, ResultRule, TypeRuleError, Types

Array = np.ndarray


def _pads(size: int, kernel: int, dilation: int) -> tuple[int, ...]:
    """Padding (alike in front and behind) that lets the kernel fit: at most half of the kernel, as PyTorch
    demands, and so that no window holds padding alone, for which ONNX has no value."""
    return tuple(
        p
        for p in range(kernel // 2 + 1)
        if extent(kernel, dilation) <= size + 2 * p and covered(size, kernel, 1, p, p, dilation).all()
    )


def _kernel(d: Draw, operands: Types, attrs: Mapping[str, Attr]) -> Ints:
    """Small mostly; sometimes the whole input, or more than it, so that only padding makes it fit."""
    kernel = []
    for size in operands[0].shape[2:]:
        options = (2, 3, 1, 2, 3, size if size <= 9 else 7, min(size, 9) + 1)
        k = d.choice(options)
        kernel.append(k if _pads(size, k, 1) else size)
    return tuple(kernel)


def _dilation(d: Draw, operands: Types, attrs: Mapping[str, Attr]) -> Ints:
    pairs = zip(operands[0].shape[2:], given(attrs, "kernel")[0], strict=True)
    return tuple(d.choice((1, *(r for r in (1, 2, 3) if _pads(size, k, r)))) for size, k in pairs)


def _padding(d: Draw, operands: Types, attrs: Mapping[str, Attr]) -> Ints:
    sizes, kernel = operands[0].shape[2:], given(attrs, "kernel")[0]
    dilation = given(attrs, "dilation")[0] if "dilation" in attrs else (1,) * len(kernel)
    return tuple(d.choice(_pads(*axis)) for axis in zip(sizes, kernel, dilation, strict=True))


def _type(spatial: int) -> ResultRule:
    def rule(operands: Types, attrs: Mapping[str, Attr]) -> TensorType:
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


def highest(x: Bounded, pooled: Callable[[Array], Array]) -> Bounded:
    """Exact selection, by `pooled`: errors widen the interval only. A NaN in a window is its maximum."""
    with np.errstate(all="ignore"):
        value, (low, high) = pooled(x.value), ends(x)
        error = spread(value, pooled(low), pooled(high))
        if x.error.any():  # flushed subnormals compare equal: any of them may be taken
            tiny = PRECISION[x.dtype].tiny
            near = (np.abs(value) < tiny) & (pooled(np.where(np.abs(x.value) < tiny, x.error, 0.0)) > 0)
            error = np.where(near, np.maximum(error, np.abs(value) + tiny), error)
        if x.undetermined.any():
            nan = pooled(1.0 * (np.isnan(x.value) & ~x.undetermined)) > 0
            unknown = pooled(1.0 * x.undetermined) > 0
            value = np.where(nan, np.nan, value)
            error = np.where(nan, 0.0, np.where(unknown, np.inf, error))
    return Bounded(value, error, x.dtype)


def average(total: Bounded, count: Array | int) -> Bounded:
    """The sum by the count: a division of 2.5 ulp, which also covers the product with a rounded reciprocal, and
    the quotient of the averages of the padded input and of padded ones, all three correctly rounded."""
    with np.errstate(all="ignore"):
        return rounded(total.value / count, total.error / count, total.dtype, 2.5)


def sum_of(x: Bounded, roundings: Array | int) -> Bounded:
    """The sum over the last dimension."""
    ones = Bounded(np.ones((x.value.shape[-1], 1)), np.zeros((x.value.shape[-1], 1)), x.dtype)
    return bilinear(lambda a, b: np.matmul(a, b)[..., 0], x, ones, roundings)


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


def _max_pool(spatial: int) -> OpSpec:
    attrs: dict[str, AttrRule] = {"kernel": _kernel, "dilation": _dilation, "padding": _padding}
    call = f"max_pool{spatial}d({{0}}, {{kernel}}, {{stride}}, {{padding}}, {{dilation}})"
    return OpSpec(
        f"max_pool{spatial}d",
        "pooling",
        operands=(activations(spatial),),
        result=_type(spatial),
        reference=_max,
        attrs={**attrs, "stride": strides(spatial)},
        torch=f"torch.nn.functional.{call}",
        tensorflow="max_pool({0}, {kernel}, {stride}, {padding}, {dilation})",
        jax="max_pool({0}, {kernel}, {stride}, {padding}, {dilation})",
        relax=f"relax.op.nn.max_pool{spatial}d({{0}}, {{kernel}}, {{stride}}, {{padding}} * 2, {{dilation}})",
        onnx='g.op("MaxPool", {0}, kernel_shape={kernel}, strides={stride}, pads={padding} * 2, dilations={dilation})',
    )


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
        torch=f"torch.nn.functional.{name}({{0}}, {{kernel}}, {{stride}}, {{padding}}, {include})",
        tensorflow="avg_pool({0}, {kernel}, {stride}, {padding}, {count_include_pad})",
        jax="avg_pool({0}, {kernel}, {stride}, {padding}, {count_include_pad})",
        relax=f"relax.op.nn.{name}({{0}}, {{kernel}}, {{stride}}, {{padding}} * 2, {include})",
        onnx='g.op("AveragePool", {0}, kernel_shape={kernel}, strides={stride}, pads={padding} * 2, '
        "count_include_pad=int({count_include_pad}))",
    )


def _global_type(operands: Types, attrs: Mapping[str, Attr]) -> TensorType:
    x = operands[0]
    if x.rank != 4 or 0 in x.shape[1:]:
        raise TypeRuleError(f"cannot pool {x} over 2 dimensions")
    return TensorType(x.dtype, (*x.shape[:2], 1, 1))


def _global_onnx(call: Call) -> str:
    if call.result.dtype == "float32":
        return 'g.op("GlobalAveragePool", {0})'
    # ONNX Runtime has GlobalAveragePool for float only
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

POOLING = (_max_pool(1), _max_pool(2), _avg_pool(2), global_avg_pool)
SELDOM_POOLING = (_max_pool(3), _avg_pool(1), _avg_pool(3))
