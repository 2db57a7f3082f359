"""The lists of autocast's operators against the dtypes and values that PyTorch returns, of every operator alone."""

from __future__ import annotations

import pytest

from generators.graph import Graph
from generators.ops import OPS
from harness.backends import TARGETS
from harness.questions.dtypes.autocast import AUTOCAST
from harness.search.campaign import Campaign
from harness.search.dtype_support import samples
from harness.search.hypothesis_profiles import nightly
from oracles.arithmetic import autocast

LISTS = (autocast.LOWER, autocast.FLOAT32, autocast.WIDEST, autocast.COMPOSED, autocast.PROMOTES)


def test_an_operator_is_on_one_list() -> None:
    assert sum(map(len, LISTS)) == len(frozenset().union(*LISTS))
    assert frozenset().union(*LISTS) <= set(OPS)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_lists_are_what_pytorch_does(dtype: str, campaign: Campaign) -> None:
    """One case of each operator in each dtype, all samples in the nightly profile; known issues apart."""
    questioned, target = campaign.with_question(AUTOCAST), TARGETS["torch-eager"]
    each = 3 if nightly() else 1
    agreed, wrong = set(), []
    for operator in OPS:
        for case in samples(operator, dtype)[:each]:
            verdict = questioned.lab.judge(case, [target]).verdicts[target.name]
            if verdict.status == "agree":
                agreed.add(operator)
            if verdict.discrepancy and questioned.unexplained(target, case, verdict.discrepancy):
                wrong.append(f"{operator}: {verdict.discrepancy.message}")
    assert not wrong
    assert len(agreed) > 120


@pytest.mark.parametrize("operator", sorted(autocast.LOWER | autocast.FLOAT32))
def test_a_list_is_not_taken_for_another(operator: str) -> None:
    """Were it on no list, a case in the other dtype would be rewritten without a cast."""
    dtype = "float32" if operator in autocast.LOWER else "bfloat16"
    graphs = [autocast.rewritten(case.graph) for case in samples(operator, dtype)]
    casts = [any(node.op == "cast" for node in graph.nodes) for graph in graphs if isinstance(graph, Graph)]
    assert any(casts) or not casts
