"""Convolutions and pooling whose paddings follow from a rule: as much as makes the result as long as the input over the
stride, rounded up (SAME in TensorFlow, JAX and ONNX, padding="same" in PyTorch), and pooling whose last window need not
be whole (ceil_mode in PyTorch and ONNX)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from generators.bounds.bounded import Bounded
from generators.bounds.extremes import highest
from generators.bounds.products import sum_of
from generators.bounds.sums import average
from generators.graph import FLOATS, TensorType
from generators.ops.nn.conv import conv1d, conv2d, convolved
from generators.ops.nn.pooling import norm_of
from generators.ops.nn.windows import (
    Ints,
    activations,
    covered,
    extent,
    given,
    padded,
    product_of,
    slid,
    small_activations,
    strides,
    windows,
    without_stride,
)
from generators.ops.slots import ints_of, one_of
from generators.ops.spec import (
    AttrRule,
    Attrs,
    Call,
    Draw,
    OpSpec,
    Spelling,
    TypeRuleError,
    Types,
    Unsupported,
    said,
    unsupported,
)

Array = np.ndarray
Pads = Callable[[Ints, Attrs], Ints]
"""The paddings, in front and then behind, of an image of this size."""

# ---- paddings -----------------------------------------------------------------------------------------


def same_pads(sizes: Ints, kernel: Ints, stride: Ints, dilation: Ints) -> Ints:
    """Of what is odd, more behind."""
    total = []
    for size, k, s, d in zip(sizes, kernel, stride, dilation, strict=True):
        total.append(max((-(-size // s) - 1) * s + extent(k, d) - size, 0))
    return (*(one // 2 for one in total), *(one - one // 2 for one in total))


def ceil_pads(sizes: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Ints:
    """The paddings that are asked for, and behind them what the last window lacks: one begins in the image or in the
    padding in front of it, as PyTorch documents, and ONNX since opset 22."""
    behind = []
    for size, k, s, p, d in zip(sizes, kernel, stride, padding, dilation, strict=True):
        reach, whole = extent(k, d), size + 2 * p
        positions = -(-(whole - reach) // s) + 1
        if (positions - 1) * s >= size + p:
            positions -= 1
        behind.append(max((positions - 1) * s + reach - size - p, p))
    return (*padding, *behind)


def _wide_strides(spatial: int) -> AttrRule:
    """Also far beyond the kernel."""

    def rule(d: Draw, operands: Types, attrs: Attrs) -> Ints:
        return tuple(d.choice((1, 2, 3, 1, 4, 7, 10)) for _ in range(spatial))

    return rule


# ---- convolutions -------------------------------------------------------------------------------------


def _conv_call(call: Call) -> Call:
    stride, dilation = given(call.attrs, "stride", "dilation")
    pads = same_pads(call.operands[0].shape[2:], call.operands[1].shape[2:], stride, dilation)
    return Call(call.operands, {**call.attrs, "padding": pads}, call.result)


def _conv_same(base: OpSpec, spatial: int) -> OpSpec:
    def typed(operands: Types, attrs: Attrs) -> TensorType:
        stride, dilation = ints_of(attrs, "stride", spatial, 1), ints_of(attrs, "dilation", spatial, 1)
        if max(stride) > 1 and max(dilation) > 1:
            raise TypeRuleError("TensorFlow has no strides together with dilations")
        if any(one.rank != spatial + 2 for one in operands[:2]):
            raise TypeRuleError(f"{operands[0]} is no batch of channels")
        pads = same_pads(operands[0].shape[2:], operands[1].shape[2:], stride, dilation)
        return base.result(operands, {**attrs, "padding": pads})

    def dilations(d: Draw, operands: Types, attrs: Attrs) -> Ints:
        (stride,) = given(attrs, "stride")
        return tuple(d.choice((1, 2, 3)) if max(stride) == 1 else 1 for _ in range(spatial))

    def explicit(text: Spelling) -> Spelling:
        """With the paddings written out."""

        def spell(call: Call) -> str:
            whole = _conv_call(call)
            written = said(text, whole)
            assert isinstance(written, str)
            return written.replace("{padding}", str(whole.attrs["padding"]))

        return spell

    def torch(call: Call) -> str:
        if set(given(call.attrs, "stride")[0]) != {1}:
            return str(explicit(base.torch)(call))  # type: ignore[operator]
        bias = ", {2}" if len(call.operands) > 2 else ", None"
        name = f"torch.nn.functional.conv{spatial}d"
        return f'{name}({{0}}, {{1}}{bias}, padding="same", dilation={{dilation}}, groups={{groups}})'

    bias = " + {2}[:, None, None]" if len(base.operands) > 2 else ""
    return OpSpec(
        f"{base.name}_same", "conv", base.operands, typed, lambda args, call: convolved(args, _conv_call(call)),
        attrs={"stride": _wide_strides(spatial), "dilation": dilations, "groups": base.attrs["groups"]},
        torch=torch, tensorflow="conv_same({args}, stride={stride}, dilation={dilation})",
        jax="jax.lax.conv_general_dilated({0}, {1}, {stride}, 'SAME', rhs_dilation={dilation}, "
        f"feature_group_count={{groups}}){bias}",
        relax=explicit(base.relax),
        onnx='g.op("Conv", {args}, auto_pad="SAME_UPPER", strides={stride}, dilations={dilation}, group={groups})',
        base=base.name,
    )  # fmt: skip


# ---- pooling ------------------------------------------------------------------------------------------


def _pooled(spatial: int, pads: Pads) -> Callable[[Types, Attrs], TensorType]:
    def rule(operands: Types, attrs: Attrs) -> TensorType:
        x = operands[0]
        if x.rank != spatial + 2 or 0 in x.shape[1:]:
            raise TypeRuleError(f"cannot pool {x} over {spatial} dimensions")
        kernel, stride = ints_of(attrs, "kernel", spatial, 1), ints_of(attrs, "stride", spatial, 1)
        if "padding" in attrs and any(
            p > k // 2 for p, k in zip(ints_of(attrs, "padding", spatial, 0), kernel, strict=True)
        ):
            raise TypeRuleError("the padding is more than half of the kernel")
        if any(k > size for k, size in zip(kernel, x.shape[2:], strict=True)):
            raise TypeRuleError(f"a kernel {kernel} is larger than {x}")
        wide, ones = pads(x.shape[2:], attrs), (1,) * spatial
        sizes = slid(x.shape[2:], kernel, stride, wide, ones)
        for i, size in enumerate(x.shape[2:]):
            if not covered(size, kernel[i], stride[i], wide[i], wide[spatial + i], 1).all():
                raise TypeRuleError("a window holds padding alone")
        return TensorType(x.dtype, (*x.shape[:2], *sizes))

    return rule


def _view(call: Call, pads: Pads, fill: float) -> Callable[[Array], Array]:
    kernel, stride = given(call.attrs, "kernel", "stride")
    wide = pads(call.operands[0].shape[2:], call.attrs)

    def view(array: Array) -> Array:
        filled = windows(padded(np.ascontiguousarray(array), wide, fill), kernel, stride, (1,) * len(kernel))
        return filled.reshape(*call.result.shape, prod(kernel))

    return view


def _greatest(pads: Pads) -> Callable[[Sequence[Bounded], Call], Bounded]:
    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        view = _view(call, pads, -np.inf)
        return highest(args[0], lambda array: view(array).max(axis=-1))

    return reference


def _mean(pads: Pads) -> Callable[[Sequence[Bounded], Call], Bounded]:
    """The divisor counts elements of the image, those in the padding that was asked for, too, where that is wanted, but
    none behind it."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        sizes, attrs = call.operands[0].shape[2:], call.attrs
        kernel, stride = given(attrs, "kernel", "stride")
        wide, n = pads(sizes, attrs), len(kernel)
        asked = given(attrs, "padding")[0] if attrs.get("count_include_pad") else (0,) * n
        counts = [
            covered(size + 2 * p, k, s, wide[i] - p, wide[n + i] - p, 1)
            for i, (size, k, s, p) in enumerate(zip(sizes, kernel, stride, asked, strict=True))
        ]
        divisor = attrs.get("divisor") or product_of(counts)
        total = sum_of(args[0].map(_view(call, pads, 0.0)), prod(kernel) - 1)
        return average(total, divisor)  # type: ignore[arg-type]

    return reference


def _kernel(d: Draw, operands: Types, attrs: Attrs) -> Ints:
    return tuple(min(size, d.choice((2, 3, 1, 4, 5))) for size in operands[0].shape[2:])


def _same(sizes: Ints, attrs: Attrs) -> Ints:
    kernel, stride = given(attrs, "kernel", "stride")
    return same_pads(sizes, kernel, stride, (1,) * len(kernel))


def _ceil(sizes: Ints, attrs: Attrs) -> Ints:
    kernel, stride = given(attrs, "kernel", "stride")
    return ceil_pads(sizes, kernel, stride, _padding(attrs), (1,) * len(kernel))


def _padding(attrs: Attrs) -> Ints:
    """What is asked for, where anything may be."""
    return given(attrs, "padding")[0] if "padding" in attrs else (0,) * len(given(attrs, "kernel")[0])


def _half(d: Draw, operands: Types, attrs: Attrs) -> Ints:
    return tuple(d.choice(tuple(range(k // 2 + 1))) for k in given(attrs, "kernel")[0])


def _apart(spatial: int) -> AttrRule:
    """Half of them side by side: windows that move by one never hang over."""
    free = strides(spatial)
    return lambda d, operands, attrs: free(d, operands, attrs) if d.boolean() else given(attrs, "kernel")[0]


def _written(call: Call) -> tuple[Ints, Ints]:
    """Paddings in front and behind."""
    wide = (_ceil if "padding" in call.attrs else _same)(call.operands[0].shape[2:], call.attrs)
    return wide[: len(wide) // 2], wide[len(wide) // 2 :]


def _relax(kind: str, spatial: int) -> Spelling:
    def spell(call: Call) -> str:
        front, behind = _written(call)
        counted = ", count_include_pad=False" if kind == "avg" else ""
        return f"relax.op.nn.{kind}_pool{spatial}d({{0}}, {{kernel}}, {{stride}}, {(*front, *behind)}{counted})"

    return spell


def _jax_max(call: Call) -> str:
    pairs = tuple(zip(*_written(call), strict=True))
    return (
        "jax.lax.reduce_window({0}, np.array(-np.inf, {dtype0}), jax.lax.max, (1, 1, *{kernel}), (1, 1, *{stride}), "
        f"((0, 0), (0, 0), *{pairs}))"
    )


_NO_RULE = unsupported("it has no rule for windows that are not whole, and averages with paddings of its own")
_KERNELS: dict[str, AttrRule] = {"kernel": _kernel}


def _max_same(spatial: int) -> OpSpec:
    return OpSpec(
        f"max_pool{spatial}d_same", "pooling", (activations(spatial),), _pooled(spatial, _same), _greatest(_same),
        attrs={**_KERNELS, "stride": _wide_strides(spatial)},
        torch=unsupported("PyTorch pools with the same padding on both sides"),
        tensorflow='pool_same({0}, {kernel}, {stride}, "MAX")', jax=_jax_max, relax=_relax("max", spatial),
        onnx='g.op("MaxPool", {0}, kernel_shape={kernel}, strides={stride}, auto_pad="SAME_UPPER")',
        base=f"max_pool{spatial}d",
    )  # fmt: skip


def _avg_same(spatial: int) -> OpSpec:
    return OpSpec(
        f"avg_pool{spatial}d_same", "pooling", (activations(spatial),), _pooled(spatial, _same), _mean(_same),
        attrs={**_KERNELS, "stride": _wide_strides(spatial)},
        torch=unsupported("PyTorch pools with the same padding on both sides"),
        tensorflow='pool_same({0}, {kernel}, {stride}, "AVG")', jax=_NO_RULE, relax=_relax("avg", spatial),
        onnx='g.op("AveragePool", {0}, kernel_shape={kernel}, strides={stride}, auto_pad="SAME_UPPER")',
        base=f"avg_pool{spatial}d",
    )  # fmt: skip


def _onnx_ceil(text: str, dtypes: Sequence[str] = FLOATS) -> Spelling:
    """ONNX lets a window begin in the padding behind before opset 22, which drawn graphs are older than. dtypes: those
    of ONNX Runtime's kernel."""

    def spell(call: Call) -> str | Unsupported:
        if call.result.dtype not in dtypes:
            return Unsupported(f"ONNX Runtime has the kernel for {' and '.join(dtypes)} only")
        kernel, stride = given(call.attrs, "kernel", "stride")
        sizes, found = call.operands[0].shape[2:], call.result.shape[2:]
        axes = zip(sizes, kernel, stride, _padding(call.attrs), strict=True)
        plain = tuple(-(-(size + 2 * p - k) // s) + 1 for size, k, s, p in axes)
        return text if plain == found else unsupported("before opset 22 it has a window more, in the padding")

    return spell


def _max_ceil(spatial: int) -> OpSpec:
    name = f"max_pool{spatial}d"
    return OpSpec(
        f"{name}_ceil", "pooling", (activations(spatial),), _pooled(spatial, _ceil), _greatest(_ceil),
        attrs={**_KERNELS, "padding": _half, "stride": _apart(spatial)},
        torch=without_stride(
            f"torch.nn.functional.{name}({{0}}, {{kernel}}, {{stride}}, {{padding}}, ceil_mode=True)"
        ),
        tensorflow=_NO_RULE, jax=_jax_max,
        relax=f"relax.op.nn.{name}({{0}}, {{kernel}}, {{stride}}, {{padding}} * 2, ceil_mode=True)",
        onnx=_onnx_ceil(
            'g.op("MaxPool", {0}, kernel_shape={kernel}, strides={stride}, pads={padding} * 2, ceil_mode=1)'
        ),
        base=name,
    )  # fmt: skip


def _avg_ceil(spatial: int) -> OpSpec:
    name = f"avg_pool{spatial}d"
    include = "count_include_pad={count_include_pad}"
    return OpSpec(
        f"{name}_ceil", "pooling", (activations(spatial),), _pooled(spatial, _ceil), _mean(_ceil),
        attrs={**_KERNELS, "padding": _half, "stride": _apart(spatial), "count_include_pad": one_of(True, False)},
        torch=without_stride(
            f"torch.nn.functional.{name}({{0}}, {{kernel}}, {{stride}}, {{padding}}, ceil_mode=True, "
            f"{include})"
        ),
        tensorflow=_NO_RULE, jax=_NO_RULE,
        relax=f"relax.op.nn.{name}({{0}}, {{kernel}}, {{stride}}, {{padding}} * 2, ceil_mode=True, {include})",
        onnx=_onnx_ceil(
            'g.op("AveragePool", {0}, kernel_shape={kernel}, strides={stride}, pads={padding} * 2, ceil_mode=1, '
            "count_include_pad=int({count_include_pad}))"
        ),
        base=name,
    )  # fmt: skip


def _norm(args: Sequence[Bounded], call: Call) -> Bounded:
    """What hangs over adds nothing."""
    return norm_of(args[0].map(_view(call, _ceil, 0.0)), call)


def _lp_ceil(spatial: int) -> OpSpec:
    name = f"lp_pool{spatial}d"
    first = "[0]" if spatial == 1 else ""
    none = unsupported("its poolings take no norms")
    return OpSpec(
        f"{name}_ceil", "pooling", (small_activations(spatial),), _pooled(spatial, _ceil), _norm,
        attrs={"kernel": _kernel, "stride": _apart(spatial)},
        torch=f"torch.nn.functional.{name}({{0}}, 2.0, {{kernel}}{first}, {{stride}}{first}, ceil_mode=True)",
        tensorflow=none, jax=none, relax=none,
        onnx=_onnx_ceil(
            'g.op("LpPool", {0}, kernel_shape={kernel}, strides={stride}, p=2, ceil_mode=1)', ("float32", "float16")
        ),
        base=name,
    )  # fmt: skip


def _avg_divided(spatial: int) -> OpSpec:
    """PyTorch alone takes another divisor."""
    name = f"avg_pool{spatial}d"
    none = unsupported("its averages have no divisor of their own")
    return OpSpec(
        f"{name}_divided", "pooling", (activations(spatial),), _pooled(spatial, _ceil), _mean(_ceil),
        attrs={
            **_KERNELS, "padding": _half, "stride": _apart(spatial), "divisor": lambda d, o, a: d.choice((1, 2, 3, 7)),
        },
        torch=without_stride(
            f"torch.nn.functional.{name}({{0}}, {{kernel}}, {{stride}}, {{padding}}, ceil_mode=True, "
            "divisor_override={divisor})"
        ),
        tensorflow=none, jax=none, relax=none, onnx=none, base=name,
    )  # fmt: skip


OPERATORS: tuple[OpSpec, ...] = (
    _conv_same(conv1d, 1),
    _conv_same(conv2d, 2),
    *(_max_same(spatial) for spatial in (1, 2)),
    *(_avg_same(spatial) for spatial in (1, 2)),
    *(_max_ceil(spatial) for spatial in (1, 2, 3)),
    *(_avg_ceil(spatial) for spatial in (1, 2, 3)),
    *(_avg_divided(spatial) for spatial in (2, 3)),
    *(_lp_ceil(spatial) for spatial in (1, 2)),
)
