"""A state that is updated step by step. `oracles/questions/state.py` draws it, `harness/backends/programs/state.py`
prints it."""

from __future__ import annotations

from generators.graph import Graph
from harness.backends import Target
from harness.backends.programs.memory import in_place
from harness.backends.programs.state import RETURNED, with_variables
from harness.backends.target.documented_refusals import refusal_of
from harness.backends.target.target import types_listed
from harness.backends.target.text import renamed, swapped
from harness.questions.forward import FORWARD
from harness.questions.question import Question
from oracles.questions import cells, state


def _writes(target: Target) -> Target | None:
    """The target with programs that write; None where the state is returned."""
    if state.NAME not in target.question_loads or target.library == "jax":
        return None
    return in_place(target, views=False) if target.dialect.name == "torch" else with_variables(target)


def program(target: Target, graph: Graph) -> str:
    """The steps, and what is looked at after each."""
    writing, types = _writes(target), state.types(graph)
    first = len(graph.outputs)
    told = {name: first + i for i, name in enumerate(state.written(graph))}
    said = f"\nSTATE = {told!r}\n"
    if writing:
        text = writing.text(state.settled(graph), target.question_loads[state.NAME], {}, types)
        return swapped(text, ("\nOUTPUTS = ", f"{said}OUTPUTS = "))
    pure = state.functional(graph)
    if state.NAME in target.question_loads:
        text = target.text(pure, target.question_loads[state.NAME], {}, types)
        return swapped(text, ("\nOUTPUTS = ", f"{said}OUTPUTS = "))
    own = renamed(target.program(pure), "OUTPUTS", "OWN_OUTPUTS")
    return f"{own}{said}EVERY_OUTPUT = {types_listed(types)}{RETURNED}"


def unsupported(target: Target, graph: Graph) -> str | None:
    """Why a target cannot be asked."""
    return state.illegal(graph) or (_writes(target) or target).unsupported(
        state.settled(graph) if _writes(target) else state.functional(graph)
    )


STATE = Question(
    state.NAME,
    state.expect,
    program,
    unsupported,
    prepare=state.prepare,
    inherits=(FORWARD.name,),
    apart=lambda case: cells.apart(case, state.STEPS, views=False),
    taken_out=cells.without,
    joins=lambda graph: None,
    fills=1,
    refusal=refusal_of(
        (("tensorflow", "Strides != 1 or -1 are not yet implemented", "XLA writes to no slice with another step"),)
    ),
)

QUESTIONS = (STATE,)
