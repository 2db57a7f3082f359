"""What a back end may rearrange: sums and products, the shift of a softmax, a function and its inverse."""

from __future__ import annotations

import numpy as np
from examples.elementwise import F, applied, ordinarily, under

from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import Case
from generators.ops import check
from harness.backends.target.arithmetic import XLA_FAST


def test_another_order_is_accepted_where_sums_may_be_rearranged() -> None:
    """(x + y) + z as x + (y + z)."""
    x, y, z = np.array([1e8, 3.0]), np.array([-1e8, 1.0]), np.array([0.3, 1.0])
    case = applied(("add", ("x", "y")), ("add", ("v0", "z")), x=x, y=y, z=z)
    other = x.astype(F) + (y.astype(F) + z.astype(F))
    assert ordinarily(case, other).status == "mismatch"
    assert under(XLA_FAST, case, other).status == "agree"
    for wrong in (x + y, x + z, 2 * z + x + y + 100):
        assert under(XLA_FAST, case, wrong).status == "mismatch"


def test_a_product_multiplied_out_is_accepted() -> None:
    x, y, z = np.array([1e6, 2.0]), np.array([-1e6, 3.0]), np.array([0.7, 0.1])
    case = applied(("add", ("x", "y")), ("mul", ("v0", "z")), ("add", ("v1", "z")), x=x, y=y, z=z)
    x0, y0, z0 = (a.astype(F) for a in (x, y, z))
    other = x0 * z0 + y0 * z0 + z0
    assert under(XLA_FAST, case, other).status == "agree"
    assert under(XLA_FAST, case, other + 3).status == "mismatch"


def test_an_overflow_of_a_part_decides_nothing() -> None:
    big = np.array([3e38, 1.0])
    case = applied(("add", ("x", "x")), ("sub", ("v0", "x")), x=big)
    for output in ([np.inf, 1.0], [3e38, 1.0]):
        verdict = under(XLA_FAST, case, np.array(output))
        assert (verdict.status, verdict.undetermined) == ("agree", 1)
    assert under(XLA_FAST, case, np.array([3e38, 1.1])).status == "mismatch"


def test_a_shift_inside_an_operator_may_come_last() -> None:
    """log_softmax as x - (max + log sum), which loses the logarithm beside a great maximum."""
    x = TensorType("float32", (1, 3))
    graph = check(Graph((Leaf("x", x),), (Node("v0", "log_softmax", ("x",), (("axis", 1),), x),), ("v0",)))
    case = Case(graph, {"x": np.array([[3e7, 3e7, 3e7]], F)})
    right, late = np.full((1, 3), -np.log(3)), np.zeros((1, 3))
    assert ordinarily(case, late).status == "mismatch"
    assert under(XLA_FAST, case, late).status == under(XLA_FAST, case, right).status == "agree"
    small = Case(graph, {"x": np.array([[3.0, 3.0, 3.0]], F)})
    assert under(XLA_FAST, small, late).status == under(XLA_FAST, small, right + 1e-5).status == "mismatch"


def test_a_function_and_its_inverse_may_be_left_out_where_they_may_be_rearranged() -> None:
    """exp(log(-1)) may be -1 and log(exp(1000)) 1000; nothing else may be, nor where the number between them is one."""
    wrong, right = np.array([-1.0, 4.0, 1.0]), np.array([np.nan, 4.0, 1.0])
    there = applied(("log", ("x",)), ("identity", ("v0",)), ("exp", ("v1",)), x=wrong)
    assert [under(XLA_FAST, there, output).status for output in (wrong, right)] == ["agree", "agree"]
    assert under(XLA_FAST, there, wrong).undetermined == 1
    assert under(XLA_FAST, there, np.array([-1.0, 4.0001, 1.0])).status == "mismatch"
    assert ordinarily(there, wrong).status == "mismatch"
    x = np.array([1000.0, -200.0, 3.0])
    back = applied(("exp", ("x",)), ("log", ("v0",)), x=x)
    assert under(XLA_FAST, back, x).status == "agree"
    assert under(XLA_FAST, back, x).undetermined == 2
    other = applied(("log", ("x",)), ("expm1", ("v0",)), x=wrong)
    assert under(XLA_FAST, other, wrong - 1).status == "mismatch"


def test_a_function_that_is_written_out_owes_what_was_measured() -> None:
    """expm1 of XLA: 9 u at 88.7, no more than elsewhere at 1."""
    x = np.array([88.7, 1.0])
    case, right = applied(("expm1", ("x",)), x=x), np.expm1(x.astype(F).astype(np.float64))
    assert under(XLA_FAST, case, right * [1 + 9 * 2.0**-24, 1.0]).status == "agree"
    assert ordinarily(case, right * [1 + 9 * 2.0**-24, 1.0]).status == "mismatch"
    assert under(XLA_FAST, case, right * [1 + 14 * 2.0**-24, 1.0]).status == "mismatch"
    assert under(XLA_FAST, case, right * [1.0, 1 + 9 * 2.0**-24]).status == "mismatch"
