"""The documented rules of promotion: right results are accepted, wrong dtypes and values are seen."""

from __future__ import annotations

import pytest

from generators.graph import EVERY
from oracles.questions.dtypes.promotion import CASES, JAX_LATTICE, REFUSED, RULES, SCALARS, PromotionCase, judge, least


@pytest.mark.parametrize(
    ("framework", "case", "right", "value", "wrong"),
    [
        ("torch", PromotionCase("add", "uint8", "int8"), "int16", 220, "int8"),
        ("torch", PromotionCase("add", "int64", "float16"), "float16", 220, "float32"),
        ("torch", PromotionCase("mul", "float16", "bfloat16"), "float32", 12000, "float16"),
        ("torch", PromotionCase("add", "int32", "python float"), "float32", 220, "float64"),
        ("torch", PromotionCase("add", "float64", "python complex"), "complex128", 220, "complex64"),
        ("torch", PromotionCase("div", "int64", "int32"), "float32", 1.5, "float64"),
        ("jax", PromotionCase("add", "uint8", "int8"), "int16", 220, "int32"),
        ("jax", PromotionCase("add", "float16", "bfloat16"), "float32", 220, "float64"),
        ("jax", PromotionCase("add", "int64", "float16"), "float16", 220, "float32"),
        ("jax", PromotionCase("mul", "python float", "float16"), "float16", 12000, "float64"),
        ("jax", PromotionCase("add", "int8", "python int"), "int8", -36, "int64"),
        ("jax", PromotionCase("less", "int8", "float64"), "bool", 1, "float64"),
        ("tensorflow", PromotionCase("add", "int32", "float32"), REFUSED, 0, "float32"),
        ("tensorflow", PromotionCase("add", "float32", "python int"), "float32", 220, "int32"),
        ("tensorflow", PromotionCase("add", "int32", "python float"), REFUSED, 0, "int32"),
        ("tensorflow-numpy", PromotionCase("add", "int32", "float32"), "float64", 220, "float32"),
        ("onnx", PromotionCase("add", "int32", "float32"), REFUSED, 0, "float32"),
        ("onnx", PromotionCase("div", "int32", "int32"), "int32", 1, "float32"),
        ("tvm", PromotionCase("mul", "int32", "int64"), REFUSED, 0, "int64"),
    ],
    ids=str,
)
def test_right_is_accepted_and_wrong_is_seen(
    framework: str, case: PromotionCase, right: str, value: float, wrong: str
) -> None:
    assert judge(framework, case, right, value) is None
    assert f"is {wrong}, not" in (judge(framework, case, wrong, value) or "")
    if right not in (REFUSED, "bool"):
        assert "not (" in (judge(framework, case, right, value + max(1, 0.05 * value)) or "")


def test_every_pair_is_asked_in_both_orders() -> None:
    pairs = {(case.left, case.right) for case in CASES}
    assert len(pairs) == len(EVERY) ** 2 + 2 * len(EVERY) * len(SCALARS)
    assert all((right, left) in pairs for left, right in pairs)


def test_the_lattice_is_one() -> None:
    """Of any two nodes there is one least node above both, whichever comes first."""
    for left in JAX_LATTICE:
        for right in JAX_LATTICE:
            assert least(JAX_LATTICE, left, right) == least(JAX_LATTICE, right, left)


@pytest.mark.parametrize("framework", RULES)
def test_a_rule_says_something_of_most_pairs(framework: str) -> None:
    assert sum(bool(RULES[framework](case)) for case in CASES) > 0.3 * len(CASES)
