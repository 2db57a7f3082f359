"""Does a target differentiate twice? The programs stand in `harness/backends/programs/hessian.py`."""

from __future__ import annotations

from generators.graphs import SMOOTH
from harness.backends.programs import hessian as hessian_programs
from harness.questions.derivatives.gradient import GRADIENT, joins
from harness.questions.derivatives.jvp import JVP
from harness.questions.forward import FORWARD
from harness.questions.question import Question
from oracles.derivatives import hessian
from oracles.derivatives.rounding import second_derivatives


def concerns(operator: str) -> bool:
    """Is it differentiated twice?"""
    return operator in second_derivatives.OPERATORS


HESSIAN = Question(
    hessian.NAME,
    hessian.expect,
    program=hessian_programs.program_by(hessian.NAME),
    unsupported=hessian_programs.unsupported_by(hessian.NAME),
    arrays=hessian.program_inputs,
    prepare=hessian.prepare,
    refusal=hessian_programs.refusal,
    inherits=(FORWARD.name, GRADIENT.name, JVP.name),
    style=SMOOTH,
    concerns=concerns,
    joins=joins,
    fills=2,
)

QUESTIONS = (HESSIAN,)
