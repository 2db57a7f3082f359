"""Attributes that are numbers are arguments, which change from call to call. The programs stand in
`harness/backends/programs/scalars.py`."""

from __future__ import annotations

import re

from generators.graph import Graph
from generators.graphs import Case
from generators.ops import OPS
from harness.backends import Target
from harness.backends.target.documented_refusals import Patterns, refusal_of
from harness.dialects import DIALECTS
from harness.dialects.dialect import Dialect
from harness.questions.forward import FORWARD
from harness.questions.question import Question
from oracles.questions import dynamic, scalars

_REFUSALS: Patterns = (
    (
        "jax",
        "ConcretizationTypeError|Tracer[A-Za-z]*Error|not hashable|static argument|unhashable type|abstract tracer",
        "it wants this number when it traces: what jit takes as an argument is unknown then",
    ),
    (
        "torch",
        "Could not guard on data-dependent expression",
        "it compares a size that depends on elements with the number, which a compiler that traces does not know",
    ),
)
"""What a framework documents that it cannot take as an argument."""


def program(target: Target, graph: Graph) -> str:
    """The target's program, with the numbers of all calls."""
    found = scalars.plan(graph)
    assert found is not None  # `unsupported` says so before
    outputs = [one.types[name] for one in found.graphs for name in one.outputs]
    calls = repr(found.calls).replace("inf", "float('inf')")
    said = f"CALLS = {calls}  # numbers that the model takes last\n\n\n"
    load = said + target.question_loads[scalars.NAME].strip()
    return target.text(found.graphs[0], load, {}, outputs, numbers=_names(found))


def unsupported(target: Target, graph: Graph) -> str | None:
    """Why a target cannot be asked."""
    if scalars.NAME not in target.question_loads:
        return "this target takes no numbers as arguments, or compiles anew for each"
    found = scalars.plan(graph)
    if found is None:
        return "no attribute of the graph is a number that can change"
    for one in found.graphs:
        why = target.unsupported(one)
        if why:
            return why
    return None if _same_text(target.dialect, found) else f"the {target.dialect.name} program states the number"


def _names(found: scalars.Plan) -> dict[scalars.Place, str]:
    return {place: f"number_{k}" for k, places in enumerate(found.values) for place in places}


def _same_text(dialect: Dialect, found: scalars.Plan) -> bool:
    """Does the text hold for all calls, and name every number?"""
    texts = {dialect.source(one, "", _names(found)) for one in found.graphs}
    named = [re.search(rf"= .*\b{name}\b", text) for text in texts for name in _names(found).values()]
    return len(texts) == 1 and all(named)


def accepts(graph: Graph) -> bool:
    """Can some dialect express the graph with its numbers as arguments?"""
    found = scalars.plan(graph)
    able = [d for d in DIALECTS.values() if found and not any(map(d.unsupported, found.graphs))]
    return any(found and _same_text(dialect, found) for dialect in able)


def prepare(case: Case) -> Case:
    """What of a drawn case can be asked, with numbers that nodes share: the first outputs with which the graph is
    accepted."""
    return dynamic.changing(Case(scalars.shared(case.graph), case.arrays), accepts)


SCALARS = Question(
    scalars.NAME,
    scalars.expect,
    program,
    unsupported,
    prepare=prepare,
    refusal=refusal_of(_REFUSALS),
    inherits=(FORWARD.name,),
    concerns=lambda operator: bool(OPS[operator].attrs),
    worth=lambda case: scalars.plan(case.graph) is not None,
    parts=lambda case, place: (scalars.part(case, place),),
    joins=lambda graph: None,
    fills=1,
)

QUESTIONS = (SCALARS,)
