"""Dense layers with quantised weights, whose operand may be quantised too, row by row by its own range: what torchao's
`quantize_` and Keras' `Model.quantize` make of them. A weight is out x in; results are real numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from generators.bounds.bounded import Bounded
from oracles.quantised.integers import LIMITS, UNIT, settled
from oracles.quantised.model import Judgement, judge_tensor
from oracles.quantised.reference_operators import applied

Array = np.ndarray


@dataclass(frozen=True)
class Rows:
    """How rows of an operand were quantised: levels less zero points, what one level is worth, how far that may be from
    it (relative)"""

    low: Array
    high: Array
    unit: Array
    slack: float


def symmetric_rows(x: Bounded, most: float, divisor: float, smallest: float = 0.0, added: float = 0.0) -> Rows:
    """Levels from -most - 1 (saturated there) to most of each row by its greatest magnitude: a quantum is (that +
    `added`) / divisor, at least `smallest`. Rounded in float32: the sum, the quotient, its reciprocal and the product,
    so that positions 4 roundings from a tie may be either of two."""
    top = np.abs(x.value).max(-1, keepdims=True, initial=0.0)
    unit = np.maximum((top + added) / divisor, smallest)
    with np.errstate(invalid="ignore", divide="ignore"):
        position = x.value / unit
        found = settled(position, x.error / unit + 4 * UNIT * np.abs(position), np.zeros(()), "int32")
    least = -most - 1 if added == 0.0 else -most
    return Rows(np.clip(found.low, least, most), np.clip(found.high, least, most), unit, 3 * UNIT)


def affine_rows(x: Bounded, limits: tuple[int, int], smallest: float) -> Rows:
    """The same by the range of each row, which holds 0; a zero point at a tie may be either of two, and moves levels
    that do not saturate with it: what counts is the difference."""
    least, most = limits
    low = np.minimum(x.value.min(-1, keepdims=True), 0.0)
    high = np.maximum(x.value.max(-1, keepdims=True), 0.0)
    unit = np.maximum((high - low) / (most - least), smallest)
    zero = settled(least - low / unit, 4 * UNIT * (np.abs(low / unit) + most), np.zeros(()), "int32")
    position = x.value / unit
    level = settled(position, x.error / unit + 4 * UNIT * np.abs(position), np.zeros(()), "int32")
    low, high = (np.clip(level.low, least - zero.high, most - zero.high),
                 np.clip(level.high, least - zero.low, most - zero.low))  # fmt: skip
    return Rows(low, high, unit, 3 * UNIT)


def of_rows(rows: Rows, weight: Array, unit: Array, bias: Array) -> Bounded:
    """Sums of products of whole numbers, exact, times what a row's and a column's levels are worth, plus the bias:
    four roundings in float32, and what either of two levels makes."""
    middle, reach = (rows.low + rows.high) / 2, (rows.high - rows.low) / 2
    total = middle @ weight.T
    factor = rows.unit * unit
    value = total * factor + bias
    loose = reach @ np.abs(weight.T)
    error = loose * factor + (rows.slack + 5 * UNIT) * (np.abs(total) + loose) * factor + 2 * UNIT * np.abs(value)
    return Bounded(value, error + np.finfo(np.float32).tiny, "float32")


def of_reals(x: Bounded, weight: Array, unit: Array, bias: Array) -> Bounded:
    """A real operand times whole numbers, then times what they are worth, plus the bias; the sums are rounded as any
    product's are."""
    levels = Bounded(weight.T.astype(np.float64), np.zeros(weight.T.shape), "float32")
    product = applied("matmul", (x, levels))
    value = product.value * unit
    error = product.error * unit + 3 * UNIT * np.abs(value)
    return Bounded(value + bias, error + 2 * UNIT * np.abs(value + bias), "float32")


def of_weights(x: Bounded, weight: Array, zero: Array, unit: Array, bias: Array) -> Bounded:
    """A real operand times a weight that is dequantised first, with one rounding an element."""
    real = ((weight - zero).astype(np.float32) * unit.astype(np.float32)).astype(np.float64)
    product = applied("matmul", (x, Bounded(real.T, 2 * UNIT * np.abs(real.T), "float32")))
    value = product.value + bias
    return Bounded(value, product.error + 2 * UNIT * np.abs(value), "float32")


def check_weight(found: Judgement, name: str, got: Array, real: Array, unit: Array, zero: Array,
                 limits: tuple[int, int], place: int | None = None) -> None:  # fmt: skip
    """The levels of a weight are the nearest ones, and reach as far as the weight does: a scale made of the least and
    the greatest element has room for both."""
    found.checked += got.size
    position = real / unit
    right = settled(position, 4 * UNIT * np.abs(position), zero, str(got.dtype), np.rint, limits)
    wrong = len(found.wrong)
    judge_tensor(found, got, right, name, place)
    lost = np.abs((got - zero) * unit - real)
    if len(found.wrong) == wrong and (lost > unit * (0.5 + 2.0**-10) + 1e-6 * np.abs(real)).any():
        at = np.unravel_index(np.argmax(lost), lost.shape)
        found.fault(
            f"{name} does not reach as far as the weight: {real[at]:.9g} became "
            f"{float(np.broadcast_to((got - zero) * unit, real.shape)[at]):.9g}"
        )


def check_scale(found: Judgement, name: str, got: Array, right: Array) -> None:
    """Scales are what the formula gives, up to four roundings."""
    found.checked += got.size
    wrong = np.abs(got - right) > 4 * UNIT * np.abs(right)
    if wrong.any():
        at = tuple(int(i[0]) for i in np.nonzero(wrong))
        found.fault(f"scale of {name}: {float(got[at]):.9g}, by its range it is {float(right[at]):.9g}")


def check_zero(found: Judgement, name: str, got: Array, position: Array, most: float, place: int | None = None) -> None:
    """Zero points are the nearest whole numbers."""
    found.checked += got.size
    value = got.astype(np.float64)
    wrong = np.abs(value - position) > 0.5 + 4 * UNIT * (np.abs(position) + most)
    if wrong.any():
        at, right = tuple(int(i[0]) for i in np.nonzero(wrong)), np.rint(position)
        held = np.clip(right, *LIMITS[str(got.dtype)]).astype(got.dtype)
        found.fault(f"zero point of {name}: {value[at]:.0f}, by its range it is {right[at]:.0f}", place, held)
