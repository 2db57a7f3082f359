"""The reference of float16, which back ends may keep in float32 within an operator and until a comparison: what only a
step in float16 makes infinite or NaN is undetermined, and what the result makes so is not."""

from __future__ import annotations

import numpy as np
import pytest
from examples.one_node import applied

from generators.bounds.bounded import Bounded
from generators.graph import TensorType
from oracles.judge.compare import compare
from oracles.judge.reference import evaluate


def evaluated(operator: str, *operands: np.ndarray, **attributes: float) -> Bounded:
    case = applied(operator, *operands, same=False, **attributes)
    return evaluate(case.graph, case.arrays)["v0"]


def half(*values: float) -> np.ndarray:
    return np.array(values, np.float16)


@pytest.mark.parametrize(
    ("operator", "operands", "undetermined"),
    [
        ("lerp", (half(-43584.0), half(47488.0), half(1.1182)), True),  # the difference alone overflows
        ("lerp", (half(-43584.0), half(47488.0), half(4.0)), False),
        ("mul", (half(300.0), half(300.0)), False),
        ("exp", (half(12.0),), False),
        ("sub", (half(np.inf), half(np.inf)), False),
        ("div", (half(1.0), half(0.0)), False),
    ],
)
def test_a_step_that_overflows_half_precision(
    operator: str, operands: tuple[np.ndarray, ...], undetermined: bool
) -> None:
    found = evaluated(operator, *operands)
    assert not np.isfinite(found.value).any()
    assert found.undetermined.all() == undetermined
    wrong = compare(half(1.0), TensorType("float16", (1,)), found)
    assert (wrong is None) == undetermined


def test_a_whole_number_that_half_precision_does_not_hold() -> None:
    """In float16 it is infinite, and equal to an infinity; in float32 it is less. A sum is infinite in both."""
    infinite, much = half(np.inf), np.array([100_000], np.int32)
    assert evaluated("less_equal_mixed", infinite, much).undetermined.all()
    assert not evaluated("less_equal_mixed", infinite, much // 2).undetermined.any()
    assert not evaluated("add_mixed", half(1.0), much).undetermined.any()
    assert np.isposinf(evaluated("add_mixed", half(1.0), much).value).all()


def test_products_by_a_number_that_overflow_in_one_order_only() -> None:
    large, small, zero = (np.array([v], np.float32) for v in (3e38, 1e-20, 0.0))
    assert evaluated("addcmul", zero, large, small, value=2.0).undetermined.all()
    assert not evaluated("addcmul", zero, large, small, value=0.5).undetermined.any()
