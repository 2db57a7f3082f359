"""The gradient oracle: its values against differences of whole graphs, its bounds, what it leaves open, what passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
from examples.one_node import applied

from generators.bounds.bounded import Bounded
from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import SMOOTH, Case, seeded_case
from generators.ops import check
from harness.backends import TARGETS
from harness.backends.programs import gradient as gradient_programs
from harness.execute.pool import Pool
from harness.findings.known import issues as known_issues
from harness.questions.derivatives.gradient import GRADIENT, differentiable
from harness.search.laboratory import Laboratory
from oracles.derivatives import gradient, hessian
from oracles.derivatives.complex_pairs import parts_of
from oracles.derivatives.node_jacobians import node_jacobians
from oracles.judge import reference
from oracles.judge.outcome import Rejected

F = "float32"


def expected(case: Case, number: int = 0) -> Bounded:
    return gradient.expect(case).values[number]


def weight(case: Case) -> np.ndarray:
    return gradient.weights(case.graph)["v0"].astype(np.float64)


X = np.array([0.5, -1.25, 2.25, -3.125], np.float32)


def test_a_kink_between_the_steps_does_not_pass_for_curvature() -> None:
    """At 4/9 of the longest step the first correction happens to be a quarter, as of a smooth function."""
    case = applied("clip", np.array([1 - 4 / 9 * 2.0**-9]), min=0.0, max=1.0)
    found = expected(case)
    assert abs(found.value[0] - weight(case)[0]) <= found.error[0]


def test_a_longer_step_across_a_kink_does_not_deny_a_short_one() -> None:
    """Beside 1e34 a step of an eighth reaches across 0, where the curvature of relu(x)**2 jumps, and looks precise."""
    case = applied("relu_squared", np.array([1e34, 0.04056345671415329], np.float32))
    assert abs(expected(case).value[1] - 2 * 0.04056345671415329 * weight(case)[1]) <= expected(case).error[1] < 1e-8


def test_what_is_written_to_one_place_twice_may_depend_on_either() -> None:
    """Of two rows of zeros with both written to place 0: one element of the operand is left, and it is known."""
    type_, places = TensorType("float64", (1, 2)), Leaf("i", TensorType("int32", (1, 2)), domain=(0, 0))
    node = Node("v0", "scatter", ("x", "i", "x"), (("axis", 1),), type_)
    graph = check(Graph((Leaf("x", type_), places), (node,), ("v0",)))
    case = Case(graph, {"x": np.zeros((1, 2)), "i": np.zeros((1, 2), np.int32)})
    assert np.isinf(expected(case).error).all()


def test_beside_nan_what_moves_nothing_is_open_too() -> None:
    """Every window here holds padding alone, which frameworks may multiply by a weight that is NaN."""
    x, w = np.zeros((1, 3, 1, 1), np.float32), np.zeros((9, 1, 1, 1), np.float32)
    w[8] = np.nan
    case = applied("depthwise_conv2d", x, w, stride=(2, 2), padding=(0, 1))
    assert np.isinf(expected(case).error).all()


def test_who_moves_a_result_too_little_for_a_slope_is_not_guessed() -> None:
    """Beside a bias of 41 a weight of 1.8e-10 is lost in the differences, and operand and result look alike."""
    weights = np.array([[0, 0], [1.8e-10, 0]], np.float32)
    case = applied("linear", np.zeros(2, np.float32), weights, np.full(2, -41, np.float32))
    found = node_jacobians(case.graph, reference.evaluate(case.graph, case.arrays))(0, 0)
    assert [*zip(found.rows, found.columns, strict=True)] == [(1, 0)]
    assert found.error[0] >= 1.8e-10
    assert found.floor[1] > 0


def test_what_jax_says_it_has_no_gradient_of_is_refused() -> None:
    said = "scatter_mul gradients are only implemented if `unique_indices=True`"
    assert GRADIENT.refusal(TARGETS["jax-eager"], Rejected("NotImplementedError", said))
    assert GRADIENT.refusal(TARGETS["jax-eager"], Rejected("NotImplementedError", "scatter_mul failed")) is None


def test_slopes_are_measured_once_for_all_targets_and_anew_for_whatever_differs() -> None:
    x = np.array([0.5, -0.0, 2.0], np.float32)
    cases = [
        applied("tanh", x), applied("tanh", x.copy()), applied("tanh", np.abs(x)), applied("sin", x),
        applied("softmax", x, axis=0), applied("softmax", x.reshape(1, 3), axis=0),
        applied("softmax", x.reshape(1, 3), axis=1),
    ]  # fmt: skip
    slopes = [node_jacobians(case.graph, reference.evaluate(case.graph, case.arrays))(0, 0) for case in cases]
    assert slopes[0] is slopes[1]
    assert len(set(map(id, slopes))) == len(cases) - 1
    values = reference.evaluate(cases[0].graph, cases[0].arrays)
    assert node_jacobians(cases[0].graph, values, backwards=True)(0, 0) is not slopes[0]
    wider = {**values, "x0": replace(values["x0"], error=np.full(3, 1e-3))}
    assert (node_jacobians(cases[0].graph, wider)(0, 0).moved > slopes[0].moved).any()
    with pytest.raises(ValueError, match="read-only"):
        slopes[0].value[0] = 0.0


@pytest.mark.parametrize(
    ("op", "slope"),
    [
        ("exp", np.exp),
        ("tanh", lambda x: 1 / np.cosh(x) ** 2),
        ("square", lambda x: 2 * x),
        ("floor", lambda x: 0 * x),
        ("sign", lambda x: 0 * x),
        ("relu", lambda x: (x > 0) * 1.0),
    ],
)
def test_slopes_of_functions(op: str, slope: Callable[[np.ndarray], np.ndarray]) -> None:
    case = applied(op, X)
    found, right = expected(case), weight(case) * slope(X.astype(np.float64))
    assert np.all(np.abs(found.value - right) <= 1e-9 * np.abs(right))
    assert np.all(found.error <= 6e-6 * np.abs(right) + 2e-6)


@pytest.mark.parametrize("op", ["floor", "sqrt", "sign", "frac", "cbrt"])
def test_cusps_jumps_and_edges_are_undetermined(op: str) -> None:
    found = expected(applied(op, np.array([0.0, 1.5], np.float32)))
    assert found.undetermined.tolist() == [True, False]


@pytest.mark.parametrize(
    ("op", "x", "attrs", "between"),
    [
        ("relu", [0, 1.5, -1], {}, [(0, 1), (1, 1), (0, 0)]),
        ("abs", [0, 1.5, -1], {}, [(-1, 1), (1, 1), (-1, -1)]),
        ("clip", [1, 2, 3], {"min": 1.0, "max": 2.0}, [(0, 1), (0, 1), (0, 0)]),
        ("kth_value", [1, 1, 1, 0], {"k": 3, "axis": 0}, [(0, 1), (0, 1), (0, 1), (0, 0)]),
        ("linf_norm", [3, -3, 1], {"axes": (0,), "keepdims": False}, [(0, 1), (-1, 0), (0, 0)]),
        ("max", [1, 1, 0], {"axes": (0,), "keepdims": False}, [(0, 1), (0, 1), (0, 0)]),
        ("leaky_relu", [0, 1.5, -1], {"alpha": 0.1}, [(0.1, 1), (1, 1), (0.1, 0.1)]),
        ("relu6", [0, 6, 7], {}, [(0, 1), (0, 1), (0, 0)]),
        ("hard_sigmoid", [-3, 3, 0], {}, [(0, 1 / 6), (0, 1 / 6), (1 / 6, 1 / 6)]),
        ("hard_swish", [-3, 3, 4], {}, [(-0.5, 0), (1, 1.5), (1, 1)]),
        ("elu", [0, 1.5, -50], {"alpha": 0.5}, [(0.5, 1), (1, 1), (0, 0)]),
        ("softshrink", [0.5, 1, 0], {"lambd": 0.5}, [(0, 1), (1, 1), (0, 0)]),
        ("ptp", [1e30, 1, 0, 1], {"axes": (0,), "keepdims": False}, [None, (0, 0), (-1, -1), (0, 0)]),
    ],
)
def test_where_a_choice_is_open_the_slope_lies_between_both(op: str, x: list, attrs: dict, between: list) -> None:
    """And is exact beside it."""
    result = () if op in ("kth_value", "linf_norm", "max", "ptp") else (len(x),)
    case = applied(op, np.array(x, np.float32), **attrs)
    assert case.graph.types["v0"].shape == result
    found, g = expected(case), np.broadcast_to(weight(case), (len(x),))
    for i, sides in enumerate(between):
        if sides is None or np.isinf(found.error[i]):
            continue
        low, high = sorted(side * g[i] for side in sides)
        assert found.value[i] - found.error[i] == pytest.approx(low, abs=1e-6 if found.error[i] < 2 else 1e30)
        assert found.value[i] + found.error[i] == pytest.approx(high, abs=1e-6 if found.error[i] < 2 else 1e30)
    assert sum(np.isinf(found.error)) <= between.count(None)


def test_the_slope_at_a_kink_is_that_of_a_side_or_between() -> None:
    """300 times that of a side is found, and so is that of no side."""
    case = applied("leaky_relu", np.zeros(1, np.float32), alpha=0.1)
    found, g = expected(case), weight(case)
    for slope, right in ((0.1, True), (1.0, True), (0.55, True), (30.0, False), (0.0, False), (-0.1, False)):
        assert (abs(slope * g[0] - found.value[0]) <= found.error[0]) == right, slope


@pytest.mark.parametrize("great", [0, 1])
def test_beside_a_great_element_of_a_product_no_slope_is_lost(great: int) -> None:
    """1e228 in one operand, beside which the differences show nothing of the others."""
    x, y = np.zeros((2, 3)), np.array([[1.5, 2.5], [3.0, -4.0], [0.5, -1.0]])
    x[0, 2], x[1, 1] = 1.375, 0.25
    (x if great == 0 else y)[0, 1] = 1e228
    case = applied("matmul", x, y)
    g = weight(case)
    for number, right in enumerate((g @ y.T, x.T @ g)):
        found = expected(case, number)
        assert (np.abs(found.value - right) <= found.error + 1e-15 * np.abs(right)).all()
        assert number != great or (found.error < 1e-9).all()


@pytest.mark.parametrize("op", ["addcmul", "addcdiv"])
def test_beside_a_great_addend_no_slope_is_lost(op: str) -> None:
    """1e289 and 3 / 7: the differences of the sum show nothing of 7."""
    case = applied(op, np.array([1e289, 1.0]), np.array([3.0, 3.0]), np.array([7.0, 7.0]), value=1.0)
    found, right = expected(case, 2), weight(case) * (3.0 if op == "addcmul" else -3.0 / 49)
    assert (np.abs(found.value - right) <= found.error).all()
    assert op == "addcdiv" or (found.error < 1e-11).all()


def test_the_greater_of_x_and_x_is_x() -> None:
    type_ = TensorType("float32", (3,))
    graph = check(Graph((Leaf("x0", type_),), (Node("v0", "maximum", ("x0", "x0"), (), type_),), ("v0",)))
    case = Case(graph, {"x0": np.array([0, 1, -2], np.float32)})
    found = expected(case)
    assert (found.value == weight(case)).all()
    assert found.error.max() < 1e-30


def test_at_zero_times_the_logarithm_of_zero_the_slope_is_open() -> None:
    """x / y is 0 / 0 there: NaN in PyTorch and JAX, 0 in TensorFlow. Beside it the slope is known."""
    case = applied("xlogy", np.array([0.0, 0.0, 1.5]), np.array([0.0, 2.0, 3.0]))
    assert np.isinf(expected(case, 1).error).tolist() == [True, False, False]


@pytest.mark.parametrize("question", [gradient, hessian])
def test_what_the_steps_of_an_operator_leave_out_has_no_slope(question: ModuleType) -> None:
    """The running statistics, in training."""
    image, row = TensorType(F, (1, 1, 2, 2)), TensorType(F, (2,))
    leaves = (Leaf("x", image), *(Leaf(name, row) for name in ("scale", "offset", "mean")))
    leaves += (Leaf("variance", row, domain=(0, 4)),)
    attrs = {"training": True, "output": "y", "epsilon": 1.0, "last": 3}
    node = Node("y", "fused_batch_norm", tuple(leaf.name for leaf in leaves), tuple(attrs.items()), image)
    arrays = {leaf.name: np.arange(1, leaf.type.size + 1, dtype=F).reshape(leaf.type.shape) for leaf in leaves}
    found = question.expect(Case(check(Graph(leaves, (node,), ("y",))), arrays))
    assert all(np.all(value.value == 0) and np.all(value.error < 1e-300) for value in found.values[3:])


def test_the_angle_of_a_great_number_is_rounded_by_a_period() -> None:
    """The cosine of pi times 8388607.5, where twice the roundoff of x is one, and the slope the same beside it."""
    found = expected(applied("sinc", np.array([8388607.5, 0.25], np.float32)))
    assert 1e-7 < found.error[0] < 5e-7
    assert found.error[1] < 1e-5


def test_a_staircase_is_no_slope() -> None:
    found = expected(applied("floor", np.array([10000.5, -700.25, 3.5], np.float32)))
    assert found.value.tolist() == [0, 0, 0]
    assert not found.undetermined.any()
    found = expected(applied("floor", np.array([10000.5, 2.0, 1e20, -3000.0, 700.25], np.float32)))
    assert found.undetermined.tolist() == [False, True, True, True, False]
    assert not found.value[[0, 4]].any()


@pytest.mark.parametrize("op", ["sin", "neg", "floor"])
def test_a_short_step_that_is_lost_in_great_numbers_tells_nothing(op: str) -> None:
    assert expected(applied(op, np.array([1e20, -3e22], np.float32))).undetermined.all()


def test_a_short_step_that_is_lost_in_great_numbers_that_cancel_tells_nothing() -> None:
    x, y = (np.array([2.0**53 + by, 8.0, -0.5], np.float32) for by in (-(2.0**29), 2.0**30))
    case = applied("sub", x, y)
    for number, sign in ((0, 1), (1, -1)):
        found = expected(case, number)
        assert found.undetermined.tolist() == [True, False, False]
        assert found.value[1:].tolist() == (sign * weight(case)[1:]).tolist()


def test_a_slope_of_what_is_not_finite_is_undetermined_whatever_branch_it_comes_from() -> None:
    """The slope of the first channel is multiplied by -inf, that of the second by numbers."""
    x = np.array([[[-np.inf, 1.0], [-2.0, 3.0]]], np.float32)
    found = expected(applied("prelu", x, np.array([2.0, -1.0], np.float32)), 1)
    assert found.undetermined.tolist() == [True, False]


def test_what_is_not_finite_is_not_taken_to_depend_on_its_own_place_alone() -> None:
    """Of two sums the second one is infinite, and shows nothing; its adjoint reaches both elements."""
    x = np.array([-0.0, -np.inf], np.float32)
    assert expected(applied("cumsum", x, axis=0)).undetermined.all()
    assert expected(applied("exp", x)).undetermined.tolist() == [False, True]


def test_what_cancels_in_a_formula_is_allowed_for_and_no_more() -> None:
    """1 - y * y is off by a few u near saturation, however small the slope is."""
    case = applied("tanh", np.array([6.0], np.float32))
    found = expected(case)
    assert 2 * 2.0**-24 < found.error[0] < 64 * 2.0**-24
    y = np.tanh(np.float32(6.0))
    assert abs(float(weight(case)[0] * (np.float32(1) - y * y)) - found.value[0]) <= found.error[0]


def test_softmax() -> None:
    case = applied("softmax", X, axis=0)
    y, w = np.exp(X.astype(np.float64)), weight(case)
    y /= y.sum()
    assert np.allclose(expected(case).value, y * (w - np.sum(w * y)), rtol=1e-9)


def test_matmul_and_shared_operands() -> None:
    x = np.arange(4, dtype=np.float32).reshape(2, 2)
    leaf = Leaf("x0", TensorType(F, (2, 2)))
    graph = check(Graph((leaf,), (Node("v0", "matmul", ("x0", "x0"), (), leaf.type),), ("v0",)))
    found, w = expected(Case(graph, {"x0": x})), gradient.weights(graph)["v0"].astype(np.float64)
    assert np.allclose(found.value, w @ x.T.astype(float) + x.T.astype(float) @ w, rtol=1e-10)


def test_integers_carry_no_gradient() -> None:
    index = np.array([2, 0, 2], np.int64)
    table = np.ones((3, 2), np.float32)
    leaves = (Leaf("x0", TensorType(F, (3, 2))), Leaf("x1", TensorType("int64", (3,)), domain=(0, 2)))
    node = Node("v0", "embedding", ("x0", "x1"), (), TensorType(F, (3, 2)))
    case = Case(check(Graph(leaves, (node,), ("v0",))), {"x0": table, "x1": index})
    w = weight(case)
    assert gradient.expect(case).names == ("d_x0",)
    assert np.allclose(expected(case).value, [w[1], [0, 0], w[0] + w[2]])


def test_operands_without_elements() -> None:
    case = applied("matmul", np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32))
    assert [bound.value.shape for bound in gradient.expect(case).values] == [(2, 0), (0, 3)]


def test_what_can_be_differentiated_is_derived() -> None:
    for name in ("exp", "matmul", "embedding", "where", "floor", "sort"):
        assert differentiable(name), name
    for name in ("argmax", "equal", "logical_and", "isnan", "bitwise_and", "argsort"):
        assert not differentiable(name), name


def scalar(case: Case) -> float:
    """The weighted sum of all floating outputs."""
    values = reference.evaluate(case.graph, case.arrays)
    weights = gradient.weights(case.graph)
    return sum(float(np.vdot(parts_of(values[name].value), parts_of(w))) for name, w in weights.items())


def test_whole_graphs_agree_with_their_differences() -> None:
    """The accumulated value against central differences of the whole graph, element by element, in float64."""
    compared = 0
    operators = GRADIENT.drawn
    style = replace(SMOOTH, favoured=("float64",), mixture=(("normal", "uniform"),))
    for number in range(40):
        case = seeded_case(3, number, 4, operators, style)
        leaves = gradient.differentiable_leaves(case.graph)
        if not leaves or any(leaf.type.dtype != "float64" for leaf in leaves):
            continue
        found = gradient.expect(case)
        for leaf, bound in zip(leaves, found.values, strict=True):
            for place in list(np.ndindex(leaf.type.shape))[:3]:
                if bound.undetermined[place] or bound.error[place] > 1e-8:
                    continue
                sides = []
                for step in (1e-5, -1e-5):
                    array = case.arrays[leaf.name].copy()
                    array[place] += step
                    sides.append(scalar(Case(case.graph, {**case.arrays, leaf.name: array})))
                if not np.isfinite(sides).all():  # another output is not, which does not concern this leaf
                    continue
                slope = (sides[0] - sides[1]) / 2e-5
                assert abs(slope - bound.value[place]) <= 1e-5 * max(1.0, abs(slope), abs(sides[0])), (number, place)
                compared += 1
    assert compared > 50


@pytest.mark.slow
def test_correct_gradients_are_accepted_well_inside_the_tolerance(pool: Pool) -> None:
    """float32 gradients of PyTorch: most of them within a tenth of what is allowed, and that is a few ulps."""
    lab, target = Laboratory(pool, GRADIENT), TARGETS["torch-eager"]
    ratios: list[float] = []
    allowed: list[float] = []
    issues = [i for i in known_issues.load() if i.names(target.name)]
    known = {name for i in issues for name in i.operators}
    operators = [name for name in GRADIENT.drawn if name not in known]
    for number in range(40):
        case = seeded_case(4, number, 5, operators, SMOOTH)
        seen = lab.examine(case, [target])
        assert seen.verdicts[target.name].status in ("agree", "undetermined", "unsupported"), case.graph
        outputs = getattr(seen.outcomes[target.name], "outputs", ())
        for output, bound in zip(outputs, seen.expected.values if outputs else (), strict=True):
            clear = ~bound.undetermined & (bound.value != 0)
            if bound.dtype == F and clear.any():
                ratios += list((np.abs(output - bound.value)[clear] / bound.error[clear]).ravel())
                allowed += list((bound.error[clear] / np.abs(bound.value[clear])).ravel())
    assert len(ratios) > 200
    assert np.median(ratios) < 0.1
    assert np.median(allowed) < 1e-5


def test_programs_name_what_they_return() -> None:
    case = applied("exp", X)
    text = gradient_programs.program(TARGETS["torch-eager"], case.graph)
    assert "LEAVES = ('x0',)" in text
    assert f"OUTPUTS = {[(F, (4,))]!r}" in text
    assert gradient_programs.unsupported(TARGETS["ort-all"], case.graph)
    assert (
        gradient_programs.unsupported(TARGETS["tvm-O0"], applied("atan", X).graph)
        == "relax.atan has no registered gradient"
    )


def test_a_slope_of_zero_meets_infinity_on_the_way_back() -> None:
    """log2(prelu(0)) is -inf: frameworks multiply its derivative with the operand of prelu, which is 0."""
    x, s, c = (TensorType("float32", shape) for shape in ((1, 2, 2), (2,), (1, 2, 2)))
    nodes = (Node("v0", "prelu", ("x", "s"), (), c), Node("v1", "log2", ("v0",), (), c))
    graph = check(Graph((Leaf("x", x), Leaf("s", s, "parameter")), nodes, ("v1",)))
    values = np.array([[[0.0, -2.0], [-1.0, -2.0]]], np.float32)
    found = gradient.expect(Case(graph, {"x": values, "s": np.array([-0.5, -0.5], np.float32)}))
    slope = found.values[list(found.names).index("d_s")]
    assert slope.undetermined.all()
    clear = gradient.expect(Case(graph, {"x": values - 1, "s": np.array([-0.5, -0.5], np.float32)}))
    assert not clear.values[list(clear.names).index("d_s")].undetermined.any()
