"""Patches of images and volumes (N, spatial…, C), as TensorFlow takes them, and dilation, the greatest sum of a patch
and weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import Bounded, add
from generators.bounds.extremes import highest
from generators.graph import FLOATS, TensorType
from generators.ops.composed import shared
from generators.ops.nn.windows import extent, given
from generators.ops.shape.layout import Array, layout, moved
from generators.ops.slots import NUMBERS, draw_dim, draw_dtype, ints_of, one_of
from generators.ops.spec import AttrRule, Attrs, Call, Draw, OpSpec, Shape, Slot, Spelling, TypeRuleError, Types

PADDINGS = ("VALID", "SAME")

# ---- operands and attributes --------------------------------------------------------------------------


def images(spatial: int, dtypes: Sequence[str]) -> Slot:
    def accepts(type_: TensorType, earlier: Types) -> bool:
        return type_.dtype in dtypes and type_.rank == spatial + 2 and 0 < type_.size <= 128

    def fresh(d: Draw, earlier: Types) -> TensorType:
        sizes = [min(5 if spatial == 2 else 3, draw_dim(d, 6, zero=False)) for _ in range(spatial)]
        return TensorType(draw_dtype(d, dtypes), (d.choice((1, 2)), *sizes, d.choice((1, 2))))

    return Slot(accepts, fresh)


def small(least: int, most: int) -> AttrRule:
    """Of each spatial axis."""
    options = tuple(range(least, most + 1))
    return lambda d, operands, attrs: tuple(d.choice(options) for _ in operands[0].shape[1:-1])


def kernel_of(d: Draw, operands: Types, attrs: Attrs) -> Shape:
    """No larger than the image: without padding it would not fit."""
    return tuple(min(size, d.choice((2, 1, 3))) for size in operands[0].shape[1:-1])


def _dilation(d: Draw, operands: Types, attrs: Attrs) -> Shape:
    kernel = ints_of(attrs, "kernel") if "kernel" in attrs else _weights(operands)
    pairs = zip(operands[0].shape[1:-1], kernel, strict=True)
    return tuple(d.choice((1, *(r for r in (2, 3) if extent(k, r) <= size))) for size, k in pairs)


def _weights(operands: Types) -> Shape:
    _, weight = operands
    return weight.shape[:2]


def steps_of(operands: Types, attrs: Attrs) -> tuple[Shape, Shape, Shape, Shape]:
    """Kernel, stride, dilation, and the number of positions along each axis."""
    sizes = operands[0].shape[1:-1]
    n = len(sizes)
    kernel = _weights(operands) if len(operands) > 1 else ints_of(attrs, "kernel", n, 1)
    stride = ints_of(attrs, "stride", n, 1)
    dilation = ints_of(attrs, "dilation", n, 1) if "dilation" in attrs else (1,) * n
    if attrs["padding"] not in PADDINGS:
        raise TypeRuleError(f"no padding {attrs['padding']!r}")
    reaches = [extent(k, d) for k, d in zip(kernel, dilation, strict=True)]
    if any(reach > size for reach, size in zip(reaches, sizes, strict=True)):
        raise TypeRuleError(f"a kernel that reaches over {reaches} does not fit into {sizes}")
    same = attrs["padding"] == "SAME"
    counts = (-(-size // s) if same else (size - reach) // s + 1
              for size, s, reach in zip(sizes, stride, reaches, strict=True))  # fmt: skip
    return kernel, stride, dilation, tuple(counts)


def patches(x: Array, call: Call, fill: float) -> Array:
    """(N, positions…, kernel…, C)."""
    kernel, stride, dilation, counts = steps_of(call.operands, call.attrs)
    pads, n = [(0, 0)], len(kernel)
    for size, k, s, d, count in zip(x.shape[1:-1], kernel, stride, dilation, counts, strict=True):
        missing = max(0, (count - 1) * s + extent(k, d) - size) if call.attrs["padding"] == "SAME" else 0
        pads.append((missing // 2, missing - missing // 2))
    x = np.pad(x, [*pads, (0, 0)], constant_values=fill) if any(map(any, pads)) else x
    for axis, (k, s, d, count) in enumerate(zip(kernel, stride, dilation, counts, strict=True), 1):
        places = np.arange(count)[:, None] * s + np.arange(k) * d
        x = np.moveaxis(np.take(x, places.ravel(), axis).reshape(*x.shape[:axis], count, k, *x.shape[axis + 1 :]),
                        axis + 1, -1)  # fmt: skip
    # (N, positions…, C, kernel…)
    return np.moveaxis(x, n + 1, -1)


# ---- patches ------------------------------------------------------------------------------------------


def _patches_type(operands: Types, attrs: Attrs) -> TensorType:
    kernel, _, _, counts = steps_of(operands, attrs)
    n, channels = operands[0].shape[0], operands[0].shape[-1]
    return TensorType(operands[0].dtype, (n, *counts, int(np.prod(kernel)) * channels))


def _of_patches(spatial: int) -> OpSpec:
    numbers = (*NUMBERS, "bool", "complex64", "complex128") if spatial == 2 else NUMBERS
    attrs = {"kernel": kernel_of, "stride": small(1, 3), "padding": one_of(*PADDINGS), "dilation": _dilation}
    composed = shared("image_patches", dilation=lambda call: steps_of(call.operands, call.attrs)[2])

    def tensorflow(call: Call) -> str:
        kernel, stride, dilation, _ = steps_of(call.operands, call.attrs)
        lists = [[1, *numbers, 1] for numbers in (kernel, stride, dilation)]
        if spatial == 2:
            return "tf.raw_ops.ExtractImagePatches(images={{0}}, ksizes={}, strides={}, rates={}, ".format(*lists) + (
                "padding={padding})"
            )
        return f"tf.raw_ops.ExtractVolumePatches(input={{0}}, ksizes={lists[0]}, strides={lists[1]}, " + (
            "padding={padding})"
        )

    if spatial == 3:
        del attrs["dilation"]
    return layout(
        "image_patches" if spatial == 2 else "volume_patches", images(spatial, numbers), _patches_type,
        moved(lambda x, call: patches(x, call, 0).reshape(call.result.shape)), attrs=attrs,
        **{**composed, "tensorflow": tensorflow},
    )  # fmt: skip


# ---- dilation -----------------------------------------------------------------------------------------


def _accepts_weights(type_: TensorType, earlier: Types) -> bool:
    x = earlier[0]
    fits = type_.rank == 3 and type_.shape[2] == x.shape[3] and 0 not in type_.shape
    return fits and type_.dtype == x.dtype and all(k <= n for k, n in zip(type_.shape, x.shape[1:3], strict=False))


def _fresh_weights(d: Draw, earlier: Types) -> TensorType:
    _, high, wide, channels = earlier[0].shape
    return TensorType(earlier[0].dtype, (min(high, d.choice((2, 1, 3))), min(wide, d.choice((2, 1, 3))), channels))


def _dilated_type(operands: Types, attrs: Attrs) -> TensorType:
    if not _accepts_weights(operands[1], operands[:1]):
        raise TypeRuleError(f"{operands[1]} are no weights for {operands[0]}")
    n, channels = operands[0].shape[0], operands[0].shape[-1]
    return TensorType(operands[0].dtype, (n, *steps_of(operands, attrs)[3], channels))


def _dilated(args: Sequence[Bounded], call: Call) -> Bounded:
    """One addition, then the greatest; nothing is said of NaN and infinities, nor of weights beside the image, since
    kernels start with the lowest number and compare, and spellings add them to it."""
    x, weight = args
    kernel = given({"kernel": _weights(call.operands)}, "kernel")[0]
    terms = x.map(lambda a: patches(a, call, 0))
    inside = patches(np.ones(x.value.shape), call, 0) > 0
    sums = add(terms, Bounded(weight.value, weight.error, x.dtype))
    wild = ~np.isfinite(sums.value)
    sums = Bounded(np.where(inside, sums.value, -np.inf), np.where(inside, sums.error, 0.0), x.dtype)
    axes = tuple(range(3, 3 + len(kernel)))
    best = highest(sums, lambda a: a.max(axis=axes))
    open_ = np.any(wild, axes) | ~np.isfinite(best.value)
    return Bounded(best.value, np.where(open_, np.inf, best.error), x.dtype)


def _dilation_text() -> Spelling:
    def spell(call: Call) -> str:
        _, stride, dilation, _ = steps_of(call.operands, call.attrs)
        lists = f"strides={[1, *stride, 1]}, rates={[1, *dilation, 1]}"
        return f"tf.raw_ops.Dilation2D(input={{0}}, filter={{1}}, {lists}, padding={{padding}})"

    return spell


_DILATION = shared("dilation2d")
dilation2d = OpSpec(
    "dilation2d", "pooling", (images(2, FLOATS), Slot(_accepts_weights, _fresh_weights)), _dilated_type, _dilated,
    attrs={"stride": small(1, 3), "padding": one_of(*PADDINGS), "dilation": _dilation},
    torch=_DILATION["torch"], tensorflow=_dilation_text(), jax=_DILATION["jax"], relax=_DILATION["relax"],
    onnx=_DILATION["onnx"],
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (_of_patches(2), _of_patches(3), dilation2d)
