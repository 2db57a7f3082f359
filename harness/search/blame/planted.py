"""Faults planted next to known issues: would they be found? No framework runs: what comes of a node is the reference's
own result with a fault in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import FLOATS, Graph
from generators.graphs import Case, Style, seeded_case
from generators.inputs import Recipe, fill
from harness.backends import Target
from harness.findings.known.issues import KnownIssue
from harness.search.blame.culprit import Culprit, single, values_of
from harness.search.blame.excuses import ELEMENTWISE, Excuses
from harness.search.coverage import dtype_of
from harness.search.laboratory import Laboratory
from oracles.judge.compare import Expected
from oracles.judge.outcome import Crash, Outcome, Rejected, Timeout, Value
from oracles.judge.verdict import judge

Array = np.ndarray
UNKNOWN = "a fault that nobody knows"


def _nudged(reference: Bounded) -> Array:
    """Just wrong: eight times as far off as is allowed."""
    if not reference.floating:
        return ~reference.value if reference.value.dtype == bool else reference.value + reference.value.dtype.type(1)
    return reference.value + 8 * reference.error + 1e-30


def _far(reference: Bounded) -> Array:
    """Wrong in the first digit, and of the other sign."""
    if not reference.floating:
        return (
            ~reference.value if reference.value.dtype == bool else reference.value // 2 - reference.value.dtype.type(7)
        )
    return -3 * reference.value - 1 - 8 * reference.error


def _special(other: float) -> Callable[[Bounded], Array]:
    """`other` where the reference is finite, a number where it is not."""
    return lambda reference: np.where(np.isfinite(reference.value), other, 0.5)


FAULTS: dict[str, tuple[Callable[[Bounded], Array], ...]] = {
    "value": (_nudged, _far),
    "special": (_special(np.nan), _special(np.inf)),
}
"""Of elements, by symptom."""


def outcomes(symptom: str, expected: Expected) -> Iterator[Outcome]:
    """Runs that show this symptom, in every element that can show it."""
    match symptom:
        case "rejected":
            yield Rejected("PlantedError", UNKNOWN)
        case "crash":
            yield Crash(UNKNOWN)
        case "timeout":
            yield Timeout(1.0)
        case "outputs":
            yield Value(())
        case "type":
            yield Value(tuple(np.zeros((7, *value.value.shape), np.int8) for value in expected.values))
        case _:
            for fault in FAULTS.get(symptom, ()):
                with np.errstate(all="ignore"):
                    yield Value(
                        tuple(_result(fault, v, t.dtype) for v, t in zip(expected.values, expected.types, strict=True))
                    )


def _result(fault: Callable[[Bounded], Array], reference: Bounded, dtype: str) -> Array:
    """What came of one output. Integers and truth values have no special values."""
    right = reference.value.astype(dtype)
    if not reference.floating:
        return np.asarray(fault(reference)).astype(dtype) if fault in FAULTS["value"] else right
    wrong = np.asarray(fault(reference)).astype(dtype)
    numbers = np.isfinite(right) & np.isfinite(wrong)  # a finite number that is another one, and nothing else
    return np.where(numbers, wrong, right) if fault in FAULTS["value"] else wrong


def culprits(lab: Laboratory, target: Target, one: Case, symptom: str) -> Iterator[Culprit]:
    """A case of one node, wrong in this way."""
    expected = lab.question.expected(target, one)
    for outcome in outcomes(symptom, expected):
        found = judge(expected, outcome).discrepancy
        if found and found.symptom == symptom:
            yield Culprit(one.graph.nodes[0], one, found, expected, outcome)


def shown_by(issue: KnownIssue, case: Case) -> Case | None:
    """The node of an entry's case that the entry is about, alone; None where none of it is alone."""
    values = values_of(case)
    for node in case.graph.nodes:
        one = single(case, node, values)
        if _about(issue, one):
            return one
    return None


def neighbours(issue: KnownIssue, one: Case, drawn: int = 24) -> Iterator[Case]:
    """Cases of the same operator and dtype as a case of one node: itself, itself of inputs only, with other values, and
    others."""
    (node,) = one.graph.nodes
    yield one
    loose = tuple(replace(item, role="input") for item in one.graph.leaves)
    graph = replace(one.graph, leaves=loose)
    yield Case(graph, one.arrays)
    for seed, distribution in enumerate(("normal", "hundreds", "specials", "huge")):
        yield Case(graph, {**one.arrays, **_redrawn(graph, distribution, seed)})
    dtype = dtype_of(one.graph, node)
    anywhere = replace(issue, empty=False, constant=False)
    for index in range(drawn):
        other = seeded_case(0, index, 1, (node.op,), Style((dtype,)))
        first, *more = other.graph.nodes
        if not more and dtype_of(other.graph, first) == dtype and _about(anywhere, other):
            inputs = tuple(replace(item, role="input") for item in other.graph.leaves)
            yield Case(replace(other.graph, leaves=inputs), other.arrays)


def hides_all(lab: Laboratory, excuses: Excuses, target: Target, issue: KnownIssue, one: Case, symptom: str) -> bool:
    """Would no fault of this symptom that is planted next to an entry's case be found?"""
    asked = 0
    for case in neighbours(issue, one):
        if lab.question.why_not(target, case.graph):
            continue
        for culprit in culprits(lab, target, case, symptom):
            asked += 1
            if excuses.explain(target, culprit).left:
                return False
    return asked > 0


def excused(excuses: Excuses, target: Target, culprit: Culprit) -> tuple[int, int]:
    """Of a planted fault: how many of its elements known issues excuse, of how many; a fault of no elements is one."""
    explained = excuses.explain(target, culprit)
    if culprit.discrepancy.symptom not in ELEMENTWISE:
        return int(explained.left is None), 1
    total = sum(int((~value.undetermined).sum()) for value in culprit.expected.values)
    rest = sum(int((~value.undetermined).sum()) for value in explained.expected.values)
    return (total, total) if explained.left is None else (total - rest, total)


def _about(issue: KnownIssue, one: Case) -> bool:
    node, graph = one.graph.nodes[0], one.graph
    types = [graph.types[name] for name in node.operands]
    constants = {leaf.name for leaf in graph.leaves if leaf.role == "parameter"}
    given = [graph.types[name] for name in node.operands if name in constants]
    return issue.covers(node.op, node.type, types, given)


def _redrawn(graph: Graph, distribution: str, seed: int) -> dict[str, Array]:
    """Other values of the floating leaves that may have any."""
    return {
        item.name: fill(item, Recipe(distribution, seed))
        for item in graph.leaves
        if item.type.dtype in FLOATS and item.domain is None
    }
