"""Does the same program give the same bits again, called once more and compiled once more, and leave its inputs alone?
Deterministic on one thread is what every framework here documents for the operators that are drawn."""

from __future__ import annotations

import numpy as np

from generators.bounds.bounded import exact
from generators.graph import TensorType
from generators.graphs import Case
from oracles.judge.compare import Expected
from oracles.questions import forward

NAME = "repeat"

CHECKS = ("again", "fresh")
"""Called a second time; compiled a second time."""


def expect(case: Case) -> Expected:
    """The outputs of the first call; for each check and output whether it was the same (any NaN equals any other);
    and whether the inputs were left alone."""
    one = forward.expect(case)
    names = (*(f"{name}_same_{check}" for check in CHECKS for name in one.names), "inputs_unchanged")
    yes = exact(np.array(True), "bool", np.array(False))
    types = (TensorType("bool", ()),) * len(names)
    return Expected((*one.names, *names), (*one.types, *types), (*one.values, *[yes] * len(names)))
