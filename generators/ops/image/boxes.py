"""Boxes: those that others do not cover (non-maximum suppression), crops of images, places of maxima in windows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, exact, rounded
from generators.bounds.extremes import highest
from generators.graph import TensorType
from generators.ops.composed import undetermined
from generators.ops.image.patches import PADDINGS, images, kernel_of, patches, small, steps_of
from generators.ops.slots import draw_dim, flag, int_of, ints_of, one_of
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Shape, Slot, TypeRuleError, Types, unsupported

Array = np.ndarray

_WHY = unsupported("it has no such operator")

# ---- suppression --------------------------------------------------------------------------------------

BEST = 5
"""So many boxes are asked for; places that are not taken are 0."""


def _accepts_boxes(type_: TensorType, earlier: Types) -> bool:
    return type_.dtype == "float32" and type_.rank == 2 and type_.shape[1] == 4 and 0 < type_.shape[0] <= 33


def _boxes(operands: Types) -> TensorType:
    if not _accepts_boxes(operands[0], ()):
        raise TypeRuleError(f"{operands[0]} holds no boxes")
    return operands[0]


_BOXES = Slot(_accepts_boxes, lambda d, e: TensorType("float32", (draw_dim(d, 17, zero=False), 4)))
_SCORES = Slot(
    lambda t, e: t == TensorType("float32", e[0].shape[:1]), lambda d, e: TensorType("float32", e[0].shape[:1])
)


def _kept_type(operands: Types, attrs: Attrs) -> TensorType:
    _boxes(operands)
    if not _SCORES.accepts(operands[1], operands[:1]) or int_of(attrs, "last") not in (2, 3, 4, 5):
        raise TypeRuleError(f"{operands[1]} are no scores")
    if not 0 <= float(attrs["threshold"]) < 1 or attrs["output"] not in ("places", "count"):  # type: ignore[arg-type]
        raise TypeRuleError("no such suppression")
    return TensorType("int32", (BEST,) if attrs["output"] == "places" else ())


def _overlap(a: Array, b: Array) -> tuple[float, float]:
    """Intersection by union, corners in any order; and how far a float32 evaluation may be off."""
    (top, bottom), (left, right) = (sorted((a[i], a[i + 2])) for i in (0, 1))
    (top_, bottom_), (left_, right_) = (sorted((b[i], b[i + 2])) for i in (0, 1))
    first, second = (bottom - top) * (right - left), (bottom_ - top_) * (right_ - left_)
    if first <= 0 or second <= 0:
        return 0.0, 0.0
    high, wide = min(bottom, bottom_) - max(top, top_), min(right, right_) - max(left, left_)
    if high <= 0 or wide <= 0:
        return 0.0, 0.0  # corners are compared exactly
    shared = high * wide
    total = first + second - shared
    return shared / total, 16 * PRECISION["float32"].unit * (first + second) / total


def _kept(args: Sequence[Bounded], call: Call) -> Bounded:
    """The best score first; what overlaps one that is kept by more than the threshold is not kept. All of it is
    undetermined where two scores are equal, a number is not finite or may be off, or an overlap is too near the
    threshold to tell; and where a score is the least one, which counts for ONNX and not for TensorFlow."""
    boxes, scores = (x.value for x in args)
    threshold = float(np.float32(call.number("threshold")))
    loose = not (np.isfinite(boxes).all() and np.isfinite(scores).all()) or bool(
        args[0].error.any() or args[1].error.any()
    )
    loose = loose or len(np.unique(scores)) < len(scores) or bool((np.abs(boxes) > 1e15).any())
    kept: list[int] = []
    if not loose:
        for place in np.argsort(-scores):
            if int_of(call.attrs, "last") > 2 and scores[place] <= 0:  # the least score that counts
                loose = loose or bool(scores[place] == 0)
                break
            over = [_overlap(boxes[place], boxes[other]) for other in kept]
            loose = loose or any(abs(share - threshold) <= room for share, room in over if share or threshold)
            if not any(share > threshold for share, _ in over):
                kept.append(int(place))
            if len(kept) == BEST:
                break
    value = np.asarray(len(kept)) if call.attrs["output"] == "count" else np.array([*kept, *[0] * (BEST - len(kept))])
    return exact(value, "int32", loose)


def _suppression(call: Call) -> str:
    last, places = int_of(call.attrs, "last"), call.attrs["output"] == "places"
    common = f"boxes={{0}}, scores={{1}}, max_output_size={BEST}, iou_threshold={{threshold}}"
    if last == 5:
        text = f"tf.raw_ops.NonMaxSuppressionV5({common}, score_threshold=0.0, soft_nms_sigma=0.0, "
        return text + f"pad_to_max_output_size=True)[{0 if places else 2}]"
    if last == 4:
        text = f"tf.raw_ops.NonMaxSuppressionV4({common}, score_threshold=0.0, pad_to_max_output_size=True)"
        return f"{text}[{0 if places else 1}]"
    score = ", score_threshold=0.0" if last == 3 else ""
    found = f"tf.raw_ops.NonMaxSuppressionV{last}({common}{score})"
    return f"tf.concat([{found}, [0] * {BEST}], 0)[:{BEST}]" if places else f"tf.size({found})"


def _suppression_onnx(call: Call) -> str:
    """A threshold of 0 is what its absence says; a least score that is absent is none."""
    last, places = int_of(call.attrs, "last"), call.attrs["output"] == "places"
    thresholds = ['g.const({threshold}, "float32")' if call.number("threshold") or last > 2 else "None"]
    thresholds += ['g.const(0.0, "float32")'] * (last > 2)
    batch, best = 'g.const([0], "int64")', f'g.const([{BEST}], "int64")'
    boxes, scores = f'g.op("Unsqueeze", {{0}}, {batch})', 'g.op("Unsqueeze", {1}, g.const([0, 1], "int64"))'
    operands = [boxes, scores, best, *(thresholds if thresholds != ["None"] else [])]
    found = f'g.op("NonMaxSuppression", {", ".join(operands)})'
    rows = f'g.op("Gather", {found}, g.const(2, "int64"), axis=1)'
    if not places:
        return f'g.op("Cast", g.op("Size", {rows}), to=TensorProto.INT32)'
    filled = f'g.op("Concat", {rows}, g.const({[0] * BEST}, "int64"), axis=0)'
    return f'g.op("Cast", g.op("Slice", {filled}, {batch}, {best}), to=TensorProto.INT32)'


# ---- crops --------------------------------------------------------------------------------------------

METHODS = ("bilinear", "nearest")


def _crop_type(operands: Types, attrs: Attrs) -> TensorType:
    image, boxes = operands[0], _boxes(operands[1:])
    size = ints_of(attrs, "size", 2, 1)
    if image.rank != 4 or image.dtype not in ("float32", "float64") or image.size == 0 or max(size) > 9:
        raise TypeRuleError(f"no crops of {size} of {image}")
    if operands[2].shape != boxes.shape[:1] or attrs["method"] not in METHODS or type(attrs["value"]) is not float:
        raise TypeRuleError(f"{operands[2]} are not the images of {boxes}")
    return TensorType("float32", (boxes.shape[0], *size, image.shape[3]))


def _positions(first: Array, last: Array, size: int, count: int) -> Array:
    """(boxes, count) places of pixels along an axis."""
    if count == 1:
        return (0.5 * (first + last) * (size - 1))[:, None]
    return first[:, None] * (size - 1) + np.arange(count) * ((last - first) * (size - 1) / (count - 1))[:, None]


def _crop(args: Sequence[Bounded], call: Call) -> Bounded:
    """Bilinear: between four pixels, with positions that are off by a few roundings of the size of the image. Nearest:
    undetermined beside the middle between two. A position outside the image gives the value, one too near its edge is
    undetermined."""
    image, boxes, which = args
    high, wide = image.value.shape[1:3]
    rows, columns = call.result.shape[1:3]
    unit = PRECISION["float32"].unit + U64
    nearest = call.attrs["method"] == "nearest"
    with np.errstate(all="ignore"):
        flat = [boxes.value[:, i] for i in range(4)]
        off = [
            (12 * unit * (np.abs(boxes.value).max(1) + 1) + boxes.error.max(1)) * (size - 1) for size in (high, wide)
        ]
        y, x = _positions(flat[0], flat[2], high, rows), _positions(flat[1], flat[3], wide, columns)
        sides = []
        for places, size, room in ((y, high, off[0][:, None]), (x, wide, off[1][:, None])):
            inside = (places >= 0) & (places <= size - 1)
            edge = (
                (np.abs(places) <= room) | (np.abs(places - size + 1) <= room) if size > 1 else np.abs(places) <= room
            )
            edge = edge & (room > 0)
            if nearest:
                edge = edge | (np.abs(places - np.floor(places) - 0.5) <= room)
            sides.append((inside, edge, np.clip(places, 0, size - 1)))
        (in_y, near_y, y), (in_x, near_x, x) = sides
        pictures = which.value.astype(np.int64)[:, None, None]
        values, errors = image.value, image.error

        def at(row: Array, column: Array, array: Array) -> Array:
            return array[pictures, row[:, :, None].astype(np.int64), column[:, None, :].astype(np.int64)]

        if nearest:
            value, error = (at(np.floor(y + 0.5), np.floor(x + 0.5), a) for a in (values, errors))
            error = error + unit * np.abs(value)
        else:
            top, left = np.floor(y), np.floor(x)
            bottom, right = np.minimum(top + 1, high - 1), np.minimum(left + 1, wide - 1)
            fy, fx = (y - top)[:, :, None, None], (x - left)[:, None, :, None]
            corners = [at(r, c, values) for r in (top, bottom) for c in (left, right)]
            value = (corners[0] * (1 - fx) + corners[1] * fx) * (1 - fy) + (
                corners[2] * (1 - fx) + corners[3] * fx
            ) * fy
            size = np.max([np.abs(c) for c in corners], axis=0)
            size = np.maximum(size, np.abs(values).max((1, 2), keepdims=True)[pictures[:, 0, 0]])  # of a pixel beside
            error = np.max(errors) + size * (2 * (off[0] + off[1])[:, None, None, None] + 12 * unit)
        outside = np.asarray(~(in_y[:, :, None] & in_x[:, None, :]))[..., None]
        # pixels are float32 before differences of differences are taken
        most = np.inf if nearest else PRECISION["float32"].largest / 4
        wild = np.asarray(~(np.isfinite(image.value) & (np.abs(image.value) <= most)).all((1, 2, 3)))[pictures]
        loose = np.asarray(near_y[:, :, None] | near_x[:, None, :])[..., None] | wild[..., None]
        value = np.where(outside, call.number("value"), value)
        error = np.where(outside, 0.0, error)
        loose = loose | np.asarray(~np.isfinite(boxes.value).all(1))[:, None, None, None] | ~np.isfinite(value)
    value = np.broadcast_to(value, call.result.shape)
    bound = np.broadcast_to(np.where(loose, np.inf, error), value.shape)
    return rounded(np.where(np.isfinite(value), value, 0.0), bound, "float32")


def _accepts_images(type_: TensorType, earlier: Types) -> bool:
    return type_.dtype in ("float32", "float64") and type_.rank == 4 and 0 < type_.size <= 512


def _fresh_images(d: Draw, earlier: Types) -> TensorType:
    dtype = d.dtype if d.dtype in ("float32", "float64") else "float32"
    return TensorType(
        dtype, (d.choice((1, 2)), draw_dim(d, 7, zero=False), draw_dim(d, 7, zero=False), d.choice((1, 2, 3)))
    )


# ---- places of maxima ---------------------------------------------------------------------------------


def _argmax_type(operands: Types, attrs: Attrs) -> TensorType:
    if attrs["output"] not in ("values", "places", "second"):
        raise TypeRuleError(f"no result {attrs['output']!r}")
    counts = steps_of(operands, attrs)[3]
    dtype = "int64" if attrs["output"] == "places" else operands[0].dtype
    return TensorType(dtype, (operands[0].shape[0], *counts, operands[0].shape[3]))


def _argmax(args: Sequence[Bounded], call: Call) -> Bounded:
    """The place is that in the image laid out as a row, or in all images. Undetermined where two may be the greatest,
    and where a window holds a number that is not finite."""
    x = args[0]
    taken = x.map(lambda a: patches(a, call, 0))
    inside = patches(np.ones(x.value.shape), call, 0) > 0
    kept = Bounded(np.where(inside, taken.value, -np.inf), np.where(inside, taken.error, 0.0), x.dtype)
    shape = (*call.result.shape[:3], -1, call.result.shape[3])
    kept, inside = kept.map(lambda a: a.reshape(shape)), inside.reshape(shape)
    wild = np.any(inside & ~np.isfinite(kept.value), axis=3)
    if call.attrs["output"] != "places":
        return undetermined(highest(kept, lambda a: a.max(axis=3)), wild)
    numbers = np.arange(x.value.size).reshape(x.value.shape) % (
        x.value.size if call.attrs["whole"] else x.value[0].size
    )
    places = patches(numbers.astype(np.float64), call, -1).reshape(shape)
    best = np.argmax(kept.value, axis=3)[:, :, :, None]
    top = np.take_along_axis(kept.value, best, 3)
    with np.errstate(all="ignore"):
        room = kept.error + np.take_along_axis(kept.error, best, 3)
        rivals = np.count_nonzero(inside & (top - kept.value <= room), axis=3) > 1
        rivals |= np.any(inside & (np.abs(kept.value) < PRECISION[x.dtype].tiny), axis=3) & (
            np.abs(top[:, :, :, 0]) < PRECISION[x.dtype].tiny)  # fmt: skip
    return exact(np.take_along_axis(places, best, 3)[:, :, :, 0].astype(np.int64), "int64", rivals | wild)


def _argmax_text(call: Call) -> str:
    kernel, stride, _, _ = steps_of(call.operands, call.attrs)
    window = f"ksize={[1, *kernel, 1]}, strides={[1, *stride, 1]}, padding={{padding}}"
    if call.attrs["output"] == "second":
        return f"tf.raw_ops.MaxPoolV2(input={{0}}, {window})"
    place = int(call.attrs["output"] == "places")
    return f"tf.raw_ops.MaxPoolWithArgmax(input={{0}}, {window}, include_batch_in_index={{whole}})[{place}]"


_SIZE: tuple[Shape, ...] = ((2, 2), (1, 3), (3, 1), (5, 4))
_FLOAT_IMAGES = images(2, ("float32", "float64", "float16", "bfloat16"))
OPERATORS: tuple[OpSpec, ...] = (
    OpSpec(
        "non_max_suppression", "image", (_BOXES, _SCORES), _kept_type, _kept,
        attrs={"last": one_of(4, 2, 3, 5), "output": one_of("places", "count"),
               "threshold": one_of(0.5, 0.1, 0.9, 0.0)},
        torch=_WHY, tensorflow=_suppression, jax=_WHY, relax=_WHY, onnx=_suppression_onnx,
    ),
    OpSpec(
        "crop_and_resize", "image",
        (Slot(_accepts_images, _fresh_images),
         Slot(lambda t, e: _accepts_boxes(t, ()) and t.shape[0] <= 9,
              lambda d, e: TensorType("float32", (d.choice((1, 2, 3)), 4)), lambda e: (-1, 1)),
         Slot(lambda t, e: t == TensorType("int32", e[1].shape[:1]), lambda d, e: TensorType("int32", e[1].shape[:1]),
              lambda e: (0, e[0].shape[0] - 1))),
        _crop_type, _crop,
        attrs={"size": one_of(*_SIZE), "method": one_of(*METHODS), "value": one_of(0.0, -1.5)},
        torch=_WHY,
        tensorflow="tf.raw_ops.CropAndResize(image={0}, boxes={1}, box_ind={2}, crop_size={size}, method={method}, "
        "extrapolation_value={value})", jax=_WHY, relax=_WHY, onnx=_WHY,
    ),
    OpSpec(
        "max_pool_with_argmax", "pooling", (_FLOAT_IMAGES,), _argmax_type, _argmax,
        attrs={"kernel": kernel_of, "stride": small(1, 3), "padding": one_of(*PADDINGS),
               "output": one_of("values", "places", "second"),
               "whole": flag()},
        torch=_WHY, tensorflow=_argmax_text, jax=_WHY, relax=_WHY, onnx=_WHY,
    ),
)  # fmt: skip
