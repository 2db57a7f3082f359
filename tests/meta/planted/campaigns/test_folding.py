"""Raw failures fold by cause: one finding a fault, and never two faults in one.
`PYTHONPATH=.:tests/meta python tests/meta/planted/campaigns/folding.py --seed 1` prints the figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from planted.campaigns.folding import PLANTED, fold, planted_faults
from planted.targets import planted_all

from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import Case
from harness.backends import Target
from harness.execute.pool import Pool
from harness.findings.store import Finding, Store
from harness.search.blame.alike import as_wrong
from harness.search.blame.ordinary import with_ordinary_numbers
from harness.search.campaign import Campaign
from harness.search.laboratory import Laboratory

SQUARE = TensorType("float32", (2, 2))
FIRST = planted_all({"matmul": "torch.matmul({0}, {1}) + 1", "neg": "{0}.neg_()"}, name="planted-1")
SECOND = planted_all({"matmul": "torch.matmul({0}[..., :-1], {1}[..., :-1, :])"}, name="planted-2")
THIRD = planted_all({"matmul": "torch.matmul({0}, {1}) + 1"}, name="planted-3")


def product(value: float = 0.5) -> Case:
    graph = Graph((Leaf("x0", SQUARE), Leaf("x1", SQUARE)), (Node("v0", "matmul", ("x0", "x1"), (), SQUARE),), ("v0",))
    return Case(graph, {name: np.full((2, 2), value, np.float32) for name in ("x0", "x1")})


@pytest.fixture
def campaign(pool: Pool, tmp_path: Path) -> Campaign:
    return Campaign(Laboratory(pool), [FIRST, SECOND, THIRD], Store(tmp_path), confirmations=0)


def found(campaign: Campaign, target: Target, case: Case) -> Finding:
    discrepancy = campaign.verdict(target, case).discrepancy
    assert discrepancy
    finding = campaign.investigate(target, case, discrepancy)
    assert finding
    return finding


def test_faults_of_one_operator_in_two_targets_stay_apart(campaign: Campaign) -> None:
    first, second = found(campaign, FIRST, product()), found(campaign, SECOND, product())
    assert second.fingerprint == f"{first.fingerprint}-planted-2"
    third = found(campaign, THIRD, product(0.25))  # the same fault in another target is the same finding
    assert (third.fingerprint, third.targets) == (first.fingerprint, ("planted-1", "planted-3"))
    assert found(campaign, SECOND, product(0.25)).fingerprint == second.fingerprint


def test_two_faults_that_one_case_shows_stay_apart(campaign: Campaign) -> None:
    """Of another sign, they fail on the same smallest case in the same words."""
    one = planted_all({"matmul": "torch.matmul({0}, {1}) - 1"}, name="planted-4")
    campaign = replace(campaign, targets=[*campaign.targets, one])
    first = found(campaign, FIRST, product())
    assert found(campaign, one, product(0.25)).fingerprint == f"{first.fingerprint}-planted-4"
    assert not as_wrong(campaign.lab, FIRST, one, product())
    assert as_wrong(campaign.lab, FIRST, THIRD, product())


def test_what_was_never_written_tells_no_faults_apart(campaign: Campaign) -> None:
    one, other = (planted_all({"matmul": "torch.rand(2, 2)"}, name=f"planted-{i}") for i in (5, 6))
    assert as_wrong(campaign.lab, one, other, product())
    gone = planted_all({"matmul": "torch.full((2, 2), 1 / 0)"}, name="planted-7")
    assert as_wrong(campaign.lab, FIRST, gone, product())
    assert as_wrong(campaign.lab, gone, gone, product())


def test_what_is_kept_for_later_takes_no_place_of_another_target(campaign: Campaign) -> None:
    first, case = found(campaign, FIRST, product()), product(0.25)
    discrepancy = campaign.verdict(SECOND, case).discrepancy
    assert discrepancy
    kept = campaign.keep(SECOND, case, discrepancy)
    assert kept.fingerprint == f"{first.fingerprint}-planted-2"
    assert campaign.store.get(first.fingerprint) == first


@pytest.mark.parametrize(("more", "symptom"), [(" + 1", "value"), ("", "special")])  # what takes NaN stays so
def test_a_fault_that_nan_shows_is_that_of_ordinary_numbers(campaign: Campaign, more: str, symptom: str) -> None:
    special = product()
    special.arrays["x0"][0, 0] = np.inf
    lost = planted_all({"matmul": f"torch.nan_to_num(torch.matmul({{0}}, {{1}})){more}"}, name="planted-1")
    discrepancy = campaign.verdict(lost, special).discrepancy
    assert discrepancy
    assert discrepancy.symptom == "special"
    assert found(campaign, lost, special).symptom == symptom


@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64"])
def test_ordinary_numbers_keep_shapes_and_are_finite(dtype: str) -> None:
    leaf = Leaf("x0", TensorType(dtype, (3, 5)))
    graph = Graph((leaf,), (Node("v0", "neg", ("x0",), (), leaf.type),), ("v0",))
    array = np.ones((3, 5), dtype)
    array[0, 0] = np.nan
    first, *rest = with_ordinary_numbers(Case(graph, {"x0": array}))
    assert np.isnan(array[0, 0])
    assert (first.arrays["x0"].reshape(-1)[1:] == 1).all()
    for one in (first, *rest):
        made = one.arrays["x0"]
        assert (made.shape, made.dtype) == (array.shape, array.dtype)
        assert np.isfinite(made).all()
    assert all(len(np.unique(one.arrays["x0"])) == 15 for one in rest)


def test_company_is_made_plain(campaign: Campaign) -> None:
    """Operands that are overwritten show beside any other operator: the finding is of one."""
    names = set()
    for other in ("exp", "sigmoid"):
        nodes = (Node("v0", other, ("x0",), (), SQUARE), Node("v1", "neg", ("v0",), (), SQUARE))
        case = Case(Graph((Leaf("x0", SQUARE),), nodes, ("v1", "v0")), {"x0": np.ones((2, 2), np.float32)})
        names.add(found(campaign, FIRST, case).fingerprint)
    assert len(names) == 1


def test_faults_are_planted_in_two_targets() -> None:
    chosen = planted_faults(1)
    assert sum(map(len, chosen.values())) == PLANTED
    assert set.intersection(*map(set, chosen.values()))  # some operators are wrong in both, in different ways
    assert planted_faults(2) != chosen


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [1, 2])
def test_a_thousand_failures_of_forty_faults(seed: int, pool: Pool, tmp_path: Path) -> None:
    folded = fold(seed, pool, tmp_path)
    assert folded.failures == 1000
    assert folded.mixed == []
    assert 35 <= len(folded.shown) <= len(folded.causes) <= 44
