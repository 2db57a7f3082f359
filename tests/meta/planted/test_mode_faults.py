"""Forward mode, second derivatives, vectorised maps and autocast: planted faults are found and handed over small,
correct programs are accepted, and what is expected is right."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from examples.one_node import applied
from examples.small_graphs import chain_case
from planted.faults.modes import MODE_FAULTS
from planted.question_sensitivity import drawn

from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import Case, Style, seeded_case
from generators.inputs import SMOOTH_CHOICES, Arrays
from generators.ops import check
from harness.backends import TARGETS
from harness.execute.pool import Pool
from harness.questions import QUESTIONS
from harness.questions.derivatives.hessian import HESSIAN
from harness.questions.derivatives.jvp import JVP
from harness.questions.derivatives.tangent_gradient import TANGENT_GRADIENT
from harness.questions.derivatives.tangent_tangent import TANGENT_TANGENT
from harness.questions.dtypes.autocast import AUTOCAST
from harness.questions.lanes.vmap import VMAP
from harness.questions.question import Question
from harness.search.campaign import Campaign
from harness.search.laboratory import Laboratory
from oracles.arithmetic import autocast
from oracles.derivatives import gradient, hessian, jvp
from oracles.derivatives.complex_pairs import parts_of
from oracles.derivatives.node_jacobians import node_jacobians
from oracles.judge import reference
from oracles.judge.outcome import Rejected
from oracles.questions import forward, vmap

NAMES = ("jvp", "hessian", "tangent_gradient", "tangent_tangent", "vmap", "autocast")
F = "float32"


def test_there_are_enough_faults() -> None:
    questions = [planted_fault.question.name for planted_fault in MODE_FAULTS]
    assert all(questions.count(name) >= 10 for name in NAMES)
    assert len(set(MODE_FAULTS)) == len(MODE_FAULTS)


@pytest.mark.parametrize("name", NAMES)
def test_correct_programs_are_accepted(name: str, campaign: Campaign) -> None:
    """What is known of PyTorch apart."""
    questioned, target = campaign.with_question(QUESTIONS[name]), TARGETS["torch-eager"]
    verdicts, count = [], {"vmap": 24, "autocast": 24, "tangent_tangent": 12}.get(name, 6)
    for case in (drawn(name, index) for index in range(count)):
        verdict = questioned.lab.examine(case, [target]).verdicts[target.name]
        assert verdict.discrepancy is None or questioned.unexplained(target, case, verdict.discrepancy) is None
        verdicts.append(verdict)
    # tangents of tangents: nothing is said of many elements, and of cases of which one slope is not known
    least = 2 if name == "tangent_tangent" else count // 2
    assert [v.status for v in verdicts].count("agree") >= least


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["torch-eager", "tf-eager", "jax-eager"])
def test_correct_second_derivatives_are_accepted(name: str, campaign: Campaign) -> None:
    """On one framework each, what is known of it apart."""
    questioned, target = campaign.with_question(HESSIAN), TARGETS[name]
    for case in (drawn(HESSIAN.name, index) for index in range(6, 40)):
        discrepancy = questioned.lab.examine(case, [target]).verdicts[name].discrepancy
        assert discrepancy is None or questioned.unexplained(target, case, discrepancy) is None


@pytest.mark.parametrize(
    "question", [JVP, HESSIAN, TANGENT_GRADIENT, TANGENT_TANGENT, VMAP], ids=lambda question: question.name
)
def test_a_chain_is_right_on_every_framework(question: Question, pool: Pool) -> None:
    names = ("torch-eager", "torch-aot-eager", "tf-eager", "jax-jit")
    lab = Laboratory(pool, question)
    verdicts = lab.examine(chain_case(), [TARGETS[name] for name in names]).verdicts
    right = ("agree", "within_bound_only")  # compiled programs of second derivatives go another way
    assert all(verdict.status in right for verdict in verdicts.values()), verdicts


def test_only_documented_refusals_are_excused() -> None:
    missing = Rejected(
        "NotImplementedError", "Trying to use forward AD with foo that does not support it because it has"
    )
    assert JVP.refusal(TARGETS["torch-eager"], missing)
    assert JVP.refusal(TARGETS["jax-jit"], missing) is None
    assert JVP.refusal(TARGETS["torch-eager"], Rejected("RuntimeError", "shape mismatch")) is None
    assert VMAP.refusal(TARGETS["torch-eager"], Rejected("RuntimeError", "shape mismatch")) is None
    once = Rejected(
        "RuntimeError", "trying to differentiate twice a function that was marked with @once_differentiable"
    )
    assert HESSIAN.refusal(TARGETS["torch-eager"], once)
    assert HESSIAN.refusal(TARGETS["tf-eager"], once) is None
    assert HESSIAN.refusal(TARGETS["torch-eager"], Rejected("RuntimeError", "shape mismatch")) is None
    assert HESSIAN.unsupported(TARGETS["tvm-O0"], chain_case().graph)
    assert JVP.unsupported(TARGETS["ort-all"], chain_case().graph)
    assert VMAP.unsupported(TARGETS["tvm-O0"], chain_case().graph)
    assert AUTOCAST.unsupported(TARGETS["jax-jit"], chain_case().graph)


# ---- forward mode ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "slope"),
    [("exp", np.exp), ("tanh", lambda x: 1 / np.cosh(x) ** 2), ("floor", lambda x: 0 * x), ("square", lambda x: 2 * x)],
)
def test_tangents_of_functions(op: str, slope: Callable[[np.ndarray], np.ndarray]) -> None:
    x = np.array([0.5, -1.25, 2.25, -3.125], F)
    case = applied(op, x)
    found, right = jvp.expect(case).values[0], jvp.tangents(case.graph)["x0"] * slope(x.astype(np.float64))
    assert np.all(np.abs(found.value - right) <= 1e-9 * np.abs(right))
    assert np.all(found.error <= 6e-6 * np.abs(right) + 2e-6)


@pytest.mark.slow
def test_forwards_and_backwards_agree() -> None:
    """<weights, J tangents> = <J' weights, tangents>, in float64 and for each of two accumulations."""
    compared = 0
    operators = JVP.drawn
    for number in range(20):
        case = seeded_case(11, number, 2, operators, JVP.style)
        pushed, pulled = jvp.expect(case), gradient.expect(case)
        bounds = (*pushed.values, *pulled.values)
        if not bounds or any(bound.undetermined.any() for bound in bounds):
            continue
        weights, tangents = gradient.weights(case.graph), jvp.tangents(case.graph)
        outputs = [case.graph.outputs[i] for i in jvp.moved(case.graph)]
        ahead = [parts_of(weights[n]) * parts_of(b.value) for n, b in zip(outputs, pushed.values, strict=True)]
        back = [parts_of(t) * parts_of(b.value) for t, b in zip(tangents.values(), pulled.values, strict=True)]
        size = sum(np.sum(np.abs(a)) for a in (*ahead, *back))
        assert abs(sum(map(np.sum, ahead)) - sum(map(np.sum, back))) <= 1e-7 * size + 1e-9, case.graph
        compared += 1
    assert compared > 4


def test_ties_that_no_element_breaks_alone_are_undetermined() -> None:
    found = jvp.expect(applied("sort", np.zeros(3, F), axis=0, descending=False)).values[0]
    assert found.undetermined.all()


# ---- second derivatives ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "bend"),
    [
        ("exp", np.exp),
        ("tanh", lambda x: -2 * np.tanh(x) / np.cosh(x) ** 2),
        ("square", lambda x: 2 + 0 * x),
        ("relu", lambda x: 0 * x),
    ],
)
def test_second_derivatives_of_functions(op: str, bend: Callable[[np.ndarray], np.ndarray]) -> None:
    x = np.array([0.5, -1.25, 2.25, -3.125], F)
    case = applied(op, x)
    found = hessian.expect(case).values[0]
    size = gradient.weights(case.graph)["v0"].astype(float) * jvp.tangents(case.graph)["x0"] * bend(x.astype(float))
    assert np.all(np.abs(found.value - size) <= 1e-8 * np.abs(size))
    assert np.all(found.error <= 1e-5 * np.abs(size) + 4e-6)


def test_products_bend_by_the_other_operand_even_at_zero() -> None:
    x, y = np.array([[0.5, -1.25], [2.25, 0.0]], F), np.array([[1.0, 0.0], [0.0, 2.0]], F)
    case = applied("matmul", x, y)
    weights, (t, s) = gradient.weights(case.graph)["v0"].astype(float), jvp.tangents(case.graph).values()
    for bound, right in zip(hessian.expect(case).values, (weights @ s.T, t.T @ weights), strict=True):
        assert np.allclose(bound.value, right, rtol=0, atol=1e-9)
        assert np.all(bound.error <= 1e-5)


@pytest.mark.slow
def test_second_derivatives_are_differences_of_gradients() -> None:
    """Of whole graphs, along the tangents; in float64, whose arrays can be moved."""
    compared, smooth = 0, Style(("float64",), (SMOOTH_CHOICES,))
    operators = ("exp", "matmul", "mul", "softmax", "sin", "layer_norm", "div", "sigmoid", "logsumexp", "linear", "sum")
    for number in range(12):
        case = seeded_case(12, number, 3, operators, smooth)
        found = hessian.expect(case).values
        if not found or not all(o.dtype == "float64" and np.all(o.error <= 1e-3) for o in found):
            continue
        tangents = jvp.tangents(case.graph)

        def gradients(step: float, case: Case = case, tangents: Arrays = tangents) -> list[np.ndarray]:
            moved = {n: a + step * tangents[n] if n in tangents else a for n, a in case.arrays.items()}
            values = reference.evaluate(case.graph, moved)
            weights = gradient.weights(case.graph)
            adjoints = gradient.accumulate(
                case.graph, values, weights, node_jacobians(case.graph, values), frozenset(tangents)
            )
            return [adjoints[n].value for n in tangents]

        h = 2.0**-10
        sides = [[(a - b) / (2 * s) for a, b in zip(gradients(s), gradients(-s), strict=True)] for s in (h, h / 2)]
        for bound, long, short in zip(found, *sides, strict=True):
            right = (4 * short - long) / 3
            assert np.all(np.abs(bound.value.ravel() - right) <= 1e-6 * (1 + np.max(np.abs(right), initial=0.0)))
            compared += 1
    assert compared > 6


def test_steps_of_great_angles_are_no_whole_periods() -> None:
    case = applied("cos", np.array([1647100.0], F))
    found, weight = hessian.expect(case).values[0], gradient.weights(case.graph)["v0"]
    right = -np.cos(1647100.0) * weight * jvp.tangents(case.graph)["x0"]
    assert np.abs(found.value - right) <= 1e-3 * found.error
    assert not found.undetermined.any()


def test_a_jump_of_the_slope_leaves_the_second_derivative_open() -> None:
    found = hessian.expect(applied("relu_squared", np.array([0.0, 1.0, -1.0], F))).values[0]
    assert list(found.undetermined) == [True, False, False]


def test_a_drawn_graph_is_cut_to_its_first_nodes() -> None:
    for index in range(6):
        case = hessian.prepare(seeded_case(3, index))
        assert 0 < len(case.graph.nodes) <= hessian.NODES
        check(case.graph)
        assert hessian.prepare(case) is case
        assert set(case.arrays) == {leaf.name for leaf in case.graph.leaves}


# ---- vectorised maps ------------------------------------------------------------------------------------


def test_each_lane_is_a_case_of_its_own() -> None:
    case = chain_case()
    lanes, stacked = vmap.lanes(case), vmap.arrays(case)
    assert len(lanes) == vmap.LANES
    for leaf in case.graph.inputs:
        assert stacked[leaf.name].shape == (vmap.LANES, *leaf.type.shape)
        assert np.array_equal(lanes[0].arrays[leaf.name], case.arrays[leaf.name])
        assert not np.array_equal(lanes[1].arrays[leaf.name], case.arrays[leaf.name])
    for leaf in case.graph.parameters:
        assert all(lane.arrays[leaf.name] is case.arrays[leaf.name] for lane in lanes)
    found = vmap.expect(case)
    for number, lane in enumerate(lanes):
        for bound, single in zip(found.values, forward.expect(lane).values, strict=True):
            assert np.array_equal(bound.value[number], single.value)
            assert np.array_equal(bound.error[number], single.error)


# ---- autocast -------------------------------------------------------------------------------------------


def test_casts_stand_where_the_lists_say() -> None:
    case = applied("matmul", np.ones((2, 3), F), np.ones((3, 2), F))
    low = autocast.dtype(case.graph)
    after = autocast.rewritten(case.graph)
    assert isinstance(after, Graph)
    assert [node.op for node in after.nodes] == ["cast", "cast", "matmul"]
    assert after.types["v0"].dtype == low
    plain = autocast.rewritten(applied("exp", np.ones(3, F)).graph)
    assert isinstance(plain, Graph)
    assert [node.op for node in plain.nodes] == ["exp"]
    wide = autocast.rewritten(applied("matmul", np.ones((2, 3)), np.ones((3, 2))).graph)
    assert isinstance(wide, Graph)
    assert wide.types["v0"].dtype == "float64"


def test_mixed_dtypes_are_promoted_or_not_asked() -> None:
    square = TensorType(F, (3, 3))
    leaf, product = Leaf("x0", square), Node("v0", "matmul", ("x0", "x0"), (), square)
    for op, told in (("add", True), ("concat", True), ("cross", False)):
        attrs = {"add": (), "concat": (("axis", 0),), "cross": ()}[op]
        type_ = TensorType(F, (6, 3)) if op == "concat" else square
        graph = check(Graph((leaf,), (product, Node("v1", op, ("v0", "x0"), attrs, type_)), ("v1",)))
        after = autocast.rewritten(graph)
        assert isinstance(after, Graph) == told
        if isinstance(after, Graph):
            assert after.types["v1"].dtype == F
