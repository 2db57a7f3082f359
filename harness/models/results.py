"""What is made of the runs of a given model: verdicts, agreement of all with all, ratios of times, findings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from harness.conversions.model_file import Port, why_not
from harness.models.layer_errors import LayerErrors
from harness.models.measure import Run
from harness.models.reference import Reference
from harness.models.variants import ModelFile, Refusal, Variant
from oracles.judge import verdict
from oracles.judge.compare import Expected
from oracles.judge.outcome import Unsupported, Value
from oracles.judge.verdict import Verdict
from oracles.models import agreement, timing
from oracles.models.agreement import Agreement, Failure
from oracles.models.timing import Difference, Ratio
from oracles.training.sharding import excess

REFERENCE = "float64 reference"
AXES = ("device", "library", "optimisation", "conversion")
"""Properties of a variant by which agreement is summed up."""


@dataclass(frozen=True)
class Row:
    """One variant. status: a verdict's, or "not judged" where there is no reference; message: what is wrong; ratio: the
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
    def deviates(self) -> bool:
        """Is something wrong? A result that is missing is."""
        return self.status not in ("agree", "undetermined", "not judged", "unsupported")


@dataclass(frozen=True)
class Regression:
    """A variant that is slower than one that is optimised less, or came another way. kind: optimisation or
    conversion."""

    kind: str
    slower: Variant
    faster: Variant
    ratio: Ratio

    def __str__(self) -> str:
        r = self.ratio
        return (
            f"{self.slower.name} takes {r.ratio:.2f} times as long as {self.faster.name} ({r.low:.2f} to {r.high:.2f})"
        )


@dataclass(frozen=True)
class Results:
    """Everything that is shown of a model. measured: name of the output that agreement is about; decided: share of its
    samples whose first class noise cannot change (None: no reference, or no scores); pairs: each with each,
    the reference among them; layers: of variants whose layers were looked at; expected: of each set of inputs (None:
    nothing is derived); unfinished: what was not done, where the command was ended early; labels: names of classes
    (none: not given); firsts: the class with the greatest score of each sample, by variant, of those that have scores;
    truth: the right ones (None: not given); difference: the test of all times (None: fewer than two variants were
    timed)."""

    model: ModelFile
    seed: int
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    sets: int
    how: str
    doubt: str
    rows: tuple[Row, ...]
    refusals: tuple[Refusal, ...]
    measured: str
    decided: float | None
    pairs: Mapping[tuple[str, str], Agreement | Failure]
    layers: tuple[LayerErrors, ...] = field(default=(), kw_only=True)
    expected: tuple[Expected, ...] | None = field(default=None, kw_only=True)
    unfinished: str = field(default="", kw_only=True)
    labels: tuple[str, ...] = field(default=(), kw_only=True)
    firsts: Mapping[str, np.ndarray] = field(default_factory=dict, kw_only=True)
    truth: np.ndarray | None = field(default=None, kw_only=True)
    regressions: tuple[Regression, ...]
    difference: Difference | None
    rounds: int
    versions: Mapping[str, str]

    @property
    def deviating(self) -> list[Row]:
        return [row for row in self.rows if row.deviates]

    @property
    def unexplained(self) -> list[Row]:
        """Those that deviate, and no known issue says why."""
        return [row for row in self.deviating if not row.known]

    @property
    def headline(self) -> str:
        """The verdict in one sentence, and what it leaves out."""
        return f"{self._verdict} {self.unfinished}".rstrip()

    @property
    def _verdict(self) -> str:
        judged = [row for row in self.rows if row.status != "not judged"]
        if not judged:
            return f"No verdict: nothing is derived for this model, only agreement of {len(self.rows)} variants shown."
        wrong = self.deviating
        if wrong:
            known = len(wrong) - len(self.unexplained)
            told = f", {known} of them as known issues say" if known else ""
            return f"{len(wrong)} of {len(self.rows)} variants deviate{told}."
        missing = sum(row.status == "unsupported" for row in self.rows)
        those = (
            f"All {len(self.rows) - missing} variants return" if len(self.rows) - missing > 1 else "The variant returns"
        )
        return f"{those} what a correct evaluation may return."


def assemble(
    model: ModelFile,
    inputs: Sequence[Port],
    outputs: Sequence[Port],
    reference: Reference,
    runs: Sequence[Run],
    refusals: Sequence[Refusal],
    seed: int,
    rounds: int,
    versions: Mapping[str, str],
    truth: np.ndarray | None = None,
) -> Results:
    """Judge, compare and time. truth: the right class of each sample, if known. Raises ValueError where nothing ran:
    zero comparisons are no agreement, or where there are other numbers of samples than of classes."""
    if not runs:
        raise ValueError("nothing to compare")
    place, title = _measured(runs, reference.expected, outputs)
    whole = {run.variant.name: _joined(run, place) for run in runs}
    allowed = None
    if reference.expected:
        whole = {REFERENCE: np.concatenate([np.atleast_1d(e.values[place].value) for e in reference.expected]), **whole}
        allowed = np.concatenate([np.atleast_1d(e.values[place].error) for e in reference.expected])
    regressions, level = _regressions(runs, seed)
    rows = tuple(row_of(run, reference.expected, runs[0], seed, level) for run in runs)
    scores = {name: y for name, y in whole.items() if y is not None and y.ndim == 2 and y.shape[1] > 1}
    if truth is not None:
        several = {len(y) for y in scores.values()} - {len(truth)}
        if several or not scores:
            told = f"{several.pop()} samples" if several else "outputs that are no scores"
            raise ValueError(f"{len(truth)} true classes are given for {told}")
        rows = tuple(
            replace(row, accuracy=agreement.accuracy(scores[row.variant.name], truth))
            if row.variant.name in scores
            else row
            for row in rows
        )
    unsupported = [Refusal(row.variant.name, row.message) for row in rows if row.status == "unsupported"]
    timed = {run.variant.name: run.seconds for run in runs if len(run.seconds) == rounds and rounds > 1}
    decided = None if allowed is None else _decided(whole[REFERENCE], allowed)
    return Results(
        model, seed, tuple(inputs), tuple(outputs), len(runs[0].outcomes), reference.how, reference.doubt,
        rows, (*refusals, *unsupported), title, decided,
        agreement.table(whole, allowed), tuple(regressions),
        timing.difference(timed) if len(timed) > 1 else None, rounds, versions,
        expected=reference.expected, truth=truth,
        firsts={name: agreement.ranks(y).argmin(axis=1) for name, y in scores.items()},
    )  # fmt: skip


def _measured(runs: Sequence[Run], expected: tuple[Expected, ...] | None, outputs: Sequence[Port]) -> tuple[int, str]:
    """Place and name of the output that agreement is about: the first with rows of scores, else the first."""
    if expected:
        arrays = [bound.value for bound in expected[0].values]
    else:
        arrays = next((list(o.outputs) for run in runs for o in run.outcomes if isinstance(o, Value)), [])
    scores = [i for i, a in enumerate(arrays) if a.ndim == 2 and a.shape[1] > 1 and a.dtype.kind == "f"]
    place = scores[0] if scores else 0
    return place, outputs[place].name if place < len(outputs) else f"output {place}"


def _decided(value: np.ndarray | None, allowed: np.ndarray) -> float | None:
    """Share of rows whose greatest score is farther from the second than both may err; None for what is no scores."""
    if value is None or value.ndim != 2 or value.shape[1] < 2 or value.dtype.kind != "f":
        return None
    order = np.argsort(-value, axis=1, kind="stable")[:, :2]
    scores, errors = np.take_along_axis(value, order, axis=1), np.take_along_axis(allowed, order, axis=1)
    with np.errstate(all="ignore"):
        return float(np.mean(scores[:, 0] - scores[:, 1] > errors.sum(axis=1)))


def _joined(run: Run, place: int) -> np.ndarray | None:
    """One output over all sets of inputs; None where a set has no result."""
    found = [o.outputs[place] for o in run.outcomes if isinstance(o, Value) and len(o.outputs) > place]
    if len(found) < len(run.outcomes) or len({array.shape[1:] for array in found}) > 1:
        return None
    return np.concatenate([np.atleast_1d(array) for array in found])


def row_of(
    run: Run,
    expected: tuple[Expected, ...] | None,
    base: Run | None = None,
    seed: int = 0,
    level: float = timing.LEVEL,
) -> Row:
    """What came of a variant. base: that its time is a ratio to (None: itself)."""
    base = base or run
    row = Row(run.variant, "not judged")
    if expected:
        verdicts = [verdict.judge(e, o) for e, o in zip(expected, run.outcomes, strict=True)]
        place = max(range(len(verdicts)), key=lambda one: _severity(verdicts[one]))
        worst = verdicts[place]
        elements = sum(one.elements for one in verdicts)
        told = worst.discrepancy.message if worst.discrepancy else ""
        count = sum(one.discrepancy is not None for one in verdicts)
        if told and len(verdicts) > 1:
            told = f"{count} of {len(verdicts)} sets of inputs: {told}"
        share = sum(one.undetermined for one in verdicts) / elements if elements else None
        ratios = [_ratio(e, o.outputs) for e, o in zip(expected, run.outcomes, strict=True) if isinstance(o, Value)]
        row = replace(row, status=worst.status, message=told, undetermined=share, ratio=max(ratios, default=None))
        row = replace(row, symptom=worst.discrepancy.symptom if worst.discrepancy else "", place=place)
    elif not run.complete:
        first = next(o for o in run.outcomes if not isinstance(o, Value))
        place, word = run.outcomes.index(first), type(first).__name__.lower()
        row = replace(row, status=word, message=why_not(first), symptom=word, place=place)
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
        several = [agreement.spread_of(each) for each in zip(first.outputs, *run.repeats, strict=True) if each[0].size]
        row = replace(row, spread=max(several, default=0.0))
    return row


def _severity(one: Verdict) -> tuple[bool, float]:
    worst = one.discrepancy.worst if one.discrepancy else None
    return one.discrepancy is not None, math.inf if worst is None else worst


def _ratio(expected: Expected, outputs: Sequence[np.ndarray]) -> float:
    """Infinite where an output is missing or has another shape."""
    if [y.shape for y in outputs] != [type_.shape for type_ in expected.types]:
        return math.inf
    floating = [(bound, y) for bound, y in zip(expected.values, outputs, strict=True) if bound.floating]
    ratios = [excess(bound, y) for bound, y in floating]
    return max((math.inf if math.isnan(ratio) else ratio for ratio in ratios), default=0.0)


def _regressions(runs: Sequence[Run], seed: int) -> tuple[list[Regression], float]:
    """Variants that are slower than one that is optimised less or that the same runner runs after another conversion.
    All intervals together hold with the level of one."""
    timed = [run for run in runs if len(run.seconds) >= timing.LEAST and run.stopped is None]
    chosen = []
    for one, other in combinations(timed, 2):
        a, b = one.variant, other.variant
        if a.family == b.family and a.runner.level != b.runner.level:
            more, less = (one, other) if a.runner.level > b.runner.level else (other, one)
            if not less.variant.runner.reference:
                chosen.append(("optimisation", more, less))
        elif a.runner.name == b.runner.name:
            chosen += [("conversion", one, other), ("conversion", other, one)]
    level = 1 - (1 - timing.LEVEL) / max(1, len(chosen) + len(timed) - 1)
    found = [
        Regression(kind, one.variant, other.variant, timing.ratio(one.seconds, other.seconds, seed, level))
        for kind, one, other in chosen
        if len(one.seconds) == len(other.seconds)
    ]
    return [one for one in found if one.ratio.slower], level


def groups(results: Results, axis: str) -> dict[str, list[str]]:
    """Names of variants by their value on one of AXES, the reference apart."""
    found: dict[str, list[str]] = {}
    for row in results.rows:
        variant = row.variant
        value = variant.file.conversion if axis == "conversion" else getattr(variant, axis)
        found.setdefault(value, []).append(variant.name)
    return found


def worst(results: Results, first: Sequence[str], second: Sequence[str], measure: str) -> float | None:
    """The worst value of a measure between two groups of variants, a variant and itself apart, of those that have
    results and this measure; None where none do, NaN where there are no two variants."""
    found, lost = [], False
    for one in first:
        for other in second:
            if one == other:
                continue
            pair = results.pairs[one, other]
            value = None if isinstance(pair, Failure) else getattr(pair, measure)
            lost |= value is None
            found += [] if value is None else [value]
    if not found:
        return None if lost else math.nan
    return min(found) if measure in HIGHER else max(found)


def incomplete(results: Results, first: Sequence[str], second: Sequence[str]) -> bool:
    """Is a result missing of two groups of variants?"""
    pairs = [results.pairs[one, other] for one in first for other in second]
    return any(isinstance(pair, Failure) for pair in pairs)


HIGHER = ("top1", "top5", "rbo", "kendall")
"""Measures of which 1 is full agreement; of the others 0 is."""
