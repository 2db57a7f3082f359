"""Derivatives of special functions, of which no bound is derived: whether they are numbers is asked."""

from __future__ import annotations

import numpy as np
import pytest
from examples.one_node import applied

from generators.graphs import Case
from harness.backends import TARGETS
from harness.backends.programs import gradient as gradient_programs
from oracles.derivatives import gradient, jvp
from oracles.derivatives.rounding.first_derivatives import FINITE, UNDERIVED
from oracles.judge.outcome import Value
from oracles.judge.verdict import judge

FAR = 100.0


def _tail(dtype: str) -> Case:
    """Laplace's distribution function, at ends that an exponential does not reach, too."""
    x, place, scale = np.array([-FAR, 1.0, FAR], dtype), np.zeros(3, dtype), np.ones(3, dtype)
    return applied("placed_distribution_function", x, place, scale, kind="laplace", output="cdf")


def _gradients(case: Case, by_x: list[float]) -> Value:
    expected = gradient.expect(case).values
    rest = [np.asarray(one.value, case.arrays["x0"].dtype) for one in expected[1:]]
    return Value((np.array(by_x, case.arrays["x0"].dtype), *rest))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_wrong_and_any_number_is_not(dtype: str, wrong: float) -> None:
    case = _tail(dtype)
    expected = gradient.expect(case)
    assert judge(expected, _gradients(case, [0.0, 7.0, 0.5])).discrepancy is None
    found = judge(expected, _gradients(case, [0.0, 7.0, wrong])).discrepancy
    assert found is not None
    assert found.symptom == "special"


def test_tangents_are_asked_for_too() -> None:
    (tangent,) = jvp.expect(_tail("float32")).values
    assert np.isfinite(tangent.error).tolist() == [False, True, True]  # the first one vanishes


def test_of_formats_of_few_bits_nothing_is_asked() -> None:
    assert all(np.isinf(one.error).all() for one in gradient.expect(_tail("float16")).values)


def test_at_a_pole_and_beyond_the_domain_nothing_is_asked() -> None:
    case = applied("gamma_function", np.array([0.0, -1.0, 2.5]))
    assert np.isinf(gradient.expect(case).values[0].error).tolist() == [True, True, False]


def test_they_are_drawn_and_others_are_not() -> None:
    assert not FINITE & UNDERIVED
    target = TARGETS["jax-jit"]
    assert gradient_programs.unsupported(target, _tail("float32").graph) is None
    case = applied("complex_sin", np.ones(3, np.complex64))
    assert gradient_programs.unsupported(target, case.graph) == "complex_sin: what its derivative loses is not derived"
