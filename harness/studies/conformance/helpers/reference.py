"""Evaluates a test's model by our reference: exactly, and in runs with noise."""

import sys

sys.path.insert(0, ROOT)

import onnx

from oracles.onnx.evaluate import LOST
from oracles.onnx.model import read
from oracles.onnx.noise import noisy_runs


def load(parameters):
    graph = read(onnx.load(PATH))

    def evaluated(header, data):
        found = noisy_runs(graph, unpacked(header, data), RUNS, SEED)
        return packed([[None if value is LOST else value for value in one] for one in found])

    return evaluated
