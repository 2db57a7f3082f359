"""Does a target compute what the graph says? Each run against the float64 reference and its error bound."""

from __future__ import annotations

from collections.abc import Mapping

from generators.bounds.bounded import Bounded
from generators.graphs import Case
from oracles.judge import reference
from oracles.judge.compare import Expected

NAME = "forward"


def plan(case: Case) -> Mapping[str, Bounded]:
    """Bounded values of all leaves and nodes."""
    return reference.evaluate(case.graph, case.arrays)


def expect(case: Case) -> Expected:
    """What every run is judged against."""
    values = plan(case)
    names = case.graph.outputs
    return Expected(names, tuple(case.graph.types[name] for name in names), tuple(values[name] for name in names))
