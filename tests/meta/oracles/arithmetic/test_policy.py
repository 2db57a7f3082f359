"""Layers with a mixed-precision policy: correct ones are accepted, forgotten and wrong casts are found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import Case
from generators.ops import check
from harness.backends import TARGETS, Target
from harness.execute.pool import Pool
from harness.questions.dtypes.policy import POLICY
from harness.search.laboratory import Laboratory
from oracles.arithmetic import policy
from oracles.judge.verdict import Verdict


def case() -> Case:
    """exp(x w + b) with a bias of float64, and an integer that is left alone."""
    x, w, v = (TensorType("float32", shape) for shape in ((3, 4), (4, 5), (3, 5)))
    b, i = TensorType("float64", (5,)), TensorType("int32", (2,))
    leaves = (Leaf("x", x), Leaf("w", w, "parameter"), Leaf("b", b, "parameter"), Leaf("i", i))
    rows = (Node("v0", "matmul", ("x", "w"), (), v), Node("v1", "exp", ("v0",), (), v))
    others = (Node("v2", "neg", ("b",), (), b), Node("v3", "add", ("i", "i"), (), i))
    rng = np.random.default_rng(3)
    arrays = {leaf.name: rng.normal(size=leaf.type.shape).astype(leaf.type.dtype) for leaf in leaves[:3]}
    graph = Graph(leaves, (*rows, *others), ("v1", "v2", "v3"))
    return Case(check(graph), {**arrays, "i": np.array([3, -4], np.int32)})


def verdict(pool: Pool, target: Target, *changes: tuple[str, str]) -> Verdict:
    """What becomes of the case where the program is changed so."""

    def program(subject: Target, graph: Graph) -> str:
        text = POLICY.program(subject, graph)
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        return text

    lab = Laboratory(pool, replace(POLICY, program=program))
    return lab.judge(case(), [target]).verdicts[target.name]


def test_what_is_expected_has_the_dtype_of_the_policy() -> None:
    found = policy.expect(case())
    low = policy.dtype(case().graph)
    assert [type_.dtype for type_ in found.types] == [low, low, "int32"]
    rounded = -case().arrays["b"].astype(low).astype(float)
    assert np.all(np.abs(found.values[1].value - rounded) <= found.values[1].error)
    assert np.all(np.abs(found.values[1].value + case().arrays["b"]) < 1e-9)


@pytest.mark.parametrize("name", ["tf-eager", "tf-graph", "tf-xla"])
def test_a_correct_layer_is_accepted(name: str, pool: Pool) -> None:
    found = verdict(pool, TARGETS[name])
    assert found.status == "agree", found.discrepancy


_POLICY = f'super().__init__(dtype="mixed_{policy.dtype(case().graph)}")'
_OTHER = f'super().__init__(dtype="mixed_{next(d for d in policy.DTYPES if d != policy.dtype(case().graph))}")'
_HELD = "tf.convert_to_tensor(variable) for"
_LOST = "tf.bitcast(tf.bitcast(tf.convert_to_tensor(variable), tf.uint16) // 8 * 8, self.compute_dtype)"


@pytest.mark.parametrize(
    ("old", "new", "symptom"),
    [
        (_POLICY, 'super().__init__(dtype="float32")', "type"),
        (_POLICY, _OTHER, "type"),
        (_POLICY, _POLICY[:-1] + ", autocast=False)", "rejected"),
        (_HELD, f"{_LOST} for", "value"),
        (_HELD, "tf.cast(variable._value, tf.float32) for", "rejected"),
    ],
    ids=["no policy", "another policy", "inputs not cast", "variables lose bits", "variables not cast"],
)  # fmt: skip
def test_a_wrong_cast_is_found(old: str, new: str, symptom: str, pool: Pool) -> None:
    found = verdict(pool, TARGETS["tf-eager"], (old, new))
    assert found.discrepancy is not None
    assert found.discrepancy.symptom == symptom


def test_only_keras_is_asked() -> None:
    assert (
        POLICY.why_not(TARGETS["torch-eager"], case().graph)
        == "layers with a policy are Keras', written for TensorFlow"
    )
