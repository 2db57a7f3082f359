"""Does a target push tangents forward? The programs stand in `harness/backends/programs/jvp.py`."""

from __future__ import annotations

from generators.graphs import SMOOTH
from harness.backends.programs import jvp as jvp_programs
from harness.questions.derivatives.gradient import GRADIENT, differentiable, joins
from harness.questions.forward import FORWARD
from harness.questions.question import Question
from oracles.derivatives import jvp

JVP = Question(
    jvp.NAME,
    jvp.expect,
    program=jvp_programs.program,
    unsupported=jvp_programs.unsupported,
    arrays=jvp.program_inputs,
    refusal=jvp_programs.refusal,
    inherits=(FORWARD.name, GRADIENT.name),
    style=SMOOTH,
    concerns=differentiable,
    joins=joins,
    fills=4,
)

QUESTIONS = (JVP,)
