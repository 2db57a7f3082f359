"""Programs that write. `oracles/questions/memory.py` draws them, `harness/backends/programs/memory.py` prints them."""

from __future__ import annotations

from generators.graph import Graph
from harness.backends import Target
from harness.backends.programs.memory import in_place
from harness.backends.target.text import swapped
from harness.questions.forward import FORWARD
from harness.questions.question import Question
from oracles.questions import cells, memory, state


def program(target: Target, graph: Graph) -> str:
    """The calls, and what is looked at after each."""
    text = in_place(target).text(graph, target.question_loads[memory.NAME], {}, memory.types(graph))
    return swapped(text, ("\nOUTPUTS = ", f"\nPOKED = {memory.poked(graph)!r}  # an output\nOUTPUTS = "))


def unsupported(target: Target, graph: Graph) -> str | None:
    """Why a target cannot be asked."""
    if memory.NAME not in target.question_loads:
        return "no program that writes is written for this target"
    illegal = cells.layout(graph).illegal
    if illegal:
        return illegal
    return target.unsupported(graph)


MEMORY = Question(
    memory.NAME,
    memory.expect,
    program,
    unsupported,
    prepare=memory.prepare,
    inherits=(FORWARD.name, state.NAME),
    apart=lambda case: cells.apart(case, memory.CALLS, views=True),
    taken_out=cells.without,
    facts=memory.facts,
    named=memory.FACTS,
    joins=lambda graph: None,
    fills=1,
)

QUESTIONS = (MEMORY,)
