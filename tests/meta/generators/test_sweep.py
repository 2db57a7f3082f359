"""Sweeps are systematic: valid, distinct, the same every time, and at the edges."""

from __future__ import annotations

import numpy as np
import pytest

from generators.ops import OPS, check
from generators.sweep import ScriptedDraw, sweep
from harness.search.dtype_support import dtypes_of
from harness.search.hypothesis_profiles import nightly


@pytest.mark.slow(one_in=11)
@pytest.mark.parametrize("operator", OPS)
def test_a_sweep_holds_every_dtype_and_only_valid_cases(operator: str) -> None:
    """The nightly profile looks at all of it."""
    cases = list(sweep(operator, None if nightly() else 1000))
    graphs = [check(case.graph) for case in cases]
    assert all(graph.operators == (operator,) for graph in graphs)
    assert {graph.types[graph.nodes[0].operands[0]].dtype for graph in graphs} >= set(dtypes_of(OPS[operator]))
    texts = [repr((c.graph, [array.tobytes() for array in c.arrays.values()])) for c in cases]
    assert len(set(texts)) == len(texts)


def test_a_sweep_is_the_same_every_time() -> None:
    first, second = ([case.graph for case in sweep("conv2d")] for _ in range(2))
    assert first == second


def test_a_sweep_reaches_the_edges() -> None:
    softmax = list(sweep("softmax"))
    axes = {dict(case.graph.nodes[0].attrs)["axis"] for case in softmax}
    assert {-1, 0, 1} <= axes
    assert any(case.graph.nodes[0].type.size == 0 for case in softmax)
    assert any(1 in case.graph.nodes[0].type.shape for case in softmax)
    assert any(np.isnan(a).any() for case in softmax for a in case.arrays.values())
    roles = {leaf.role for case in softmax for leaf in case.graph.leaves}
    assert roles == {"input", "parameter"}
    groups = {dict(case.graph.nodes[0].attrs)["groups"] for case in sweep("conv2d")}
    assert len(groups) > 1
    assert any(len(case.graph.leaves) < 2 for case in sweep("add"))  # one tensor used twice


def test_an_option_beyond_the_last_is_the_last() -> None:
    draw = ScriptedDraw({1: 99})
    assert [draw.integer(3, 5), draw.integer(3, 5), draw.integer(3, 5)] == [3, 5, 3]
    assert draw.sizes == [3, 3, 3]
