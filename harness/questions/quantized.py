"""A graph with its values quantised and dequantised again, as converters write it."""

from __future__ import annotations

from harness.questions.forward import FORWARD
from harness.questions.question import Question
from oracles.arithmetic import modes
from oracles.quantised import fake_quantize as quantization
from oracles.questions import forward

QUANTIZED = Question(
    quantization.NAME,
    forward.expect,
    prepare=quantization.prepare,
    inherits=(FORWARD.name,),
    traces=True,
    style=quantization.STYLE,
    concerns=quantization.concerns,
    expect_under=modes.expect,
)

QUESTIONS = (QUANTIZED,)
