"""Derivatives of operators of several steps: the steps mean the same, what cancels between them and inside formulas of
matrices is allowed for and no more, ties are seen, and what raised false alarms passes."""

from __future__ import annotations

import numpy as np
import pytest
from examples.one_node import applied, drawn

from generators.bounds.bounded import Bounded
from generators.graph import FLOATS, Graph, Leaf, Node, TensorType
from generators.graphs import Case
from harness.backends import TARGETS
from harness.execute.pool import Pool
from harness.questions.derivatives.gradient import GRADIENT
from harness.questions.derivatives.jvp import JVP
from harness.questions.question import Question
from harness.search.laboratory import Laboratory
from oracles.decompositions.derivatives import RULES, decompose
from oracles.derivatives import gradient, jvp
from oracles.questions import forward, metamorphic


def expected(case: Case, number: int = 0) -> Bounded:
    return gradient.expect(case).values[number]


def weight(case: Case) -> np.ndarray:
    return gradient.weights(case.graph)["v0"].astype(np.float64)


@pytest.mark.parametrize("operator", sorted(set(RULES) - {"maximum", "minimum", "fmax", "fmin"}))
def test_steps_mean_the_same(operator: str) -> None:
    compared = 0
    for number in range(5):
        case = drawn(operator, number)
        other = decompose(case)
        # of one; with given statistics; by a power in the same dtype
        alone = operator in ("matrix_power", "fused_batch_norm", "ldexp_mixed")
        assert other is not case or alone or case.graph.nodes[-1].type.dtype not in FLOATS  # which have no slope
        first, second = forward.expect(case).values, forward.expect(other).values
        assert all(map(metamorphic.agree, first, second)), case.graph
        compared += sum(int((~a.undetermined & ~b.undetermined).sum()) for a, b in zip(first, second, strict=True))
    assert compared


@pytest.mark.parametrize("operator", ["maximum", "minimum", "fmax", "fmin"])
def test_the_greater_of_a_value_and_itself_is_that_value(operator: str) -> None:
    x, y = np.array([2.0, -1.0]), np.array([2.0, 3.0])
    leaves = tuple(Leaf(name, TensorType("float64", (2,)), "input") for name in ("x0", "x1"))

    def case(second: str) -> Case:
        node = Node("v0", operator, ("x0", second), (), leaves[0].type)
        return Case(Graph(leaves, (node,), ("v0",)).validate(), {"x0": x, "x1": y})

    assert [node.op for node in decompose(case("x0")).graph.nodes] == ["identity"]
    assert decompose(different := case("x1")) is different


def test_what_has_no_rule_stays() -> None:
    case = applied("exp", np.ones(2, np.float32))
    assert decompose(case) is case


def test_the_middle_of_three_equal_numbers_is_undetermined() -> None:
    """None of them moves it alone; a framework picks one."""
    x = np.array([[2, 1, 2, 2, 3], [6, 1, 4, 5, 3]], np.float32)
    case = applied("quantile", x, axis=1, q=0.5, method="linear")
    found = expected(case)
    assert found.undetermined.tolist() == [[True, False, True, True, False], [False] * 5]
    assert np.allclose(found.value[1], [0, 0, weight(case)[1], 0, 0], atol=1e-12)


def test_numbers_without_a_fraction_are_at_a_jump_however_large() -> None:
    x = np.array([1e30, 0.5, 3.0], np.float32)
    assert expected(applied("frac", x)).undetermined.tolist() == [True, False, True]
    assert jvp.expect(applied("frac", x)).values[0].undetermined.tolist() == [True, False, True]


def test_so_are_equal_eigenvalues_beside_what_is_cut_off() -> None:
    x = np.array([[1e-30, 1e30, 0], [0, 0, 0], [0, 0, 0]], np.float32)
    assert expected(applied("eigenvalues", x, form="shifted")).undetermined[np.eye(3, dtype=bool)].all()
    for beside in (0, -2e-40):
        far = np.array([[-2e98, 0], [beside, 0]])
        assert expected(applied("eigenvalues", far, form="tamed")).undetermined[1, 1]


@pytest.mark.parametrize("op", ["inverse", "det"])
def test_conditions_of_matrices_are_allowed_for_and_no_more(op: str) -> None:
    """float32 and a condition of some tens: the formula of Giles in float32 keeps the bound, its transpose does
    not, and the bound is below a hundredth of the greatest element."""
    a = np.array([[1.0, 2.0, 0.5], [1.5, 3.5, 1.0], [0.25, 1.0, 3.0]], np.float32)
    case = applied(op, a, form="tamed") if op == "inverse" else applied(op, a)
    found, w, y = expected(case), weight(case).astype(np.float32), np.linalg.inv(a)
    got = -(y.T @ w @ y.T) if op == "inverse" else w * np.linalg.det(a) * y.T
    assert np.all(np.abs(got - found.value) <= found.error)
    assert not np.all(np.abs(got.T - found.value) <= found.error)
    assert np.max(found.error) < 1e-2 * np.max(np.abs(found.value))


def test_singular_matrices_are_undetermined() -> None:
    assert expected(applied("inverse", np.ones((2, 2), np.float32), form="tamed")).undetermined.all()


def test_cosine_of_a_vector_and_itself() -> None:
    """The derivative is zero, by terms that cancel: it is known up to a few of their roundings."""
    x = np.array([[0.3, -1.7, 0.9]], np.float32)
    case = applied("cosine_embedding", x, np.ones(1, bool), same=True, margin=0.0, reduction="none")
    found = expected(case)
    assert np.all(np.abs(found.value) <= 1e-9)
    assert np.all((found.error > 2.0**-24) & (found.error < 2.0**-15))


@pytest.mark.parametrize("p", [1, 2])
def test_the_direction_of_one_number_has_a_slope_of_zero(p: int) -> None:
    """1 / n - x * x / n^3: known up to a few roundings of what is subtracted."""
    found = expected(applied("lp_normalize", np.array([[1e-3, -1.7]], np.float32), axis=0, p=p))
    assert np.all(np.abs(found.value) <= 1e-9)
    assert np.all((found.error > 2.0**-24 * np.array([1e3, 0.6])) & (found.error < 2.0**-15 * np.array([1e3, 0.6])))


def test_labels_that_do_not_add_up_to_one() -> None:
    """g (p sum(t) - t), both about 3 and nearly the same: known up to some roundings of them."""
    x, t = np.array([[0.0, 0.0]], np.float32), np.array([[3.0, 3.0000002]], np.float32)
    found, w = expected(applied("softmax_cross_entropy", x, t, output="loss")), weight_of_loss(x, t)
    assert np.all(np.abs(w * np.array([[1e-7, -1e-7]]) - found.value) <= 1.1e-8 + found.error)
    assert np.all((found.error > 2.0**-20) & (found.error < 2.0**-15))


def weight_of_loss(x: np.ndarray, t: np.ndarray) -> float:
    return float(weight(applied("softmax_cross_entropy", x, t, output="loss"))[0])


def test_weighted_cross_entropy_at_a_logit_of_zero() -> None:
    x, t, w = (np.array([v], np.float32) for v in (0.0, 0.25, 3.0))
    case = applied("bce_pos_weight", x, t, w, reduction="none")
    found = expected(case)
    assert abs(found.value[0] - weight(case)[0] * (0.75 / 2 - 3 * 0.25 / 2)) <= found.error[0] < 1e-4


def test_attention_with_weights_that_vanish() -> None:
    """Of scores 0, 60 and -60: two weights are nearly nothing, one is hidden; their derivatives are known."""
    q = np.ones((1, 1, 1, 1), np.float32)
    k, v = (np.array(a, np.float32).reshape(1, 1, -1, 1) for a in ([0, 60, -60, 5], [1, 2, 3, 4]))
    case = applied("attention_masked", q, k, v, np.array([[True, True, True, False]]), scale=1.0)
    found = expected(case, 2)
    right = weight(case).ravel() * [np.exp(-60), 1, np.exp(-120), 0]
    assert np.all(np.abs(found.value.ravel() - right) <= found.error.ravel())
    assert np.all(found.error < 1e-4)


def test_attention_with_scores_below_what_stands_for_hidden_ones() -> None:
    """Of scores -1e7 and a hidden one."""
    x, kept = np.array([1257.0, -5357.0]).reshape(1, 1, 2, 1), np.array([[False, True], [True, False]])
    assert expected(applied("attention_masked", x, x, x, kept, scale=1.0)).undetermined.all()


def test_a_row_that_attends_to_nothing_is_undetermined() -> None:
    x = np.ones((1, 1, 2, 1), np.float32)
    case = applied("attention_masked", x, x, x, np.array([[True, True], [False, False]]), scale=1.0)
    assert expected(case, 2).undetermined.all()


ONCE_ALARMING = (
    *("spectral_norm", "lp_normalize", "softmax_cross_entropy", "cosine_embedding", "attention_masked"),
    *("triplet_margin", "gaussian_nll", "lstm"),
)


@pytest.mark.slow
@pytest.mark.parametrize("question", [GRADIENT, JVP], ids=lambda question: question.name)
def test_correct_derivatives_are_accepted(question: Question, pool: Pool) -> None:
    lab, target, agreed = Laboratory(pool, question), TARGETS["torch-eager"], 0
    for operator in ONCE_ALARMING:
        for number in range(4):
            case = drawn(operator, number)
            status = lab.judge(case, [target], confirm=False).verdicts[target.name].status
            assert status in ("agree", "undetermined", "unsupported"), case.graph
            agreed += status == "agree"
    assert agreed >= 10


def test_tvm_is_asked_of_what_has_registered_gradients_only() -> None:
    """Of the names that compositions may call, those that are called count."""
    x, target = np.ones((2, 3), np.float32), TARGETS["tvm-O0"]
    assert GRADIENT.unsupported(target, applied("soft_margin", x, x, reduction="sum").graph) is None
    norm = applied("matrix_norm", x, ord="inf", keepdims=False).graph
    assert GRADIENT.unsupported(target, norm) == "relax.max has no registered gradient"
    masked = applied(
        "attention_masked", *[np.ones((1, 1, 2, 2), np.float32)] * 3, np.ones((2, 2), bool), scale=1.0
    ).graph
    assert GRADIENT.unsupported(target, masked) is not None
