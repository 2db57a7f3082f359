"""What came of one variant of a given model: a row of the table."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from harness.conversions.model_file import Port, why_not
from harness.models.measure import Run
from harness.models.variants import Variant
from oracles.judge import verdict
from oracles.judge.compare import Expected, dtype_of
from oracles.judge.outcome import Rejected, Unsupported, Value
from oracles.judge.verdict import Verdict
from oracles.models import agreement, timing
from oracles.models.timing import Ratio
from oracles.training.sharding import excess

NOT_JUDGED, IN_DOUBT, REFUSED, LAYER = "not judged", "in doubt", "inputs refused", "layer deviates"
"""Beside a verdict's: there is no reference; it is in doubt; no variant takes these inputs; outputs agree, and a layer
adds more error than it may."""
WRONG = ("mismatch", LAYER)
JUDGED = ("agree", *WRONG)
SILENT = ("rejected", "crash", "timeout")


@dataclass(frozen=True)
class Row:
    """One variant. status: a verdict's, or one of those above; message: what is wrong; ratio: the
    greatest error as a part of what is allowed; undetermined: share of elements; seconds: median of the rounds;
    slowdown: beside the first variant; spread: the greatest difference of repeated runs (None: not repeated); symptom,
    place: of the worst set of inputs, a key of SYMPTOMS and its number; known: the id of a known issue that explains
    it; accuracy: top-1 and top-5, where the true classes are known."""

    variant: Variant
    status: str
    message: str = ""
    ratio: float | None = None
    undetermined: float | None = None
    seconds: float | None = None
    slowdown: Ratio | None = None
    spread: float | None = None
    symptom: str = ""
    place: int = 0
    known: str = ""
    accuracy: tuple[float, float] | None = None

    @property
    def wrong(self) -> bool:
        """Did it return something wrong, on the way or at the end?"""
        return self.status in WRONG

    @property
    def deviates(self) -> bool:
        """Is something wrong? A result that is missing is."""
        return self.wrong or self.silent

    @property
    def silent(self) -> bool:
        """Did it return nothing, and that is wrong?"""
        return self.status in SILENT

    @property
    def judged(self) -> bool:
        """Was something that it returned compared with what a correct run may return?"""
        return self.status in JUDGED and self.ratio is not None


def row_of(
    run: Run,
    expected: tuple[Expected, ...] | None,
    base: Run | None = None,
    seed: int = 0,
    level: float = timing.LEVEL,
    declared: Sequence[Port] = (),
) -> Row:
    """What came of a variant. base: that its time is a ratio to (None: itself); declared: the outputs as the model says
    what they are, which they are held to where nothing is derived (empty: it is not believed)."""
    base = base or run
    row = _judged(run, expected) if expected else _unjudged(run, declared)
    refused = [outcome.why for outcome in run.outcomes if isinstance(outcome, Unsupported)]
    if refused and not (row.deviates and expected):
        row = replace(row, status="unsupported", message=refused[0])
    if run.stopped is not None:
        told = f"in a repeated run: {why_not(run.stopped)}"
        word = type(run.stopped).__name__.lower()
        row = replace(row, status=word, message=told, symptom=word, place=0)
    if run.seconds:
        row = replace(row, seconds=float(np.median(run.seconds)))
    if len(run.seconds) == len(base.seconds) >= timing.LEAST:
        row = replace(row, slowdown=timing.ratio(run.seconds, base.seconds, seed, level))
    first = run.outcomes[0]
    if run.repeats and isinstance(first, Value):
        row = replace(row, spread=_spread(first.outputs, run.repeats))
    return row


def _judged(run: Run, expected: Sequence[Expected]) -> Row:
    verdicts = [verdict.judge(e, o) for e, o in zip(expected, run.outcomes, strict=True)]
    wrong = {number for number, one in enumerate(verdicts) if one.discrepancy}
    course = run.course  # what follows from a wrong call is wrong, too
    first = [one for one in range(len(verdicts)) if not (course and wrong.intersection(course.earlier(one)))]
    place = max(first, key=lambda one: _severity(verdicts[one]))
    worst = verdicts[place]
    elements = sum(one.elements for one in verdicts)
    told = shown(worst.discrepancy.message) if worst.discrepancy else ""
    step = course.step(place) if course else None
    if told and len(verdicts) > 1:
        told = f"{len(wrong)} of {len(verdicts)} sets of inputs: {f'{step.title}: ' if step else ''}{told}"
    share = sum(one.undetermined for one in verdicts) / elements if elements else None
    ratios = [_ratio(e, o.outputs) for e, o in zip(expected, run.outcomes, strict=True) if isinstance(o, Value)]
    symptom = worst.discrepancy.symptom if worst.discrepancy else ""
    ratio = max(ratios, default=None)
    return Row(run.variant, worst.status, told, ratio, share, symptom=symptom, place=place)


def shown(message: str) -> str:
    """Without what a terminal would obey: it may quote the file."""
    words = re.sub(r"\x1b\[\d*m", "", message)
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in words)


def _unjudged(run: Run, declared: Sequence[Port]) -> Row:
    row = Row(run.variant, NOT_JUDGED)
    for place, outcome in enumerate(run.outcomes):
        if not isinstance(outcome, Value):
            word = type(outcome).__name__.lower()
            return replace(row, status=word, message=why_not(outcome), symptom=word, place=place)
        odd = undeclared(outcome.outputs, declared) if declared else ""
        if odd and row.status == NOT_JUDGED:
            row = replace(row, status="mismatch", message=odd, symptom="type", place=place)
    return row


def undeclared(outputs: Sequence[np.ndarray], ports: Sequence[Port]) -> str:
    """In what outputs are others than a model declares; empty where they are not, or it says nothing."""
    if any("(" in (port.dtype or "") for port in ports):  # sequences and maps, of any length
        return ""
    if len(outputs) != len(ports):
        return f"{len(outputs)} outputs instead of {len(ports)}"
    for output, port in zip(outputs, ports, strict=True):
        sizes = port.shape is None or (
            len(port.shape) == output.ndim
            and all(d in (None, size) for d, size in zip(port.shape, output.shape, strict=True))
        )
        if not sizes or port.dtype not in (None, dtype_of(output)):
            return f"{dtype_of(output)}[{','.join(map(str, output.shape))}] instead of {port}"
    return ""


def refusal_of(runs: Sequence[Run], derived: bool) -> Rejected | None:
    """What is said of inputs that are not what the model takes: the first message on a set that every variant refuses,
    of two owners at least where the reference takes it (derived); where it does not, every variant of the given file,
    of two owners at least: some compute something of anything."""
    ran = [run for run in runs if not any(isinstance(outcome, Unsupported) for outcome in run.outcomes)]
    given = [run for run in ran if not run.variant.file.edges]
    for some, several in ((ran, derived), (given, True)):
        if not some or (several and len({run.variant.owner for run in some}) < 2) or (some is given and derived):
            continue
        for outcomes in zip(*(run.outcomes for run in some), strict=True):
            if all(isinstance(outcome, Rejected) for outcome in outcomes):
                return outcomes[0]
    return None


def _spread(first: Sequence[np.ndarray], repeats: Sequence[Sequence[np.ndarray]]) -> float:
    """The greatest difference of repeated runs from the first; infinite where they return something of another kind."""
    if any(len(again) != len(first) for again in repeats):
        return math.inf
    return max((agreement.spread_of(each) for each in zip(first, *repeats, strict=True)), default=0.0)


def _severity(one: Verdict) -> tuple[bool, float, bool]:
    worst = one.discrepancy.worst if one.discrepancy else None
    return one.discrepancy is not None, math.inf if worst is None else worst, one.status == "agree"


def _ratio(expected: Expected, outputs: Sequence[np.ndarray]) -> float:
    """Infinite where an output is missing, or has another shape or dtype."""
    if [(dtype_of(y), y.shape) for y in outputs] != [(type_.dtype, type_.shape) for type_ in expected.types]:
        return math.inf
    ratios = [0.0]
    for bound, y in zip(expected.values, outputs, strict=True):
        if bound.complex:
            settled = np.isfinite(bound.error) & (bound.error > 0)
            distance = np.abs(y.astype(np.complex128) - bound.value)
            ratios.append(float(np.max(distance / np.where(settled, bound.error, 1), initial=0.0, where=settled)))
        elif bound.floating:
            ratios.append(excess(bound, y))
        elif ((y != bound.value) & ~bound.undetermined).any():
            ratios.append(math.inf)
    return max(math.inf if math.isnan(ratio) else ratio for ratio in ratios)
