"""Does a model that a framework's own quantiser wrote compute what its integers say?"""

from __future__ import annotations

from generators.graph import Graph
from harness.backends import Target
from harness.quantisers import QUANTISERS, Quantiser
from harness.quantisers.cases import STYLE, concerns, prepare
from harness.questions.conversion import CONVERSION
from harness.questions.question import Question
from oracles.judge.outcome import Value
from oracles.judge.verdict import Observation
from oracles.quantised import model as quantised_model
from oracles.questions import forward


def judged(target: Target, outcome: Value) -> quantised_model.Judgement:
    """What the path's oracle makes of a run."""
    assert isinstance(target, Quantiser), f"{target.name} is no quantiser"
    return target.judge(quantised_model.read(outcome.outputs))


def observe(target: Target, outcome: Value) -> Observation:
    """The same as a verdict, with what the outputs should have been."""
    found = judged(target, outcome)
    return Observation(quantised_model.verdict(found), quantised_model.expected(found, outcome.outputs))


def unsupported(target: Target, graph: Graph) -> str | None:
    """A quantiser needs numbers to calibrate on."""
    if any(type_.size == 0 for type_ in graph.types.values()):
        return "an empty tensor has no range"
    return target.unsupported(graph)


QUANTISATION = Question(
    "quantisers",
    forward.expect,
    program=lambda target, graph: target.program(graph),
    unsupported=unsupported,
    inherits=(forward.NAME, CONVERSION.name),
    prepare=prepare,
    style=STYLE,
    concerns=concerns,
    observe=observe,
    targets=QUANTISERS,
    joins=lambda graph: None,
    fills=1,
)

QUESTIONS = (QUANTISATION,)
