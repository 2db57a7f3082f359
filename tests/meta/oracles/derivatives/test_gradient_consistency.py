"""A gradient that depends on where an element stands is found where the reference allows anything, and only there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from examples.one_node import applied

from generators.graphs import Case
from harness.backends import TARGETS, Target
from harness.execute.pool import Pool
from harness.questions import QUESTIONS
from harness.search.laboratory import Laboratory

QUESTION = QUESTIONS["gradient_consistency"]
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


@pytest.fixture(scope="module")
def lab() -> Iterator[Laboratory]:
    with Pool() as pool:
        yield Laboratory(pool, QUESTION)


def exponentials() -> Case:
    return applied("exp", np.array([np.nan, 1, 2], np.float32))


def planted(name: str, fault: str) -> Target:
    target = TARGETS[name]
    assert isinstance(target.gradient, str)
    return replace(target, gradient=target.gradient.rstrip("\n") + "\n" + _FAULT.format(fault=fault))


@pytest.mark.parametrize("name", ["torch-eager", "tf-graph", "jax-jit"])
def test_a_consistent_target_is_accepted(lab: Laboratory, name: str) -> None:
    verdict = lab.judge(exponentials(), [TARGETS[name]]).verdicts[name]
    assert (verdict.status, verdict.elements - verdict.undetermined) == ("agree", 1)


def test_a_planted_difference_is_found(lab: Laboratory) -> None:
    verdict = lab.judge(exponentials(), [planted("torch-eager", "out[np.isnan(out) & (out.size > 32)] = 0")]).verdicts
    found = verdict["torch-eager"].discrepancy
    assert found
    assert found.symptom == "inconsistency"
    assert found.message.startswith("beside the same elements at other places of a longer tensor: NaN and a number (1 ")


def test_a_wrong_gradient_is_none(lab: Laboratory) -> None:
    wrong = planted("torch-eager", "out[1:3] = np.inf if out.size == 3 else out[1:3]")
    assert lab.judge(exponentials(), [wrong]).verdicts["torch-eager"].status == "agree"


def test_only_elementwise_operators_of_one_shape_are_asked() -> None:
    assert QUESTION.concerns("hard_swish")
    assert not QUESTION.concerns("sum")
    one, other = np.ones((2, 3), np.float32), np.ones(3, np.float32)
    assert QUESTION.why_not(TARGETS["torch-eager"], applied("mul", one, other).graph)
    assert not QUESTION.why_not(TARGETS["torch-eager"], applied("mul", one, one).graph)
