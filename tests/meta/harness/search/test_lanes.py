"""Every question of every target: a graph that no framework gets wrong is right. What a question prints must fit the
program of each target, in each floating dtype."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from examples.one_node import applied
from examples.small_graphs import chain_case

from generators.graph import FLOATS, TensorType
from generators.graphs import Case
from generators.retype import retyped
from harness.backends import TARGETS, probe
from harness.execute.pool import Pool
from harness.questions import QUESTIONS
from harness.search.laboratory import Laboratory

RIGHT = {"agree", "within_bound_only", "undetermined", "unsupported"}
OPT_IN = ("openvino", "litert-builtin", "litert-xnnpack")
"""Targets that are run on request only, and are quick."""


def chain_of(dtype: str) -> Case:
    """A product, a negation, a sum, an activation, in this dtype."""
    return of_dtype(chain_case(), dtype)


def of_dtype(case: Case, dtype: str) -> Case:
    leaves = tuple(
        replace(leaf, type=TensorType(dtype, leaf.type.shape)) if leaf.type.dtype in FLOATS else leaf
        for leaf in case.graph.leaves
    )
    arrays = {name: array.astype(np.dtype(dtype)) for name, array in case.arrays.items()}
    found = retyped(replace(case.graph, leaves=leaves), arrays)
    assert found is not None
    return found


@pytest.mark.nightly
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", sorted(name for name, asked in QUESTIONS.items() if asked.targets is TARGETS))
def test_every_target_answers_a_plain_graph(name: str, dtype: str) -> None:
    question = QUESTIONS[name]
    plain = chain_of(dtype)
    if not question.worth(plain):  # it asks of numbers that the nodes have
        plain = of_dtype(applied("leaky_relu", plain.arrays["x0"].astype(np.float32), alpha=0.25), dtype)
    case = question.prepare(plain)
    with Pool() as pool:
        lab = Laboratory(pool, question)
        asked = [
            target
            for target in TARGETS.values()
            if (not target.opt_in or target.name in OPT_IN)
            and probe.probe(target).available
            and question.why_not(target, case.graph) is None
        ]
        verdicts = {target.name: lab.judge(case, [target]).verdicts[target.name] for target in asked}
    told = {name: str(verdict.discrepancy) for name, verdict in verdicts.items() if verdict.status not in RIGHT}
    assert not told
    if dtype == "float32":
        assert any(verdict.status == "agree" for verdict in verdicts.values())
