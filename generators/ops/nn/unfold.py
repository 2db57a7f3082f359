"""Patches of images laid out as columns, and added up again (im2col, col2im)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from generators.bounds.bounded import Bounded
from generators.bounds.sums import summed
from generators.graph import FLOATS, TensorType
from generators.ops.composed import shared
from generators.ops.nn.windows import (
    Ints,
    extent,
    float32_or,
    given,
    padded,
    slid,
    small_activations,
    small_kernel,
    strides,
    windows,
)
from generators.ops.slots import MAX_ELEMENTS, draw_dtype, ints_of
from generators.ops.spec import AttrRule, Attrs, Call, Draw, OpSpec, Slot, TypeRuleError, Types

Array = np.ndarray


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

unfold = OpSpec(
    "unfold", "layout", (small_activations(2),), _unfold_type, _unfold,
    attrs={
        "kernel": small_kernel, "padding": _padding, "stride": strides(2),
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
    onnx=float32_or(
        'g.op("Col2Im", {0}, g.const({image}, "int64"), g.const({kernel}, "int64"), strides={stride}, '
        "pads={padding} * 2, dilations={dilation})", _FOLD["onnx"],
    ),
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (unfold, fold)
