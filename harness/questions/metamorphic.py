"""A graph beside an edit of it that has to agree with it."""

from __future__ import annotations

from harness.questions.forward import FORWARD
from harness.questions.question import Question
from oracles.arithmetic import fast_math
from oracles.questions import forward, metamorphic

METAMORPHIC = Question(
    metamorphic.NAME,
    forward.expect,
    prepare=metamorphic.prepare,
    inherits=(FORWARD.name,),
    traceable=True,
    expect_under=fast_math.expect,
)

QUESTIONS = (METAMORPHIC,)
