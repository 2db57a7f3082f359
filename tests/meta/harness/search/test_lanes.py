"""Every question of every target: a graph that no framework gets wrong is right. What a question prints must fit the
program of each target, in each floating dtype."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from examples.one_node import applied
from examples.small_graphs import chain_case

from generators.graph import FLOATS, TensorType
from generators.graphs import Case
from generators.retype import retyped
from harness.backends import TARGETS, probe
from harness.execute.pool import Pool
from harness.findings.known.entry import FOLDER
from harness.findings.known.issues import load
from harness.findings.store import Store
from harness.questions import QUESTIONS
from harness.search.campaign import Campaign
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
def test_every_target_answers_a_plain_graph(name: str, dtype: str, tmp_path: Path) -> None:
    question = QUESTIONS[name]
    case = question.prepare(chain_of(dtype))
    if not question.worth(case):  # it asks of numbers that the nodes have
        plain = applied("leaky_relu", np.linspace(-2, 3, 6, dtype=np.float32).reshape(2, 3), alpha=0.25)
        case = question.prepare(of_dtype(plain, dtype))
    with Pool() as pool:
        campaign = Campaign(Laboratory(pool, question), (), Store(tmp_path), load(FOLDER))
        asked = [
            target
            for target in TARGETS.values()
            if (not target.opt_in or target.name in OPT_IN)
            and probe.probe(target).available
            and question.why_not(target, case.graph) is None
        ]
        verdicts = {target.name: campaign.verdict(target, case) for target in asked}
        wrong = {name: verdict.discrepancy for name, verdict in verdicts.items() if verdict.status not in RIGHT}
        told = {
            name: str(found)
            for name, found in wrong.items()
            if found is None or campaign.unexplained(TARGETS[name], case, found)
        }
    assert not told
    if dtype == "float32" and question.worth(case):
        assert any(verdict.status == "agree" for verdict in verdicts.values())
