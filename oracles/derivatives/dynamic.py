"""Are the gradients of a program that was compiled once, with a symbolic dimension, right at every size? Each run is
held against the gradients of the graph at its size."""

from __future__ import annotations

import numpy as np

from generators.graph import Graph, TensorType
from generators.graphs import Case
from oracles.derivatives import gradient
from oracles.judge.compare import Expected
from oracles.questions import dynamic

NAME = "dynamic_gradient"


def taken(graph: Graph) -> dict[str, TensorType]:
    """What a program takes of a graph at one size: its inputs, and the weights of its outputs."""
    weights = {gradient.weight_name(name): graph.types[name] for name in gradient.weights(graph)}
    return {**dynamic.taken(graph), **weights}


def arrays(case: Case) -> dict[str, np.ndarray]:
    """Parameters, and inputs and weights at each size under names of their own."""
    result = dynamic.arrays(case)
    for size, one in dynamic.cases(case).items():
        weights = gradient.weights(one.graph)
        result |= {dynamic.at(gradient.weight_name(name), size): array for name, array in weights.items()}
    return result


def expect(case: Case) -> Expected:
    """The gradients at the first size, then at the second, and so on. Where nothing can change, nothing is run."""
    if dynamic.plan(case.graph) is None:
        return gradient.expect(case)
    runs = {size: gradient.expect(one) for size, one in dynamic.cases(case).items()}
    return dynamic.joined(runs)
