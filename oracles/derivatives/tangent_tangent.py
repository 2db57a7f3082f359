"""Does a target push tangents through its tangents? What `hessian` expects, of cases in which all numbers are finite
and all slopes known: an element that does not move is moved by zero, and zero times what is not finite reaches all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from generators.graphs import Case
from oracles.derivatives import hessian
from oracles.judge import reference
from oracles.judge.compare import Expected

NAME = "tangent_tangent"


def expect(case: Case) -> Expected:
    """The derivatives of all gradients, or nothing of any."""
    found = hessian.expect(case)
    values = reference.evaluate(case.graph, case.arrays).values()
    wild = any(v.undetermined.any() or (v.floating and not np.isfinite(v.value).all()) for v in values)
    if not wild and not any(v.undetermined.any() for v in found.values):
        return found
    loose = tuple(replace(v, error=np.full(v.value.shape, np.inf)) for v in found.values)
    return replace(found, values=loose)
