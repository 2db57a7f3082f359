"""Reduction: whatever the failure hangs on is kept, all else goes, and every candidate is a valid graph."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import Case, cases
from generators.ops import OPS, check
from generators.sweep import sweep
from harness.search.hypothesis_profiles import looked_at
from harness.search.reduce import Budget, reduce, size
from oracles.questions import forward


def reduced(case: Case, fails: Callable[[Case], bool]) -> Case:
    def checked(candidate: Case) -> bool:
        check(candidate.graph)
        return fails(candidate)

    return reduce(case, checked, Budget(runs=2000, seconds=60))


@given(st.data())
def test_one_guilty_operator_remains(data: st.DataObject) -> None:
    case = data.draw(cases(max_nodes=8))
    guilty = data.draw(st.sampled_from(case.graph.operators))
    small = reduced(case, lambda c: guilty in c.graph.operators)
    assert small.graph.operators == (guilty,)
    assert len(small.graph.nodes) == 1
    assert size(small) <= size(case)
    assert not small.graph.parameters


@given(st.data())
def test_a_guilty_pair_remains(data: st.DataObject) -> None:
    """A failure that needs one operator fed by another keeps both, and nothing else."""
    case = data.draw(cases(max_nodes=8))

    def pairs(c: Case) -> set[tuple[str, str]]:
        made = {node.name: node.op for node in c.graph.nodes}
        return {(made[o], n.op) for n in c.graph.nodes for o in n.operands if o in made}

    found = sorted(pairs(case))
    if not found:
        return
    guilty = data.draw(st.sampled_from(found))
    small = reduced(case, lambda c: guilty in pairs(c))
    assert guilty in pairs(small)
    assert len(small.graph.nodes) <= 3  # one value may have to enter both operands of the second


def test_what_hangs_on_an_output_only_goes() -> None:
    """Two outputs are needed, and one of them is of another shape than what it is made of."""
    x = TensorType("float32", (2, 3))
    nodes = (
        Node("v0", "abs", ("x0",), (), x),
        Node("v1", "neg", ("x0",), (), x),
        Node("v2", "reshape", ("v1",), (("shape", (6,)),), TensorType("float32", (6,))),
    )
    graph = Graph((Leaf("x0", x),), nodes, ("v0", "v2"))
    case = Case(graph, {"x0": np.ones(x.shape, x.dtype)})
    small = reduced(case, lambda c: {"abs", "neg"} <= set(c.graph.operators) and len(c.graph.outputs) == 2)
    assert small.graph.operators == ("abs", "neg")
    assert small.graph.outputs == ("v0", "v1")


@given(cases(max_nodes=6))
def test_nothing_larger_and_nothing_else(case: Case) -> None:
    """A failure that hangs on the exact graph leaves the graph alone."""
    small = reduced(case, lambda c: c.graph == case.graph)
    assert small.graph == case.graph


@given(cases(max_nodes=4))
def test_a_guilty_element_remains(case: Case) -> None:
    """A failure that needs one negative element somewhere keeps one, in arrays that got simpler."""

    def negative(c: Case) -> bool:
        return any(a.dtype.kind in "fi" and (a < 0).any() for a in c.arrays.values())

    if negative(case):
        small = reduced(case, negative)
        assert negative(small)
        assert sum(int((a != 0).sum()) for a in small.arrays.values()) <= sum(
            int((a != 0).sum()) for a in case.arrays.values()
        )


def test_the_budget_is_kept() -> None:
    from examples.small_graphs import chain_case

    runs = 0

    def fails(case: Case) -> bool:
        nonlocal runs
        runs += 1
        return True

    reduce(chain_case(), fails, Budget(runs=5))
    assert runs == 5


@given(cases(max_nodes=5))
def test_arrays_fit_their_leaves(case: Case) -> None:
    rng = np.random.default_rng(0)
    small = reduced(case, lambda c: rng.random() < 0.5)
    for leaf in small.graph.leaves:
        array = small.arrays[leaf.name]
        assert (str(array.dtype), array.shape) == (leaf.type.dtype, leaf.type.shape)
    assert all(node.op in OPS for node in small.graph.nodes)


@pytest.mark.slow(one_in=33, ci=8)
@pytest.mark.parametrize("operator", looked_at())
def test_whatever_reduction_tries_has_a_reference(operator: str) -> None:
    """Edited attributes and shapes are refused by the type rule, or make sense to the reference."""
    tried = 0

    def fails(candidate: Case) -> bool:
        nonlocal tried
        tried += 1
        forward.plan(candidate)
        return False

    for case in sweep(operator, 40):
        reduce(case, fails, Budget(runs=30, seconds=60))
    assert tried
