"""The model mapped over a new axis of its inputs. The programs stand in `harness/backends/programs/vmap.py`."""

from __future__ import annotations

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
    (
        "tensorflow",
        r"(?s)Detected unsupported operations.*No registered 'TensorListReserve' OpKernel for XLA",
        "XLA has no lists of lists, which a loop over tensors becomes when it is mapped",
    ),
    ("jax", "Batching rule for .* not implemented", "no batching rule"),
)
"""What a framework says that it cannot map."""


def program(target: Target, graph: Graph) -> str:
    """The target's program of the mapped model."""
    inputs = {leaf.name: vmap.laned(leaf.type) for leaf in graph.inputs}
    return target.text(graph, target.question_loads["vmap"], inputs, vmap.outputs(graph))


def unsupported(target: Target, graph: Graph) -> str | None:
    """Why a target cannot be asked."""
    if "vmap" not in target.question_loads:
        return "this target has no vectorised map"
    if not graph.inputs:
        return "no input to map over"
    return target.unsupported(graph)


refusal = refusal_of(_REFUSALS)
"""The documented reason why a framework refused to map."""


VMAP = Question(
    vmap.NAME,
    vmap.expect,
    program,
    unsupported,
    vmap.arrays,
    prepare=vmap.prepare,
    refusal=refusal,
    inherits=(FORWARD.name,),
    parts=lambda case, place: vmap.lanes(case),
)

QUESTIONS = (VMAP,)
