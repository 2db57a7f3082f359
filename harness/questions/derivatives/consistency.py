"""The gradient of one elementwise operator, and that of the same elements at other places of a longer tensor, in one
process."""

from __future__ import annotations

from generators.graph import Graph
from harness.backends import Target
from harness.backends.programs import gradient as gradient_programs
from harness.questions.consistency import Others, beside, refusal
from harness.questions.derivatives.gradient import GRADIENT, differentiable, joins
from harness.questions.question import Question
from oracles.derivatives import consistency, gradient
from oracles.questions.consistency import prepare
from oracles.questions.consistency import unsupported as unsupported_graph


def program(target: Target, graph: Graph) -> str:
    """The gradients, and those of the longer graph as text."""
    text, others = gradient_programs.program(target, graph), Others()
    longest, lengths = consistency.longer(graph), {}
    if longest and not GRADIENT.why_not(target, longest):
        nodes = {node.name: node.type for node in graph.nodes}
        shapes = {}
        for node in longest.nodes:
            names = (*node.operands, gradient.weight_name(node.name))
            shapes |= dict.fromkeys(names, (nodes[node.name].shape, longest.types[node.name].size))
        others["lanes"] = gradient_programs.program(target, longest), shapes
        order = [leaf.name for leaf in gradient.differentiable_leaves(graph)]
        found = gradient.differentiable_leaves(longest)
        lengths = {order.index(leaf.name): leaf.type.size for leaf in found}
    shapes = [leaf.type.shape for leaf in gradient.differentiable_leaves(graph)]
    return beside(text, others, lengths, shapes, consistency.CHECKS, zeros=True)


def unsupported(target: Target, graph: Graph) -> str | None:
    """Why a target cannot be asked."""
    reason = unsupported_graph(graph) or GRADIENT.why_not(target, graph)
    if reason:
        return reason
    return None if consistency.compared(graph) else "no gradient is of one place of its operands alone"


def concerns(operator: str) -> bool:
    """Is it worth asking?"""
    return consistency.concerns(operator) and differentiable(operator)


GRADIENT_CONSISTENCY = Question(
    consistency.NAME,
    consistency.expect,
    program,
    unsupported,
    arrays=gradient.program_inputs,
    prepare=prepare,
    refusal=lambda target, outcome: refusal(target, outcome) or GRADIENT.refusal(target, outcome),
    inherits=(GRADIENT.name, *GRADIENT.inherits, "consistency"),
    concerns=concerns,
    joins=joins,
    worth=consistency.worth,
    fills=4,
)

QUESTIONS = (GRADIENT_CONSISTENCY,)
