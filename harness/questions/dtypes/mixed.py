"""Operands of different dtypes, which the framework promotes."""

from __future__ import annotations

from generators.graph import Graph
from generators.graphs import Case
from harness.backends import Target
from harness.backends.target.documented_refusals import Patterns, refusal_of
from harness.questions.forward import FORWARD
from harness.questions.question import Question
from oracles.questions import forward
from oracles.questions.dtypes import mixed

_REFUSALS: Patterns = (
    ("torch", "Subtraction, the `-` operator, with a bool tensor", "there is no difference with a truth value"),
    ("torch", "Integer division with addcdiv is no longer supported", "no quotient of whole numbers"),
    ("torch", "expected dtype .* for `(end|weight)`,? but got dtype", "both ends of lerp have one dtype"),
)
"""What a framework says that it does not promote."""


def program(target: Target, graph: Graph) -> str:
    """The target's program without the casts that promotion makes superfluous."""
    return target.program(mixed.stripped(graph, target.dialect.name))


def unsupported(target: Target, graph: Graph) -> str | None:
    """Why a target cannot be asked."""
    if target.dialect.name not in mixed.PLACES:
        return f"{target.dialect.name} promotes no operands"
    return target.unsupported(graph) or target.unsupported(mixed.stripped(graph, target.dialect.name))


def worth(case: Case) -> bool:
    """Is a cast left out anywhere?"""
    return any(mixed.left_out(case.graph, dialect) for dialect in mixed.PLACES)


MIXED = Question(
    mixed.NAME,
    forward.expect,
    program,
    unsupported,
    prepare=mixed.prepare,
    refusal=refusal_of(_REFUSALS),
    inherits=(FORWARD.name,),
    concerns=mixed.concerns,
    worth=worth,
)

QUESTIONS = (MIXED,)
