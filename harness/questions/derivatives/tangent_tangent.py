"""Does a target push tangents through its tangents? The same numbers as those of `HESSIAN` by forward mode alone, of
few elements. The programs stand in `harness/backends/programs/tangent_tangent.py`."""

from __future__ import annotations

from dataclasses import replace

from harness.backends.programs import hessian as hessian_programs
from harness.backends.programs.tangent_tangent import unsupported
from harness.questions.derivatives.tangent_gradient import TANGENT_GRADIENT
from harness.questions.question import Question
from oracles.derivatives import tangent_tangent

TANGENT_TANGENT = replace(
    TANGENT_GRADIENT,
    name=tangent_tangent.NAME,
    expect=tangent_tangent.expect,
    program=hessian_programs.program_by(tangent_tangent.NAME),
    unsupported=unsupported,
    inherits=TANGENT_GRADIENT.oracles,
)

QUESTIONS: tuple[Question, ...] = (TANGENT_TANGENT,)
