"""Does a graph that was written as a model file and converted still compute what the graph says?"""

from __future__ import annotations

import numpy as np
import pytest

from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import Case
from harness import probe, profiles
from harness.conversions import EDGES
from harness.conversions.route import shortest, target_of
from harness.laboratory import Laboratory
from harness.pool import Pool
from harness.questions.conversion import CONVERSION
from harness.trial import Trial

CHEAP = ("onnx-version", "ort-optimised")
"""Milliseconds a graph."""


def _parameters() -> list:
    """Every edge that drawn graphs reach; those that cost seconds a graph in the nightly profile only."""
    found = []
    for name, edge in EDGES.items():
        route = shortest(edge)
        if route:
            marks = [] if name in CHEAP else [pytest.mark.nightly]
            status = probe.probe(target_of(route.name))
            if not status.available:
                marks.append(pytest.mark.skip(reason=f"{name}: {status.reason}"))
            found.append(pytest.param(route.name, id=name, marks=marks))
    return found


@pytest.mark.parametrize("route", _parameters())
def test_conversions(route: str, trial: Trial) -> None:
    """Each drawn case by the shortest route that ends with the edge, against the reference and its bound."""
    target = target_of(route)
    asking = trial.asking(CONVERSION, share=4 if profiles.nightly() else 1)
    asking.run([target], asking.alone(target))


def test_tvm_need_not_know_the_shape_of_an_output(pool: Pool) -> None:
    leaf = Leaf("x0", TensorType("float32", (1, 0)))
    node = Node("v0", "reshape", ("x0",), (("shape", (0, 0)),), TensorType("float32", (0, 0)))
    case = Case(Graph((leaf,), (node,), ("v0",)).validate(), {"x0": np.ones((1, 0), "f4")})
    target = target_of("onnx/tvm-onnx/tvm")
    assert Laboratory(pool, CONVERSION).judge(case, [target]).verdicts[target.name].status == "agree"
