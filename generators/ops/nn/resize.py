"""Images (NCHW) in another size: nearest pixel, linear, cubic, linear with antialiasing, means of areas, pixels
repeated. Along each axis a result is a weighted sum of pixels; the weights follow from where the result's centre lies
among the operand's.

    floor    the place d of a result comes from d in / out, rounded down
    center   from (d + 1/2) in / out - 1/2: both images cover the same square
    corners  from d (in - 1) / (out - 1): centres of the corners coincide"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import gcd

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded
from generators.bounds.products import bilinear
from generators.graph import FLOATS, TensorType
from generators.ops.composed import compute
from generators.ops.reduce.reductions import mean
from generators.ops.shape.layout import layout
from generators.ops.slots import MAX_ELEMENTS, draw_dim, draw_dtype, int_of, ints_of, one_of, tensor
from generators.ops.spec import (
    Attrs,
    Call,
    Draw,
    OpSpec,
    Shape,
    Slot,
    Spelling,
    TypeRuleError,
    Types,
    Unsupported,
    only,
    said,
    unsupported,
)

Array = np.ndarray

# ---- operands and types -------------------------------------------------------------------------------


def _fresh_image(d: Draw, earlier: Types) -> TensorType:
    n, c = d.choice((1, 2)), d.choice((1, 2, 3))
    return TensorType(draw_dtype(d, FLOATS), (n, c, draw_dim(d, 9, zero=False), draw_dim(d, 9, zero=False)))


IMAGE = Slot(lambda t, earlier: t.dtype in FLOATS and t.rank == 4 and 0 < t.size <= MAX_ELEMENTS, _fresh_image)


def _size(d: Draw, operands: Types, attrs: Attrs) -> Shape:
    """The last three put some centres upon those of pixels, at places that a rounded ratio of sizes just misses: where
    the pixel and what is left of the place are rounded apart, the weights are those of another pixel."""
    shape = operands[0].shape
    room = MAX_ELEMENTS // (shape[0] * shape[1])
    sizes = []
    for dim in shape[2:]:
        choices = (2 * dim, dim, dim // 2, dim + 1, 3, 7, 13, 1, 3 * dim, 2 * dim + 1, 2 * dim - 1)
        sizes.append(min(d.choice(choices) or 1, max(1, room)))
        room //= sizes[-1]
    return tuple(sizes)


def _resized_type(operands: Types, attrs: Attrs) -> TensorType:
    if not IMAGE.accepts(operands[0], ()):
        raise TypeRuleError(f"{operands[0]} holds no images")
    return TensorType(operands[0].dtype, (*operands[0].shape[:2], *ints_of(attrs, "size", 2, least=1)))


def _with(*modes: str) -> Callable[[Types, Attrs], TensorType]:
    def rule(operands: Types, attrs: Attrs) -> TensorType:
        if attrs["mode"] not in modes:
            raise TypeRuleError(f"no mode {attrs['mode']!r}")
        return _resized_type(operands, attrs)

    return rule


# ---- nearest ------------------------------------------------------------------------------------------


def _nearest_places(old: int, new: int, mode: str) -> tuple[Array, Array]:
    """Whence each result comes, and where that cannot be told: back ends compute with a rounded in / out or out / in,
    so that where the exact place is on the edge between two pixels, either is right unless both ratios are exact."""
    d = np.arange(new)
    over, under = {
        "floor": (d * old, new),
        "center": ((2 * d + 1) * old, 2 * new),
        "corners": (2 * d * (old - 1) + max(new - 1, 1), 2 * max(new - 1, 1)),
    }[mode]
    spans = (old, new) if mode != "corners" else (max(old - 1, 1), max(new - 1, 1))
    common = gcd(*spans)
    dyadic = all((span // common).bit_count() == 1 for span in spans)
    edge = (over % under == 0) & (over != 0) & (not dyadic)
    return np.minimum(over // under, old - 1), edge


def nearest(args: Sequence[Bounded], call: Call) -> Bounded:
    picked, mode = args[0], str(call.attrs["mode"])
    loose = np.zeros((), bool)
    for axis in range(2, call.result.rank):
        places, edges = _nearest_places(call.operands[0].shape[axis], call.result.shape[axis], mode)
        picked = picked.map(lambda array, axis=axis, places=places: np.take(array, places, axis))
        loose = loose[..., None] | edges
    return Bounded(picked.value, np.where(loose, np.inf, picked.error), picked.dtype)


def by_mode(texts: dict[str, str], why: str) -> Spelling:
    return lambda call: texts.get(str(call.attrs["mode"])) or Unsupported(why)


def _relax_resize(method: str, mode: str, more: str = "") -> str:
    return f'relax.op.image.resize2d({{0}}, {{size}}, method="{method}", coordinate_transformation_mode="{mode}"{more})'


def onnx_resize(kind: str, mode: str, more: str = "") -> str:
    size = 'g.const({shape}, "int64")'
    return f'g.op("Resize", {{0}}, None, None, {size}, mode="{kind}", coordinate_transformation_mode="{mode}"{more})'


_V1 = "resized({{0}}, tf.compat.v1.image.resize_{0}, {{size}}, {1})"

resize_nearest = layout(
    "resize_nearest", IMAGE, _with("floor", "center", "corners"), nearest,
    attrs={"size": _size, "mode": one_of("floor", "center", "corners")},
    torch=by_mode({"floor": 'torch.nn.functional.interpolate({0}, {size}, mode="nearest")',
                    "center": 'torch.nn.functional.interpolate({0}, {size}, mode="nearest-exact")'},
                   "its interpolation to the nearest pixel does not align corners"),
    tensorflow=by_mode({"floor": _V1.format("nearest_neighbor", ""),
                         "center": _V1.format("nearest_neighbor", "half_pixel_centers=True"),
                         "corners": _V1.format("nearest_neighbor", "align_corners=True")}, ""),
    jax=by_mode({"center": 'jax.image.resize({0}, {shape}, "nearest")'}, "it resizes by centres of pixels only"),
    relax=by_mode({"floor": _relax_resize("nearest_neighbor", "asymmetric", ', rounding_method="floor"'),
                    "center": _relax_resize("nearest_neighbor", "half_pixel", ', rounding_method="round_prefer_ceil"'),
                    "corners": _relax_resize("nearest_neighbor", "align_corners",
                                             ', rounding_method="round_prefer_ceil"')}, ""),
    onnx=by_mode({"floor": onnx_resize("nearest", "asymmetric", ', nearest_mode="floor"'),
                   "center": onnx_resize("nearest", "half_pixel", ', nearest_mode="round_prefer_ceil"'),
                   "corners": onnx_resize("nearest", "align_corners", ', nearest_mode="round_prefer_ceil"')}, ""),
)  # fmt: skip

# ---- weighted sums ------------------------------------------------------------------------------------


def _centres(old: int, new: int, mode: str) -> Array:
    d = np.arange(new, dtype=np.float64)
    return d * (old - 1) / max(new - 1, 1) if mode == "corners" else (d + 0.5) * old / new - 0.5


def _off(old: int, dtype: str) -> float:
    """How far a computed centre may be from the exact one: a ratio, a product and two differences, each of 2 ulp."""
    return 8 * (PRECISION[dtype].unit + U64) * (old + 1)


def weighted(centres: Array, old: int, off: Array | float, dtype: str) -> Bounded:
    """Linear weights of pixels 0 to old - 1, which change by no more than the centre does."""
    distance = np.abs(centres[..., None] - np.arange(old))
    off = np.asarray(off)[..., None]
    return Bounded(np.maximum(0.0, 1 - distance), np.where(distance < 1 + off, off, 0.0), dtype)


def linear(old: int, new: int, mode: str, dtype: str) -> Bounded:
    return weighted(np.clip(_centres(old, new, mode), 0, old - 1), old, _off(old, dtype), dtype)


def _cubic(old: int, new: int, mode: str, dtype: str) -> Bounded:
    """Keys' kernel. keys: a = -1/2, what lies outside is left out and the rest normalised; repeated: a = -3/4, pixels
    of the edge go on outside. Its slope is below 2, and its polynomials take less than 16 roundings."""
    a = -0.5 if mode == "keys" else -0.75
    centres = _centres(old, new, "center")
    off = 2 * _off(old, dtype) + 16 * PRECISION[dtype].unit
    value, error = np.zeros((new, old)), np.zeros((new, old))
    for row, centre in enumerate(centres):
        for pixel in range(int(np.floor(centre)) - 2, int(np.floor(centre)) + 4):
            t = abs(centre - pixel)
            if t >= 2 + off or (mode == "keys" and not 0 <= pixel < old):
                continue
            near = ((a + 2) * t - (a + 3)) * t * t + 1
            far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
            place = min(max(pixel, 0), old - 1)
            value[row, place] += near if t <= 1 else far if t < 2 else 0.0
            error[row, place] += off
    return _normalised(value, error, dtype) if mode == "keys" else Bounded(value, error, dtype)


def _normalised(value: Array, error: Array, dtype: str) -> Bounded:
    """Weights divided by their sum."""
    total, moved = np.sum(value, -1, keepdims=True), np.sum(error, -1, keepdims=True)
    weights = value / total
    steps = (value.shape[-1] + 4) * PRECISION[dtype].unit * np.sum(np.abs(weights), -1, keepdims=True)
    return Bounded(weights, 1.1 * (error + np.abs(weights) * moved) / np.abs(total) + steps * (error > 0), dtype)


def _antialiased(old: int, new: int, mode: str, dtype: str) -> Bounded:
    """A triangle as wide as a pixel of the result, if that is the larger one."""
    factor = max(1.0, old / new)
    distance = np.abs(_centres(old, new, "center")[:, None] - np.arange(old)) / factor
    off = _off(old, dtype) / factor + 4 * PRECISION[dtype].unit
    return _normalised(np.maximum(0.0, 1 - distance), np.where(distance < 1 + off, off, 0.0), dtype)


def _along(axis: int, weights: Array, x: Array) -> Array:
    return np.moveaxis(np.tensordot(x, weights, (axis, 1)), -1, axis)


def resampled(weights: Callable[[int, int, str, str], Bounded]) -> Callable[[Sequence[Bounded], Call], Bounded]:
    """One axis after the other, in any order. What a number that is not finite may go into is undetermined, so is what
    one beyond a fourth of the dtype's range goes into: magnitudes of weights add up to at most 3/2 (Keys' kernel)."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x, mode = args[0], str(call.attrs.get("mode", "center"))
        plain = np.isfinite(x.value) & np.isfinite(x.error)
        whole = Bounded(np.where(plain, x.value, 0.0), np.where(plain, x.error, 0.0), x.dtype)
        lost = (~plain | (np.abs(whole.value) > PRECISION[x.dtype].largest / 4)).astype(np.float64)
        for axis in range(2, call.result.rank):
            w = weights(call.operands[0].shape[axis], call.result.shape[axis], mode, x.dtype)
            contract = partial(_along, axis)
            whole = bilinear(contract, w, whole, w.value.shape[1] + 2)
            lost = contract(((w.value != 0) | (w.error > 0)).astype(np.float64), lost)
        return Bounded(whole.value, np.where(lost > 0, np.inf, whole.error), x.dtype)

    return reference


_SINGLE = Unsupported("its results are float32")


def _float32(text: Spelling) -> Spelling:
    """What has float32 results only."""

    def spell(call: Call) -> str | Unsupported:
        return _SINGLE if call.result.dtype != "float32" else said(text, call)

    return spell


def _resizing(
    name: str, weights: Callable[[int, int, str, str], Bounded], modes: tuple[str, ...],
    torch: Spelling, tensorflow: Spelling, jax: Spelling, relax: Spelling, onnx: Spelling,
) -> OpSpec:  # fmt: skip
    return OpSpec(
        name, "resize", (IMAGE,), _with(*modes), resampled(weights), attrs={"size": _size, "mode": one_of(*modes)},
        torch=torch, tensorflow=_float32(tensorflow), jax=jax, relax=relax, onnx=onnx,
    )  # fmt: skip


def _interpolated(mode: str, more: str) -> str:
    return f'torch.nn.functional.interpolate({{0}}, {{size}}, mode="{mode}", {more})'


_NO_CORNERS = "it resizes by centres of pixels only"

resize_linear = _resizing(
    "resize_linear", linear, ("center", "corners"),
    by_mode({"center": _interpolated("bilinear", "align_corners=False"),
              "corners": _interpolated("bilinear", "align_corners=True")}, ""),
    by_mode({"center": 'resized({0}, tf.image.resize, {size}, method="bilinear")',
              "corners": _V1.format("bilinear", "align_corners=True")}, ""),
    by_mode({"center": 'jax.image.resize({0}, {shape}, "linear", antialias=False)'}, _NO_CORNERS),
    by_mode({"center": _relax_resize("linear", "half_pixel"),
              "corners": _relax_resize("linear", "align_corners")}, ""),
    by_mode({"center": onnx_resize("linear", "half_pixel"), "corners": onnx_resize("linear", "align_corners")}, ""),
)  # fmt: skip

resize_cubic = _resizing(
    "resize_cubic", _cubic, ("repeated", "keys"),
    by_mode({"repeated": _interpolated("bicubic", "align_corners=False")}, "it repeats the edge, with a = -3/4"),
    by_mode({"keys": 'resized({0}, tf.image.resize, {size}, method="bicubic")'}, "it leaves out what lies outside"),
    by_mode({"keys": 'jax.image.resize({0}, {shape}, "cubic", antialias=False)'}, "it leaves out what lies outside"),
    by_mode({"repeated": _relax_resize("cubic", "half_pixel", ", cubic_alpha=-0.75"),
              "keys": _relax_resize("cubic", "half_pixel", ", cubic_alpha=-0.5, cubic_exclude=1")}, ""),
    by_mode({"repeated": onnx_resize("cubic", "half_pixel", ", cubic_coeff_a=-0.75"),
              "keys": onnx_resize("cubic", "half_pixel", ", cubic_coeff_a=-0.5, exclude_outside=1")}, ""),
)  # fmt: skip

resize_antialias = _resizing(
    "resize_antialias", _antialiased, ("center",),
    _interpolated("bilinear", "align_corners=False, antialias=True"),
    'resized({0}, tf.image.resize, {size}, method="bilinear", antialias=True)',
    'jax.image.resize({0}, {shape}, "linear", antialias=True)',
    unsupported("it resizes without antialiasing only"),
    onnx_resize("linear", "half_pixel", ", antialias=1, exclude_outside=1"),
)  # fmt: skip


def _factor(d: Draw, operands: Types, attrs: Attrs) -> int:
    return d.choice(tuple(f for f in (2, 3, 1, 4) if operands[0].size * f * f <= MAX_ELEMENTS))


def _upsampled_type(operands: Types, attrs: Attrs) -> TensorType:
    factor, (n, channels, height, width) = int_of(attrs, "factor"), operands[0].shape
    if factor < 1:
        raise TypeRuleError(f"cannot repeat every pixel {factor} times")
    return TensorType(operands[0].dtype, (n, channels, height * factor, width * factor))


def _upsampled(args: Sequence[Bounded], call: Call) -> Bounded:
    factor = int_of(call.attrs, "factor")
    return args[0].map(lambda a: a.repeat(factor, axis=2).repeat(factor, axis=3))


upsample_nearest = OpSpec(
    "upsample_nearest", "layout", (tensor(FLOATS, 4, 4, nonempty=True),), _upsampled_type, _upsampled,
    attrs={"factor": _factor}, signed_zero=True,
    torch='torch.nn.functional.interpolate({0}, scale_factor={factor}, mode="nearest")',
    tensorflow="upsample_nearest({0}, {factor})",
    jax='jax.image.resize({0}, {shape}, "nearest")',
    relax='relax.op.image.resize2d({0}, {shape}[2:], layout="NCHW", method="nearest_neighbor", '
    'coordinate_transformation_mode="asymmetric", rounding_method="floor")',
    onnx='g.op("Resize", {0}, None, g.const([1, 1, {factor}, {factor}], "float32"), mode="nearest", '
    'coordinate_transformation_mode="asymmetric", nearest_mode="floor")',
)  # fmt: skip

# ---- resizing by areas ---------------------------------------------------------------------------------


def _area_type(operands: Types, attrs: Attrs) -> TensorType:
    x, factor = operands[0], int_of(attrs, "factor")
    if x.size == 0 or factor not in _factors(x):
        raise TypeRuleError(f"{x} has no areas of side {factor}")
    return replace(x, shape=(*x.shape[:2], x.shape[2] // factor, x.shape[3] // factor))


def _area(args: Sequence[Bounded], call: Call) -> Bounded:
    """Means of areas that do not overlap."""
    x, k = args[0], int_of(call.attrs, "factor")
    batch, channels, rows, columns = x.value.shape
    shape = (batch, channels, rows // k, k, columns // k, k)
    return compute(mean, x.map(lambda array: array.reshape(shape)), axes=(3, 5), keepdims=False)


FACTORS = (2, 3)


def _factors(type_: TensorType) -> list[int]:
    """Those that divide both sides."""
    return [k for k in FACTORS if type_.rank == 4 and not any(side % k for side in type_.shape[2:])]


def _fresh_area(d: Draw, earlier: Types) -> TensorType:
    rows, columns = (d.choice((6, 12)) for _ in range(2))
    return TensorType(draw_dtype(d, FLOATS), (draw_dim(d, 2, zero=False), draw_dim(d, 3, zero=False), rows, columns))


def _areas(type_: TensorType, earlier: Types) -> bool:
    return type_.dtype in FLOATS and type_.size > 0 and bool(_factors(type_))


resize_area = OpSpec(
    "resize_area", "grids", (Slot(_areas, _fresh_area),), _area_type, _area,
    attrs={"factor": lambda d, operands, attrs: d.choice(_factors(operands[0]))},
    torch=lambda call: "torch.nn.functional.interpolate({0}, size=<size>, mode='area')".replace(
        "<size>", repr(call.result.shape[2:])),
    tensorflow=only(("float32",), "tf.image.resize by areas returns float32",
                    "tf.transpose(tf.image.resize(tf.transpose({0}, [0, 2, 3, 1]), {shape}[2:], method='area'), "
                    "[0, 3, 1, 2])"),
    jax="jnp.mean({0}.reshape({shape}[:3] + ({factor}, {shape}[3], {factor})), axis=(3, 5))",
    relax="relax.op.nn.avg_pool2d({0}, [{factor}, {factor}], strides=[{factor}, {factor}])",
    onnx='g.op("AveragePool", {0}, kernel_shape=[{factor}] * 2, strides=[{factor}] * 2)',
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (
    resize_nearest, resize_linear, resize_cubic, resize_antialias, resize_area, upsample_nearest,
)  # fmt: skip
