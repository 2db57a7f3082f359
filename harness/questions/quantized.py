"""A graph with its values quantised and dequantised again, as converters write it."""

from __future__ import annotations

from harness.questions.forward import FORWARD
from harness.questions.question import Question
from oracles.arithmetic import fast_math
from oracles.quantised import fake_quantize
from oracles.questions import forward

QUANTIZED = Question(
    fake_quantize.NAME,
    forward.expect,
    prepare=fake_quantize.prepare,
    inherits=(FORWARD.name,),
    traceable=True,
    style=fake_quantize.STYLE,
    concerns=fake_quantize.concerns,
    expect_under=fast_math.expect,
)

QUESTIONS = (QUANTIZED,)
