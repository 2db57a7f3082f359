"""Operators said otherwise: each spelling is reached by the sweep and is another text than the operator's own, and what
they compute is judged as the operator's."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from examples.one_node import applied

from generators.graph import Graph
from generators.graphs import Case
from generators.inputs import Recipe, fill_all
from generators.ops import OPS, SAID_OTHERWISE, call_of
from generators.ops.slots import ints_of
from generators.ops.spec import Unsupported, said
from generators.sweep import graphs
from harness.backends import TARGETS, Target
from harness.questions.derivatives.gradient import GRADIENT
from harness.questions.forward import FORWARD
from oracles.decompositions.derivatives import decompose
from oracles.judge.outcome import Value
from oracles.judge.reference import evaluate

DIALECTS = ("torch-eager", "tf-eager", "jax-eager", "tvm-O0")


def plainly(graph: Graph) -> Graph:
    """The same by the operator itself."""
    (node,) = graph.nodes
    attrs = tuple((name, value) for name, value in node.attrs if name != "spelling")
    return replace(graph, nodes=(replace(node, op=OPS[node.op].base, attrs=attrs),))


def spelled(target: Target, graph: Graph) -> str:
    return target.dialect.source(graph, "").split("def model")[-1].split("\n", 1)[1]


def saying(graph: Graph, number: int) -> Graph:
    """The same by the spelling of that number."""
    (node,) = graph.nodes
    return replace(graph, nodes=(replace(node, attrs=(("spelling", number), *node.attrs[1:])),))


@pytest.mark.slow(one_in=4)
@pytest.mark.parametrize("operator", sorted(SAID_OTHERWISE))
def test_every_spelling_holds_somewhere_and_says_something_else(operator: str) -> None:
    met: dict[str, set[int]] = {name: set() for name in DIALECTS}
    for graph in graphs(operator, 40):
        for name, number in product(DIALECTS, range(6)):
            one, dialect = saying(graph, number), TARGETS[name].dialect
            if dialect.unsupported(one) is None and dialect.unsupported(plainly(graph)) is None:
                met[name].add(number)
                if graph.nodes[0].type.rank > 1:  # of scalars and single axes some come out alike
                    assert spelled(TARGETS[name], one) != spelled(TARGETS[name], plainly(graph))
    assert any(met.values())
    for numbers in met.values():
        assert numbers == set(range(len(numbers))), met


def filled(graph: Graph) -> Case:
    return Case(
        graph, fill_all(graph, {leaf.name: Recipe("normal", number) for number, leaf in enumerate(graph.leaves)})
    )


def test_they_are_judged_and_differentiated_as_what_they_say() -> None:
    case = filled(next(graph for graph in graphs("std_otherwise", 40) if graph.nodes[0].type.rank))
    plain = Case(plainly(case.graph), case.arrays)
    for question in (FORWARD, GRADIENT):
        ours, theirs = question.expect(case).values[0], question.expect(plain).values[0]
        assert np.array_equal(ours.value, theirs.value)
        assert np.array_equal(ours.error, theirs.error)
    assert "std_otherwise" not in decompose(case).graph.operators
    expected, dtype = FORWARD.expect(case), case.graph.nodes[0].type.dtype
    (array,), attrs = case.arrays.values(), case.graph.nodes[0].attributes
    keep = bool(attrs["keepdims"])
    right = np.std(array.astype(np.float64), axis=ints_of(attrs, "axes"), keepdims=keep).astype(dtype)
    for wrong, status in ((right, "agree"), (right * 1.5, "mismatch")):
        assert FORWARD.judge(TARGETS["torch-eager"], expected, Value((wrong.astype(dtype),))).status == status


# ---- along no axes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod"])
def test_along_no_axes_each_element_stands_alone(name: str) -> None:
    array = np.array([[1.5, -2.0, np.nan], [0.0, np.inf, 3.0]], np.float32)
    case = applied(f"{name}_nowhere", array, keepdims=False)
    found = evaluate(case.graph, case.arrays)["v0"]
    np.testing.assert_array_equal(found.value, array)
    assert not found.error[np.isfinite(array)].any()


@pytest.mark.parametrize("keepdims", [False, True])
def test_pytorch_has_no_word_for_it_but_of_truth_values(keepdims: bool) -> None:
    """No axes mean all of them to torch.sum."""
    total = applied("sum_nowhere", np.zeros((2, 3), np.float32), keepdims=keepdims)
    assert isinstance(said(OPS["sum_nowhere"].torch, call_of(total.graph, 0)), Unsupported)
    some = applied("any_nowhere", np.zeros((2, 3), bool), keepdims=keepdims)
    assert some.graph.nodes[0].type.shape == (2, 3)
    assert "dim=()" in str(said(OPS["any_nowhere"].torch, call_of(some.graph, 0)))
    assert "noop_with_empty_axes=1" in str(said(OPS["any_nowhere"].onnx, call_of(some.graph, 0)))


@pytest.mark.parametrize(("scalar", "text"), [(0, "False"), (1.0, "True"), (-0.0, None), (0.5, None)])
def test_only_numbers_that_are_truth_values_are_said_as_such(scalar: float, text: str | None) -> None:
    case = applied("mul_scalar_otherwise", np.ones(3, np.float32), spelling=0, scalar=scalar)
    found = said(OPS["mul_scalar_otherwise"].torch, call_of(case.graph, 0))
    assert isinstance(found, Unsupported) if text is None else found == f"{{0}} * {text}"


# ---- the place of a number ----------------------------------------------------------------------------


@pytest.mark.parametrize(("right", "place"), [(False, 1), (True, 2)])
def test_the_place_of_a_number_is_that_in_the_dtype_of_the_sequence(right: bool, place: int) -> None:
    near = np.array([float(np.float32(0.1)), 0.1, 0.0])
    found = evaluate(*_case("searchsorted_scalar", near, scalar=0.1, right=right))["v0"]
    assert found.value == place
    assert found.error == 0
    unsure = evaluate(*_case("searchsorted_scalar", near.astype(np.float32), scalar=0.1, right=right))["v0"]
    assert unsure.undetermined.all()  # 0.1 is not one of its numbers
    assert "torch.bucketize(0.1, " in str(
        said(
            OPS["searchsorted_scalar_otherwise"].torch,
            call_of(applied("searchsorted_scalar_otherwise", near, spelling=0, scalar=0.1, right=right).graph, 0),
        )
    ).replace("{scalar}", "0.1")


def _case(operator: str, *arrays: np.ndarray, **attrs: Any) -> tuple[Graph, dict[str, np.ndarray]]:
    case = applied(operator, *arrays, **attrs)
    return case.graph, dict(case.arrays)


def test_the_eigenvalues_of_a_finite_matrix_add_up_to_its_trace() -> None:
    matrix = np.array([[[1, 2], [3, 4]], [[np.nan, 0], [0, 1]]], np.float32)
    found = evaluate(*_case("eigenvalue_sum", matrix))["v0"]
    assert found.value[0] == 5
    assert 0 < found.error[0] < 1e-4
    assert np.isinf(found.error[1])  # of what is not finite nothing is promised
    right = np.linalg.eigvals(matrix[0].astype(np.float64)).sum()
    assert abs(right - found.value[0]) <= found.error[0]
