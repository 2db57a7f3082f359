"""Derivatives of products of many factors: open where a part of them may leave the range, known elsewhere."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import Case
from generators.ops import check
from oracles.derivatives import gradient, hessian, jvp


def product(factors: list[float], op: str = "prod") -> Case:
    type_ = TensorType("float64", (len(factors),))
    attrs = (("axes", (0,)), ("keepdims", False)) if op == "prod" else (("axis", 0),)
    node = Node("y", op, ("x",), attrs, TensorType("float64", ()) if op == "prod" else type_)
    graph = check(Graph((Leaf("x", type_),), (node,), ("y",)))
    return Case(graph, {"x": np.array(factors)})


@pytest.mark.parametrize("question", [gradient, jvp, hessian])
@pytest.mark.parametrize(
    "factors",
    [
        [1, 0, 1e202, 2e-291, 3e-105],  # the last two first: 0; from the left: 6e-194
        [0, 1e-200, 1e-200, 1e200],  # so, too, where our own order loses it
        [1e-200, 1e-200, 1e200, 1e200],
        [1e200, 1e200, 1e-200, 1e-200],
    ],
)
def test_where_the_order_decides_all_is_open(question: ModuleType, factors: list[float]) -> None:
    assert np.isinf(question.expect(product(factors)).values[0].error).any()


@pytest.mark.parametrize("question", [gradient, jvp, hessian])
def test_where_no_order_leaves_the_range_it_is_known(question: ModuleType) -> None:
    found = question.expect(product([0.5, 2.0, -1.5, 3.0])).values[0]
    assert np.all(found.error <= 1e-6 * np.abs(found.value))


def test_beside_a_zero_the_product_of_the_others_is_known() -> None:
    found = gradient.expect(product([0.5, 2.0, 0.0, 3.0])).values[0]
    weight = float(gradient.weights(product([0.5, 2.0, 0.0, 3.0]).graph)["y"])
    assert abs(found.value[2] - 3 * weight) <= found.error[2] <= 1e-12
    assert np.all(found.value[[0, 1, 3]] == 0)
    assert np.all(found.error[[0, 1, 3]] < 1e-300)


def test_only_the_factors_of_such_a_product_are_open() -> None:
    type_ = TensorType("float64", (2, 4))
    node = Node("y", "prod", ("x",), (("axes", (1,)), ("keepdims", False)), TensorType("float64", (2,)))
    graph = check(Graph((Leaf("x", type_),), (node,), ("y",)))
    found = gradient.expect(Case(graph, {"x": np.array([[2.0, 3.0, 0.5, 1.0], [0.0, 1e-200, 1e-200, 1e200]])}))
    assert np.isfinite(found.values[0].error[0]).all()
    assert np.isinf(found.values[0].error[1]).all()


def test_running_products_may_overflow_on_their_way() -> None:
    assert np.isinf(gradient.expect(product([1e-300, 1e200, 1e200, 1e-200], "cumprod")).values[0].error).any()


def test_parts_of_complex_results_are_as_many_as_before() -> None:
    type_, result = TensorType("complex64", (2,)), TensorType("complex64", (2,))
    graph = check(Graph((Leaf("x", type_),), (Node("y", "complex_neg", ("x",), (), result),), ("y",)))
    found = jvp.expect(Case(graph, {"x": np.array([1 + 2j, 3 - 1j], np.complex64)})).values[0]
    assert np.isfinite(found.error).all()


def test_rules_that_divide_by_a_factor_lose_the_difference_of_two_quotients() -> None:
    """Of the sum of what comes after a factor, by its square; the second derivative by that factor alone is 0."""
    factors = np.array([300.0, 0.01, 0.7, 5.0], np.float32)
    node = Node("y", "cumprod", ("x",), (("axis", 0),), TensorType("float32", (4,)))
    case = Case(check(Graph((Leaf("x", node.type),), (node,), ("y",))), {"x": factors})
    given = hessian.program_inputs(case)
    (weights,), (along,) = ([v for k, v in given.items() if k.startswith(name)] for name in ("weight", "tangent"))
    after = abs(np.sum((np.cumprod(factors.astype(np.float64)) * weights)[1:]))
    lost = 2.0**-24 * after / factors[1] ** 2 * abs(along[1])
    assert hessian.expect(case).values[0].error[1] >= lost
