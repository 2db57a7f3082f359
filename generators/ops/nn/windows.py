"""What convolutions and pooling share: windows that slide over the spatial dimensions of (N, C, spatial…).

Padding is written as in ONNX: one int an axis in front, then one an axis behind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.graph import FLOATS, TensorType
from generators.ops.slots import draw_dim, draw_dtype
from generators.ops.spec import AttrRule, Attrs, Draw, Slot, Spelling, TypeRuleError, Types

Array = np.ndarray
Ints = tuple[int, ...]

LARGEST_PAD = 3
_ROOM = {1: 256, 2: 512, 3: 512}  # elements of a fresh activation: every output sums over a window of them


def activations(spatial: int) -> Slot:
    """(N, C, spatial…) of floats; only N may be 0."""
    rank = spatial + 2

    def accepts(type_: TensorType, earlier: Types) -> bool:
        return type_.dtype in FLOATS and type_.rank == rank and 0 not in type_.shape[1:]

    def fresh(d: Draw, earlier: Types) -> TensorType:
        batch = 0 if d.integer(0, 31) == 31 else d.choice((1, 2, 3))
        channels = d.choice((2, 1, 3, 4, 6, 8))
        room = _ROOM[spatial] // (max(1, batch) * channels)
        shape = [batch, channels]
        for _ in range(spatial):
            shape.append(draw_dim(d, max(1, room), zero=False))
            room //= shape[-1]
        return TensorType(draw_dtype(d, FLOATS), tuple(shape))

    return Slot(accepts, fresh)


# ---- attributes ---------------------------------------------------------------------------------------


def given(attrs: Attrs, *keys: str) -> tuple[Ints, ...]:
    """Attributes that are tuples of ints, by name."""
    found = (attrs[key] for key in keys)
    return tuple(tuple(int(i) for i in value) for value in found if isinstance(value, tuple))


def extent(kernel: int, dilation: int) -> int:
    """How far a dilated kernel reaches."""
    return dilation * (kernel - 1) + 1


def slid(sizes: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Ints:
    """Number of window positions along each axis; raises TypeRuleError where the kernel does not fit."""
    n = len(sizes)
    result = []
    for i in range(n):
        padded, reach = sizes[i] + padding[i] + padding[n + i], extent(kernel[i], dilation[i])
        if reach > padded:
            raise TypeRuleError(
                f"a kernel that reaches over {reach} elements is larger than {padded}, padding included"
            )
        result.append((padded - reach) // stride[i] + 1)
    return tuple(result)


def strides(spatial: int) -> AttrRule:
    """Mostly 1, or 2; sometimes larger than the kernel or the input; mostly alike along all axes. Windows that are
    known often lie side by side, as in most models."""

    def rule(d: Draw, operands: Types, attrs: Attrs) -> Ints:
        kernel = given(attrs, "kernel")[0] if "kernel" in attrs else ()
        if kernel and d.integer(0, 3) == 1:
            return kernel
        first = d.choice((1, 1, 2, 1, 3, 2, 1, 5))
        return (first, *(d.choice((first, 1, first, 2, 3, 5)) for _ in range(spatial - 1)))

    return rule


def without_stride(text: str) -> Spelling:
    """A call of PyTorch's that leaves its strides out where they are as the kernel, which is what it takes then."""
    behind = text.replace("{stride}, {padding}, {dilation}", "padding={padding}, dilation={dilation}")
    left_out = behind.replace("{stride}, {padding}", "padding={padding}")
    return lambda call: left_out if call.attrs["stride"] == call.attrs["kernel"] else text


# ---- arrays -------------------------------------------------------------------------------------------


def padded(x: Array, padding: Ints, fill: float | bool) -> Array:
    """x with `fill` around its spatial dimensions."""
    n = len(padding) // 2
    if not any(padding):
        return x
    width = [(0, 0)] * (x.ndim - n) + [(padding[i], padding[n + i]) for i in range(n)]
    return np.pad(x, width, constant_values=fill)


def windows(x: Array, kernel: Ints, stride: Ints, dilation: Ints) -> Array:
    """A view of the windows of an array that is padded already: (N, C, positions…, kernel…)."""
    n = len(kernel)
    positions = slid(x.shape[-n:], kernel, stride, (0,) * (2 * n), dilation)
    lead, steps = x.strides[:-n], x.strides[-n:]
    return np.lib.stride_tricks.as_strided(
        x,
        (*x.shape[:-n], *positions, *kernel),
        (
            *lead,
            *(s * t for s, t in zip(steps, stride, strict=True)),
            *(s * t for s, t in zip(steps, dilation, strict=True)),
        ),
        writeable=False,
    )


def covered(size: int, kernel: int, stride: int, front: int, behind: int, dilation: int) -> Array:
    """How many elements that are not padding each window along one axis holds."""
    positions = (size + front + behind - extent(kernel, dilation)) // stride + 1
    index = np.arange(positions)[:, None] * stride + np.arange(kernel) * dilation - front
    return np.count_nonzero((index >= 0) & (index < size), axis=1)


def product_of(counts: Sequence[Array]) -> Array:
    """The outer product of the counts along each axis."""
    result = np.ones((), np.int64)
    for count in counts:
        result = np.multiply.outer(result, count)
    return result


def float32_or(single: str, composed: Spelling) -> Spelling:
    """ONNX Runtime has these kernels for float only, and casts float16 around them."""
    assert callable(composed)
    return lambda call: single if call.result.dtype in ("float32", "float16") else composed(call)


# ---- small windows ------------------------------------------------------------------------------------


def small_kernel(d: Draw, operands: Types, attrs: Attrs) -> Ints:
    return tuple(min(size, d.choice((2, 1, 3, 2))) for size in operands[0].shape[2:])


def small_activations(spatial: int) -> Slot:
    """Activations of which every patch fits into a result."""
    slot = activations(spatial)

    def fresh(d: Draw, earlier: Types) -> TensorType:
        type_ = slot.fresh(d, earlier)
        sizes = (min(7, dim) for dim in type_.shape[2:])
        return TensorType(type_.dtype, (max(1, type_.shape[0]), min(3, type_.shape[1]), *sizes))

    def accepts(type_: TensorType, earlier: Types) -> bool:
        return slot.accepts(type_, earlier) and 0 < type_.size <= 512 and all(dim <= 9 for dim in type_.shape[2:])

    return Slot(accepts, fresh)
