"""The model mapped over a new axis of its inputs. The programs stand in `harness/backends/programs/vmap.py`."""

from __future__ import annotations

from collections.abc import Callable

from generators.graph import Graph
from harness.backends import Target
from harness.backends.target.documented_refusals import Patterns, refusal_of
from harness.questions.forward import FORWARD
from harness.questions.question import Question
from oracles.questions import vmap

_REFUSALS: Patterns = (
    (
        "torch",
        "not implemented for 'UInt(16|32|64)'",
        "its batching rule uses a kernel without this dtype",
    ),
    ("torch", "Batching rule not implemented for", "no batching rule"),
    ("torch", "vmap: .*(data-dependent|dynamic shape|is not possible)", "what it says that vmap cannot do"),
    ("tensorflow", "No pfor vectorization defined|No converter defined for", "no converter (RegisterPFor)"),
    ("tensorflow", r"Broadcast between \S+ and \S+ is not supported yet", "no broadcast of so many dimensions"),
    (
        "tensorflow",
        r"(?s)Detected unsupported operations.*No registered 'TensorListReserve' OpKernel for XLA",
        "XLA has no lists of lists, which a loop over tensors becomes when it is mapped",
    ),
    ("jax", "Batching rule for .* not implemented", "no batching rule"),
)
"""What a framework says that it cannot map."""


def program_by(name: str) -> Callable[[Target, Graph], str]:
    """The program of all lanes, by a target's programs of that name."""

    def program(target: Target, graph: Graph) -> str:
        inputs = {leaf.name: vmap.laned(leaf.type) for leaf in graph.inputs}
        return target.text(graph, target.question_loads[name], inputs, vmap.outputs(graph))

    return program


def unsupported_by(name: str, what: str) -> Callable[[Target, Graph], str | None]:
    """Why a target cannot be asked by its programs of that name. what: that it lacks where it has none."""

    def unsupported(target: Target, graph: Graph) -> str | None:
        if name not in target.question_loads:
            return f"this target has no {what}"
        if not graph.inputs:
            return "no input to map over"
        return target.unsupported(graph)

    return unsupported


refusal = refusal_of(_REFUSALS)
"""The documented reason why a framework refused to map."""


VMAP = Question(
    vmap.NAME,
    vmap.expect,
    program_by(vmap.NAME),
    unsupported_by(vmap.NAME, "vectorised map"),
    vmap.arrays,
    prepare=vmap.prepare,
    refusal=refusal,
    inherits=(FORWARD.name,),
    parts=lambda case, place: vmap.lanes(case),
)

QUESTIONS = (VMAP,)
