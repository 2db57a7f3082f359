"""TensorFlow's fake quantisation between a least and a greatest number: constants, tensors, or one pair a channel.

The range is moved so that zero is one of its steps ("nudged"). What is moved is computed in float32, so that the
reference does the same arithmetic; a range in which the rounded place of zero is not clear is not drawn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, spread
from generators.graph import TensorType
from generators.ops.composed import undetermined
from generators.ops.slots import draw_dim, flag, int_of, one_of
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Slot, TypeRuleError, Types, unsupported

Array = np.ndarray

_UNIT = PRECISION["float32"].unit + U64
RANGES = ((-6.0, 5.5), (0.0, 1.0), (-1.0, 2.0), (-0.1, 0.25), (-3.0, 0.0), (-100.0, 27.5))
KINDS = ("args", "vars", "channels")


def _nudged(low: float, high: float, bits: int, narrow: bool) -> tuple[float, float, float, float]:
    """Least, greatest, step, and how far the place of zero is from a tie."""
    first, last = float(narrow), float(2**bits - 1)
    step = (high - low) / (last - first)
    zero = first - low / step
    place = min(max(np.floor(zero + 0.5), first), last)
    return (first - place) * step, (last - place) * step, step, abs(zero + 0.5 - np.rint(zero + 0.5))


def _accepts(type_: TensorType, earlier: Types) -> bool:
    return type_.dtype == "float32" and 1 <= type_.rank <= 4 and type_.size > 0 and type_.shape[-1] <= 9


def _fresh(d: Draw, earlier: Types) -> TensorType:
    sizes = [draw_dim(d, 6, zero=False) for _ in range(d.choice((1, 2, 0, 3)))]
    return TensorType("float32", (*sizes, draw_dim(d, 9, zero=False)))


def _range(attrs: Attrs) -> tuple[float, float]:
    low, high = attrs["min"], attrs["max"]
    if not isinstance(low, float) or not isinstance(high, float) or not -1e4 <= low <= 0 <= high <= 1e4:
        raise TypeRuleError(f"zero is not between {low!r} and {high!r}")
    if high - low < 1e-3:
        raise TypeRuleError(f"{low} and {high} are too near each other")
    return low, high


def _ranges(attrs: Attrs, shape: tuple[int, ...]) -> list[tuple[float, float]]:
    """Of each channel: wider from one to the next."""
    low, high = _range(attrs)
    count = shape[-1] if attrs["kind"] == "channels" else 1
    return [(low * (1 + i / 4), high * (1 + i / 4)) for i in range(count)]


def _type(operands: Types, attrs: Attrs) -> TensorType:
    bits = int_of(attrs, "bits")
    if not _accepts(operands[0], ()) or not 2 <= bits <= 16 or attrs["kind"] not in KINDS:
        raise TypeRuleError(f"{operands[0]} is not quantised with {bits} bits")
    for low, high in _ranges(attrs, operands[0].shape):
        if _nudged(low, high, bits, bool(attrs["narrow"]))[3] < 1e-3:
            raise TypeRuleError(f"the place of zero between {low} and {high} is a tie")
    return operands[0]


def _high(d: Draw, operands: Types, attrs: Attrs) -> float:
    return next(high for low, high in RANGES if low == attrs["min"])


def _reference(args: Sequence[Bounded], call: Call) -> Bounded:
    """floor((clip(x) - least) / step + 1/2) step + least. The step has a few roundings, so has the quotient: where that
    crosses a tie, the result may be off by a step. What NaN becomes is nobody's promise."""
    x, bits, narrow = args[0], int_of(call.attrs, "bits"), bool(call.attrs["narrow"])
    low, high, step, _ = np.array([_nudged(*r, bits, narrow) for r in _ranges(call.attrs, x.value.shape)]).T
    with np.errstate(all="ignore"):
        clipped = np.clip(x.value, low, high)
        place = (clipped - low) / step
        # x, least and step are off by some roundings of the size of the range
        room = x.error / step + 16 * _UNIT * (np.abs(low) + np.abs(high) + np.abs(clipped)) / step

        def steps(p: Array) -> Array:
            return np.floor(np.clip(p, 0, 2.0**bits) + 0.5) * step + low

        value = steps(place)
        error = spread(value, steps(place - room), steps(place + room)) + 16 * _UNIT * (np.abs(low) + np.abs(high))
    return undetermined(Bounded(value, error, "float32"), np.isnan(x.value) | x.undetermined)


def _text(call: Call) -> str:
    low, high = (list(numbers) for numbers in zip(*_ranges(call.attrs, call.result.shape), strict=True))
    rest = "num_bits={bits}, narrow_range={narrow}"
    if call.attrs["kind"] == "args":
        return f"tf.quantization.fake_quant_with_min_max_args({{0}}, {low[0]}, {high[0]}, {rest})"
    if call.attrs["kind"] == "vars":
        return f"tf.quantization.fake_quant_with_min_max_vars({{0}}, {low[0]}, {high[0]}, {rest})"
    return f"tf.quantization.fake_quant_with_min_max_vars_per_channel({{0}}, {low}, {high}, {rest})"


_WHY = unsupported("it does not nudge the range; quantize_dequantize is the common one")
OPERATORS: tuple[OpSpec, ...] = (
    OpSpec(
        "fake_quant", "quantization", (Slot(_accepts, _fresh),), _type, _reference,
        attrs={
            "kind": one_of(*KINDS), "min": one_of(*(low for low, _ in RANGES)), "max": _high, "bits": one_of(8, 4, 2),
            "narrow": flag(),
        },
        torch=_WHY, tensorflow=_text, jax=_WHY, relax=_WHY, onnx=_WHY,
    ),
)  # fmt: skip
