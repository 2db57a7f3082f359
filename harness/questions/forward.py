"""What a graph computes: the values of its outputs."""

from __future__ import annotations

from harness.questions.question import Question
from oracles.arithmetic import modes
from oracles.questions import forward

FORWARD = Question(forward.NAME, forward.expect, traceable=True, expect_under=modes.expect)

QUESTIONS = (FORWARD,)
