"""What is known of programs that write: by the nodes that run, alone on what they are given then, and by statements."""

from __future__ import annotations

from dataclasses import replace

from generators.graph import Node
from generators.graphs import Case, pruned
from harness.backends import Target
from harness.findings.known.issues import KnownIssue
from harness.questions import QUESTIONS
from harness.questions.forward import FORWARD
from harness.search.blame import culprit
from harness.search.blame.excuses import Excuses, may_show
from oracles.judge.discrepancy import Discrepancy


def known_alone(excuses: Excuses, target: Target, apart: Case, discrepancy: Discrepancy) -> set[str]:
    """Is a node wrong by itself, in a way that is known and may show so, and none in another way? The ids of what says
    so. apart: the nodes that run, on what they are given then. Those of which nothing is known are not run."""
    plain = replace(excuses, lab=replace(excuses.lab, question=QUESTIONS[FORWARD.name]))
    near = [node for node in apart.graph.nodes if plain.nearby(target, culprit.alone(apart.graph, node))]
    if not near:
        return set()
    some = pruned(replace(apart.graph, nodes=tuple(near), outputs=tuple(n.name for n in near)), apart.arrays)
    found = [(one, plain.explain(target, one)) for one in culprit.blame(plain.lab, target, some)]
    if any(explained.left for _, explained in found):
        return set()
    shown = [explained for one, explained in found if may_show(discrepancy.symptom, one.discrepancy.symptom)]
    return {issue.id for explained in shown for issue in explained.used}


def known_statements(excuses: Excuses, target: Target, case: Case, discrepancy: Discrepancy) -> dict[Node, KnownIssue]:
    """The statements that an entry about programs that write covers. One of the question `forward` is about nodes that
    are wrong alone."""
    asked = replace(excuses, issues=[issue for issue in excuses.issues if issue.oracle != FORWARD.name])
    values = culprit.values_of(case)
    known = {node: asked.together(target, case.graph, node, discrepancy, values) for node in case.graph.nodes}
    return {node: issue for node, issue in known.items() if issue}
