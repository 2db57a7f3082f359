"""The model in the body of a loop over lanes of its inputs, and in the branches of a conditional, one for each lane.
The programs stand in `harness/backends/programs/control_flow.py`."""

from __future__ import annotations

from generators.graph import Graph
from harness.backends import Target
from harness.backends.target.documented_refusals import Patterns, refusal_of
from harness.questions.forward import FORWARD
from harness.questions.question import Question
from oracles.questions import vmap

_REFUSALS: Patterns = (
    (
        "tensorflow",
        "must be a compile-time constant",
        "XLA wants this operand as a constant, which what a body or a branch takes from outside is not",
    ),
)
"""What a framework documents that it cannot do within."""


def _question(name: str, what: str, inherits: tuple[str, ...]) -> Question:
    """what: that a target may lack."""

    def program(target: Target, graph: Graph) -> str:
        inputs = {leaf.name: vmap.laned(leaf.type) for leaf in graph.inputs}
        return target.text(graph, target.question_loads[name], inputs, vmap.outputs(graph))

    def unsupported(target: Target, graph: Graph) -> str | None:
        if name not in target.question_loads:
            return f"this target has no {what}"
        if not graph.inputs:
            return "no input that has lanes"
        return target.unsupported(graph)

    return Question(
        name,
        vmap.expect,
        program,
        unsupported,
        vmap.arrays,
        prepare=vmap.prepare,
        refusal=refusal_of(_REFUSALS),
        inherits=inherits,
        parts=lambda case, place: vmap.lanes(case),
    )


LOOP = _question("loop", "loop over tensors", (FORWARD.name,))
BRANCH = _question("branch", "conditional on tensors", (FORWARD.name, LOOP.name))

QUESTIONS = (LOOP, BRANCH)
