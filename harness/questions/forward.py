"""What a graph computes: the values of its outputs."""

from __future__ import annotations

from harness.questions.question import Question
from oracles.arithmetic import fast_math
from oracles.questions import forward

FORWARD = Question(forward.NAME, forward.expect, traceable=True, large=True, expect_under=fast_math.expect)

QUESTIONS = (FORWARD,)
