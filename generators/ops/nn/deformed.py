"""Convolutions whose windows take each element from a place of its own, and means and greatest elements over regions of
images: all sample images (NCHW) between their pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, multiply
from generators.bounds.products import bilinear
from generators.graph import TensorType
from generators.ops.composed import undetermined
from generators.ops.nn.resize import IMAGE, weighted
from generators.ops.nn.windows import Ints, extent, given
from generators.ops.slots import computed, draw_dim, draw_dtype, int_of, ints_of
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Reference, Slot, TypeRuleError, Types, unsupported

Array = np.ndarray

_DTYPES = ("float32", "float64", "float16")
_FAR = 2.0**12
_NONE = unsupported("it has no such operator")

# ---- windows, and where they may lie ------------------------------------------------------------------

_STEPS = tuple((s, r, p) for p in ((0, 0), (1, 1), (1, 0), (2, 1)) for s in (1, 2, 3) for r in (1, 2))
"""Stride, dilation, and padding in front and behind, that are drawn for an axis."""


def _count(size: int, kernel: int, step: tuple[int, int, tuple[int, int]]) -> int:
    stride, dilation, (front, behind) = step
    return max(0, (size + front + behind - extent(kernel, dilation)) // stride + 1)


def _steps(size: int, kernel: int, count: int) -> list[tuple[int, int, tuple[int, int]]]:
    """Those by which an axis has so many windows."""
    return [step for step in _STEPS if _count(size, kernel, step) == count]


def _image(d: Draw, earlier: Types) -> TensorType:
    shape = (d.choice((1, 2)), d.choice((2, 1, 4)), draw_dim(d, 5, zero=False), draw_dim(d, 5, zero=False))
    return TensorType(draw_dtype(d, _DTYPES), shape)


def _kernel(d: Draw, earlier: Types) -> TensorType:
    """(O, C / groups, kernel…) as large as the image at most."""
    x = earlier[0]
    groups = d.choice(tuple(g for g in (1, 2, 4) if x.shape[1] % g == 0))
    sides = [d.choice(tuple(k for k in (2, 1, 3) if k <= size)) for size in x.shape[2:]]
    return TensorType(x.dtype, (groups * d.choice((1, 2)), x.shape[1] // groups, *sides))


def _offsets(d: Draw, earlier: Types) -> TensorType:
    """(N, parts x kernel x 2, windows…): vertical and horizontal moves of each element of each window, alike for the
    channels of a part."""
    x, w = earlier[:2]
    parts = d.choice(tuple(p for p in (1, 2) if x.shape[1] % p == 0))
    counts = []
    for size, kernel in zip(x.shape[2:], w.shape[2:], strict=True):
        counts.append(_count(size, kernel, d.choice([step for step in _STEPS if _count(size, kernel, step)])))
    return TensorType(x.dtype, (x.shape[0], parts * w.shape[2] * w.shape[3] * 2, *counts))


def _parts(operands: Types) -> int:
    return operands[2].shape[1] // (2 * operands[1].shape[2] * operands[1].shape[3])


def _grouped(x: TensorType, w: TensorType) -> bool:
    """Are there as many channels on both sides of each group as in the others?"""
    groups, rest = divmod(x.shape[1], w.shape[1])
    return not rest and w.shape[0] % groups == 0


def _fits(operands: Types) -> bool:
    x, w, moves = operands[:3]
    if not (x.rank == w.rank == moves.rank == 4 and x.dtype == w.dtype == moves.dtype and x.dtype in _DTYPES):
        return False
    if 0 in (*x.shape, *w.shape, *moves.shape) or not _grouped(x, w):
        return False
    parts, rest = divmod(moves.shape[1], 2 * w.shape[2] * w.shape[3])
    axes = zip(x.shape[2:], w.shape[2:], moves.shape[2:], strict=True)
    fits = not rest and parts and x.shape[1] % parts == 0 and x.shape[0] == moves.shape[0]
    return bool(fits) and all(_steps(*axis) for axis in axes)


def _small(count: int) -> Slot:
    """Slot number `count` of image, kernel and offsets."""

    def accepts(type_: TensorType, earlier: Types) -> bool:
        x = (*earlier, type_)
        if type_.rank != 4 or type_.dtype not in _DTYPES or not 0 < type_.size <= 512:
            return False
        if count == 1:
            fits = all(k <= size for k, size in zip(type_.shape[2:], x[0].shape[2:], strict=True))
            return fits and type_.dtype == x[0].dtype and _grouped(x[0], type_)
        return count == 0 or _fits(x)

    return Slot(accepts, (_image, _kernel, _offsets)[count])


def _windows(number: int, d: Draw, operands: Types, attrs: Attrs) -> Ints:
    """Strides, dilations or paddings, of those by which there are so many windows; each goes with what is drawn."""
    chosen = []
    for i in range(2):
        steps = _steps(operands[0].shape[2 + i], operands[1].shape[2 + i], operands[2].shape[2 + i])
        for place, name in enumerate(("stride", "dilation")[:number]):
            steps = [step for step in steps if step[place] == given(attrs, name)[0][i]]
        chosen.append(d.choice(list(dict.fromkeys(step[number] for step in steps))))
    return tuple(chosen) if number < 2 else (chosen[0][0], chosen[1][0], chosen[0][1], chosen[1][1])


def _type(operands: Types, attrs: Attrs) -> TensorType:
    if not _fits(operands):
        raise TypeRuleError(f"{', '.join(map(str, operands))} do not go together")
    stride, dilation, padding = given(attrs, "stride", "dilation", "padding")
    if (len(stride), len(dilation), len(padding)) != (2, 2, 4):
        raise TypeRuleError("two strides, two dilations and four paddings")
    for i in range(2):
        step = (stride[i], dilation[i], (padding[i], padding[2 + i]))
        size, kernel, count = (operands[n].shape[2 + i] for n in range(3))
        if step not in _STEPS or _count(size, kernel, step) != count:
            raise TypeRuleError(f"{operands[2]} holds no moves of these windows")
    result = TensorType(operands[0].dtype, (operands[0].shape[0], operands[1].shape[0], *operands[2].shape[2:]))
    if tuple(operands[3:]) != _rest(operands)[: len(operands) - 3]:
        raise TypeRuleError("no such bias and weights of samples")
    return result


def _rest(operands: Types) -> Types:
    """Of a bias and the weights of samples."""
    x, w, moves = operands[:3]
    return TensorType(x.dtype, w.shape[:1]), TensorType(
        x.dtype, (moves.shape[0], moves.shape[1] // 2, *moves.shape[2:])
    )


# ---- reference ----------------------------------------------------------------------------------------


def _sampled(x: Bounded, rows: Bounded, columns: Bounded, lost: Array, layout: str) -> Bounded:
    """Sums of x (NCHW) by weights of rows and columns. layout: letters of the samples, which the weights have before
    their last dimension and the result behind n and c. Samples of an image that holds a number that is not finite are
    undetermined: kernels multiply by zeros, and take any pixel for one that is not there."""
    ahead, behind = layout.split("->")
    plain = np.isfinite(x.value) & np.isfinite(x.error)
    clean = Bounded(np.where(plain, x.value, 0.0), np.where(plain, x.error, 0.0), x.dtype)
    met = ~plain.all((2, 3))
    half = bilinear(lambda w, a: np.einsum(f"{ahead}h,nchw->{behind}w", w, a), rows, clean, 4)
    whole = bilinear(lambda w, a: np.einsum(f"{ahead}w,{behind}w->{behind}", w, a), columns, half, 4)
    return undetermined(whole, met.reshape(*met.shape, *(1,) * (whole.value.ndim - 2)) | lost)


def _deformed(args: Sequence[Bounded], call: Call) -> Bounded:
    """Where a sample lies takes a sum of three numbers. Beyond the image it is zero, into which the weights of the
    outermost pixels run."""
    x, w, moves = args[:3]
    n, channels = x.value.shape[:2]
    (high, wide), counts = w.value.shape[2:], moves.value.shape[2:]
    parts, unit = _parts(call.operands), PRECISION[x.dtype].unit + U64
    stride, dilation, padding = given(call.attrs, "stride", "dilation", "padding")
    by_part = moves.map(lambda a: a.reshape(n, parts, high, wide, 2, *counts))
    weights, lost = [], np.zeros((), bool)
    for axis in range(2):
        move = by_part.map(lambda a, axis=axis: np.repeat(a[:, :, :, :, axis], channels // parts, 1))
        known = np.isfinite(move.value) & (np.abs(move.value) < _FAR) & np.isfinite(move.error)
        inside = np.arange((high, wide)[axis]) * dilation[axis]
        first = np.arange(counts[axis]) * stride[axis] - padding[axis]
        base = inside.reshape((-1, 1, 1, 1) if axis == 0 else (-1, 1, 1)) + first.reshape((-1, 1) if axis == 0 else -1)
        place = np.where(known, move.value, 0.0) + base
        off = np.where(known, move.error, 0.0) + 4 * unit * (np.abs(place) + np.abs(base) + 1)
        weights.append(weighted(place, x.value.shape[2 + axis], off, x.dtype))
        lost = lost | ~known
    samples = _sampled(x, weights[0], weights[1], lost, "ncijyx->ncijyx")
    if len(args) > 4:
        mask = args[4].map(lambda a: np.repeat(a.reshape(n, parts, high, wide, *counts), channels // parts, 1))
        samples = multiply(mask, samples)
    groups = channels // w.value.shape[1]

    def contract(a: Array, b: Array) -> Array:
        a = a.reshape(n, groups, channels // groups, *a.shape[2:])
        b = b.reshape(groups, -1, *b.shape[1:])
        return np.einsum("ngcijyx,gocij->ngoyx", a, b).reshape(n, -1, *counts)

    bias = args[3].map(lambda a: a[:, None, None]) if len(args) > 3 else None
    return bilinear(contract, samples, w, w.value[0].size + 1, bias=bias)


# ---- regions ------------------------------------------------------------------------------------------

_REGIONS = Slot(
    lambda t, earlier: t.dtype == earlier[0].dtype and t.rank == 2 and t.shape[1] == 4 and 0 < t.shape[0] <= 9,
    lambda d, earlier: TensorType(earlier[0].dtype, (draw_dim(d, 5, zero=False), 4)),
    span=(0, 6),
)
_WHICH = computed(
    lambda earlier: TensorType("int64", earlier[1].shape[:1]), lambda earlier: (0, earlier[0].shape[0] - 1)
)


def _region_type(operands: Types, attrs: Attrs) -> TensorType:
    x, regions, which = operands
    size, samples, scale = ints_of(attrs, "size", 2, least=1), attrs["samples"], attrs["scale"]
    if not IMAGE.accepts(x, ()) or x.dtype not in _DTYPES or not _REGIONS.accepts(regions, operands):
        raise TypeRuleError(f"{regions} are no regions of {x}")
    if which != TensorType("int64", regions.shape[:1]) or attrs["mode"] not in ("half_pixel", "output_half_pixel"):
        raise TypeRuleError(f"{which} are not the images of {regions}")
    if (
        max(size) > 7
        or not isinstance(samples, int)
        or not 0 <= samples <= 4
        or not isinstance(scale, float)
        or not 0 < scale <= 4
    ):
        raise TypeRuleError(f"no {size} of {samples!r} samples at a scale of {scale!r}")
    return TensorType(x.dtype, (regions.shape[0], x.shape[1], *size))


def _axis(first: Bounded, last: Bounded, size: int, count: int, call: Call) -> tuple[Bounded, Array, Array]:
    """(regions, count, size): weights of an axis' pixels in the mean of each part of a region; (regions, count): where
    they are not known; and (regions,): samples in a part. A sample more than a pixel outside counts as zero, and one
    that is too near that edge, or too near to being one of a number more, is not known."""
    dtype, half, adaptive = first.dtype, call.attrs["mode"] == "half_pixel", not call.attrs["samples"]
    scale, unit = call.number("scale"), PRECISION[dtype].unit + U64
    error = (first.error + last.error) * scale
    off = 16 * unit * (scale * (np.abs(first.value) + np.abs(last.value)) + 1) + error
    known = np.isfinite(off) & (np.abs(first.value) < _FAR) & (np.abs(last.value) < _FAR)
    begin, end = (np.where(known, x.value, 0.0) * scale - 0.5 * half for x in (first, last))
    off = np.where(known, off, 0.0)
    length = end - begin if half else np.maximum(end - begin, 1.0)
    known &= end - begin >= off  # corners the other way round are no region
    part = length / count
    value, slack = np.zeros((len(begin), count, size)), np.zeros((len(begin), count, size))
    lost = np.repeat(~known[:, None], count, 1)
    samples = np.ceil(part).astype(int) if adaptive else np.full(len(part), call.attrs["samples"])
    for number, grid in enumerate(samples):
        if adaptive:
            lost[number] |= abs(part[number] - np.rint(part[number])) <= off[number]
        if not 1 <= grid <= 64:
            lost[number] |= grid > 64 or grid < 1
            continue
        at = begin[number] + (np.arange(count)[:, None] + (np.arange(grid) + 0.5) / grid) * part[number]
        inside = (at >= -1) & (at <= size)
        near = (np.abs(at + 1) <= off[number]) | (np.abs(at - size) <= off[number])
        lost[number] |= near.any(1)
        one = weighted(np.clip(at, 0, size - 1), size, off[number], dtype)
        value[number] = (one.value * inside[..., None]).sum(1) / grid
        slack[number] = (one.error * inside[..., None]).sum(1) / grid + (grid + 4) * unit * value[number]
    return Bounded(value, slack, dtype), lost, samples


def _regions(args: Sequence[Bounded], call: Call) -> Bounded:
    x, regions, which = args
    sides = [regions.map(lambda a, i=i: a[:, i]) for i in range(4)]
    picked = x.map(lambda a: a[which.value])
    rows, lost_rows, high_samples = _axis(sides[1], sides[3], x.value.shape[2], call.result.shape[2], call)
    columns, lost_columns, wide_samples = _axis(sides[0], sides[2], x.value.shape[3], call.result.shape[3], call)
    high, wide = call.result.shape[2:]
    spread = [
        rows.map(lambda a: np.repeat(a[:, :, None], wide, 2)),
        columns.map(lambda a: np.repeat(a[:, None], high, 1)),
    ]
    lost = (lost_rows[:, :, None] | lost_columns[:, None, :])[:, None]
    # the sum of the samples may overflow before it is divided
    greatest = np.max(np.where(np.isfinite(picked.value), np.abs(picked.value), 0.0), (2, 3))
    beyond = greatest * (high_samples * wide_samples)[:, None] > PRECISION[x.dtype].largest
    return _sampled(picked, spread[0], spread[1], lost | beyond[:, :, None, None], "nyx->ncyx")


def _greatest(args: Sequence[Bounded], call: Call) -> Bounded:
    """The greatest sample of each part: as the means of parts that have one sample each. Nobody says what a sample
    outside counts there."""
    count, (high, wide) = int_of(call.attrs, "samples"), call.result.shape[2:]
    shape = (*call.result.shape[:2], high * count, wide * count)
    fine = replace(call, result=TensorType(call.result.dtype, shape), attrs={**call.attrs, "samples": 1})
    single, regions = _regions(args, fine), args[1]
    sides = [regions.map(lambda a, i=i: a[:, i]) for i in range(4)]
    rows = _axis(sides[1], sides[3], args[0].value.shape[2], shape[2], fine)[0].value.sum(-1)
    columns = _axis(sides[0], sides[2], args[0].value.shape[3], shape[3], fine)[0].value.sum(-1)
    lost = (rows[:, :, None] * columns[:, None, :] == 0)[:, None]
    parts = undetermined(single, lost).map(lambda a: a.reshape(*shape[:2], high, count, wide, count))
    return parts.map(lambda a: a.max((3, 5)))


_ATTRS = {name: partial(_windows, number) for number, name in enumerate(("stride", "dilation", "padding"))}
_CONV = (_small(0), _small(1), _small(2))
_TEXT = "strides={stride}, dilations={dilation}, pads={padding}, group=%g, offset_group=%o)"


def _onnx(operands: str) -> object:
    def spell(call: Call) -> str:
        groups = call.operands[0].shape[1] // call.operands[1].shape[1]
        text = _TEXT.replace("%g", str(groups)).replace("%o", str(_parts(call.operands)))
        return f'g.op("DeformConv", {operands}, {text}'

    return spell


def _conv(name: str, slots: tuple[Slot, ...], operands: str) -> OpSpec:
    return OpSpec(
        name, "conv", slots, _type, _deformed, attrs=_ATTRS,
        torch=_NONE, tensorflow=_NONE, jax=_NONE, relax=_NONE, onnx=_onnx(operands),  # type: ignore[arg-type]
    )  # fmt: skip


def _small_images(d: Draw, earlier: Types) -> TensorType:
    shape = (d.choice((1, 2)), d.choice((1, 2, 3)), draw_dim(d, 9, zero=False), draw_dim(d, 9, zero=False))
    return TensorType(draw_dtype(d, _DTYPES), shape)


def _aligned(name: str, reference: Reference, counts: tuple[int, ...], pooled: str) -> OpSpec:
    return OpSpec(
        name, "image",
        (Slot(lambda t, earlier: t.dtype in _DTYPES and IMAGE.accepts(t, earlier), _small_images), _REGIONS, _WHICH),
        _region_type, reference,
        attrs={
            "size": lambda d, operands, attrs: d.choice(((2, 2), (1, 1), (1, 3), (5, 2))),
            "samples": lambda d, operands, attrs: d.choice(counts),
            "scale": lambda d, operands, attrs: d.choice((1.0, 0.5, 0.25)),
            "mode": lambda d, operands, attrs: d.choice(("half_pixel", "output_half_pixel")),
        },
        torch=_NONE, tensorflow=_NONE, jax=_NONE,
        relax="roi_align(bb, {0}, {1}, {2}, {size}, {samples}, {scale}, {mode} == 'half_pixel', {dtype}, "
        f"'{pooled}')",
        onnx='g.op("RoiAlign", {0}, {1}, {2}, output_height={size}[0], output_width={size}[1], '
        f'mode="{pooled}", sampling_ratio={{samples}}, spatial_scale={{scale}}, '
        "coordinate_transformation_mode={mode})",
    )  # fmt: skip


OPERATORS: tuple[OpSpec, ...] = (
    _conv("deform_conv2d", _CONV, "{0}, {1}, {2}"),
    _conv(
        "deform_conv2d_masked",
        (*_CONV, computed(lambda earlier: _rest(earlier)[0]), computed(lambda earlier: _rest(earlier)[1])),
        "{0}, {1}, {2}, {3}, {4}",
    ),
    _aligned("roi_align", _regions, (2, 0, 1, 3), "avg"),
    _aligned("roi_align_max", _greatest, (2, 1, 3), "max"),
)  # fmt: skip
