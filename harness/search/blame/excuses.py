"""What known issues explain of a discrepancy: by a node, and element by element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import Graph, Node, TensorType
from generators.graphs import Case
from harness.backends import TARGETS, Target, probe
from harness.conversions.route import target_of
from harness.findings.known.issues import KnownIssue
from harness.findings.known.neighbours import Neighbours
from harness.findings.known.predicate import Predicate, values_of
from harness.quantisers import QUANTISERS
from harness.questions.conversion import CONVERSION
from harness.search.blame.culprit import Culprit
from harness.search.laboratory import Laboratory
from oracles.judge.compare import Expected, wide, wrong_elements
from oracles.judge.discrepancy import SILENT, Discrepancy
from oracles.judge.outcome import Value
from oracles.judge.verdict import judge

ELEMENTWISE = ("value", "special")
"""Symptoms of single elements."""


@dataclass(frozen=True)
class Running:
    """A node as it runs: its operator, the types of its result, of its operands and of those that are parameters."""

    operator: str
    result: TensorType
    operands: tuple[TensorType, ...]
    parameters: tuple[TensorType, ...]


@dataclass(frozen=True)
class Explained:
    """left: what no issue explains; used: the issues that explain the rest; expected: of the node, where what they
    excuse is undetermined (as long as they excuse single elements)."""

    left: Discrepancy | None
    used: tuple[KnownIssue, ...]
    expected: Expected


@dataclass(frozen=True)
class Excuses:
    """What is known, in the order in which it is asked, where this laboratory asks."""

    lab: Laboratory
    issues: Sequence[KnownIssue]
    _named: dict[str, tuple[KnownIssue, ...]] = field(default_factory=dict, init=False, compare=False, repr=False)

    def of(self, target: Target) -> tuple[KnownIssue, ...]:
        """The issues that name the target, or one that it inherits from, for this question; found once, since few of
        all do."""
        if target.name not in self._named:
            names = _versions(target)
            self._named[target.name] = tuple(
                issue
                for issue in self.issues
                if issue.threads <= self.lab.pool.limits.threads
                and any(issue.oracle in self._oracles(name) and issue.names(name) for name in names)
            )
        return self._named[target.name]

    def nearby(self, target: Target, graph: Graph) -> bool:
        """Is anything known of a node of the graph?"""
        running = self._as_run(target, graph).values()
        return any(self._covers(issue, node) for issue in self.of(target) for node in running)

    def silent(self, target: Target, symptoms: Sequence[str] = SILENT) -> Excuses:
        """What says that a node returns nothing on the target, by one of these symptoms. An issue of all operators,
        which a case has to have more for than its operator (a shape, a neighbour), does not say so of any, unless it is
        about what is empty."""
        return replace(
            self,
            issues=tuple(
                issue
                for issue in self.of(target)
                if not set(symptoms).isdisjoint(issue.symptoms) and (issue.empty or "*" not in issue.operators)
            ),
        )

    def asked(
        self, target: Target, graph: Graph, node: Node, discrepancy: Discrepancy, together: bool
    ) -> list[KnownIssue]:
        """The issues that may explain a discrepancy by this node, in order. together: it is not wrong alone; those that
        show beside other nodes only, which are asked for nothing else, come first."""
        running = self._as_run(target, graph)[node.name]
        chosen = [
            issue
            for issue in self.of(target)
            if (together or issue.together in (False, "also"))
            and self._covers(issue, running)
            and self.concerns(issue, target, discrepancy)
        ]
        return sorted(chosen, key=lambda issue: not (together and issue.together))

    def together(
        self, target: Target, graph: Graph, node: Node, discrepancy: Discrepancy, values: Mapping[str, np.ndarray]
    ) -> KnownIssue | None:
        """The first issue that explains the discrepancy of a graph by a node that is not wrong alone. values: of all
        leaves and nodes, according to the reference; what a node got is not known, and nothing is asked of it."""
        operands = [values[name] for name in node.operands]
        known = values_of(operands, node.attributes, node.type.dtype, values[node.name])
        known |= self.lab.question.facts(graph, node)
        known |= Neighbours(graph, node).facts
        for issue in self.asked(target, graph, node, discrepancy, together=True):
            predicate = issue.predicate(node.op)
            if predicate is None or "got" in predicate.names or predicate.holds(known, ()).any():
                return issue
        return None

    def explain(self, target: Target, culprit: Culprit) -> Explained:
        """What of a node that is wrong by itself issues explain. One of a wrong or special value excuses those elements
        that show its symptom where it says that they do; then the result is judged again without them."""
        graph, node = culprit.case.graph, culprit.node
        discrepancy, expected = culprit.discrepancy, culprit.expected
        used: list[KnownIssue] = []
        while discrepancy:
            for issue in self.asked(target, graph, node, discrepancy, together=False):
                shown = self._without(issue, culprit, expected, discrepancy)
                if shown is not expected:
                    break
            else:
                return Explained(discrepancy, tuple(used), expected)
            used.append(issue)
            if shown is None:
                return Explained(None, tuple(used), expected)
            expected = shown
            discrepancy = judge(expected, culprit.outcome).discrepancy
        return Explained(None, tuple(used), expected)

    def _without(
        self, issue: KnownIssue, culprit: Culprit, expected: Expected, discrepancy: Discrepancy
    ) -> Expected | None:
        """What is expected beside what an issue explains of it: the same where that is nothing, None where it is all
        (where nothing came, say, or what is judged is not a result of the node)."""
        predicate = issue.predicate(culprit.node.op)
        place = discrepancy.output
        elements = discrepancy.symptom in ELEMENTWISE and place is not None and not self.lab.question.observe
        if predicate is None and not elements:
            return None
        if not elements:
            values = expected.values
            reference = values[0].value if len(values) == 1 and expected.types[0] == culprit.node.type else None
            known = _values(culprit.case, culprit.node, culprit.node.type.dtype, reference)
            return None if predicate is None or predicate.holds(known, ()).any() else expected
        assert isinstance(culprit.outcome, Value)
        assert place is not None
        output, reference = culprit.outcome.outputs[place], expected.values[place]
        wrong = np.zeros(reference.value.shape, bool)
        for symptom, mask in wrong_elements(output, reference):
            wrong |= mask & (symptom == discrepancy.symptom)
        if predicate is not None:
            wrong &= self._holding(predicate, culprit, place, reference, wide(output, reference))
        if not wrong.any():
            return expected
        excused = replace(reference, error=np.where(wrong, np.inf, reference.error))
        values = (*expected.values[:place], excused, *expected.values[place + 1 :])
        return replace(expected, values=values)

    def _holding(
        self, predicate: Predicate, culprit: Culprit, place: int, reference: Bounded, got: np.ndarray
    ) -> np.ndarray:
        """Where a predicate holds in a result; where rows are results of cases of their own, each of these is asked."""
        parts = self.lab.question.parts(culprit.case, place)
        if len(parts) == 1:
            known = _values(parts[0], culprit.node, reference.dtype, reference.value, got)
            return predicate.holds(known, reference.value.shape)
        rows = zip(parts, reference.value, got, strict=True)
        return np.stack(
            [
                predicate.holds(_values(case, culprit.node, reference.dtype, value, came), value.shape)
                for case, value, came in rows
            ]
        )

    def concerns(self, issue: KnownIssue, target: Target, discrepancy: Discrepancy) -> bool:
        """Is a discrepancy of the target one of the entry's, its operators apart? What is known of a route that it has
        a part in common with is known of a conversion."""
        return issue.threads <= self.lab.pool.limits.threads and any(
            issue.concerns(name, version, self._oracles(name), discrepancy.symptom, discrepancy.message)
            for name, version in _versions(target).items()
        )

    def _oracles(self, target: str) -> tuple[str, ...]:
        """Whose entries are asked about what a target of this name does."""
        oracles = self.lab.question.oracles
        return (*oracles, CONVERSION.name) if "/" in target else oracles

    def _as_run(self, target: Target, graph: Graph) -> dict[str, Running]:
        """Each node by name, with the dtypes that run."""
        graph = self.lab.question.executed(graph)
        constants = {leaf.name for leaf in graph.leaves if leaf.role == "parameter"}
        found = {}
        for node in graph.nodes:
            given = [name for name in node.operands if name in constants]
            types = [node.type, *(graph.types[name] for name in (*node.operands, *given))]
            if target.arithmetic and target.arithmetic.computes_low(graph, node.name):
                types = [replace(t, dtype="float16") if t.dtype == "float32" else t for t in types]
            last = 1 + len(node.operands)
            found[node.name] = Running(node.op, types[0], tuple(types[1:last]), tuple(types[last:]))
        return found

    def _covers(self, issue: KnownIssue, node: Running) -> bool:
        """Is such a node one of the entry's? A question with runs at other sizes runs it empty, too."""
        issue = replace(issue, empty=False) if self.lab.question.resizes else issue
        return issue.covers(node.operator, node.result, node.operands, node.parameters)


def _values(
    case: Case, node: Node, dtype: str, expected: np.ndarray | None = None, got: np.ndarray | None = None
) -> dict[str, Any]:
    """What a predicate may name of a node of leaves."""
    return values_of([case.arrays[name] for name in node.operands], node.attributes, dtype, expected, got)


def may_show(symptom: str, alone: str) -> bool:
    """May a graph show this symptom because of a node that shows that one alone? A wrong result makes other wrong
    results, but no crash, hang or rejection, unless it is of another shape or dtype, which others may refuse."""
    return symptom == alone or not {symptom, alone} & set(SILENT) or (symptom, alone) == ("rejected", "type")


def _versions(target: Target) -> dict[str, str]:
    """The version of the target and of those whose known issues hold for it, too, by name."""
    others = (TARGETS.get(name) or QUANTISERS.get(name) or target_of(name) for name in target.inherits)
    return {one.whole: probe.probe(one).version or "0" for one in (target, *others)}
