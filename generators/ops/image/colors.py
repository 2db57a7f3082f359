"""Colours: RGB to HSV and back, contrast, saturation. The documentation says what they make of numbers between 0 and 1
alone, so that conversions begin with a clip to that range, which is part of what they compute."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from generators.bounds.bounded import Bounded, add, divide, multiply
from generators.bounds.sums import average, summed
from generators.graph import FLOATS, TensorType
from generators.ops.composed import chosen, given, joined, magnitude, shared, undetermined
from generators.ops.slots import draw_dim, draw_dtype, one_of
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Reference, Slot, TypeRuleError, Types, unsupported

Array = np.ndarray

# ---- operands -----------------------------------------------------------------------------------------


def _pixels(least: int, dtypes: Sequence[str] = FLOATS) -> Slot:
    """(…, 3)."""

    def accepts(type_: TensorType, earlier: Types) -> bool:
        return type_.dtype in dtypes and least <= type_.rank <= 4 and type_.shape[-1] == 3 and type_.size > 0

    def fresh(d: Draw, earlier: Types) -> TensorType:
        sizes = (draw_dim(d, 9, zero=False) for _ in range(d.integer(least, 4) - 1))
        return TensorType(draw_dtype(d, dtypes), (*sizes, 3))

    return Slot(accepts, fresh)


def _same(slot: Slot) -> Callable[[Types, Attrs], TensorType]:
    def rule(operands: Types, attrs: Attrs) -> TensorType:
        if not slot.accepts(operands[0], ()):
            raise TypeRuleError(f"{operands[0]} holds no pixels")
        return operands[0]

    return rule


# ---- conversions --------------------------------------------------------------------------------------


def clipped(x: Bounded, low: float = 0.0, high: float = 1.0) -> Bounded:
    """Between two numbers: no rounding, and no further from it than x may be off."""
    with np.errstate(all="ignore"):
        return Bounded(np.clip(x.value, low, high), x.error, x.dtype)


def _channels(x: Bounded) -> tuple[Bounded, Bounded, Bounded]:
    """Of a pixel, each clipped; all of it is undetermined where a part is NaN or undetermined."""
    bad = np.any(np.isnan(x.value) | x.undetermined, axis=-1, keepdims=True)
    value, error = np.where(bad, 0.0, x.value), np.where(bad, np.inf, x.error)
    x = clipped(Bounded(value, error, x.dtype))
    r, g, b = (x.map(lambda a, i=i: a[..., i : i + 1]) for i in range(3))
    return r, g, b


def _constant(value: float, like: Bounded) -> Bounded:
    """A number that is rounded to the dtype; 2^-53 of it is the reference's own."""
    return multiply(given(np.full(like.value.shape, value), like.dtype), given(1.0, like.dtype))


def _hsv(r: Bounded, g: Bounded, b: Bounded) -> tuple[Bounded, Bounded, Bounded]:
    """The value is the greatest, d what the least is away from it; the saturation d by the value; the hue a sixth of
    the circle for each of six differences by d. Which of them is greatest is undetermined where they are too near."""
    every = np.concatenate([r.value, g.value, b.value], -1)
    wide = np.max(np.concatenate([r.error, g.error, b.error], -1), -1, keepdims=True)
    v = Bounded(every.max(-1, keepdims=True), wide, r.dtype)
    low = Bounded(every.min(-1, keepdims=True), wide, r.dtype)
    d = add(v, low, -1.0)
    grey = d.value == 0
    with np.errstate(all="ignore"):
        ordered = np.sort(every, -1)
        near = (wide > 0) & (ordered[..., 2:] - ordered[..., 1:2] <= 2 * wide)
        near |= (wide > 0) & (ordered[..., 1:2] - ordered[..., :1] <= 2 * wide)
    one = given(np.ones(grey.shape), r.dtype)
    part = multiply(chosen(grey, one, d), given(np.full(grey.shape, 6.0), r.dtype))

    def sixth(x: Bounded, y: Bounded, turn: float) -> Bounded:
        share = multiply(divide(add(x, y, -1.0), part), one)  # the reciprocal may be rounded, too
        return add(share, _constant(turn, share)) if turn else share

    red, green = r.value == v.value, g.value == v.value
    hue = chosen(red, sixth(g, b, 0.0), chosen(green, sixth(b, r, 1 / 3), sixth(r, g, 2 / 3)))
    hue = chosen(hue.value < 0, add(hue, one), hue)
    hue = chosen(grey, given(np.zeros(grey.shape), r.dtype), hue)
    black = v.value == 0
    saturation = chosen(black, given(np.zeros(grey.shape), r.dtype), divide(d, chosen(black, one, v)))
    saturation = undetermined(saturation, (wide > 0) & (v.value <= wide))
    return undetermined(hue, near), saturation, v


def _rgb(h: Bounded, s: Bounded, v: Bounded) -> Bounded:
    """(1 - s + s share) v, the shares piecewise linear in the hue."""
    ones = np.ones(h.value.shape)
    one, two, three, four, six = (given(ones * k, h.dtype) for k in (1.0, 2.0, 3.0, 4.0, 6.0))
    h = multiply(h, six)
    shares = (
        add(magnitude(add(h, three, -1.0)), one, -1.0),
        add(two, magnitude(add(h, two, -1.0)), -1.0),
        add(two, magnitude(add(h, four, -1.0)), -1.0),
    )
    parts = [multiply(add(add(one, s, -1.0), multiply(s, clipped(share))), v) for share in shares]
    return joined(*parts, axis=-1)


def _to_hsv(args: Sequence[Bounded], call: Call) -> Bounded:
    return joined(*_hsv(*_channels(args[0])), axis=-1)


def _to_rgb(args: Sequence[Bounded], call: Call) -> Bounded:
    return _rgb(*_channels(args[0]))


_ALL, _PICTURES, _SINGLE = _pixels(1), _pixels(3, ("float32", "float16")), _pixels(3, ("float32",))


def _conversion(name: str, reference: Reference, raw: str) -> OpSpec:
    composed = shared(name)
    return OpSpec(
        name, "image", (_ALL,), _same(_ALL), reference,
        torch=composed["torch"], tensorflow=f"tf.raw_ops.{raw}(images=tf.clip_by_value({{0}}, 0.0, 1.0))",
        jax=composed["jax"], relax=composed["relax"], onnx=composed["onnx"],
    )  # fmt: skip


# ---- adjustments --------------------------------------------------------------------------------------


def _as(x: Bounded, dtype: str) -> Bounded:
    """float16 is computed in float32, or in itself."""
    return Bounded(x.value, x.error, dtype)


def _contrast(args: Sequence[Bounded], call: Call) -> Bounded:
    """(x - mean) f + mean, the mean of each channel of an image."""
    x, factor = args[0], call.number("factor")
    count = int(np.prod(x.value.shape[-3:-1]))
    total = summed(x, lambda a: np.sum(a, axis=(-3, -2), keepdims=True), count, overflows=False)
    mean = average(total, count)
    away = add(x, mean, -1.0)
    scaled = multiply(away, given(np.float64(np.float32(factor)), x.dtype))
    y = add(scaled, mean)
    loose = ~np.isfinite(y.value) | ~np.isfinite(x.value).all((-3, -2), keepdims=True)
    return undetermined(Bounded(np.where(loose, 0.0, y.value), y.error, x.dtype), loose)


def _saturation(args: Sequence[Bounded], call: Call) -> Bounded:
    h, s, v = _hsv(*_channels(args[0]))
    s = clipped(multiply(s, given(np.float64(np.float32(call.number("factor"))), s.dtype)))
    return _rgb(h, s, v)


def _turned_hue(args: Sequence[Bounded], call: Call) -> Bounded:
    """The hue, turned by a share of the circle; the way back has the same value on both sides of its end."""
    h, s, v = _hsv(*_channels(args[0]))
    h = add(h, _constant(np.float64(np.float32(call.number("delta"))), h))
    one = given(np.ones(h.value.shape), h.dtype)
    h = chosen(h.value >= 1, add(h, one, -1.0), chosen(h.value < 0, add(h, one), h))
    return _rgb(h, s, v)


_CONTRAST = shared("adjust_contrast")
_WHY = unsupported("it has no such operator")
OPERATORS: tuple[OpSpec, ...] = (
    _conversion("rgb_to_hsv", _to_hsv, "RGBToHSV"),
    _conversion("hsv_to_rgb", _to_rgb, "HSVToRGB"),
    OpSpec(
        "adjust_contrast", "image", (_PICTURES,), _same(_PICTURES), _contrast,
        attrs={"factor": one_of(2.0, 0.5, 1.0, 0.0, -1.5)},
        torch=_CONTRAST["torch"], tensorflow="tf.raw_ops.AdjustContrastv2(images={0}, contrast_factor={factor})",
        jax=_CONTRAST["jax"], relax=_CONTRAST["relax"], onnx=_CONTRAST["onnx"],
    ),
    OpSpec(
        "adjust_saturation", "image", (_PICTURES,), _same(_PICTURES), _saturation,
        attrs={"factor": one_of(2.0, 0.5, 1.0, 0.0)}, torch=_WHY,
        tensorflow="tf.raw_ops.AdjustSaturation(images=tf.clip_by_value({0}, 0.0, 1.0), scale={factor})",
        jax=_WHY, relax=_WHY, onnx=_WHY,
    ),
    OpSpec(
        "adjust_hue", "image", (_SINGLE,), _same(_SINGLE), _turned_hue,
        attrs={"delta": one_of(0.25, -0.5, 0.0, 1.0, 2.0**-10)}, torch=_WHY,
        tensorflow="tf.raw_ops.AdjustHue(images=tf.clip_by_value({0}, 0.0, 1.0), delta={delta})",
        jax=_WHY, relax=_WHY, onnx=_WHY,
    ),
)  # fmt: skip
