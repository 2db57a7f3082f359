"""References where the arithmetic that they are computed with, or an intermediate result, would mislead them."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from examples.one_node import drawn

from generators.bounds.bounded import Bounded, leaf
from generators.graph import FLOATS, Attr, Graph, Leaf, Node, TensorType
from generators.graphs import Case, SeededDraw
from generators.ops import OPS, check
from generators.ops.composed import compute
from generators.ops.spec import Call
from harness.backends import TARGETS
from harness.execute.pool import Pool
from harness.search.laboratory import Laboratory
from oracles.judge import reference


def _of(operator: str, *arrays: np.ndarray, **attrs: Attr) -> Bounded:
    return compute(OPS[operator], *(leaf(array) for array in arrays), **attrs)


@pytest.mark.parametrize("exponents", [np.array(0.5), np.array([0.5, 0.5])])
def test_the_power_of_one_half_is_no_square_root(exponents: np.ndarray) -> None:
    """C11, F.10.4.4: pow(-inf, y) is +inf for y > 0 that is no odd integer, pow(-0, y) is +0."""
    result = _of("pow", np.array([-inf, -0.0]), exponents)
    assert result.value.tolist() == [inf, 0.0]
    assert not np.signbit(result.value).any()
    assert not result.undetermined.any()


def test_a_zero_without_a_point_is_drawn_beside_floating_numbers() -> None:
    """And multiplies as 0.0 does: NaN and infinities come to NaN."""
    graphs = [drawn("mul_scalar", number).graph for number in range(200)]
    zeros = [graph.nodes[0].attributes["scalar"] for graph in graphs if graph.leaves[0].type.dtype in FLOATS]
    assert {type(number) for number in zeros if number == 0} == {int, float}
    result = _of("mul_scalar", np.array([np.nan, inf, 2.0], np.float32), scalar=0)
    assert np.isnan(result.value).tolist() == [True, True, False]
    assert not result.undetermined.any()


def test_a_distance_whose_square_overflows_is_undetermined() -> None:
    far, near = np.array([[3e30]], np.float32), np.array([[3e10]], np.float32)
    zero = np.zeros((1, 1), np.float32)
    assert _of("pairwise_distance", far, zero, p=2.0).undetermined.all()
    assert not _of("pairwise_distance", near, zero, p=2.0).undetermined.any()
    assert not _of("pairwise_distance", far, zero, p=1.0).undetermined.any()


@pytest.mark.parametrize(("order", "expected"), [("inf", 4.0), ("3", 91 ** (1 / 3)), ("0", 2.0)])
def test_distances_of_any_order_keep_nan(order: str, expected: float) -> None:
    """Of order 0, whether NaN differs from a number is not said."""
    found = _of("cdist_of_order", np.array([[4.0, -3, 5], [np.nan, 0, 0]]), np.array([[0.0, 0, 5]]), ord=order)
    assert found.value.shape == (2, 1)
    assert abs(found.value[0, 0] - expected) <= found.error[0, 0]
    assert found.undetermined[1, 0] if order == "0" else np.isnan(found.value[1, 0])


def test_more_classes_than_an_index_of_a_byte_can_count() -> None:
    found = _of("one_hot_deep", np.array([3, 100], np.uint8), depth=300, axis=-1)
    assert found.value.shape == (2, 300)
    np.testing.assert_array_equal(np.argwhere(found.value), [[0, 3], [1, 100]])


def test_covariances_with_a_row_whose_sum_overflows_are_undetermined() -> None:
    """With all others, as a row and as a column: its mean may be infinite, and infinity times 0 is NaN."""
    rows = np.array([[0, 0], [0, 1], [3e38, 3e38]], np.float32)
    result = _of("cov", rows, correction=0)
    expected = [[False, False, True], [False, False, True], [True, True, True]]
    assert result.undetermined.tolist() == expected
    assert result.value[:2, :2].tolist() == [[0.0, 0.0], [0.0, 0.25]]


def test_a_smoothed_loss_may_be_weighed_after_it_was_smoothed() -> None:
    """Half of 4 x 32,768 overflows in float16 or not, as the factors are ordered."""
    scores = np.array([[-32768.0, 0.0]], np.float16)
    classes, weights = np.array([0]), np.array([4.0, 1.0], np.float16)
    attrs = {"ignore": -100, "reduction": "sum"}
    assert _of("cross_entropy_weighted", scores, classes, weights, smoothing=0.5, **attrs).undetermined.all()
    plain = _of("cross_entropy_weighted", scores, classes, weights, smoothing=0.0, **attrs)
    assert plain.value == inf
    assert not plain.undetermined.any()


@pytest.mark.parametrize("image", [(17, 33, 3, 1), (1, 1, 33, 33), (33, 33, 1, 1)])
def test_a_large_image_is_sampled_at_few_points(image: tuple[int, ...]) -> None:
    slot, earlier = OPS["grid_sample"].operands[1], (TensorType("float32", image),)
    for seed in range(100):
        grid = slot.fresh(SeededDraw(str(seed)), earlier)
        assert slot.accepts(grid, earlier), grid


def test_an_average_may_be_flushed_before_the_padding_is_taken_out() -> None:
    """3e-38 by the six places of the window is no normal number; six times nothing is nothing."""
    x = np.array([[[[3e-38]]]], np.float32)
    attrs = {"kernel": (2, 3), "padding": (1, 1), "stride": (1, 1)}
    result = _of("avg_pool2d", x, count_include_pad=False, **attrs)
    assert np.all(result.error >= np.abs(result.value))
    whole = _of("avg_pool2d", np.ones((1, 1, 2, 3), np.float32), count_include_pad=False, **attrs)
    assert np.all(whole.error < 1e-6)


def test_a_difference_of_subnormal_numbers_may_be_lost() -> None:
    """tanh may flush an operand that is zero in float64 and a subnormal number to others."""
    near_zero = Bounded(np.zeros(1), np.full(1, 1e-44), "float32")
    assert compute(OPS["tanhshrink"], near_zero).error > 1e-38
    assert compute(OPS["tanhshrink"], leaf(np.zeros(1, np.float32))).error == 0


def test_cubic_weights_may_overflow_on_the_way() -> None:
    attrs = {"size": (1, 3), "mode": "repeated"}
    image = np.zeros((1, 1, 4, 1), np.float32)
    image[..., 3, 0] = 3.18e38
    assert _of("resize_cubic", image, **attrs).undetermined.all()
    assert not _of("resize_cubic", image / 8, **attrs).undetermined.any()


def test_what_overflows_float16_may_be_finite_for_the_next_node_beside_an_infinity() -> None:
    """Products of rows: 1e9 is beyond float16 only, an operand's infinity is infinite in float32, too, and so is 1 / 0.
    Half of that minus itself is NaN where the infinity is certain."""
    pair, row = TensorType("float16", (3, 2)), TensorType("float16", (3,))
    nodes = (
        Node("product", "prod", ("x",), (("axes", (1,)), ("keepdims", False)), row),
        Node("quotient", "div", ("one", "zero"), (), row),
        Node("left", "sub", ("product", "product"), (), row),
        Node("right", "sub", ("quotient", "quotient"), (), row),
    )
    leaves = (Leaf("x", pair), Leaf("one", row), Leaf("zero", row))
    graph = check(Graph(leaves, nodes, ("left", "right")))
    x = np.array([[30000, 40000], [inf, 2], [3, 4]], np.float16)
    values = reference.evaluate(graph, {"x": x, "one": np.ones(3, np.float16), "zero": np.zeros(3, np.float16)})
    assert values["product"].value.tolist() == [inf, inf, 12]
    assert not values["product"].undetermined.any()
    assert values["left"].undetermined.tolist() == [True, False, False]
    assert not values["right"].undetermined.any()
    assert np.isnan(values["right"].value).all()


def test_what_is_not_determined_reaches_the_gaps_of_a_dilated_kernel() -> None:
    """Zeros that fill the gaps are multiplied by an infinity of the operand, and it may be one."""
    weight = leaf(np.ones((1, 1, 2)))
    image = Bounded(np.zeros((1, 1, 2)), np.array([[[inf, 0.0]]]), "float64")
    known = leaf(np.zeros((1, 1, 2)))
    for x, expected in ((image, [True, True, True, False, False]), (known, [False] * 5)):
        attrs: dict[str, Attr] = {
            "stride": (2,),
            "dilation": (2,),
            "padding": (0,),
            "output_padding": (0,),
            "groups": 1,
        }
        result = compute(OPS["conv_transpose1d"], x, weight, **attrs)
        assert result.undetermined[0, 0].tolist() == expected


def test_an_infinity_leaves_the_right_hand_sides_beside_it_open() -> None:
    """LAPACK scales all of them by the greatest element."""
    a = np.array([[0.5, 0.25], [-0.5, 0.0]], np.float32)
    b = np.array([[1.0, 0.5], [2.0, -0.5]], np.float32)
    assert not _of("least_squares", a, b, form="shifted").undetermined.any()
    b[0, 0] = inf
    assert _of("least_squares", a, b, form="shifted").undetermined.all()


def test_bilinear_forms_beside_an_infinity_are_open_where_the_order_decides() -> None:
    """x^T (W y): inf - inf for both rows of x, (x^T W) y: infinity where 1 * 2 - 3 * 1 is negative."""
    x, y, weight = np.array([[1.0, -3.0]]), np.array([[-inf]]), np.array([[[2.0], [1.0]]])
    found = _of("bilinear_form", x, y, weight, np.zeros(1))
    assert np.isinf(found.error).all()
    plain = _of("bilinear_form", x, -np.ones((1, 1)), weight, np.zeros(1))
    assert abs(plain.value - 1.0) <= plain.error <= 1e-12


@pytest.mark.parametrize(("name", "sign"), [("max", 1.0), ("min", -1.0)])
def test_extremes_of_segments_are_those_of_all_numbers(name: str, sign: float) -> None:
    """NaN wherever it stands, infinity of infinities only; of nothing the number that kernels start from."""
    data = sign * np.array([np.nan, 1, 1, np.nan, -inf, -inf, -inf, 2], np.float32)
    places = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    lowest = -sign * float(np.finfo(np.float32).max)
    found = _of(f"segment_{name}", data, places, segments=5)
    assert not found.error.any()
    np.testing.assert_array_equal(found.value, [np.nan, np.nan, -sign * inf, sign * 2, lowest])
    ordered = _of(f"sorted_segment_{name}", data, sizes=(2, 2, 2, 0, 2))
    np.testing.assert_array_equal(ordered.value, [np.nan, np.nan, -sign * inf, 0, sign * 2])


def test_rows_of_negative_segments_go_nowhere() -> None:
    data, places = np.arange(1.0, 7.0).reshape(3, 2), np.array([[-1, 0], [0, 2], [-1, -1]])
    assert _of("segment_sum_dropping", data, places, segments=4).value.tolist() == [5.0, 0.0, 4.0, 0.0]
    assert _of("segment_prod_dropping", data, places[:, 0], segments=4).value.tolist() == [[3, 4], *[[1, 1]] * 3]
    roots = _of("segment_sqrt_n_dropping", data, places, segments=4)
    assert (np.abs(roots.value - [5 / 2**0.5, 0.0, 4.0, 0.0]) <= roots.error).all()


def test_sums_of_whole_numbers_are_exact_while_the_dtype_has_them() -> None:
    """A count that ends at 256, of bfloat16, shows in their mean, whatever order they are added up in."""
    for rows, exact in ((512, True), (1024, False)):
        ones = (np.arange(rows) % 2).astype(ml_dtypes.bfloat16)
        found = _of("segment_mean_dropping", ones, np.zeros(rows, int), segments=4)
        assert found.value[0] == 0.5
        assert (found.error[0] < 0.01) == exact


def test_a_variance_that_cancels_is_not_asked_for(pool: Pool) -> None:
    """jax.nn.standardize takes mean(x^2) - mean^2, unless it is asked for the stable algorithm."""
    type_ = TensorType("float32", (1, 2))
    node = Node("v0", "layer_norm_plain", ("x0",), (("last", 1), ("epsilon", 2.0**-17)), type_)
    case = Case(Graph((Leaf("x0", type_),), (node,), ("v0",)), {"x0": np.array([[1000.0, 1000.25]], np.float32)})
    assert Laboratory(pool).judge(case, [TARGETS["jax-jit"]]).verdicts["jax-jit"].status == "agree"


@pytest.mark.slow(one_in=2)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_limits_of_a_clip_are_rounded_to_the_dtype(dtype: str, pool: Pool) -> None:
    """What frameworks return there is accepted, and no neighbour of it."""
    type_, attrs = TensorType(dtype, (3,)), (("min", 0.1), ("max", 1e30))
    x = np.array([0.0, 1.0, 1e32], dtype)
    case = Case(Graph((Leaf("x0", type_),), (Node("v0", "clip", ("x0",), attrs, type_),), ("v0",)), {"x0": x})
    verdicts = Laboratory(pool).judge(case, [TARGETS[name] for name in ("torch-eager", "jax-jit", "tf-eager")]).verdicts
    assert {verdict.status for verdict in verdicts.values()} == {"agree"}
    result = _of("clip", x, **dict(attrs))
    np.testing.assert_array_equal(result.value, np.array([0.1, 1.0, 1e30]).astype(dtype).astype(float))
    assert not result.error.any()


def test_a_factor_that_underflows_before_the_division_is_allowed_for() -> None:
    """x + y / z / 2, of a y whose half is subnormal: 0 where that is flushed, or half an ulp more than is left."""
    x, y, z = (np.array([number], np.float32) for number in (0.0, 1.5e-38, 3e-38))
    result = _of("addcdiv", x, y, z, value=0.5)
    assert abs(result.value[0] - 0.25) <= 1e-6
    assert result.error[0] >= 0.25
    assert _of("addcdiv", x, y * np.float32(1e9), z * np.float32(1e9), value=0.5).error[0] < 1e-6


def test_a_product_of_three_that_overflows_need_not_where_it_is_fused_with_the_sum() -> None:
    above, main, below = [1e30, 0, 0], [-1e30, 1, 1], [0, 0, 0]
    diagonals, sides = np.array([above, main, below], np.float32), np.array([[1e30], [1e30], [0]], np.float32)
    result = _of("tridiagonal_matmul", diagonals, sides)
    assert np.isnan(result.value[0, 0])
    assert result.undetermined[0, 0]
    diagonals[:2, 0] = inf, -inf
    certain = _of("tridiagonal_matmul", diagonals, sides)
    assert np.isnan(certain.value[0, 0])
    assert not certain.undetermined[0, 0]


@pytest.mark.parametrize("divisor", [inf, -inf])
def test_what_an_infinite_divisor_leaves_is_the_dividend(divisor: float) -> None:
    """C, F.10.7.1: fmod(x, inf) is x."""
    result = _of("fmod", np.array([1.5, -2.0, -0.0, inf], "float32"), np.array(divisor, "float32"))
    assert result.value[:3].tolist() == [1.5, -2.0, 0.0]
    assert np.isnan(result.value[3])
    assert not result.error.any()


def test_the_greatest_volume_that_is_drawn_is_normalised() -> None:
    """Sizes that are each the greatest make no more elements than the operator takes: 5 along three axes did."""

    class Greatest(SeededDraw):
        def choice(self, options: Sequence[Any]) -> Any:
            return max(options)

    slot = OPS["fused_batch_norm"].operands[0]
    drawn = slot.fresh(Greatest("0"), ())
    assert drawn.rank == 5
    assert slot.accepts(drawn, ())


# ---- numbers that the program states ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "stop", "count"), [(0.0, 10.0, 4), (-7.0, 10.0, 6), (2.0, 2.0, 3), (1000.0, -7.0, 5)]
)
def test_whole_numbers_on_a_line_lose_what_is_behind_the_point(start: float, stop: float, count: int) -> None:
    attrs = {"axis": 0, "to": "int64", "start": start, "stop": stop}
    found = compute(OPS["linspace"], leaf(np.zeros(count, np.float32)), **attrs)
    exact = np.trunc(np.linspace(start, stop, count))
    np.testing.assert_array_equal(found.value[~found.undetermined], exact[~found.undetermined])
    assert not found.undetermined[[0, -1]].any()
    np.testing.assert_array_equal(compute(OPS["linspace"], leaf(np.zeros(1, np.float32)), **attrs).value, [int(start)])


@pytest.mark.parametrize("periodic", [True, False])
def test_a_window_of_hamming_has_the_numbers_that_it_is_given(periodic: bool) -> None:
    ones = leaf(np.ones((2, 5), np.float64))
    found = compute(OPS["hamming_tapered"], ones, periodic=periodic, alpha=0.375, beta=-0.625)
    turn = 2 * np.pi * np.arange(5) / (5 if periodic else 4)
    row = 0.375 + 0.625 * np.cos(turn)
    assert np.all(np.abs(found.value - row) <= found.error)
    assert np.all(found.error < 1e-13)
    usual = compute(OPS["hamming_tapered"], ones, periodic=periodic, alpha=0.54, beta=0.46)
    assert np.all(np.abs(usual.value - row) > usual.error)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_line_begins_with_its_start_where_the_step_overflows(dtype: str) -> None:
    """Of what comes after it nothing is said; a start that may be flushed, or is infinite, is not demanded."""
    largest, tiny = np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal
    far = _of("line_between", np.array(-largest, dtype), np.array(largest, dtype), size=5)
    assert (far.value[0], far.error[0]) == (-largest, 0.0)
    assert far.undetermined.tolist() == [False, True, True, True, True]
    near = _of("line_between", np.array(-1.0, dtype), np.array(1.0, dtype), size=5)
    assert not near.undetermined.any()
    for start in (tiny, inf):
        assert _of("line_between", np.array(start, dtype), np.array(inf, dtype), size=5).undetermined.all()


@pytest.mark.parametrize(
    ("starts", "expected"), [((1, 0), [[4.0, 5.0]]), ((7, 9), [[10.0, 11.0]]), ((0, 3), [[2.0, 3.0]])]
)
def test_a_block_is_moved_to_lie_inside(starts: tuple[int, int], expected: list[list[float]]) -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    result = _of("dynamic_slice", x, np.array(starts), sizes=(1, 2))
    assert result.value.tolist() == expected
    assert not result.error.any()


def test_jax_partitions_by_elements_and_by_places() -> None:
    """Counted from the end by argpartition, whose place is then another one; NaN is left open."""
    rows = np.array([[5, -7, 3, 9], [2, 2, 8, 1]], "int32")
    spell = OPS["nth_element"].jax
    assert callable(spell)
    types = (TensorType("int32", (2, 4)),)
    for reverse, text, values in ((False, "jnp.partition({0}, 1,", [3, 2]), (True, "jnp.argpartition({0}, 2,", [5, 2])):
        attrs = {"n": 1, "reverse": reverse}
        printed = spell(Call(types, attrs, TensorType("int32", (2,))))
        assert text in str(printed)
        assert _of("nth_element", rows, **attrs).value.tolist() == values
