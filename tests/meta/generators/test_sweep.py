"""Sweeps are systematic: valid, distinct, the same every time, and at the edges."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from generators.graph import FLOATS, Leaf, TensorType
from generators.graphs import seeded_case
from generators.inputs import THRESHOLDS, Recipe, beside, fill
from generators.ops import OPS, check
from generators.ops.elementwise.thresholds import THRESHOLDS as BY_OPERATOR
from generators.ops.slots import ints_of
from generators.sweep import DTYPES, ScriptedDraw, places, sweep, swept
from generators.sweep.extents import SHAPES, extents, of_extent
from generators.sweep.neighbours import COUNT, SINGLE, WAYS, WINDOWS, near, squared, windowed
from harness.search.dtype_support import dtypes_of
from harness.search.hypothesis_profiles import looked_at, nightly


@pytest.mark.slow(one_in=47, ci=19)
@pytest.mark.parametrize("operator", looked_at())
def test_a_sweep_holds_every_dtype_and_only_valid_cases(operator: str) -> None:
    """The nightly profile looks at all of it."""
    cases = list(sweep(operator, None if nightly() else 2000))  # bool, which no case favours, is met by then
    graphs = [check(case.graph) for case in cases]
    assert all(graph.operators == (operator,) for graph in graphs)
    assert {graph.types[graph.nodes[0].operands[0]].dtype for graph in graphs} >= set(dtypes_of(OPS[operator]))
    texts = [repr((c.graph, [array.tobytes() for array in c.arrays.values()])) for c in cases]
    assert len(set(texts)) == len(texts)


@pytest.mark.slow
def test_a_sweep_is_the_same_every_time() -> None:
    first, second = ([case.graph for case in sweep("conv2d")] for _ in range(2))
    assert first == second


@pytest.mark.slow
def test_a_sweep_reaches_the_edges() -> None:
    softmax = list(sweep("softmax"))
    axes = {dict(case.graph.nodes[0].attrs)["axis"] for case in softmax}
    assert {-1, 0, 1} <= axes
    assert any(case.graph.nodes[0].type.size == 0 for case in softmax)
    assert any(1 in case.graph.nodes[0].type.shape for case in softmax)
    assert any(np.isnan(a).any() for case in softmax for a in case.arrays.values())
    roles = {leaf.role for case in softmax for leaf in case.graph.leaves}
    assert roles == {"input", "parameter"}
    groups = {dict(case.graph.nodes[0].attrs)["groups"] for case in sweep("conv2d")}
    assert len(groups) > 1
    assert any(len(case.graph.leaves) < 2 for case in sweep("add"))  # one tensor used twice


def test_an_option_beyond_the_last_is_the_last() -> None:
    draw = ScriptedDraw({1: 99})
    assert [draw.integer(3, 5), draw.integer(3, 5), draw.integer(3, 5)] == [3, 5, 3]
    assert draw.sizes == [3, 3, 3]


def test_every_threshold_is_of_an_operator() -> None:
    assert set(BY_OPERATOR) <= set(OPS)
    assert all(numbers for numbers in BY_OPERATOR.values())
    assert OPS["exp"].thresholds == BY_OPERATOR["exp"]


@pytest.mark.parametrize("dtype", [*FLOATS, "int8", "uint8", "int64", "uint64"])
def test_elements_beside_thresholds(dtype: str) -> None:
    """Near those that the dtype holds, on both sides; of both signs where it has them."""
    type_ = TensorType(dtype, (400,))
    found = fill(Leaf("x", type_), Recipe(THRESHOLDS, 3), (96.0, 1e300))
    if dtype in FLOATS:
        found = found.astype(np.float64)
        size = np.abs(found)
        assert len(set(size[size < 100].tolist())) == 5
        assert ((size > 90) & (size < 100) | (size > 1e299)).all()
        assert (size > 1e299).any() == (dtype == "float64")
        assert (found < 0).any()
    else:
        values = {int(value) for value in found}
        assert {94, 95, 96, 97, 98} <= values
        assert (min(values) < -90) == (dtype[0] == "i")


def test_ends_of_integers_stay_within() -> None:
    found = beside(np.random.default_rng(0), 300, "int64", (2.0**63, -(2.0**63), 2.0**53))
    assert {-(2**63), 2**53 + 1} <= {int(value) for value in found}


def test_a_place_has_elements_beside_thresholds() -> None:
    """The second set of arrays: one of them is next to where exp overflows."""
    sets = [swept("exp", turn, 2).fills[1] for turn in range(40)]
    seen = np.concatenate([a.astype(np.float64).ravel() for arrays in sets for a in arrays.values()])
    assert (np.abs(np.abs(seen) - np.log(3.4028234663852886e38)) < 1e-4).any()


@pytest.mark.slow(one_in=4)
@pytest.mark.parametrize("operator", ["sum", "argsort", "matmul", "take"])
def test_large_cases_are_valid_and_few(operator: str) -> None:
    """All of float32 and float64, few of every other dtype, alone and in company; other questions get small ones
    in their place."""
    found = places(operator)
    wide = {number for kind in extents(operator)[:3] for number in kind}
    turns = [turn for turn, (_, script) in enumerate(found) if -1 - script in wide]
    assert 0 < len(turns) < min(3 * (2 * len(SHAPES[operator]) + len(DTYPES)), len(found) / 4)
    graphs = [of_extent(operator, "float32", number) for number in wide]
    assert {graph for graph in graphs if graph} <= {swept(operator, turn, 1, True).graph for turn in turns}
    for turn in turns:
        whole, small = swept(operator, turn, 8, True), swept(operator, turn, 8)
        check(whole.graph)
        assert len(whole.fills) == 2
        assert max(leaf.type.size for leaf in whole.graph.leaves) > 2**11
        assert max(leaf.type.size for leaf in small.graph.leaves) <= 2**11
    assert of_extent(operator, "float32", 1 + max(number for kind in extents(operator) for number in kind)) is None


@pytest.mark.parametrize("operator", ["exp", "sum", "transpose", "where", "cumsum", "matmul"])
def test_deep_cases_are_valid_and_few(operator: str) -> None:
    """Of five dimensions to eight, small, alone and in company; of questions that take no large cases, too."""
    found = places(operator)
    turns = [turn for turn, (_, script) in enumerate(found) if script < 0]
    assert 0 < len(turns) < len(found) / 4
    graphs = [swept(operator, turn, 2).graph for turn in turns]
    for graph in graphs:
        check(graph)
        assert max(type_.size for type_ in graph.types.values()) <= 2**11
    deep = [graph for graph in graphs if max(type_.rank for type_ in graph.types.values()) > 4]
    assert {max(type_.rank for type_ in graph.types.values()) for graph in deep} >= {5, 6, 7, 8}
    assert any(len(graph.nodes) > 1 for graph in deep) or operator == "transpose"


@pytest.mark.parametrize("operator", ["exp", "argmax_whole", "conv2d", "take", "max_pool2d_places"])
def test_neighbours_are_valid_and_have_places(operator: str) -> None:
    """An operand is a transposition, a function, both, or a stack of rows; the plan comes to each of them."""
    found = [near(operator, "float32", number) for number in range(COUNT)]
    for number, graph in enumerate(found):
        if graph:
            check(graph)
            before = {
                "stored": ["transpose"],
                "computed": ["sin"],
                "stored and computed": ["transpose", "sin"],
                "thin": [],
            }
            assert [node.op for node in graph.nodes] == [*before[WAYS[number % len(WAYS)]], operator]
    assert sum(graph is not None for graph in found) > COUNT // 2
    swept_graphs = {swept(operator, turn, 1).graph for turn, (_, script) in enumerate(places(operator)) if script < 0}
    assert {graph for graph in found if graph} <= swept_graphs


@pytest.mark.parametrize("operator", ["log_softmax_of_scalar", "cumsum_of_scalar", "gather_of_scalar"])
def test_what_has_no_dimensions_stands_behind_products_and_constants(operator: str) -> None:
    found = [graph for number in range(COUNT) if (graph := near(operator, "float32", number))]
    assert [[node.op for node in check(graph).nodes] for graph in found] == [[one, operator] for one in SINGLE]
    swept_graphs = {swept(operator, turn, 1).graph for turn in range(len(places(operator)))}
    assert set(found) <= swept_graphs


@pytest.mark.parametrize("operator", ["trace", "matmul", "log_softmax_of_scalar", "argmax"])
def test_what_an_operator_returns_is_squared(operator: str) -> None:
    """In a place of float32 and one of float64, where there are floating numbers to square."""
    graphs = {swept(operator, turn, 1).graph for turn, (_, script) in enumerate(places(operator)) if script < 0}
    found = [check(graph) for dtype in ("float32", "float64") if (graph := squared(operator, dtype))]
    assert [[node.op for node in graph.nodes] for graph in found] == (
        [[operator, "square"]] * 2 if operator in ("trace", "matmul") else []
    )
    assert set(found) <= graphs


@pytest.mark.parametrize("operator", ["max_pool3d_places", "adaptive_max_pool2d", "avg_pool1d_ceil"])
def test_wide_windows_are_valid_and_early(operator: str) -> None:
    """More than 24 elements, over an image that is stored in every order; the plan comes to them soon."""
    found = [windowed(operator, "float32", number) for number in range(len(WINDOWS))]
    for number, graph in enumerate(found):
        assert graph is not None
        check(graph)
        assert len(graph.nodes) == 1 + (number > 0)
        node, shape = graph.nodes[-1], graph.types[graph.nodes[-1].operands[0]].shape[2:]
        cells = ints_of(node.attributes, "output", len(shape), 1) if "output" in node.attributes else None
        window = (
            [n // c for n, c in zip(shape, cells, strict=True)]
            if cells
            else ints_of(node.attributes, "kernel", len(shape), 1)
        )
        assert prod(window) > 24
    graphs = [swept(operator, turn, 1).graph for turn in range(len(places(operator)) // 4)]
    assert set(found) <= set(graphs)


@pytest.mark.parametrize("operator", ["exp", "conv2d", "matmul"])
def test_no_windows_without_pooling(operator: str) -> None:
    assert all(windowed(operator, "float32", number) is None for number in range(len(WINDOWS)))


def test_stacks_of_rows_are_multiplied() -> None:
    """Products of which one factor is a row are written otherwise by compilers, of whole numbers, too."""
    shapes = {
        (graph.leaves[0].type.shape[1], graph.types[graph.nodes[0].operands[1]].shape[-1])
        for dtype in ("float32", "int32")
        for number in range(COUNT)
        if WAYS[number % len(WAYS)] == "thin" and (graph := near("matmul", dtype, number))
    }
    assert any(1 in pair for pair in shapes)


def test_drawn_graphs_have_few_dimensions() -> None:
    """Deep cases have places of their own; what is drawn stays as it is."""
    ranks = {type_.rank for number in range(200) for type_ in seeded_case(5, number).graph.types.values()}
    assert max(ranks) <= 5
