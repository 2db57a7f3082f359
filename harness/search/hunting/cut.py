"""What a target refuses of a case is cut out, so that it runs the rest."""

from __future__ import annotations

from generators.graph import Node
from generators.graphs import Case
from harness.backends import Target
from harness.questions.question import Question
from harness.search.blame import culprit


def runnable(question: Question, target: Target, case: Case) -> tuple[Case, tuple[Node, ...]] | None:
    """The case without the nodes that the target refuses one by one, and these: inputs that hold what the reference
    says take the places of their results, and what they alone took becomes an output. None where nothing is left, or
    where the rest is refused as a whole."""
    if question.why_not(target, case.graph) is None:
        return case, ()
    if question.observe:  # what is quantised depends on the graph as a whole
        return None
    refused = tuple(node for node in case.graph.nodes if question.why_not(target, culprit.alone(case.graph, node)))
    if not refused or len(refused) == len(case.graph.nodes):
        return None
    rest = _without(case, refused)
    return (rest, refused) if question.why_not(target, rest.graph) is None else None


def _without(case: Case, refused: tuple[Node, ...]) -> Case:
    graph, gone = case.graph, {node.name for node in refused}
    kept = tuple(node for node in graph.nodes if node.name not in gone)
    used = {name for node in kept for name in node.operands}
    outputs = dict.fromkeys(name for name in graph.outputs if name not in gone)
    outputs |= dict.fromkeys(node.name for node in kept if node.name not in used)
    return culprit.replaced(case, refused, tuple(outputs))
