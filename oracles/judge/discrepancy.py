"""What an oracle reports: one exception class per symptom, so that Hypothesis never merges distinct bugs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Discrepancy:
    """One disagreement between a subject and what it is judged against.

    symptom:  one of SYMPTOMS
    output:   index of the output (None where the whole run failed)
    message:  what is wrong, without names of values, for people
    worst:    greatest ratio of error to allowed error (None where that has no meaning)
    """

    symptom: str
    message: str
    output: int | None = None
    worst: float | None = None


class Inconsistency(AssertionError):
    """Raised by a campaign for a discrepancy that no known issue explains."""

    symptom = ""

    def __init__(self, text: str) -> None:
        super().__init__(text)


class ValueMismatch(Inconsistency):
    """A finite value is farther from the reference than a correct evaluation can be."""

    symptom = "value"


class SpecialMismatch(Inconsistency):
    """NaN, an infinity or the sign of a zero is where it should not be, or is missing."""

    symptom = "special"


class TypeMismatch(Inconsistency):
    """The dtype or the shape of an output is wrong."""

    symptom = "type"


class MissingOutput(Inconsistency):
    """The wrong number of outputs."""

    symptom = "outputs"


class Rejection(Inconsistency):
    """A valid program was refused with an error message."""

    symptom = "rejected"


class ProcessCrash(Inconsistency):
    """The process died, or ran out of the memory it is allowed."""

    symptom = "crash"


class Hang(Inconsistency):
    """No result within the time allowed."""

    symptom = "timeout"


class LevelMismatch(Inconsistency):
    """Two optimisation levels of one compiler differ by more than both may err."""

    symptom = "level"


class SlowCompilation(Inconsistency):
    """A program takes many times as long to compile as a plain one."""

    symptom = "slow"


class SelfMismatch(Inconsistency):
    """A framework differs in kind from itself where the reference allows anything."""

    symptom = "inconsistency"


SYMPTOMS: dict[str, type[Inconsistency]] = {
    kind.symptom: kind
    for kind in (
        ValueMismatch,
        SpecialMismatch,
        TypeMismatch,
        MissingOutput,
        Rejection,
        ProcessCrash,
        Hang,
        LevelMismatch,
        SlowCompilation,
        SelfMismatch,
    )
}
WEAK = ("inconsistency",)
"""Symptoms of which neither result need be wrong: they are counted apart."""
SILENT = ("rejected", "crash", "timeout")
"""Symptoms of a run that returned nothing."""
