"""The model in a loop and in the branches of a conditional: correct programs are accepted, a lane that stands for
another is found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import Case
from generators.ops import check
from harness.backends import TARGETS, Target
from harness.execute.pool import Pool
from harness.questions import QUESTIONS
from harness.search.laboratory import Laboratory
from oracles.judge.outcome import Value

TYPE = TensorType("float32", (2, 3))
CASE = Case(
    Graph(
        (Leaf("x", TYPE), Leaf("w", TYPE, "parameter")),
        (
            Node("v0", "relu", ("w",), (), TYPE),  # the same in every lane
            Node("v1", "sub", ("x", "v0"), (), TYPE),
            Node("v2", "tanh", ("v1",), (), TYPE),
        ),
        ("v2", "v0"),
    ),
    {
        "x": np.array([[-1.5, 0.25, 2.0], [0.5, -0.75, 1.0]], np.float32),
        "w": np.array([[0.5, -1.0, 0.125], [2.0, 1.0, -0.25]], np.float32),
    },
)
WAYS = [(name, target) for name in ("loop", "branch") for target in ("jax-jit", "tf-graph", "ort-disable", "ort-all")]


def status(pool: Pool, name: str, target: Target) -> str:
    question = QUESTIONS[name]
    (outcome,) = Laboratory(pool, question).outcomes([(target, CASE)])
    assert isinstance(outcome, Value), outcome
    return question.judge(target, question.expect(CASE), outcome).status


@pytest.mark.parametrize(
    ("name", "back_end"), [*WAYS, pytest.param("branch", "torch-aot-eager", marks=pytest.mark.slow)]
)
def test_correct_programs_are_accepted(name: str, back_end: str, pool: Pool) -> None:
    assert status(pool, name, TARGETS[back_end]) == "agree"


@pytest.mark.parametrize(
    ("name", "back_end", "right", "wrong"),
    [
        ("loop", "jax-jit", "lambda lane: model(*lane", "lambda lane: model(*[x[0] for x in lanes]"),
        ("branch", "jax-jit", "jax.lax.switch(number,", "jax.lax.switch(1 - number,"),
        ("loop", "tf-graph", "model(*lane,", "model(*[x[1] for x in lanes],"),
        ("branch", "tf-graph", "tf.switch_case(number", "tf.switch_case(2 - number"),
        ("loop", "ort-all", "num_scan_inputs=len(INPUTS)", "num_scan_inputs=len(INPUTS), scan_input_directions=[1]"),
        ("branch", "ort-all", "then_branch=branches[k]", "then_branch=branches[0]"),
    ],
)  # fmt: skip
def test_a_lane_in_place_of_another_is_found(name: str, back_end: str, right: str, wrong: str, pool: Pool) -> None:
    one = TARGETS[back_end]
    text = one.question_loads[name]
    assert text.count(right) == 1
    planted = replace(one, question_loads={**one.question_loads, name: text.replace(right, wrong)})
    assert status(pool, name, planted) == "mismatch"


def test_what_cannot_be_asked_says_why() -> None:
    loop = QUESTIONS["loop"]
    assert loop.why_not(TARGETS["torch-inductor"], CASE.graph) == "this target has no loop over tensors"
    bare = replace(CASE.graph, leaves=(Leaf("x", TYPE, "parameter"), CASE.graph.leaves[1]))
    assert loop.why_not(TARGETS["jax-jit"], bare) == "no input to map over"
    assert loop.why_not(TARGETS["jax-jit"], loop.prepare(Case(bare, CASE.arrays)).graph) is None


@pytest.mark.parametrize("name", ["loop", "branch"])
@pytest.mark.parametrize("leaf", ["y0", "x_lane", "number", "chosen0_0"])
def test_operands_may_have_any_name(name: str, leaf: str, pool: Pool) -> None:
    """Names of the program's own are none that a graph may have (those of large cases are y0)."""
    question, target = QUESTIONS[name], TARGETS["ort-all"]
    type_ = TensorType("float32", (2, 3))
    graph = check(Graph((Leaf(leaf, type_),), (Node("v0", "neg", (leaf,), (), type_),), ("v0",)))
    case = question.prepare(Case(graph, {leaf: np.arange(6, dtype=np.float32).reshape(2, 3)}))
    assert Laboratory(pool, question).judge(case, [target]).verdicts["ort-all"].status == "agree"
