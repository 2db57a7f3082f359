"""What a run showed of a fault, and the lines that check it: expected and got side by side, and one assertion."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from generators.graph import TensorType
from harness.findings.upstream.literals import number
from harness.findings.upstream.parts import Family
from oracles.judge.compare import Expected, wide, wrong_elements
from oracles.judge.discrepancy import Discrepancy
from oracles.judge.outcome import Outcome, Value


@dataclass(frozen=True)
class Seen:
    """symptom, message: of the discrepancy; output: which is wrong; type: that it should have; place: of the worst
    element; value, error: what is expected there, in float64, and how far from it a correct evaluation can be; got:
    what came (None: nothing is compared); part: of a complex number that is compared ("": the whole)."""

    symptom: str
    message: str
    output: int = 0
    type: TensorType | None = None
    place: tuple[int, ...] = ()
    value: object = None
    error: float = 0.0
    got: object = None
    outputs: int = 1
    part: str = ""


def seen_in(discrepancy: Discrepancy, expected: Expected, outcome: Outcome) -> Seen:
    """The worst element of the output that is reported."""
    index = discrepancy.output or 0
    plain = Seen(discrepancy.symptom, discrepancy.message, index, expected.types[index], outputs=len(expected.types))
    if discrepancy.symptom not in ("value", "special") or not isinstance(outcome, Value):
        return plain
    reference, output = expected.values[index], outcome.outputs[index]
    masks = wrong_elements(output, reference)
    wrong = next(mask for symptom, mask in masks if symptom == discrepancy.symptom and mask.any())
    with np.errstate(all="ignore"):
        distance = np.abs(wide(output, reference) - reference.value) if reference.floating else wrong
        ratio = np.asarray(distance, float) / np.maximum(reference.error, np.finfo(float).tiny)
        worst = np.where(wrong, np.nan_to_num(ratio, nan=1e300, posinf=1e300), -1.0)
    place = tuple(int(i) for i in np.unravel_index(int(np.argmax(worst)), wrong.shape))
    value, got = reference.value[place], wide(output, reference)[place]
    part = ""
    if reference.complex and discrepancy.symptom == "special":
        part = "real" if _apart(got.real, value.real) else "imag"
        value, got = getattr(value, part), getattr(got, part)
    return Seen(
        discrepancy.symptom, discrepancy.message, index, expected.types[index], place, value,
        float(reference.error[place]), got, len(expected.types), part,
    )  # fmt: skip


def _apart(got: float, value: float) -> bool:
    """Do NaN, infinities or signs differ?"""
    if np.isnan(got) or np.isnan(value):
        return bool(np.isnan(got) != np.isnan(value))
    infinite = (np.isinf(got) or np.isinf(value)) and got != value
    return bool(infinite or np.signbit(got) != np.signbit(value))


def checks(seen: Seen, family: Family) -> list[str]:
    """The last lines of a program that has the output in `y`."""
    assert seen.type is not None
    if seen.symptom == "outputs":
        return [f'print("expected", {seen.outputs}, "outputs, got", len(y))', f"assert len(y) == {seen.outputs}"]
    if seen.symptom == "type":
        dtype, shape = seen.type.dtype, seen.type.shape
        lines = [f"expected, got = ({dtype!r}, {shape}), ({family.names}, tuple(y.shape))"]
        return [*lines, 'print("expected", expected, "got", got)', "assert got == expected"]
    if seen.symptom not in ("value", "special"):
        return []
    subscript = f"y[{', '.join(map(str, seen.place))}]" if seen.place else "y"
    got = family.item.format(kind="complex" if seen.part else _kind(seen.value), element=subscript)
    got = f"{got}.{seen.part}" if seen.part else got
    lines = [f"expected, got = {number(seen.value)}, {got}", 'print("expected", expected, "got", got)']
    return [*lines, f"assert {condition(seen)}"]


def lost(seen: Seen) -> bool:
    """Did NaN or an infinity come in place of a number?"""
    value, got = seen.value, seen.got
    if not isinstance(value, np.inexact | float | complex) or not isinstance(got, np.number | float | complex):
        return False
    return bool(np.isfinite(value) and not np.isfinite(got))


def condition(seen: Seen) -> str:
    """What a right result fulfils, of `got` and `expected`."""
    value = seen.value
    if not isinstance(value, np.inexact | float | complex):
        return "got == expected"
    if np.isnan(value):
        return "got != got"
    if lost(seen):
        return "math.isfinite(got)" if not isinstance(value, complex | np.complexfloating) else "got - got == 0"
    if np.isinf(value) or (seen.error == 0 and value != 0):
        return "got == expected"
    if value == 0 and seen.got == 0:
        return "math.copysign(1, got) == math.copysign(1, expected)"
    return f"abs(got - expected) <= {_up(seen.error)}"


def _kind(value: object) -> str:
    if isinstance(value, np.bool_ | bool):
        return "bool"
    if isinstance(value, np.integer | int):
        return "int"
    return "complex" if isinstance(value, np.complexfloating | complex) else "float"


def _up(error: float) -> str:
    """Two digits, rounded up."""
    if error < np.finfo(float).tiny:
        return repr(error) if error else "0"
    scale = 10.0 ** (math.floor(math.log10(error)) - 1)
    return f"{math.ceil(error / scale - 1e-9) * scale:.2g}"
