"""Evaluates a test's model by our reference: exactly, and in runs with noise."""

import sys

sys.path.insert(0, ROOT)

import onnx

from oracles.onnx.evaluate import LOST, run
from oracles.onnx.model import read
from oracles.onnx.noise import disturbing


def load(parameters):
    graph = read(onnx.load(PATH))

    def evaluated(header, data):
        draws = {number: np.random.default_rng([SEED, number]) for number in range(1, RUNS + 1)}
        found = run(graph, unpacked(header, data), RUNS + 1, disturbing(draws))
        return packed([[None if value is LOST else value for value in one] for one in found])

    return evaluated
