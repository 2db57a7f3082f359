"""What is made of the runs of a given model: verdicts, agreement of all with all, ratios of times, findings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from harness.conversions.model_file import Port, why_not
from harness.models import verdict
from harness.models.given.takes import Drawn, inputs_refused
from harness.models.layer_errors import LayerErrors
from harness.models.measure import Run
from harness.models.reference import Reference
from harness.models.rows import IN_DOUBT, LAYER, REFUSED, Row, refusal_of, row_of, undeclared
from harness.models.variants import ModelFile, Refusal, Variant
from harness.models.verdict import Doubted
from oracles.judge.compare import Expected, dtype_of
from oracles.judge.outcome import Value
from oracles.models import agreement, decoding, doubt, timing
from oracles.models.agreement import Agreement, Failure
from oracles.models.doubt import Opinion
from oracles.models.timing import Difference, Ratio

REFERENCE = "float64 reference"
AXES = ("device", "library", "optimisation", "conversion")
"""Properties of a variant by which agreement is summed up."""


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
    timed); doubted: those who agree with each other and not with the reference (None: nobody does); refused: no variant
    takes the inputs, and what to give (empty: one does); drawn: what was found out of the inputs that were drawn;
    decoding: what was seen of a model with a cache step by step (empty: it has none)."""

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
    doubted: Doubted | None = field(default=None, kw_only=True)
    refused: str = field(default="", kw_only=True)
    drawn: str = field(default="", kw_only=True)
    decoding: str = field(default="", kw_only=True)
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
        without = "" if self.expected else self.how
        empty = self.expected is not None and not any(y.value.size for one in self.expected for y in one.values)
        told = verdict.sentence(self.rows, self.doubted, self.refused, without, empty)
        return f"{told} {self.unfinished}".rstrip()

    @property
    def exit_status(self) -> int:
        """Of the command."""
        return verdict.exit_status(self.rows, self.doubted, self.refused)


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
    drawn: Drawn | None = None,
) -> Results:
    """Judge, compare and time. truth: the right class of each sample, if known; drawn: how the inputs were drawn (None:
    they are given). Raises ValueError where nothing ran: zero comparisons are no agreement, or where there are other
    numbers of samples than of classes."""
    if not runs:
        raise ValueError("nothing to compare")
    place, title = _measured(runs, reference.expected, outputs)
    whole = {run.variant.name: _joined(run, place) for run in runs}
    allowed = None
    if reference.expected:
        single = reference.expected[: len(runs[0].single)]
        right = _stacked([e.values[place].value for e in single])
        if right is not None:
            whole = {REFERENCE: right, **whole}
            allowed = _stacked([e.values[place].error for e in single])
    regressions, level = _regressions(runs, seed)
    believed = _believed(runs[0], outputs)
    rows = tuple(row_of(run, reference.expected, runs[0], seed, level, believed) for run in runs)
    refusal = refusal_of(runs, reference.expected is not None)
    doubted = None
    if refusal:
        rows = tuple(replace(row, status=REFUSED, symptom="") if row.status == "rejected" else row for row in rows)
    elif reference.expected:
        doubted = _doubted(runs, rows, reference)
    if doubted:
        rows = tuple(replace(row, status=IN_DOUBT, symptom="") if row.judged else row for row in rows)
    scores = {name: y for name, y in whole.items() if y is not None and agreement.scored(y)}
    if truth is not None:
        scores, others = {k: y for k, y in scores.items() if len(y) == len(truth)}, scores
        if not scores:
            told = f"{len(next(iter(others.values())))} samples" if others else "outputs that are no scores"
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
    share = sum(row.status == REFUSED for row in rows), len(rows)
    refused = inputs_refused(inputs, why_not(refusal), share, drawn) if refusal else ""
    return Results(
        model, seed, tuple(inputs), tuple(outputs), len(runs[0].outcomes), reference.how, reference.doubt,
        rows, (*refusals, *unsupported), title, decided,
        agreement.table(whole, allowed), tuple(regressions),
        timing.difference(timed) if len(timed) > 1 else None, rounds, versions,
        expected=reference.expected, truth=truth,
        firsts={name: agreement.ranks(y).argmin(axis=1) for name, y in scores.items()},
        doubted=doubted, refused=refused, drawn=drawn.told if drawn else "",
        decoding=_decoding(runs, reference.expected),
    )  # fmt: skip


def with_layers(results: Results, layers: Sequence[LayerErrors]) -> Results:
    """With what layers show: a variant whose outputs agree deviates where one of them adds more error than it may."""
    found = {one.variant: one for one in layers if one.culprit}

    def looked(row: Row) -> Row:
        one = found.get(row.variant.name)
        if one is None or one.culprit is None or row.status != "agree":
            return row
        excess = one.culprit.excess
        share = "" if math.isinf(excess) else f": {excess:.2g} times what it may add"
        told = f"its outputs are within what is allowed, {one.where} is not{share}"
        return replace(row, status=LAYER, message=told, symptom="value")

    return replace(results, layers=tuple(layers), rows=tuple(map(looked, results.rows)))


def _believed(usual: Run, outputs: Sequence[Port]) -> Sequence[Port]:
    """What a model declares of its outputs, where what usually runs it returns that: files say many things."""
    first = usual.outcomes[0]
    return outputs if isinstance(first, Value) and not undeclared(first.outputs, outputs) else ()


def _doubted(runs: Sequence[Run], rows: Sequence[Row], reference: Reference) -> Doubted | None:
    """Who agrees with each other and not with the reference; None where nobody does."""
    opinions = [
        Opinion(
            row.variant.name,
            row.variant.owner,
            frozenset(row.variant.file.edges),
            [outcome.outputs for outcome in run.outcomes if isinstance(outcome, Value)],
            row.status == "agree",
        )
        for run, row in zip(runs, rows, strict=True)
        if row.judged and run.complete
    ]
    akin = () if reference.own else ("ONNX",)
    found = doubt.against(reference.expected or (), opinions, reference.through, akin)
    return Doubted(tuple(one.owner for one in found), tuple(one.name for one in found)) if found else None


ALLOWED = "what is allowed is not known without a reference"


def _decoding(runs: Sequence[Run], expected: tuple[Expected, ...] | None) -> str:
    """What was run of a model with a cache, and whether tokens one by one and all at once give the same: in the
    reference first, since a model may be two functions."""
    course = runs[0].course
    if course is None:
        return ""
    if course.whole is None:
        return f"{course.told}; one call for all tokens is refused or not examined, so that both are not compared"
    whole, steps = (expected[course.whole], [expected[n] for n in course.apart]) if expected else (None, [])
    if whole is not None:
        own = decoding.apart(
            [y.value for y in whole.values], [[y.value for y in s.values] for s in steps], whole, steps
        )
        if own is not None and own > 1:
            told = f"the reference itself is apart, {own:.2g} times what both may err"
            return f"{course.told}: {told}: the model is another function of several tokens than of one"
    found = {}
    for run in runs:
        outcomes = [run.outcomes[number] for number in (course.whole, *course.apart)]
        values = [one.outputs for one in outcomes if isinstance(one, Value)]
        count = {len(whole.values)} if whole else set[int]()
        if len(values) == len(outcomes) and len(count.union(map(len, values))) == 1:
            found[run.variant.name] = decoding.apart(values[0], values[1:], whole, steps)
    ratios = {name: ratio for name, ratio in found.items() if ratio is not None}
    if not ratios:
        return f"{course.told}: no variant returned both, or what can be laid beside each other"
    name = max(ratios, key=lambda one: ratios[one])
    if whole is None:
        return f"{course.told}: they are at most {ratios[name]:.2g} of the greatest element apart ({name}); {ALLOWED}"
    wrong = sum(ratio > 1 for ratio in ratios.values())
    if wrong:
        those = f"{wrong} of {len(ratios)} variants return something else at once"
        return f"{course.told}: {those}, {name} by {ratios[name]:.2g} times what both may err"
    return f"{course.told}: the same in all {len(ratios)} variants, {ratios[name]:.2g} of what both may err at most"


def _measured(runs: Sequence[Run], expected: tuple[Expected, ...] | None, outputs: Sequence[Port]) -> tuple[int, str]:
    """Place and name of the output that agreement is about: the first with rows of scores, else the first that has
    elements."""
    if expected:
        arrays, names = [bound.value for bound in expected[0].values], expected[0].names
    else:
        arrays = next((list(o.outputs) for run in runs for o in run.outcomes if isinstance(o, Value)), [])
        names = [port.name for port in outputs] if len(outputs) == len(arrays) else ()
    scores = [i for i, a in enumerate(arrays) if agreement.scored(a) and a.dtype.kind == "f"]
    place = next(iter([*scores, *(i for i, a in enumerate(arrays) if a.size)]), 0)
    return place, names[place] if place < len(names) else f"output {place}"


def _decided(value: np.ndarray | None, allowed: np.ndarray) -> float | None:
    """Share of rows whose greatest score is farther from the second than both may err; None for what is no scores."""
    if value is None or not agreement.scored(value) or value.dtype.kind != "f":
        return None
    order = np.argsort(-value, axis=1, kind="stable")[:, :2]
    scores, errors = np.take_along_axis(value, order, axis=1), np.take_along_axis(allowed, order, axis=1)
    with np.errstate(all="ignore"):
        return float(np.mean(scores[:, 0] - scores[:, 1] > errors.sum(axis=1)))


def _joined(run: Run, place: int) -> np.ndarray | None:
    """One output over all sets of inputs; None where a set has no result."""
    found = [o.outputs[place] for o in run.single if isinstance(o, Value) and len(o.outputs) > place]
    return _stacked(found) if len(found) == len(run.single) else None


def _stacked(arrays: Sequence[np.ndarray]) -> np.ndarray | None:
    """All rows; None where they have several shapes or kinds."""
    rows = [np.atleast_1d(array) for array in arrays]
    if len({(row.shape[1:], dtype_of(row)) for row in rows}) > 1:
        return None
    return np.concatenate(rows)


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
