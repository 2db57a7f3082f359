"""Arrays against bounded references, element by element. NaN and infinities are compared, never erased."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import TensorType
from oracles.judge.discrepancy import Discrepancy


@dataclass(frozen=True)
class Expected:
    """What a correct run returns: name, type and bounded value of each output, in order. said: what a discrepancy of an
    output of this name and these elements is called, if outputs tell of differences."""

    names: tuple[str, ...]
    types: tuple[TensorType, ...]
    values: tuple[Bounded, ...]
    said: Callable[[str, np.ndarray, Discrepancy], Discrepancy] | None = None


@dataclass(frozen=True)
class Comparison:
    """How many elements were compared, and how many a correct back end may set to anything."""

    elements: int = 0
    undetermined: int = 0
    discrepancy: Discrepancy | None = None

    @property
    def wasted(self) -> bool:
        """Nothing was compared: there were elements, and none was determined."""
        return self.elements > 0 and self.elements == self.undetermined


def compare_all(outputs: Sequence[np.ndarray], expected: Expected) -> Comparison:
    """All outputs of a run against their references. The first discrepancy is kept, the counts cover all.
    Raises ValueError for no outputs at all: zero comparisons are an error, not agreement."""
    types = expected.types
    if not types:
        raise ValueError("nothing to compare")
    if len(outputs) != len(types):
        return Comparison(discrepancy=Discrepancy("outputs", f"{len(outputs)} outputs instead of {len(types)}"))
    elements = undetermined = 0
    first: Discrepancy | None = None
    for index, (output, type_, reference) in enumerate(zip(outputs, types, expected.values, strict=True)):
        elements += reference.value.size
        undetermined += int(np.count_nonzero(reference.undetermined))
        if first is None:
            first = compare(output, type_, reference, index)
            if first and expected.said and first.symptom != "type":  # else the elements are not those expected
                first = expected.said(expected.names[index], np.where(reference.undetermined, 0, output), first)
    return Comparison(elements, undetermined, first)


def dtype_of(array: np.ndarray) -> str:
    """The name of its dtype; of text, whatever its length, `string`."""
    return "string" if array.dtype.kind == "U" else str(array.dtype)


def compare(output: np.ndarray, type_: TensorType, reference: Bounded, index: int = 0) -> Discrepancy | None:
    """One output against its reference: type, then special values, then finite values, then signs of zeros."""
    dtype = dtype_of(output)
    if dtype != type_.dtype or output.shape != type_.shape:
        got = TensorType(dtype, output.shape)
        return Discrepancy("type", f"{got} instead of {type_}", index)
    for symptom, wrong in wrong_elements(output, reference):
        if wrong.any():
            return _describe(symptom, wrong, wide(output, reference), reference, index)
    return None


def wide(output: np.ndarray, reference: Bounded) -> np.ndarray:
    """An output as its reference has the values: float64 or complex128 of floating dtypes."""
    if not reference.floating:
        return output
    with np.errstate(invalid="ignore"):  # of a signalling NaN
        return output.astype(np.complex128 if reference.complex else np.float64)


def wrong_elements(output: np.ndarray, reference: Bounded) -> list[tuple[str, np.ndarray]]:
    """Masks of the elements of an output of the right type that are wrong, by symptom, in the order in which they are
    reported."""
    determined = ~reference.undetermined
    if not reference.floating:
        return [("value", determined & (output != reference.value))]
    value, got = reference.value, wide(output, reference)
    if reference.complex:
        return _wrong_complex(got, determined, reference)
    special = determined & (np.isfinite(value) != np.isfinite(got))
    special |= determined & ~np.isfinite(value) & (np.isnan(value) != np.isnan(got))
    special |= determined & np.isinf(value) & (got != value)
    with np.errstate(all="ignore"):
        wrong = determined & np.isfinite(value) & (np.abs(got - value) > reference.error) & ~special
    zero = np.zeros(value.shape, bool)
    if reference.zero_sign:
        zero = determined & (value == 0) & (reference.error == 0) & (np.signbit(got) != np.signbit(value))
        zero &= ~(special | wrong)
    return [("special", special), ("value", wrong), ("special", zero)]


def _wrong_complex(got: np.ndarray, determined: np.ndarray, reference: Bounded) -> list[tuple[str, np.ndarray]]:
    """NaN, infinities and signs of zeros part by part; then the modulus of the difference of what is finite."""
    value, error = reference.value, reference.error
    special, distance = np.zeros(value.shape, bool), np.zeros(value.shape)
    for a, b in ((np.real(got), np.real(value)), (np.imag(got), np.imag(value))):
        special |= (np.isnan(a) != np.isnan(b)) | ((np.isinf(a) | np.isinf(b)) & ~np.isnan(b) & (a != b))
        with np.errstate(all="ignore"):
            distance = np.hypot(distance, np.where(np.isfinite(a) & np.isfinite(b), a - b, 0.0))
        if reference.zero_sign:
            special |= (a == 0) & (b == 0) & (error == 0) & (np.signbit(a) != np.signbit(b))
    special &= determined
    return [("special", special), ("value", determined & ~special & (distance > error))]


def _describe(symptom: str, wrong: np.ndarray, got: np.ndarray, reference: Bounded, index: int) -> Discrepancy:
    """Counts, the worst element with its place, and what was allowed there."""
    count, total = int(np.count_nonzero(wrong)), wrong.size
    value, error = reference.value, reference.error
    share = f"mismatched {count} of {total} ({100 * count / total:.3g} %)"
    if symptom == "value" and reference.floating:
        with np.errstate(all="ignore"):
            distances = np.abs(got - value)
            ratio = np.where(
                wrong & ~np.isnan(distances), distances / np.maximum(error, np.finfo(np.float64).tiny), 0.0
            )
        place = np.unravel_index(int(np.argmax(np.where(wrong, ratio, -1.0))), wrong.shape)
        distance = float(distances[place])
        detail = f"greatest error {distance:.3g} at {_place(place)}, allowed {float(error[place]):.3g}"
        detail += f"; expected {value[place]:.9g}, got {got[place]:.9g}"
        return Discrepancy(symptom, f"{share}   {detail}", index, float(ratio[place]))
    place = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    detail = f"first at {_place(place)}: expected {value[place]!s}, got {got[place]!s}"
    return Discrepancy(symptom, f"{share}   {detail}", index)


def _place(place: tuple) -> str:
    return "(" + ", ".join(str(int(i)) for i in place) + ")" if place else "()"
