"""Derivatives of operators of several steps and of matrices: planted faults of second ones and of compiled ones are
found, what is right is accepted, and what is expected is right."""

from __future__ import annotations

import numpy as np
import pytest
from examples.one_node import applied, drawn
from planted.faults.second_derivatives import COMPILED_FAULTS, SECOND_FAULTS, Fault
from planted.targets import planted

from generators.graphs import Case
from generators.ops import OPS
from harness.backends import TARGETS
from harness.execute.pool import Pool
from harness.questions.derivatives.gradient import GRADIENT
from harness.questions.derivatives.hessian import HESSIAN
from harness.questions.question import Question
from harness.search.hypothesis_profiles import nightly
from harness.search.laboratory import Laboratory
from oracles.decompositions.derivatives import SECOND_ORDER_RULES, decompose
from oracles.decompositions.second_derivatives import SECOND
from oracles.derivatives import gradient, hessian, jvp
from oracles.derivatives.node_jacobians import node_jacobians
from oracles.derivatives.rounding import second_derivatives
from oracles.judge import reference
from oracles.questions import metamorphic

SEED = 41


def _found(fault: Fault, question: Question, right: str, pool: Pool) -> bool:
    """Within 30 cases of the operator alone, in the first of which the right target agrees."""
    lab, wrong, good = Laboratory(pool, question), planted(fault.operator, fault.text, right), TARGETS[right]
    for number in range(30):
        case = drawn(fault.operator, number)
        if lab.judge(case, [wrong], confirm=False).verdicts[wrong.name].status == "mismatch":
            return lab.judge(case, [good], confirm=False).verdicts[good.name].status == "agree"
    return False


def test_95_percent_of_second_derivatives_that_are_wrong_are_found(pool: Pool) -> None:
    """The nightly profile plants all of them, the others every sixth one."""
    faults = SECOND_FAULTS if nightly() else SECOND_FAULTS[::6]
    missed = [str(fault) for fault in faults if not _found(fault, HESSIAN, "torch-eager", pool)]
    assert len(missed) <= 0.05 * len(faults), missed


def test_compiled_gradients_that_are_wrong_are_found(pool: Pool) -> None:
    faults = COMPILED_FAULTS if nightly() else COMPILED_FAULTS[:2]
    assert all(_found(fault, GRADIENT, "jax-jit", pool) for fault in faults)


@pytest.mark.parametrize("operator", SECOND)
def test_steps_mean_the_same(operator: str) -> None:
    compared = 0
    for number in range(4):
        case = drawn(operator, number)
        first, second = (
            reference.evaluate(c.graph, c.arrays)[c.graph.outputs[0]]
            for c in (case, decompose(case, SECOND_ORDER_RULES))
        )
        assert metamorphic.agree(first, second), case.graph
        compared += int((~first.undetermined & ~second.undetermined).sum())
    assert compared


def _right(case: Case) -> None:
    """The second derivatives are the differences of gradients along the tangents, in float64."""
    found, tangents = hessian.expect(case).values, jvp.tangents(case.graph)

    def gradients(step: float) -> list[np.ndarray]:
        moved = {n: a + step * tangents[n] if n in tangents else a for n, a in case.arrays.items()}
        values, weights = reference.evaluate(case.graph, moved), gradient.weights(case.graph)
        adjoints = gradient.accumulate(
            case.graph, values, weights, node_jacobians(case.graph, values), frozenset(tangents)
        )
        return [adjoints[n].value for n in tangents]

    h = 2.0**-10
    sides = [[(a - b) / (2 * s) for a, b in zip(gradients(s), gradients(-s), strict=True)] for s in (h, h / 2)]
    for bound, long, short in zip(found, *sides, strict=True):
        right, size = (4 * short - long) / 3, np.max(np.abs(bound.value))
        assert size > 1e-3
        assert np.all(np.abs(bound.value.ravel() - right) <= 1e-5 * (1 + size))
        assert np.all(bound.error <= 1e-4 * (1 + size))


_A = np.array([[1.5, 0.25, -0.5], [0.5, -2.0, 1.0], [-1.25, 0.75, 2.5]])
_B = np.array([[0.5, -1.0], [1.75, 0.25], [-0.75, 2.0]])


@pytest.mark.slow(one_in=4)
@pytest.mark.parametrize(
    ("op", "arrays", "attrs"),
    [
        ("solve", (_A, _B), {"form": "gram"}),
        ("triangular_solve", (_A, _B), {"lower": True, "unit": False, "transposed": True}),
        ("det", (_A,), {}),
        ("slogdet", (_A,), {"pick": "logarithm"}),
        ("cholesky", (_A,), {"upper": True}),
        ("inverse", (_A,), {"form": "tamed"}),
        ("eigenvalues", (_A,), {"form": "gram"}),
        ("pseudo_inverse", (_B,), {"form": "shifted"}),
        ("qr_factor", (_B,), {"form": "turned"}),
        ("prod", (_A,), {"axes": (1,), "keepdims": False}),
        ("std", (_A,), {"axes": (0,), "keepdims": True}),
        ("corrcoef", (_A,), {}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_second_derivatives_are_differences_of_gradients(op: str, arrays: tuple, attrs: dict) -> None:
    _right(applied(op, *arrays, **attrs))


def test_conditions_of_matrices_are_allowed_for_and_no_more() -> None:
    """The formula of the inverse in float32 keeps the bound, without one of its terms it does not."""
    a = np.array([[1.0, 2.0, 0.5], [1.5, 3.5, 1.0], [0.25, 1.0, 3.0]], np.float32)
    case = applied("inverse", a, form="tamed")
    found, t = hessian.expect(case).values[0], jvp.tangents(case.graph)["x0"]
    g, y = gradient.weights(case.graph)["v0"], np.linalg.inv(a)
    moved = -(y @ t @ y)
    terms = [-(moved.T @ g @ y.T), -(y.T @ g @ moved.T)]
    assert np.all(np.abs(sum(terms) - found.value) <= found.error)
    assert not np.any(np.abs(terms[0] - found.value) <= found.error)
    assert np.max(found.error) < 1e-2 * np.max(np.abs(found.value))


def test_equal_values_have_no_second_derivative() -> None:
    assert hessian.expect(applied("eigenvalues", 2 * np.eye(3), form="tamed")).values[0].undetermined.all()


_ONCE = ("solve", "cholesky", "eigenvalues", "lp_pool2d", "batch_norm_training", "gru_cell", "gaussian_nll", "prod")


def test_correct_second_derivatives_are_accepted(pool: Pool) -> None:
    lab, target, agreed = Laboratory(pool, HESSIAN), TARGETS["torch-eager"], 0
    for operator in _ONCE:
        for number in range(2):
            case = drawn(operator, number)
            status = lab.judge(case, [target], confirm=False).verdicts[target.name].status
            assert status in ("agree", "undetermined", "unsupported"), case.graph
            agreed += status == "agree"
    assert agreed >= 6


def test_operators_of_either_kind_exist_and_are_written_once() -> None:
    assert OPS.keys() >= second_derivatives.OPERATORS
    assert len(set(second_derivatives.LINEAR)) == len(second_derivatives.LINEAR)
