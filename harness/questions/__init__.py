"""All questions: one file each, with a tuple `QUESTIONS`. To add one, write its file."""

from __future__ import annotations

from generators.discovery import collected
from harness.questions.question import Question

_FIRST = (
    *("forward", "dynamic", "metamorphic", "memory.layouts", "memory.repeat"),
    *("derivatives.gradient", "derivatives.jvp", "derivatives.hessian", "lanes.vmap", "dtypes.autocast"),
    *("dtypes.policy", "quantized", "conversion", "quantisers", "scalars"),
)
QUESTIONS: dict[str, Question] = collected(__name__, "QUESTIONS", _FIRST)
"""By the name that findings and known issues carry, and that `--question` takes. What is not named in _FIRST comes
after it, in alphabetical order of the files."""
