"""Which node is to blame: each one judged on its own, from the operands that the subject itself computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from generators.bounds.bounded import Bounded, leaf
from generators.graph import Graph, Node
from generators.graphs import Case
from harness.backends import Target
from harness.search.laboratory import Laboratory
from oracles.arithmetic import fast_math
from oracles.judge import reference
from oracles.judge.compare import Expected, compare
from oracles.judge.discrepancy import Discrepancy
from oracles.judge.outcome import Outcome, Value
from oracles.questions import forward


@dataclass(frozen=True)
class Culprit:
    """A node that is wrong by itself: a one-node case that shows it, and how; what was expected of it and what came."""

    node: Node
    case: Case
    discrepancy: Discrepancy
    expected: Expected
    outcome: Outcome


def single(case: Case, node: Node, values: Mapping[str, np.ndarray]) -> Case:
    """The case of one node alone, its operands turned into leaves that hold `values`."""
    graph = alone(case.graph, node)
    return Case(graph, {leaf.name: values[leaf.name] for leaf in graph.leaves})


def alone(graph: Graph, node: Node) -> Graph:
    """The graph of one node, its operands turned into leaves."""
    known = {item.name: item for item in graph.leaves}
    leaves = tuple(known.get(name) or graph.leaf_for(name) for name in dict.fromkeys(node.operands))
    return Graph(leaves, (node,), (node.name,))


def diverging(lab: Laboratory, target: Target, case: Case) -> tuple[Node, ...]:
    """Nodes whose result does not follow from the operands that the target itself computed: the graph is run
    once more with every node as an output. Empty where that run fails or where nothing differs any more."""
    actual = _computed(lab, target, case)
    return _wrong(target, case.graph, actual) if actual else ()


def _wrong(target: Target, graph: Graph, actual: Mapping[str, np.ndarray]) -> tuple[Node, ...]:
    """Nodes whose value in `actual` does not follow from those of their operands."""
    odd = [n for n in graph.nodes if actual[n.name].shape != n.type.shape or str(actual[n.name].dtype) != n.type.dtype]
    if odd:
        return (odd[0],)
    exact: dict[str, Bounded] = {name: leaf(array) for name, array in actual.items()}
    wrong = []
    for index, node in enumerate(graph.nodes):
        rules = target.arithmetic
        right = fast_math.apply(graph, index, exact, rules) if rules else reference.apply(graph, index, exact)
        if compare(actual[node.name], node.type, right):
            wrong.append(node)
    return tuple(wrong)


def _computed(lab: Laboratory, target: Target, case: Case) -> dict[str, np.ndarray] | None:
    """What every leaf and node holds, according to the target. None where it does not say, or is not asked."""
    if not lab.question.traceable:
        return None
    nodes = case.graph.nodes
    everything = Graph(case.graph.leaves, nodes, tuple(node.name for node in nodes))
    (outcome,) = lab.outcomes([(target, Case(everything, case.arrays))], confirm=False)
    if not isinstance(outcome, Value) or len(outcome.outputs) != len(nodes):
        return None
    return {**case.arrays, **{n.name: o for n, o in zip(nodes, outcome.outputs, strict=True)}}


def blame(lab: Laboratory, target: Target, case: Case) -> list[Culprit]:
    """Nodes that are wrong alone, on the operands that they have in the case as the reference computes them; if
    there are none, on those that the target computes, which may differ where the reference leaves it open.
    Empty where it takes several nodes together, as with a wrong fusion."""
    guilty = _guilty(lab, target, case, case.graph.nodes, values_of(case))
    if guilty or len(case.graph.nodes) == 1:
        return guilty
    actual = _computed(lab, target, case)
    return _guilty(lab, target, case, _wrong(target, case.graph, actual), actual) if actual else []


def _guilty(
    lab: Laboratory, target: Target, case: Case, nodes: Sequence[Node], values: Mapping[str, np.ndarray]
) -> list[Culprit]:
    """Those of the nodes that are wrong alone on these values. A crash counts where a fresh process repeats it: the
    node before may have damaged memory."""
    alone = [single(case, node, values) for node in nodes]
    outcomes = lab.outcomes([(target, one) for one in alone])
    guilty = []
    for node, one, outcome in zip(nodes, alone, outcomes, strict=True):
        expected = lab.question.expected(target, one)
        discrepancy = lab.question.judge(target, expected, outcome).discrepancy
        if discrepancy:
            guilty.append(Culprit(node, one, discrepancy, expected, outcome))
    return guilty


def without(case: Case, nodes: Sequence[Node]) -> Case | None:
    """The case with leaves in place of these nodes, which hold what the reference says that they return. None
    where no output is left."""
    graph, gone = case.graph, {node.name for node in nodes}
    outputs = tuple(name for name in graph.outputs if name not in gone)
    return replaced(case, nodes, outputs) if outputs else None


def replaced(case: Case, nodes: Sequence[Node], outputs: Sequence[str]) -> Case:
    """The case with leaves in place of these nodes, which hold what the reference says that they return, and with these
    outputs."""
    graph, gone = case.graph, {node.name for node in nodes}
    leaves = (*graph.leaves, *(graph.leaf_for(node.name) for node in nodes))
    rest = tuple(node for node in graph.nodes if node.name not in gone)
    cut = Graph(leaves, rest, tuple(outputs)).pruned()
    values = values_of(case)
    return Case(cut, {item.name: values[item.name] for item in cut.leaves})


def values_of(case: Case) -> dict[str, np.ndarray]:
    """What every leaf and node holds, according to the reference."""
    expected = forward.plan(case)
    with np.errstate(all="ignore"):  # values that undetermined elements happen to have may not fit
        nodes = {n.name: expected[n.name].value.astype(n.type.dtype) for n in case.graph.nodes}
    return {**case.arrays, **nodes}
