"""Images resized by a factor, whose product with the size need not be a whole number: places follow from the factor
that is asked for, not from the ratio of the sizes."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded
from generators.graph import TensorType
from generators.ops.nn.resize import IMAGE, by_mode, resampled, weighted
from generators.ops.slots import MAX_ELEMENTS, one_of
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Spelling, TypeRuleError, Types, unsupported

Array = np.ndarray
FACTORS = (2.5, 2.0, 1.5, 0.5, 1.25, 0.75, 3.0, 1.0, 0.625, 4.0)
"""Of few bits, so that every dtype holds them."""


def _scales(d: Draw, operands: Types, attrs: Attrs) -> tuple[float, ...]:
    """Now and then so little above 1 or 2 that the size is that of these factors, while the places are not."""
    shape, chosen, whole = operands[0].shape, [], d.choice((0.0, 1.0, 2.0))
    room = MAX_ELEMENTS // (shape[0] * shape[1])
    for dim in shape[2:]:
        just = max(1.0, whole) + 0.5 ** dim.bit_length()
        factors = (just, 1.0) if whole else FACTORS
        chosen.append(d.choice([one for one in factors if 1 <= int(dim * one) <= room] or [1.0]))
        room //= int(dim * chosen[-1])
    return tuple(chosen)


def _factors(attrs: Attrs) -> tuple[Fraction, ...]:
    value = attrs["scales"]
    if not isinstance(value, tuple) or len(value) != 2 or not all(isinstance(one, float) and one > 0 for one in value):
        raise TypeRuleError(f"scales {value!r} are not two positive numbers")
    return tuple(Fraction(float(one)) for one in value)


def _type(operands: Types, attrs: Attrs) -> TensorType:
    x = operands[0]
    if not IMAGE.accepts(x, ()):
        raise TypeRuleError(f"{x} holds no images")
    sizes = tuple(int(dim * factor) for dim, factor in zip(x.shape[2:], _factors(attrs), strict=True))
    if 0 in sizes:
        raise TypeRuleError("nothing is left of the image")
    return TensorType(x.dtype, (*x.shape[:2], *sizes))


def _nearest(args: Sequence[Bounded], call: Call) -> Bounded:
    """Where the exact place is on the edge between two pixels either is right, unless the factor is a power of two:
    back ends compute with its rounded reciprocal."""
    picked, mode, loose = args[0], str(call.attrs["mode"]), np.zeros((), bool)
    for axis, factor in enumerate(_factors(call.attrs), 2):
        old, new = call.operands[0].shape[axis], call.result.shape[axis]
        up, down = factor.denominator, factor.numerator
        d = np.arange(new)
        over, under = (d * up, down) if mode == "floor" else ((2 * d + 1) * up, 2 * down)
        places = -(-over // under) - 1 if mode == "below" else over // under
        exact = up.bit_count() == down.bit_count() == 1
        edge = (over % under == 0) & (over != 0) & (not exact)
        places = np.clip(places, 0, old - 1)
        picked = picked.map(lambda array, axis=axis, places=places: np.take(array, places, axis))
        loose = loose[..., None] | edge
    return Bounded(picked.value, np.where(loose, np.inf, picked.error), picked.dtype)


def _linear(args: Sequence[Bounded], call: Call) -> Bounded:
    """Centres are computed from a rounded reciprocal, as in images of a size."""
    factors = iter(_factors(call.attrs))

    def weights(old: int, new: int, mode: str, dtype: str) -> Bounded:
        centres = (np.arange(new) + 0.5) / float(next(factors)) - 0.5
        off = 8 * (PRECISION[dtype].unit + U64) * (old + 1)
        return weighted(np.clip(centres, 0, old - 1), old, off, dtype)

    return resampled(weights)(args, call)


def _torch(mode: str, more: str = "") -> str:
    return f'torch.nn.functional.interpolate({{0}}, scale_factor={{scales}}, mode="{mode}"{more})'


def _onnx(kind: str, more: str) -> str:
    scales = 'g.const((1.0, 1.0, *{scales}), "float32")'
    return f'g.op("Resize", {{0}}, None, {scales}, mode="{kind}", coordinate_transformation_mode={more})'


_NO_FACTOR: Spelling = unsupported("it resizes to a size only")

resize_nearest_scaled = OpSpec(
    "resize_nearest_scaled", "resize", (IMAGE,), _type, _nearest,
    attrs={"scales": _scales, "mode": one_of("floor", "center", "below")},
    torch=by_mode({"floor": _torch("nearest"), "center": _torch("nearest-exact")},
                  "of two pixels at the same distance it takes the one behind"),
    tensorflow=_NO_FACTOR, jax=_NO_FACTOR, relax=_NO_FACTOR,
    onnx=by_mode({"floor": _onnx("nearest", '"asymmetric", nearest_mode="floor"'),
                  "center": _onnx("nearest", '"half_pixel", nearest_mode="round_prefer_ceil"'),
                  "below": _onnx("nearest", '"half_pixel", nearest_mode="round_prefer_floor"')}, ""),
)  # fmt: skip

resize_linear_scaled = OpSpec(
    "resize_linear_scaled", "resize", (IMAGE,), _type, _linear, attrs={"scales": _scales},
    torch=_torch("bilinear", ", align_corners=False"),
    tensorflow=_NO_FACTOR, jax=_NO_FACTOR, relax=_NO_FACTOR, onnx=_onnx("linear", '"half_pixel"'),
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (resize_nearest_scaled, resize_linear_scaled)
