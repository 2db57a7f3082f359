"""Does a target differentiate what it computes? The programs stand in `harness/backends/programs/gradient.py`."""

from __future__ import annotations

from functools import cache

from generators.graph import Graph
from generators.graphs import SMOOTH, SeededDraw, build_case
from harness.backends.programs import gradient as gradient_programs
from harness.backends.programs.jvp import NONE_AT_ALL
from harness.backends.target.documented_refusals import refusal_of
from harness.questions.forward import FORWARD
from harness.questions.question import Question
from oracles.derivatives import gradient


@cache
def differentiable(operator: str) -> bool:
    """Can a floating result depend on a floating operand? Looked at in a few cases drawn of the operator alone."""
    drawn = (build_case(SeededDraw(f"{operator}/{i}"), 1, (operator,), SMOOTH) for i in range(12))
    return any(gradient.differentiable_leaves(case.graph) for case in drawn if case.graph.operators == (operator,))


def joins(graph: Graph) -> str:
    """What is one weighted sum: the dtypes of what is differentiated."""
    return " ".join(sorted({graph.types[name].dtype for name in gradient.weights(graph)}))


GRADIENT = Question(
    gradient.NAME,
    gradient.expect,
    program=gradient_programs.program,
    unsupported=gradient_programs.unsupported,
    arrays=gradient.program_inputs,
    refusal=refusal_of(NONE_AT_ALL),
    inherits=(FORWARD.name,),
    style=SMOOTH,
    concerns=differentiable,
    joins=joins,
    fills=4,
)

QUESTIONS = (GRADIENT,)
