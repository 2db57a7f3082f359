"""Quantised graphs: what rounds to another level for a good reason is accepted, a wrong level is found."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from planted.targets import planted

from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import FLOAT_CHOICES, Case, Style, seeded_case
from generators.ops import check
from generators.ops.nn.fake_quantize import RANGES, levels
from generators.ops.spec import TypeRuleError
from harness.execute.pool import Pool
from harness.questions.quantized import QUANTIZED
from harness.search.laboratory import Laboratory
from oracles.judge.outcome import Value
from oracles.judge.verdict import Verdict, judge
from oracles.quantised import fake_quantize
from oracles.questions import forward

F = np.float32
X = np.linspace(-30, 30, 1013).astype(F)


def one(x: np.ndarray, scale: float, zero_point: int = 3, dtype: str = "uint8") -> Case:
    type_ = TensorType("float32", x.shape)
    attrs = (("dtype", dtype), ("scale", scale), ("zero_point", zero_point))
    graph = Graph((Leaf("x", type_),), (Node("v", "quantize_dequantize", ("x",), attrs, type_),), ("v",))
    return Case(check(graph), {"x": x})


def verdict(case: Case, output: np.ndarray) -> Verdict:
    return judge(forward.expect(case), Value((np.asarray(output, F),)))


def evaluated(x: np.ndarray, scale: float, rounding: Callable = np.rint, zero_point: int = 3) -> np.ndarray:
    quotient = x / F(scale)
    return (np.clip(rounding(quotient) + zero_point, *RANGES["uint8"]) - zero_point).astype(F) * F(scale)


@pytest.mark.parametrize("scale", [0.5, 0.1, 0.017, 3.0])
def test_correct_levels_are_accepted(scale: float) -> None:
    """Also by the reciprocal of the scale, which moves what lies near the middle of two levels."""
    case = one(X, scale)
    assert verdict(case, evaluated(X, scale)).status == "agree"
    reciprocal = np.clip(np.rint(X * (F(1) / F(scale))) + 3, 0, 255) - 3
    assert verdict(case, reciprocal.astype(F) * F(scale)).status == "agree"


@pytest.mark.parametrize(("dtype", "zero_point"), [("int16", 0), ("uint16", 32768), ("uint16", 65535)])
def test_levels_of_16_bits(dtype: str, zero_point: int) -> None:
    """Of which some are beyond the greatest; an operand that is left as it is, and one of eight bits, are found."""
    x = np.linspace(-90000, 90000, 101).astype(F)
    attrs = (("dtype", dtype), ("scale", 1.5), ("zero_point", zero_point))
    type_ = TensorType("float32", x.shape)
    graph = Graph((Leaf("x", type_),), (Node("v", "quantize_dequantize_words", ("x",), attrs, type_),), ("v",))
    case = Case(check(graph), {"x": x})
    right = (np.clip(np.rint(x / F(1.5)) + zero_point, *RANGES[dtype]) - zero_point).astype(F) * F(1.5)
    assert verdict(case, right).status == "agree"
    assert verdict(case, x).status == "mismatch"
    assert verdict(case, np.clip(right, -192, 190)).status == "mismatch"


def test_another_rounding_mode_is_found() -> None:
    """Ties are exact where the scale is a power of two."""
    case = one(X := np.array([0.25, 0.75, 1.25, -0.25, -0.75], F), 0.5)
    away = evaluated(X, 0.5, lambda v: np.copysign(np.floor(np.abs(v) + 0.5), v))
    assert verdict(case, evaluated(X, 0.5)).status == "agree"
    assert verdict(case, away).status == "mismatch"
    plain = np.array([1.37, 1.33], F)
    for rounding in (np.floor, np.ceil, np.trunc):
        assert verdict(one(plain, 0.1), evaluated(plain, 0.1, rounding)).status == "mismatch"


@pytest.mark.parametrize("wrong", [0.1 * (1 + 1e-5), 0.1 * (1 - 1e-5)])
def test_a_scale_that_is_off_in_the_fifth_digit_is_found(wrong: float) -> None:
    assert verdict(one(X, 0.1), evaluated(X, wrong)).status == "mismatch"


def test_a_wrong_zero_point_and_missing_saturation_are_found() -> None:
    assert verdict(one(X, 0.1), evaluated(X, 0.1, zero_point=4)).status == "mismatch"
    assert verdict(one(X, 0.1), (np.rint(X / F(0.1))).astype(F) * F(0.1)).status == "mismatch"
    wrapped = ((np.rint(X / F(0.1)) + 3) % 256 - 3).astype(F) * F(0.1)
    assert verdict(one(X, 0.1), wrapped).status == "mismatch"


def test_nan_has_no_level_and_infinities_saturate() -> None:
    case = one(np.array([np.nan, np.inf, -np.inf], F), 0.5, 0)
    found = verdict(case, np.array([7.0, 127.5, 0.0]))
    assert (found.status, found.undetermined) == ("agree", 1)
    assert verdict(case, np.array([7.0, 0.0, 0.0])).status == "mismatch"


def test_levels_are_rounded_before_the_zero_point_is_added() -> None:
    assert levels(np.array([0.5, 1.5, 2.5]), np.asarray(1.0), 1, "int8").tolist() == [1, 3, 3]


@pytest.mark.parametrize(("scale", "zero_point"), [(0.0, 0), (-1.0, 0), (1.0, 256), (1e-60, 0)])
def test_impossible_parameters_are_refused(scale: float, zero_point: int) -> None:
    with pytest.raises((TypeRuleError, ValueError), match=r"positive|is no"):
        one(X, scale, zero_point)


# ---- whole graphs ------------------------------------------------------------------------------------------


def test_ranges_fit_in_the_levels() -> None:
    for value in (np.array([-1.0, 3.0]), np.array([2.0, 5.0]), np.array([-4.0, -1.0, np.inf])):
        for dtype in RANGES:
            for symmetric in (False, True):
                scale, zero_point = fake_quantize.parameters(value, dtype, symmetric)
                finite = value[np.isfinite(value)]
                back = (levels(finite, np.asarray(scale), zero_point, dtype) - zero_point) * scale
                assert np.abs(back - finite).max() <= 0.51 * scale
    assert fake_quantize.parameters(np.zeros(3), "int8", True) == (1.0, 0)
    assert fake_quantize.parameters(np.array([1e300]), "int8", True) == (1.0, 0)


def _product() -> Case:
    x, w = TensorType("float32", (3, 4)), TensorType("float32", (4, 5))
    nodes = (Node("v0", "matmul", ("x", "w"), (), TensorType("float32", (3, 5))),)
    graph = check(Graph((Leaf("x", x), Leaf("w", w, "parameter")), nodes, ("v0",)))
    draw = np.random.default_rng(5)
    return Case(graph, {"x": draw.normal(size=x.shape).astype(F), "w": draw.normal(size=w.shape).astype(F)})


def test_a_scheme_says_how_each_value_is_quantised() -> None:
    found = fake_quantize.quantized(_product(), fake_quantize.SCHEMES["u8s8-channels"])
    assert found is not None
    x, w, v0, out = check(found.graph).nodes
    assert (x.op, x.attributes["dtype"]) == ("quantize_dequantize", "uint8")
    assert (w.op, w.attributes["axis"], w.attributes["zero_point"]) == ("quantize_dequantize_channels", 1, 0)
    assert len(set(w.attributes["scales"])) == 5  # type: ignore[arg-type]
    assert v0.operands == ("x_q", "w_q")
    assert found.graph.outputs == (out.name,)


def test_most_of_a_quantised_graph_is_determined() -> None:
    """That a level may be one off for what lies near the middle of two must not excuse the rest."""
    style = Style(("float32",), (FLOAT_CHOICES,))
    ops = ("matmul", "add", "mul", "relu", "conv1d", "concat", "transpose")
    elements = undetermined = loose = 0
    for index in range(40):
        case = fake_quantize.prepare(seeded_case(3, index, 6, ops, style))
        for value in forward.expect(case).values:
            elements += value.value.size
            undetermined += int(value.undetermined.sum())
            with np.errstate(invalid="ignore"):
                loose += int((value.error > 1e-3 * np.abs(value.value)).sum())
    assert elements > 1000
    assert undetermined < 0.01 * elements
    assert loose < 0.2 * elements


@pytest.mark.parametrize(
    "text",
    [
        "quantize_dequantize(g, {0}, {scale} * 1.00001, {zero_point}, 1, {dtype})",
        "quantize_dequantize(g, {0}, {scale}, min({zero_point} + 1, 127), 1, {dtype})",
        'quantize_dequantize(g, g.op("Floor", {0}), {scale}, {zero_point}, 1, {dtype})',
    ],
)
def test_a_fault_in_a_quantised_model_is_found(text: str, pool: Pool) -> None:
    target = planted("quantize_dequantize", text, "ort-disable")
    case = fake_quantize.prepare(_product())
    found = Laboratory(pool, QUANTIZED).judge(case, [target]).verdicts[target.name]
    assert found.status == "mismatch"
