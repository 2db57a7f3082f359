"""All questions: one file each. To add one, write its file and name it here."""

from __future__ import annotations

from harness.questions.autocast import AUTOCAST
from harness.questions.conversion import CONVERSION
from harness.questions.dynamic import DYNAMIC
from harness.questions.gradient import GRADIENT
from harness.questions.hessian import HESSIAN
from harness.questions.jvp import JVP
from harness.questions.layouts import LAYOUTS
from harness.questions.metamorphic import METAMORPHIC
from harness.questions.policy import POLICY
from harness.questions.quantisers import QUANTISERS
from harness.questions.quantized import QUANTIZED
from harness.questions.question import FORWARD, Question
from harness.questions.repeat import REPEAT
from harness.questions.vmap import VMAP

QUESTIONS: dict[str, Question] = {
    question.name: question
    for question in (
        FORWARD,
        DYNAMIC,
        METAMORPHIC,
        LAYOUTS,
        REPEAT,
        GRADIENT,
        JVP,
        HESSIAN,
        VMAP,
        AUTOCAST,
        POLICY,
        QUANTIZED,
        CONVERSION,
        QUANTISERS,
    )
}
"""By the name that findings and known issues carry, and that `--question` takes."""
