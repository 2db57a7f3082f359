"""Every operator x dialect cell that claims to be supported is compiled, run and judged, for every dtype."""

from __future__ import annotations

import pytest

from generators.ops import OPS
from harness.backends import TARGETS
from harness.campaign import Campaign
from harness.cells import dtypes_of, samples
from harness.dialects import DIALECTS
from oracles.outcome import Unsupported

SIMPLEST = {
    "torch": "torch-eager",
    "tensorflow": "tf-eager",
    "jax": "jax-eager",
    "relax": "tvm-O0",
    "onnx": "ort-disable",
}


def test_every_dialect_has_a_simplest_target() -> None:
    assert set(SIMPLEST) == set(DIALECTS)
    assert all(TARGETS[name].dialect is DIALECTS[dialect] for dialect, name in SIMPLEST.items())


@pytest.mark.parametrize("operator", OPS)
def test_drawn_dtypes_are_those_of_the_record(operator: str) -> None:
    drawn = {case.graph.types[case.graph.nodes[0].operands[0]].dtype for case in samples(operator)}
    assert drawn == set(dtypes_of(OPS[operator]))


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("operator", OPS)
def test_cell(operator: str, dialect: str, campaign: Campaign) -> None:
    target = TARGETS[SIMPLEST[dialect]]
    expressed = 0
    for case in samples(operator):
        examination = campaign.lab.examine(case, [target])
        verdict = examination.verdicts[target.name]
        if isinstance(examination.outcomes[target.name], Unsupported):
            continue
        expressed += 1
        if verdict.discrepancy and campaign.unexplained(target, case, verdict.discrepancy):
            pytest.fail(f"{target.name}: {verdict.discrepancy.message}\n{case.graph}", pytrace=False)
    spelling = getattr(OPS[operator], dialect)
    if isinstance(spelling, str):
        refused = any(name == operator for name, _ in target.refuses)
        assert expressed or refused, f"{operator} is spelled in {dialect}, yet none of its cases could be run"
    elif not callable(spelling):
        assert not expressed
        assert len(spelling.why) > 10
