"""References of all operators bear operands that are not determined: what comes of them is a value and a bound, and
nothing is warned of. A bound that is NaN ends a hunt."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from generators.bounds.bounded import Bounded, leaf
from generators.graph import Leaf
from generators.ops import OPS
from generators.sweep import places, swept
from oracles.judge import reference

ANYTHING = (
    *((value, np.inf) for value in (np.inf, -np.inf, np.nan, 1.0)),
    (1e300, 1e290),
    *((value, 0.0) for value in (np.inf, np.nan)),
)
"""Values with what they are off by."""


def loosened(item: Leaf, array: np.ndarray, turn: int) -> Bounded:
    """An eighth of its elements become one of these each."""
    given = leaf(array)
    if not given.floating or given.complex or item.domain:
        return given
    value, error, rng = given.value.copy(), given.error.copy(), np.random.default_rng(turn)
    for number, off in ANYTHING:
        chosen = rng.random(value.shape) < 1 / 8
        value[chosen], error[chosen] = number, off
    return replace(given, value=value, error=error)


@pytest.mark.slow(one_in=9, ci=4)
@pytest.mark.parametrize("name", OPS)
def test_nothing_is_too_loose(name: str) -> None:
    count = min(len(places(name)), 400)
    for turn in range(0, count, max(1, count // 12)):
        one = swept(name, turn, 1)
        values = {item.name: loosened(item, one.fills[0][item.name], turn) for item in one.graph.leaves}
        for index, node in enumerate(one.graph.nodes):
            values[node.name] = reference.apply(one.graph, index, values)
            assert values[node.name].value.shape == node.type.shape
