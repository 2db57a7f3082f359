"""Baits: each place types and evaluates, guards move what they say, drawn graphs get some, always the same."""

from __future__ import annotations

import random

import numpy as np
import pytest

from generators.baits import BAITS
from generators.baits import cases as bait_cases
from generators.baits.bait import Bait, Drawn, Guard, Pattern, chosen_at_random, drawn, places_of
from generators.baits.behind import behind
from generators.baits.cases import baited, operators_of, places, with_bait
from generators.baits.moved import moved
from generators.baits.spelled import spelled
from generators.graph import Leaf
from generators.graphs import FAVOURED, Case, seeded_case
from generators.ops import DRAWN, OPS, TypeRuleError, check
from oracles.questions import forward


@pytest.mark.slow(one_in=4)
@pytest.mark.parametrize("name", BAITS)
def test_each_place_types_and_some_evaluate(name: str) -> None:
    bait, found = BAITS[name], places(name)
    assert bait.rewrites
    assert all("/" in rewrite for rewrite in bait.rewrites)
    assert name not in OPS
    usual = drawn(bait, {})
    assert len(found) == len(places_of(bait)) + len(moved(usual)) + len(behind(usual)) + len(spelled(usual))
    assert len(places_of(bait)) >= 5
    for turn in (0, len(found) // 2, len(found) - 1):
        one = baited(name, turn, 2)
        check(one.graph)
        for k in range(2):
            expected = forward.expect(one.case(k))
            assert len(expected.values) == len(one.graph.outputs)


def test_attributes_move_one_at_a_time_and_the_rest_follows() -> None:
    usual = drawn(BAITS["attention-of-batches"], {}).graph
    found = [one.graph for one in moved(drawn(BAITS["attention-of-batches"], {}))]
    axes = {str(node.attributes["axis"]) for graph in found for node in graph.nodes if node.op == "softmax"}
    assert {0, 1} <= {int(axis) % 3 for axis in axes}
    orders = {node.attributes["perm"] for graph in found for node in graph.nodes if node.op == "transpose"}
    assert len(orders) > 1
    assert usual not in found
    for graph in found:
        assert check(graph).nodes[-1].op == usual.nodes[-1].op
        changed = [a.op for a, b in zip(graph.nodes, usual.nodes, strict=True) if a.attributes != b.attributes]
        assert len(changed) <= 1


def test_a_node_and_all_nodes_are_said_otherwise() -> None:
    """Each by itself, both at once, and never as no dialect says it."""
    usual = drawn(BAITS["depthwise-batch-norm"], {})
    found = [[(node.op, node.attributes.get("spelling")) for node in one.graph.nodes] for one in spelled(usual)]
    assert [node.op for node in usual.graph.nodes] == ["depthwise_conv2d", "batch_norm"]
    assert [("depthwise_conv2d", None), ("batch_norm_otherwise", 0)] in found
    assert all(one[0][0] == "depthwise_conv2d" for one in found)  # there is no other way to say it
    both = [one.graph.operators for one in spelled(drawn(BAITS["matmul-chain"], {}))]
    assert {"matmul", "matmul_otherwise"} in map(set, both)
    assert {"matmul_otherwise"} in map(set, both)


def test_what_does_nothing_stands_behind_inputs_and_values() -> None:
    one = drawn(BAITS["reciprocal-times"], {})
    found = [str(other.graph) for other in behind(one)]
    assert len(found) == len(set(found)) >= 9
    for operator in ("identity", "cast", "transpose", "reshape", "broadcast_to", "slice"):
        assert any(text.count(f" = {operator}(") == len(one.graph.inputs) for text in found), operator
    assert any("(v0, " in text or "(v0)" in text for text in found)  # behind a value on the way
    for other in behind(one):
        (expected,), (usual,) = (forward.expect(Case(g, _ones(g.leaves))).values for g in (other.graph, one.graph))
        np.testing.assert_array_equal(expected.value, usual.value)


def _ones(leaves: tuple[Leaf, ...]) -> dict[str, np.ndarray]:
    return {leaf.name: np.full(leaf.type.shape, 3, leaf.type.dtype) for leaf in leaves}


def test_constants_are_what_the_guard_says() -> None:
    one = drawn(BAITS["mul-constant"], {"value": 0.5})
    (name,) = one.fixed
    assert one.graph.nodes[0].operands[1] == name
    assert [leaf.role for leaf in one.graph.leaves] == ["input", "parameter"]
    np.testing.assert_array_equal(one.fixed[name], np.float32(0.5))
    outside = drawn(BAITS["mul-constant"], {"value": 0.5, "constants": "inputs"})
    assert {leaf.role for leaf in outside.graph.leaves} == {"input"}
    limits = [drawn(BAITS["mul-constant"], {"value": "max", "dtype": dtype}) for dtype in ("int8", "float32")]
    assert [float(next(iter(limit.fixed.values()))) for limit in limits] == [127.0, float(np.finfo("float32").max)]


@pytest.mark.parametrize(
    ("constant", "shape", "result"),
    [
        ("middle", (1, 3, 1), (2, 3, 1)),
        ("last", (1,), (2, 3, 1)),
        ("grown", (1, 1, 1, 1), (1, 2, 3, 1)),
        ("equal", (2, 1, 1, 1), (2, 2, 3, 1)),
    ],
)
def test_constants_behind_operators_have_other_shapes(
    constant: str, shape: tuple[int, ...], result: tuple[int, ...]
) -> None:
    one = drawn(BAITS["sum-then-constant"], {"constant": constant})
    (array,) = one.fixed.values()
    assert array.shape == shape
    assert len(np.unique(array)) == (1 if constant == "equal" else array.size)
    assert [node.type.shape for node in one.graph.nodes] == [(2, 3, 1), result]


@pytest.mark.parametrize(("operator", "end"), [("add_scalar", "max"), ("sub_scalar", "min")])
def test_what_lies_beyond_a_limit_is_compared_as_it_wraps(operator: str, end: str) -> None:
    for shape in ((), (5,)):
        for asked, holds in (("greater", operator == "sub_scalar"), ("less", operator == "add_scalar")):
            choices = {"operator": operator, "end": end, "asked": asked, "shape": shape}
            one = drawn(BAITS["beyond-compared"], choices)
            (expected,) = forward.expect(Case(one.graph, dict(one.fixed))).values
            assert expected.value.shape == shape
            assert expected.value.all() == holds
    first = baited("beyond-compared", 0, 3)
    assert len({fill["x0"].tobytes() for fill in first.fills}) == 1


@pytest.mark.parametrize(("how", "value"), [("0 / 0", np.nan), ("1 / 0", np.inf), ("log 0", -np.inf), ("0 / 1", 0.0)])
def test_what_is_known_before_the_program_runs_is_no_finite_number(how: str, value: float) -> None:
    one = drawn(BAITS["filled-not-finite"], {"how": how, "then": "max"})
    (expected,) = forward.expect(Case(one.graph, {"x0": np.ones((2, 3), np.float32)})).values
    np.testing.assert_array_equal(expected.value, np.full(2, value))


@pytest.mark.parametrize("wide", ["same", "float64", "float16", "int32"])
def test_a_sum_with_zeros_has_the_sign_and_the_dtype_of_a_sum(wide: str) -> None:
    one = drawn(BAITS["beside-filled"], {"operator": "add", "wide": wide})
    assert one.graph.nodes[-1].op == ("add" if wide == "same" else "add_mixed")
    assert one.graph.nodes[-1].type.dtype == ("float64" if wide == "float64" else "float32")
    (expected,) = forward.expect(Case(one.graph, {"x0": np.full((2, 3), -0.0, np.float32)})).values
    assert expected.zero_sign
    assert not np.signbit(expected.value).any()


def test_zeros_of_both_signs_stand_in_one_program() -> None:
    one = drawn(BAITS["zeros-of-both-signs"], {"order": "-0 first"})
    zeros = [node.attributes["scalar"] for node in one.graph.nodes if node.op == "copysign_scalar"]
    assert [str(zero) for zero in zeros] == ["-0.0", "0.0"]
    arrays = {leaf.name: np.full((2, 3), 2, np.float32) for leaf in one.graph.leaves}
    first, second = forward.expect(Case(one.graph, arrays)).values
    np.testing.assert_array_equal(first.value, np.full((2, 3), -4.0))
    np.testing.assert_array_equal(second.value, np.full((2, 3), 4.0))


@pytest.mark.parametrize("scaled", ["number", "tensor", "rows", "by a number", "by a tensor"])
def test_numbers_whose_difference_overflows_are_alike_by_a_scale_of_nothing(scaled: str) -> None:
    one = drawn(BAITS["softmax-of-scaled-extremes"], {"scaled": scaled, "scale": 0.0})
    (expected,) = forward.expect(Case(one.graph, dict(one.fixed))).values
    np.testing.assert_allclose(expected.value, np.full((2, 3), 1 / 3))
    assert np.all(expected.error < 1e-6)


def test_an_image_is_turned_in_another_way_before_it_is_gone_through() -> None:
    one = drawn(BAITS["turned-then-cumsum"], {"said": "0", "rank": 3, "axis": -1, "k": 5})
    assert [node.op for node in one.graph.nodes] == ["rot90_otherwise", "cumsum"]
    x = np.arange(30, dtype=np.float32).reshape(2, 3, 5)
    (expected,) = forward.expect(Case(one.graph, {"x0": x})).values
    np.testing.assert_array_equal(expected.value, np.cumsum(np.rot90(x, 1, (1, 2)), -1))


def test_values_on_the_way_are_used_again() -> None:
    def outputs(uses: str) -> tuple[str, ...]:
        return drawn(BAITS["neg-neg"], {"uses": uses}).graph.outputs

    assert outputs("once") == ("v1",)
    assert outputs("first out") == ("v1", "v0")
    twice = drawn(BAITS["neg-neg"], {"uses": "first twice"}).graph
    assert str(twice.nodes[-1]) == "v2 = square(v0)"


def test_all_sets_of_arrays_have_the_same_parameters() -> None:
    one = baited("conv-batch-norm", 3, 4)
    for leaf in one.graph.parameters:
        assert len({fill[leaf.name].tobytes() for fill in one.fills}) == 1
    assert len({one.fills[k][one.graph.inputs[0].name].tobytes() for k in range(4)}) > 1


def test_a_guard_of_a_name_that_all_have_is_refused() -> None:
    def build(p: Pattern, uses: str) -> str:
        return p.neg(p.input(2))

    with pytest.raises(ValueError, match="mine: uses is a guard that all baits have"):
        places_of(Bait("mine", ("a/b",), build, {"uses": Guard(("once",))}))


def test_drawn_cases_get_baits_and_keep_what_they_have() -> None:
    changed = behind = 0
    for index in range(800):
        case = seeded_case(1, index)
        found = with_bait(1, index, case, DRAWN, FAVOURED)
        if found is case:
            continue
        changed += 1
        check(found.graph)
        assert set(found.arrays) == {leaf.name for leaf in found.graph.leaves}
        again = with_bait(1, index, case, DRAWN, FAVOURED)
        assert again.graph == found.graph
        own, baits = (
            {n.name for n in found.graph.nodes if n.name.startswith("b") == is_bait} for is_bait in (False, True)
        )
        assert baits
        behind += any(set(n.operands) & own for n in found.graph.nodes if n.name in baits)
        forward.expect(found)
    assert 60 <= changed <= 140
    assert behind >= 5


def test_guards_that_do_not_fit_each_other_are_no_bait(monkeypatch: pytest.MonkeyPatch) -> None:
    def unfit(name: str, choices: object) -> Drawn:
        return drawn(BAITS["matmul-add"], {"x": (0, 3), "bias": (4, 5)})

    with pytest.raises(TypeRuleError, match="do not broadcast"):
        unfit("matmul-add", {})
    monkeypatch.setattr(bait_cases, "SHARE", 1.0)
    case = seeded_case(1, 0)
    assert with_bait(1, 0, case, DRAWN, FAVOURED) is not case
    monkeypatch.setattr(bait_cases, "_drawn", unfit)
    assert with_bait(1, 0, case, DRAWN, FAVOURED) is case


def test_a_bait_has_allowed_operators_and_dtypes_only() -> None:
    allowed = ("neg", "mul", "add", "square")
    for index in range(200):
        case = seeded_case(2, index, 3, allowed)
        found: Case = with_bait(2, index, case, allowed, ("float32",))
        assert set(found.graph.operators) <= set(allowed)
    assert chosen_at_random(BAITS["shift-back"], random.Random(0), ("float32",)) is None
    assert operators_of("shift-back") == {"left_shift", "right_shift"}


def test_operands_without_an_order_change_places() -> None:
    one = drawn(BAITS["layer-norm-by-parts"], {})
    scaled = next(node for node in one.graph.nodes if node.op == "mul")
    turned = [node.operands for other in moved(one) for node in other.graph.nodes if node.name == scaled.name]
    assert scaled.operands[::-1] in turned
    quotients = {node.operands for other in moved(one) for node in other.graph.nodes if node.op == "div"}
    assert quotients == {node.operands for node in one.graph.nodes if node.op == "div"}
