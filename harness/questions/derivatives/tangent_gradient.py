"""Does a target differentiate its tangents? The same numbers as those of `HESSIAN` by the rules of forward mode, which
are differentiated for nothing else. The programs stand in `harness/backends/programs/tangent_gradient.py`."""

from __future__ import annotations

from dataclasses import replace

from harness.backends.programs import hessian as hessian_programs
from harness.questions.derivatives.hessian import HESSIAN
from harness.questions.question import Question

NAME = "tangent_gradient"
TANGENT_GRADIENT = replace(
    HESSIAN,
    name=NAME,
    program=hessian_programs.program_by(NAME),
    unsupported=hessian_programs.unsupported_by(NAME),
    inherits=HESSIAN.oracles,
)

QUESTIONS: tuple[Question, ...] = (TANGENT_GRADIENT,)
