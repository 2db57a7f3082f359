"""Does a target differentiate what it computes? The programs stand in `harness/backends/gradients.py`."""

from __future__ import annotations

from functools import cache

from generators.graphs import SMOOTH, SeededDraw, build_case
from harness.backends import gradients
from harness.backends.documented import Patterns, refusal_of
from harness.question import FORWARD, Question
from oracles import gradient

_REFUSALS: Patterns = (
    ("torch", "is not differentiable with respect to argument", "what it says of weights and targets"),
    ("tensorflow", "Input is not invertible", "its derivative of determinants is by way of tf.linalg.inv"),
    ("torch", "The derivative of linalg.qr depends on Q", "what it says of QR without Q"),
)


@cache
def differentiable(operator: str) -> bool:
    """Can a floating result depend on a floating operand? Looked at in a few cases drawn of the operator alone."""
    drawn = (build_case(SeededDraw(f"{operator}/{i}"), 1, (operator,), SMOOTH) for i in range(12))
    return any(gradient.sought(case.graph) for case in drawn if case.graph.operators == (operator,))


GRADIENT = Question(
    gradient.NAME,
    gradient.expect,
    program=gradients.program,
    unsupported=gradients.unsupported,
    arrays=gradient.given,
    refusal=refusal_of(_REFUSALS),
    inherits=(FORWARD.name,),
    style=SMOOTH,
    concerns=differentiable,
)
