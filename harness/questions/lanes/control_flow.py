"""The model in the body of a loop over lanes of its inputs, and in the branches of a conditional, one for each lane.
The programs stand in `harness/backends/programs/control_flow.py`."""

from __future__ import annotations

from dataclasses import replace

from harness.backends.target.documented_refusals import Patterns, refusal_of
from harness.questions.lanes.vmap import VMAP, program_by, unsupported_by

_REFUSALS: Patterns = (
    (
        "tensorflow",
        "must be a compile-time constant",
        "XLA wants this operand as a constant, which what a body or a branch takes from outside is not",
    ),
)
"""What a framework documents that it cannot do within."""


LOOP = replace(
    VMAP,
    name="loop",
    program=program_by("loop"),
    unsupported=unsupported_by("loop", "loop over tensors"),
    refusal=refusal_of(_REFUSALS),
)
BRANCH = replace(
    LOOP,
    name="branch",
    program=program_by("branch"),
    unsupported=unsupported_by("branch", "conditional on tensors"),
    inherits=LOOP.oracles,
)

QUESTIONS = (LOOP, BRANCH)
