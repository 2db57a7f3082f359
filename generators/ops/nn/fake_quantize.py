"""Quantising and dequantising again: what converters put around operators, and what ONNX Runtime and others fuse with
them into integer arithmetic. One operator, real to real, so that a step of the quantised numbers is an error like any
other; scales have 11 bits, so that quotients by some of them are exact and ties among them really are ties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, rounded, spread
from generators.graph import TensorType
from generators.ops.slots import axis_of, normalized, one_of, same_as, tensor
from generators.ops.spec import AttrRule, Attrs, Call, Draw, OpSpec, TypeRuleError, Types, unsupported

Array = np.ndarray

BYTES = {"uint8": (0, 255), "int8": (-128, 127)}
WORDS = {"uint16": (0, 65535), "int16": (-32768, 32767)}
RANGES = BYTES | WORDS
_SCALE = (1.0, 0.5, 0.0078125, 0.0625, 0.1, 0.00390625, 3.0, 0.017)
_UNIT = PRECISION["float32"].unit


def levels(x: Array, scale: Array, zero_point: int, dtype: str) -> Array:
    """The quantised numbers (as float64) of numbers that are exact: the nearest, of two the even one, before the zero
    point is added (ONNX QuantizeLinear; torch.fake_quantize_per_tensor_affine); saturated."""
    low, high = RANGES[dtype]
    return np.clip(np.rint(x / scale) + zero_point, low, high)


def _reference(args: Sequence[Bounded], call: Call) -> Bounded:
    """(q - z) s. Quotients lose a rounding, or three where x is multiplied by the rounded reciprocal of s (as PyTorch
    does), none where s is a power of two; where that crosses a tie, q may be off by one. What NaN becomes is nobody's
    promise."""
    x, zero_point, dtype = args[0], int(call.number("zero_point")), str(call.attrs["dtype"])
    scale = _scales(call.attrs, x.value.ndim)
    with np.errstate(all="ignore"):
        power = np.frexp(scale)[0] == 0.5
        exact = power | np.isinf(x.value)
        lost = np.where(exact, 0.0, 3.01 * (_UNIT + U64) * np.abs(x.value)) + x.error
        q, low, high = (levels(v, scale, zero_point, dtype) for v in (x.value, x.value - lost, x.value + lost))
        value = (q - zero_point) * scale
        error = scale * spread(q, low, high) + (_UNIT + U64) * np.abs(value)
        # the product may be made before the zero point is taken away, or one by one: exact for 8 and 11 bits
        if dtype in WORDS:
            error += (_UNIT + U64) * scale * (np.abs(q) + abs(zero_point))
    return Bounded(value, np.where(x.undetermined | np.isnan(x.value), np.inf, error), x.dtype)


def _half(args: Sequence[Bounded], call: Call) -> Bounded:
    """The same in float16 or better, its scale, too (ONNX QuantizeLinear: "the division is performed in the type of
    y_scale"): a quotient that overflows there is saturated, as it is where it does not, and as infinities are. The
    product with the scale is rounded."""
    x, zero_point, dtype = args[0], int(call.number("zero_point")), str(call.attrs["dtype"])
    scale, p = float(np.float16(call.number("scale"))), PRECISION[x.dtype]
    with np.errstate(all="ignore"):
        lost = np.where(np.isfinite(x.value), 3.01 * (p.unit + U64) * np.abs(x.value) + scale * p.tiny, 0.0) + x.error
        q, low, high = (
            levels(v, np.asarray(scale), zero_point, dtype) for v in (x.value, x.value - lost, x.value + lost)
        )
        value = (q - zero_point) * scale
        error = scale * spread(q, low, high) + (p.unit + U64) * np.abs(value)
    return rounded(value, np.where(x.undetermined | np.isnan(x.value), np.inf, error), x.dtype)


def _scales(attrs: Attrs, rank: int) -> Array:
    """As float64 what frameworks hold in float32, of a shape that goes with the operand's."""
    if "axis" not in attrs:
        return np.float64(np.float32(attrs["scale"]))  # type: ignore[arg-type]
    own = np.asarray(attrs["scales"], np.float32).astype(np.float64)
    (axis,) = normalized(attrs["axis"], rank)
    return own.reshape([-1 if i == axis else 1 for i in range(rank)])


def _zero_point() -> AttrRule:
    def rule(d: Draw, operands: Types, attrs: Attrs) -> int:
        low, high = RANGES[str(attrs["dtype"])]
        return d.choice((0, low, high, (low + high + 1) // 2, 3))

    return rule


def _drawn_scales(d: Draw, operands: Types, attrs: Attrs) -> tuple[float, ...]:
    """One for each channel, all different where there are few."""
    (axis,) = normalized(attrs["axis"], operands[0].rank)
    base = d.choice(_SCALE)
    return tuple(base * (1 + place % 4 / 4) for place in range(operands[0].shape[axis]))


def _checked(operands: Types, attrs: Attrs, ranges: Mapping[str, tuple[int, int]]) -> TensorType:
    if attrs["dtype"] not in ranges:
        raise TypeRuleError(f"{attrs['dtype']!r} is none of {', '.join(ranges)}")
    low, high = ranges[str(attrs["dtype"])]
    if operands[0].dtype != "float32":
        raise TypeRuleError(f"{operands[0]} is not quantised")
    if not low <= int(attrs["zero_point"]) <= high:  # type: ignore[arg-type]
        raise TypeRuleError(f"{attrs['zero_point']} is no {attrs['dtype']}")
    scales = np.atleast_1d(np.asarray(attrs["scales"] if "axis" in attrs else attrs["scale"], np.float64))
    if not ((scales >= np.finfo(np.float32).smallest_subnormal) & (scales <= np.finfo(np.float32).max)).all():
        raise TypeRuleError(f"scales {scales} are not all positive")
    if "axis" in attrs:
        (axis,) = normalized(attrs["axis"], operands[0].rank)
        if len(scales) != operands[0].shape[axis]:
            raise TypeRuleError(f"{scales} are not the scales of {operands[0]} along {axis}")
    return same_as(0)(operands, attrs)


def _half_type(operands: Types, attrs: Attrs) -> TensorType:
    low, high = BYTES.get(str(attrs["dtype"]), (1, 0))
    if operands[0].dtype != "float16" or not low <= int(attrs["zero_point"]) <= high:  # type: ignore[arg-type]
        raise TypeRuleError(
            f"{operands[0]} is not quantised to {attrs['dtype']} with {attrs['zero_point']} as its zero"
        )
    if not 2.0**-24 <= float(attrs["scale"]) <= 2.0**15:  # type: ignore[arg-type]
        raise TypeRuleError(f"{attrs['scale']} is no scale of float16")
    return same_as(0)(operands, attrs)


def _limits(call: Call, text: str) -> str:
    low, high = RANGES[str(call.attrs["dtype"])]
    return text.replace("%limits", f"{low}, {high}")


_TENSOR = {"dtype": one_of("uint8", "int8"), "scale": one_of(*_SCALE), "zero_point": _zero_point()}
_ONLY = unsupported("it has no quantisation of float16 by a scale of float16")


def _pairs(suffix: str, ranges: Mapping[str, tuple[int, int]]) -> tuple[OpSpec, ...]:
    """Of a tensor, and with a scale for each place on an axis, to these types."""
    types = tuple(ranges)
    point = _zero_point()
    tensors = {"dtype": one_of(*types), "scale": one_of(*_SCALE), "zero_point": point}
    channels = {"dtype": one_of(*types[::-1]), "axis": axis_of(0), "scales": _drawn_scales, "zero_point": point}

    def checked(operands: Types, attrs: Attrs) -> TensorType:
        return _checked(operands, attrs, ranges)

    return (
        OpSpec(
            f"quantize_dequantize{suffix}", "quantization", (tensor(("float32",)),), checked, _reference, attrs=tensors,
            torch=lambda call: _limits(
                call, "torch.fake_quantize_per_tensor_affine({0}, {scale}, {zero_point}, %limits)"),
            tensorflow=lambda call: _limits(call, "quantize_dequantize({0}, {scale}, {zero_point}, %limits)"),
            jax=lambda call: _limits(call, "quantize_dequantize({0}, {scale}, {zero_point}, %limits)"),
            relax="quantize_dequantize({0}, {scale}, {zero_point}, -1, {dtype})",
            onnx="quantize_dequantize(g, {0}, {scale}, {zero_point}, 1, {dtype})",
        ),
        OpSpec(
            f"quantize_dequantize_channels{suffix}", "quantization", (tensor(("float32",), min_rank=1),), checked,
            _reference, attrs=channels,
            torch=lambda call: _limits(call, "quantize_channels({0}, {scales}, {zero_point}, {axis}, %limits)"),
            tensorflow=lambda call: _limits(
                call, "quantize_channels({0}, {scales}, {zero_point}, {axis}, %limits)"),
            jax=lambda call: _limits(call, "quantize_channels({0}, {scales}, {zero_point}, {axis}, %limits)"),
            relax="quantize_dequantize({0}, {scales}, {zero_point}, {axis}, {dtype})",
            onnx="quantize_dequantize(g, {0}, {scales}, {zero_point}, {axis}, {dtype})",
        ),
    )  # fmt: skip


OPERATORS: tuple[OpSpec, ...] = (
    *_pairs("", BYTES),
    OpSpec(
        "quantize_dequantize_half", "quantization", (tensor(("float16",)),), _half_type, _half, attrs=_TENSOR,
        torch=_ONLY, tensorflow=_ONLY, jax=_ONLY, relax=_ONLY,
        onnx='quantize_dequantize(g, {0}, {scale}, {zero_point}, 1, {dtype}, "float16")',
    ),
    *_pairs("_words", WORDS),
)  # fmt: skip
