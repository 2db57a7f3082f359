"""A framework against itself: what differs in kind is found where the reference allows anything, and only there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from examples.one_node import applied

from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import Case
from generators.union import Filled
from harness.backends import TARGETS, Target
from harness.execute.pool import Pool
from harness.findings.store import Store
from harness.questions import QUESTIONS
from harness.search.campaign import Campaign
from harness.search.hunting.together import Together
from harness.search.laboratory import Laboratory
from oracles.questions import consistency

QUESTION = QUESTIONS["consistency"]
_FAULT = """

plain_load = load


def load(parameters):
    compiled = plain_load(parameters)

    def run(*inputs):
        out = np.array(compiled(*inputs)[0])
        {fault}
        return [out]

    return run
"""


def planted(name: str, fault: str) -> Target:
    target = TARGETS[name]
    return replace(target, load=target.load.rstrip("\n") + "\n" + _FAULT.format(fault=fault))


def case(op: str, *arrays: np.ndarray, role: str = "input") -> Case:
    leaves = tuple(Leaf(f"x{i}", TensorType(str(a.dtype), a.shape), role) for i, a in enumerate(arrays))  # type: ignore[arg-type]
    names = tuple(leaf.name for leaf in leaves)
    graph = Graph(leaves, (Node("v0", op, names, (), leaves[0].type),), ("v0",))
    return Case(graph, {leaf.name: array for leaf, array in zip(leaves, arrays, strict=True)})


def logarithms(role: str = "input") -> Case:
    """0 log NaN, which frameworks take for 0 or NaN, beside what is determined."""
    return case("xlogy", np.array([0, 1, 2, 0], np.float32), np.array([np.nan, 2, 3, 4], np.float32), role=role)


@pytest.fixture(scope="module")
def lab() -> Iterator[Laboratory]:
    with Pool() as pool:
        yield Laboratory(pool, QUESTION)


@pytest.mark.parametrize("name", ["torch-eager", "tf-graph", "jax-jit", "ort-all"])
@pytest.mark.parametrize("role", ["input", "parameter"])
def test_a_consistent_target_is_accepted(lab: Laboratory, name: str, role: str) -> None:
    verdict = lab.judge(logarithms(role), [TARGETS[name]]).verdicts[name]
    assert verdict.status == "agree"
    assert verdict.elements - verdict.undetermined == 3  # the one element, in three ways


@pytest.mark.parametrize(
    ("check", "name", "fault", "role"),
    [
        ("lanes", "torch-eager", "out[np.isnan(out) & (out.size > 32)] = 0", "input"),
        ("roles", "torch-eager", "out[np.isnan(out) & (len(PARAMETERS) > 0)] = np.inf", "parameter"),
        ("level", "ort-all", "out[0] = 0 if np.isnan(out[0]) else np.nan", "input"),
    ],
)
def test_a_planted_difference_is_found(lab: Laboratory, check: str, name: str, fault: str, role: str) -> None:
    verdict = lab.judge(logarithms(role), [planted(name, fault)]).verdicts[name]
    assert verdict.discrepancy
    assert verdict.discrepancy.symptom == "inconsistency"
    assert verdict.discrepancy.message.startswith(f"beside {consistency.CHECKS[check]}: NaN and a number (1 of 4")


def test_a_wrong_value_is_none(lab: Laboratory) -> None:
    """It is the forward question's, and so is what a level makes of determined elements."""
    wrong = planted("ort-all", "out[1:4] = np.inf if out.size == 4 else out[1:4]")
    assert lab.judge(logarithms(), [wrong]).verdicts["ort-all"].status == "agree"


def test_integers_beside_a_rounding(lab: Laboratory) -> None:
    """A quotient next to an integer may be rounded to either side, but not to both."""
    quotient = case("floor_divide", np.full(5, 6e8, np.float32), np.full(5, 0.1, np.float32))
    assert not QUESTION.expect(quotient).values[0].undetermined.all() or QUESTION.expect(quotient).values[0].error.any()
    free = case("sqrt", np.array([1e-40, -1], np.float32))
    assert all(value.undetermined.all() for value in QUESTION.expect(free).values)  # a subnormal may be flushed


def test_documented_freedom_is_none() -> None:
    assert not QUESTION.concerns("argsort")
    assert not QUESTION.concerns("qr_factor")
    for products in ("matmul", "conv2d", "lstm", "gru_cell", "attention"):  # inf - inf, or fma(a, b, -inf)
        assert not QUESTION.concerns(products)
    assert QUESTION.concerns("argmax")
    narrow = case("xlogy", np.zeros(2, np.float16), np.full(2, np.nan, np.float16))
    level, roles, lanes = QUESTION.expect(narrow).values
    assert level.undetermined.all()
    assert not roles.undetermined.any()
    assert not lanes.undetermined.any()
    assert set(consistency.FREE) | set(consistency.FAMILIES)
    assert all(consistency.FREE.values())


def test_only_sorted_numbers_are_searched_and_the_greatest_are_asked_for() -> None:
    key, nan = np.array([np.nan], np.float32), np.array([1, np.nan, 3], np.float32)
    for numbers, worth in ((np.array([1, 2, 3], np.float32), True), (nan, False), (nan[::-1].copy(), False)):
        assert consistency.worth(applied("searchsorted", numbers, key, right=True)) == worth
    assert consistency.worth(applied("topk", nan, axis=0, k=1, largest=True))


def test_several_cases_in_one_program(lab: Laboratory) -> None:
    """One of them, with its second set of arrays."""
    one, other = logarithms(), case("exp", np.array([1, 200], np.float32))
    sets = ({"x0": np.ones(4, np.float32), "x1": np.ones(4, np.float32)}, dict(one.arrays))
    members = [Filled(other.graph, (other.arrays,)), Filled(one.graph, sets)]
    wrong = planted("torch-eager", "pass")
    wrong = replace(wrong, load=wrong.load.replace("return [out]", _ALL_LONG))
    found = Together(lab, wrong).judge(members)
    shown = [one for one in found if one.verdict.discrepancy]
    assert [one.case.graph.operators for one in shown] == [("xlogy",)]


_ALL_LONG = (
    "return [np.where(np.isnan(x) & (x.size > 32), 0, x).astype(x.dtype) for x in map(np.array, compiled(*inputs))]"
)


def test_it_is_stored_and_minimised(lab: Laboratory, tmp_path: Path) -> None:
    """Cut down to few elements, with a program that shows it."""
    target = planted("torch-eager", "out[np.isnan(out) & (out.size > 40)] = 0")
    x = np.zeros((3, 4), np.float32)
    large = case("xlogy", x, np.where(np.arange(12).reshape(3, 4) == 5, np.nan, 2).astype(np.float32))
    campaign = Campaign(lab, [target], Store(tmp_path))
    discrepancy = lab.judge(large, [target]).verdicts[target.name].discrepancy
    assert discrepancy
    finding = campaign.investigate(target, large, discrepancy)
    assert finding
    assert (finding.symptom, finding.oracle, finding.reproduced) == ("inconsistency", "consistency", 2)
    assert finding.fingerprint.startswith("inconsistency-torch-xlogy-")
    assert finding.path
    report = (Path(finding.path) / "report.md").read_text()
    assert "SelfMismatch  xlogy" in report
    assert "v0 = xlogy(x0, x1): float32[2,2]" in report
