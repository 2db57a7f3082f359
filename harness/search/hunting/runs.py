"""One program that is compiled once and run with several sets of inputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from generators.graph import Graph
from generators.graphs import Case
from generators.inputs import Arrays
from generators.union import Filled
from harness.backends import Target
from harness.questions.question import Question
from harness.search.laboratory import Laboratory
from oracles.judge.outcome import Outcome

_RUNS = '''

load_of_one_run = load


def load(parameters):
    compiled = load_of_one_run(parameters)

    def run(*inputs):
        """Each input has all its values in front, one after the other."""
        return [np.array(output) for k in range({count}) for output in compiled(*[x[k, ...] for x in inputs])]

    return run
'''


def run(lab: Laboratory, target: Target, filled: Filled) -> Outcome:
    """What comes of a graph with all its sets of arrays: all outputs with the first, then all with the second, and so
    on. A crash is taken at face value."""
    count = len(filled.fills)
    if count == 1:
        return lab.outcomes([(target, filled.case(0))], confirm=False)[0]
    several = replace(lab, question=_several(lab.question, count))
    case = Case(filled.graph, _stacked(lab.question, filled))
    return several.outcomes([(target, case)], confirm=False)[0]


def _several(question: Question, count: int) -> Question:
    """The question whose programs are run so often; its cases hold what a program is given."""

    def program(target: Target, graph: Graph) -> str:
        return question.program(target, graph) + _RUNS.format(count=count)

    return replace(question, program=program, arrays=lambda case: case.arrays)


def _stacked(question: Question, filled: Filled) -> Arrays:
    """What a program is given: inputs with an axis for the runs in front, parameters once."""
    constant = {leaf.name for leaf in filled.graph.parameters}
    given = [question.arrays(filled.case(k)) for k in range(len(filled.fills))]
    first = given[0]
    return {name: first[name] if name in constant else np.stack([one[name] for one in given]) for name in first}
