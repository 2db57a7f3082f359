"""Does a target map over a new axis? A graph mapped over lanes of its inputs, parameters shared, against the reference
of each lane, stacked. An operator with a batching rule is the operator on more rows, so the bounds of a lane hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded
from generators.graph import Graph, Leaf, TensorType
from generators.graphs import Case
from generators.inputs import Arrays
from oracles.judge.compare import Expected
from oracles.questions import forward

NAME = "vmap"

FACTORS = (1.0, -0.5, -1.0)
"""One a lane: what floating inputs without a domain are multiplied with. Exact, but for subnormal numbers."""
LANES = len(FACTORS)


def prepare(case: Case) -> Case:
    """The case; where it has no inputs, its parameters are."""
    if case.graph.inputs:
        return case
    leaves = tuple(replace(leaf, role="input") for leaf in case.graph.leaves)
    return replace(case, graph=replace(case.graph, leaves=leaves))


def laned(type_: TensorType) -> TensorType:
    """The type with the axis of the lanes in front."""
    return TensorType(type_.dtype, (LANES, *type_.shape))


def _lane(leaf: Leaf, array: np.ndarray, number: int) -> np.ndarray:
    """What an input is in one lane: the same elements in another order, with another sign and size where any value
    goes, so that no lane can stand for another."""
    moved = np.roll(array.ravel(), number).reshape(array.shape)
    if leaf.domain is None and leaf.type.dtype in PRECISION:
        with np.errstate(invalid="ignore"):  # an infinite complex number times a real one has a part that is NaN
            moved = moved * np.asarray(FACTORS[number], array.dtype)
    return moved


def arrays(case: Case) -> Arrays:
    """What a program is given: inputs with all lanes in front, parameters as they are."""
    stacked = {
        leaf.name: np.stack([_lane(leaf, case.arrays[leaf.name], number) for number in range(LANES)])
        for leaf in case.graph.inputs
    }
    return {**case.arrays, **stacked}


def lanes(case: Case) -> tuple[Case, ...]:
    """The case of each lane."""
    given = arrays(case)
    inputs = {leaf.name for leaf in case.graph.inputs}
    return tuple(
        Case(case.graph, {name: array[number, ...] if name in inputs else array for name, array in given.items()})
        for number in range(LANES)
    )


def outputs(graph: Graph) -> tuple[TensorType, ...]:
    """Types of what a mapped program returns."""
    return tuple(laned(graph.types[name]) for name in graph.outputs)


def expect(case: Case) -> Expected:
    """Each output with all lanes in front."""
    found = [forward.expect(lane) for lane in lanes(case)]
    values = tuple(map(_stacked, zip(*(one.values for one in found), strict=True)))
    return Expected(found[0].names, outputs(case.graph), values)


def _stacked(parts: tuple[Bounded, ...]) -> Bounded:
    return Bounded(
        np.stack([part.value for part in parts]),
        np.stack([part.error for part in parts]),
        parts[0].dtype,
        all(part.zero_sign for part in parts),
    )
