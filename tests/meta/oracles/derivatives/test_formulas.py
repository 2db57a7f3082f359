"""Bounds of gradients from known formulas: what is exact, what each formula says, and faults in the sixth digit."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from generators.bounds.bounded import Bounded
from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import SMOOTH, Case, SeededDraw, Style, build_case
from generators.ops import OPS, check
from generators.ops.spec import Call
from harness.studies.errors.allowed import allowed, cases
from oracles.derivatives import gradient, hessian
from oracles.derivatives.jacobians.measured import function_of, jacobian
from oracles.derivatives.node_jacobians import node_jacobians
from oracles.derivatives.rounding import formulas
from oracles.derivatives.rounding.adjoints import ADJOINTS
from oracles.questions import forward

X = np.array([0.5, -1.25, 2.25, -0.125], np.float32)
U = 2.0**-24


def of(op: str, *arrays: np.ndarray, **attrs: object) -> list[Bounded]:
    """Expected gradients of a case of one node whose result has the first operand's shape."""
    leaves = tuple(Leaf(f"x{i}", TensorType(str(a.dtype), a.shape)) for i, a in enumerate(arrays))
    names = tuple(leaf.name for leaf in leaves)
    node = Node("v0", op, names, tuple(attrs.items()), leaves[0].type)  # type: ignore[arg-type]
    case = Case(check(Graph(leaves, (node,), ("v0",))), dict(zip(names, arrays, strict=True)))
    return list(gradient.expect(case).values)


@pytest.mark.parametrize("op", ["neg", "abs", "relu", "maximum", "sub", "identity", "flip"])
def test_what_is_only_moved_is_exact(op: str) -> None:
    given = (X, X[::-1].copy()) if op in ("maximum", "sub") else (X,)
    for found in of(op, *given, **({"axes": (0,)} if op == "flip" else {})):
        assert np.all(found.error < 1e-300)
        assert set(np.abs(found.value * 64) % 1) == {0}


def sized(case: Case) -> bool:
    """Does every operand have elements, not too many, and a gradient?"""
    fits = all(0 < leaf.type.size <= 400 for leaf in case.graph.leaves)
    return fits and bool(gradient.differentiable_leaves(case.graph))


def small(case: Case) -> bool:
    """And not many elements?"""
    return sized(case) and all(leaf.type.size <= 64 for leaf in case.graph.leaves)


@pytest.mark.slow(one_in=2)
@pytest.mark.parametrize("op", sorted(formulas.FORMULAS))
def test_each_formula_says_what_differences_say(op: str) -> None:
    compared = 0
    for number in range(12):
        case = build_case(SeededDraw(f"{op}/{number}"), 1, (op,), Style(("float32",), SMOOTH.mixture[:1]))
        if case.graph.operators != (op,) or not sized(case):
            continue
        values = gradient.evaluated(case)
        local = node_jacobians(case.graph, values, backwards=True)
        for position in range(len(case.graph.nodes[0].operands)):
            slopes = local(0, position)
            assert slopes.known is not None
            if slopes.known.size is None:  # its roundings are counted
                assert op == "addcdiv"
                assert position < 2
                continue
            clear = slopes.error < 1e-6 * np.abs(slopes.value)
            said = slopes.known.size[slopes.rows][clear]
            seen = np.abs(slopes.value[clear])
            assert np.all(np.abs(said - seen) <= 1e-5 * seen)
            compared += said.size
    assert compared > 3


@pytest.mark.parametrize("op", ["div", "addcdiv"])
def test_a_square_that_overflows_on_the_way_decides_nothing(op: str) -> None:
    """b / (c c) of float16 is 0 where c c is infinite, b / c / c is not."""
    b, c = np.array([3000, 3], np.float16), np.array([1695, 7], np.float16)
    given = (b, c) if op == "div" else (np.ones(2, np.float16), b, c)
    by_divisor = of(op, *given, **({} if op == "div" else {"value": 1.0}))[-1]
    assert by_divisor.error[0] >= abs(by_divisor.value[0])
    assert by_divisor.error[1] < 0.01 * abs(by_divisor.value[1])


def test_a_sum_on_the_way_may_be_subnormal() -> None:
    """What is left of two numbers next to 2^-1021 may be flushed; nothing is of 1e-280, nor of one term."""
    tiny = 2.0**-1021
    for size, lost in ((tiny, 2.0**-1022), (1e-280, 0.0)):
        by_weights = of("matmul", np.full((2, 2), size), np.full((2, 2), 1.5))[1]
        assert (by_weights.error >= lost).all()
        assert lost or (by_weights.error < 1e-290).all()
    assert (of("mul", np.array([tiny * 8]), np.array([1.0]))[1].error < 2.0**-1022).all()


@pytest.mark.parametrize("op", sorted(ADJOINTS))
def test_each_formula_of_adjoints_says_what_differences_say(op: str) -> None:
    compared = 0
    for number in range(6):
        case = build_case(SeededDraw(f"{op}/{number}"), 1, (op,), Style(("float64",), SMOOTH.mixture[:1]))
        if case.graph.operators != (op,) or not small(case):
            continue
        values, node = gradient.evaluated(case), case.graph.nodes[0]
        g = np.random.default_rng(number).uniform(0.5, 1.5, values[node.name].value.size)
        for position, name in enumerate(node.operands):
            if case.graph.types[name].dtype != "float64":
                continue
            slopes = node_jacobians(case.graph, values, backwards=True)(0, position)
            assert slopes.known is not None
            assert slopes.known.adjoint is not None
            said, lost = slopes.known.adjoint(g)
            size = values[name].value.size
            seen = np.bincount(slopes.columns, slopes.value * g[slopes.rows], size)
            off = np.bincount(slopes.columns, slopes.error * g[slopes.rows], size)
            clear = np.isfinite(off) & (off < 1e-6 * np.abs(seen))
            assert np.all(np.abs(said - seen)[clear] <= (1e-5 * np.abs(seen) + lost)[clear])
            compared += np.count_nonzero(clear)
    assert compared > 3


def test_faults_in_the_sixth_digit_are_outside() -> None:
    """A derivative of tanh that is off by 1e-6, of exp by 5e-7, the constant of erf's by 1e-6."""
    for op, off in (("tanh", 1e-6), ("exp", 5e-7), ("erf", 1e-6), ("log", 5e-7), ("mul", 2e-7)):
        found = of(op, X if op != "log" else abs(X), *([X] if op == "mul" else []))[0]
        assert (np.abs(off * found.value) > found.error).any(), op


CONSTANTS = {
    **dict.fromkeys(("addcmul", "mul_mixed", "prelu"), 4e-7),
    **dict.fromkeys(("avg_pool1d", "celu", "lerp", "mean_n", "selu"), 6e-7),
    **dict.fromkeys(("elu", "huber_loss", "l1_loss", "mse_loss", "scalar_div", "sigmoid", "xlogy"), 1e-6),
    **dict.fromkeys(("batch_norm", "cumprod", "gelu_tanh", "glu", "hard_swish", "kl_div", "log_softmax"), 2e-6),
}
"""By operator, a relative error of its gradient. Of these 22, 17 were within the bound before formulas were known."""


@pytest.mark.parametrize("op", CONSTANTS)
def test_constants_that_are_wrong_in_the_sixth_digit_are_outside(op: str) -> None:
    found = [gradient.expect(case) for case in filter(small, cases(op, "float32", 3))]
    values = [v for e in found for t, v in zip(e.types, e.values, strict=True) if t.dtype == "float32"]
    assert any((np.abs(CONSTANTS[op] * v.value) > v.error).any() for v in values)


def test_a_formula_whose_square_overflows_may_say_something_else() -> None:
    """JAX's slope of softsign at 4e21 is 1 / (1 + x) less x by an infinity, where 0 is right."""
    found = of("softsign", np.array([4e21], np.float32))[0]
    assert found.error[0] > 0.5 / 4e21


def test_the_figures_that_are_told() -> None:
    assert allowed("neg", "float32", 4, gradient.expect).median < 1e-6
    values, gradients = (allowed("exp", "float32", 4, expect).median for expect in (forward.expect, gradient.expect))
    assert 5 < values < gradients < 2 * values


def test_an_operand_that_is_not_determined_hides_no_source() -> None:
    """Of four weights those of the first row are open, and what stands there is 1 and 0: the first result may depend on
    both rows of the other operand, and not on the first one alone. The second result is known, of the second row."""
    weights = Bounded(np.eye(2), np.array([[np.inf, np.inf], [0.0, 0.0]]), "float32")
    x = Bounded(np.array([[3.0], [5.0]]), np.zeros((2, 1)), "float32")
    types = TensorType("float32", (2, 2)), TensorType("float32", (2, 1))
    call = Call(types, {}, types[1])
    result = OPS["matmul"].reference([weights, x], call)
    found = jacobian(function_of(OPS["matmul"], [weights, x], call), [weights, x], 1, result)
    slopes = set(zip(found.rows.tolist(), found.columns.tolist(), np.isinf(found.error).tolist(), strict=True))
    assert {(0, 0, True), (0, 1, True), (1, 1, False)} <= slopes
    assert not {(1, 0, True), (1, 1, True)} & slopes


def test_a_step_that_is_lost_beside_a_great_element_shows_no_second_derivative() -> None:
    """1e14 does not move by the step that suits 1.0: its second derivative, -sin, is not 0 but not told."""
    leaf = Leaf("x", TensorType("float64", (2,)))
    graph = check(Graph((leaf,), (Node("y", "sin", ("x",), (), leaf.type),), ("y",)))
    (found,) = hessian.expect(Case(graph, {"x": np.array([1e14, 1.0])})).values
    assert np.isinf(found.error).tolist() == [True, False]


def test_what_cancels_in_the_reference_is_in_the_bound_of_a_second_derivative() -> None:
    """tanhshrink is 2 x near 0 by its second derivative, and as far off as tanh a step away."""
    x = np.array([2.0**-9, 22.0, 2.0**-28, 2.0**-55, 1.0])
    leaf = Leaf("x0", TensorType("float64", x.shape))
    case = Case(Graph((leaf,), (Node("v0", "tanhshrink", ("x0",), (), leaf.type),), ("v0",)), {"x0": x})
    found, given = hessian.expect(case).values[0], hessian.program_inputs(case)
    exact = 2 * np.tanh(x) / np.cosh(x) ** 2 * given["tangent_x0"] * gradient.weights(case.graph)["v0"]
    assert np.all(np.abs(found.value - exact) <= found.error)
    assert np.all(found.error < 1e-6)


def test_a_gradient_may_vanish_in_the_narrower_dtype_of_its_operand() -> None:
    """Of float32 times a float64 of 1e-301 the gradient by the first is 0 in float32."""
    leaves = Leaf("x", TensorType("float32", (1,))), Leaf("z", TensorType("float64", (1,)))
    graph = check(Graph(leaves, (Node("y", "mul_mixed", ("x", "z"), (), leaves[1].type),), ("y",)))
    first, second = gradient.expect(Case(graph, {"x": np.array([2.0], np.float32), "z": np.array([-1e-301])})).values
    assert 1e-301 < first.error.item() < 2e-38
    assert second.error.item() < 1e-11


def test_a_slope_that_underflows_with_what_it_is_multiplied_by_is_not_exactly_zero() -> None:
    """-1e-258 times 2e-132 is 0 however it is moved; the slope is 2e-132. The second element crosses
    0 by longer steps."""
    leaves = Leaf("x", TensorType("float64", (1, 2))), Leaf("slope", TensorType("float64", (2,)))
    graph = check(Graph(leaves, (Node("y", "prelu", ("x", "slope"), (), leaves[0].type),), ("y",)))
    arrays = {"x": np.array([[-4e293, -1e-258]]), "slope": np.array([0.0, 2e-132])}
    found = gradient.expect(Case(graph, arrays)).values[0]
    exact = 2e-132 * gradient.weights(graph)["y"].astype(np.float64).ravel()[1]
    assert abs(found.value.ravel()[1] - exact) <= found.error.ravel()[1] < 1e-50


def test_between_two_bounds_that_are_equal_to_it_a_number_may_have_any_slope() -> None:
    """Each of minimum(maximum(x, 2), 2) may say 1 at x = 2, though the function is constant, and by the first 2."""
    one = TensorType("float64", (1, 1))
    leaves = Leaf("x", TensorType("float64", (1, 3))), Leaf("low", one), Leaf("high", one)
    graph = check(Graph(leaves, (Node("y", "clip_tensors", ("x", "low", "high"), (), leaves[0].type),), ("y",)))
    arrays = {"x": np.array([[1.0, 2.0, 3.0]]), "low": np.array([[2.0]]), "high": np.array([[2.0]])}
    found, by_low, by_high = gradient.expect(Case(graph, arrays)).values
    assert np.isinf(found.error).tolist() == [[False, True, False]]
    assert np.isinf(by_low.error).all()
    assert np.isfinite(by_high.error).all()
    assert found.value[0, [0, 2]].tolist() == [0, 0]


@pytest.mark.parametrize("op", ["hard_sigmoid", "hard_swish"])
def test_a_sum_that_is_rounded_to_the_end_of_a_piece_may_have_the_slope_of_either_side(op: str) -> None:
    """In bfloat16 2.984375 + 3 is 6; in float32 so is 3 less one unit in the last place."""
    found = of(op, np.array([2.984375, 2.5], ml_dtypes.bfloat16))[0]
    assert np.isinf(found.error).tolist() == [True, False]
    near = of(op, np.array([np.nextafter(np.float32(3), np.float32(0)), 2.99], np.float32))[0]
    assert near.error[1] < 1e-6 < 1e-2 < near.error[0]


def test_steps_across_many_divisors_show_no_slope_of_a_remainder() -> None:
    """By x = 2^31 the longest and the shortest of them move fmod(x, 2^-14 + 2^-37) by less than nothing."""
    x, divisor = np.array([2147483600.0, 1.5], np.float32), np.array([2.0**-14 * (1 + 2.0**-23), 1.0], np.float32)
    found = of("fmod", x, divisor)[0]
    assert found.error[0] >= 0.5 > 1e-6 > found.error[1]


def test_a_quotient_that_is_subnormal_may_be_rounded_either_way() -> None:
    by_divisor = of("remainder", np.array([2.0**-126, 2.5], np.float32), np.array([-1.5, 1.0], np.float32))[1]
    assert by_divisor.error[0] >= 0.5
    assert by_divisor.error[1] < 1e-5


def test_the_square_that_the_slope_of_sinc_is_divided_by_may_be_lost() -> None:
    found = of("sinc", np.array([1e-30, 0.0, 1e-3], np.float32))[0]
    assert np.isinf(found.error).tolist() == [True, False, False]
    wide = of("sinc", np.array([1e-43, 1e-3]))[0]  # (cos(pi x) - sinc(x)) / x loses u / x
    assert 2.0**-53 / 1e-43 < wide.error[0] < 2.0**-46 / 1e-43
    assert wide.error[1] < 1e-10


def test_the_cube_within_gelu_tanh_may_overflow() -> None:
    found = of("gelu_tanh", np.array([-1e14, -1e12, 1.0], np.float32))[0]
    assert np.isinf(found.error).tolist() == [True, False, False]


def test_the_slope_of_lgamma_is_as_good_as_digamma_near_its_zero() -> None:
    found = of("lgamma", np.array([1.5], np.float32))[0]
    assert 16 * U < found.error[0] < 128 * U


def test_the_chain_rule_of_a_gate_may_overflow_before_it_vanishes() -> None:
    """g x s (1 - s) is infinity times 0 in float16 where x is 64000 and g greater than 1.03; so is 2 x of swish."""
    x = np.full(16, 64000, np.float16)
    silu, swish = of("silu", x)[0], of("swish", x, alpha=2.0)[0]
    finite = np.isfinite(silu.error)
    assert finite.any()
    assert not finite.all()
    assert (np.abs(silu.value[finite]) < 1.03).all()
    assert np.isinf(swish.error).all()


def test_stairs_that_are_narrower_than_any_step_are_no_slope() -> None:
    """x // 7e-6 is 0 up to there, and 30 // 7 is no jump, as 14 // 7 is."""
    by_x = of("floor_divide", np.array([3e-6, 30.0, 14.0], np.float32), np.array([7e-6, 7.0, 7.0], np.float32))[0]
    assert by_x.value[:2].tolist() == [0, 0]
    assert np.isinf(by_x.error).tolist() == [False, False, True]
    assert by_x.error[0] < 1e-30
