"""Which cases of a step go into one program."""

from __future__ import annotations

from pathlib import Path

import pytest

from generators.sweep import swept
from harness.backends import TARGETS
from harness.execute.pool import Pool
from harness.findings.known.issues import KnownIssue
from harness.findings.store import Store
from harness.search.campaign import Campaign
from harness.search.hunting.carry_out import Carrier
from harness.search.hunting.plan import Lane, Step
from harness.search.hunting.together import Together
from harness.search.laboratory import Laboratory

EAGER = TARGETS["torch-eager"]
OPERATORS = ("add", "tanh", "sub", "exp", "abs")


def issue(*operators: str, symptom: str, oracle: str = "forward") -> KnownIssue:
    """A known issue of operators on PyTorch."""
    return KnownIssue(Path("planted"), ("torch-*",), (symptom,), operators, "planted", oracle=oracle)


def batches(
    pool: Pool, folder: Path, issues: tuple[KnownIssue, ...], monkeypatch: pytest.MonkeyPatch
) -> list[list[str]]:
    """The operators of the programs that a step is carried out by."""
    found = []

    def judge(self: Together, members: list) -> list:
        found.append([member.graph.nodes[0].op for member in members])
        return []

    monkeypatch.setattr(Together, "judge", judge)
    campaign = Campaign(Laboratory(pool), (EAGER,), Store(folder), issues)
    takes = tuple((operator, 0) for operator in OPERATORS)
    assert all(len(swept(operator, 0, 1).graph.nodes) == 1 for operator in OPERATORS)
    carrier = Carrier(lambda campaign, target, case, discrepancy: None)
    assert not list(carrier.carry_out(campaign, Step(Lane("forward", EAGER), takes)))
    return [sorted(batch) for batch in found]


def test_what_may_be_rejected_is_joined_apart(pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = issue("tanh", "exp", symptom="rejected")
    assert batches(pool, tmp_path, (known,), monkeypatch) == [["abs", "add", "sub"], ["exp", "tanh"]]


def test_what_may_end_a_worker_has_a_program_of_its_own(
    pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = issue("tanh", symptom="crash"), issue("exp", symptom="timeout"), issue("tanh", symptom="rejected")
    assert sorted(batches(pool, tmp_path, known, monkeypatch)) == [["abs", "add", "sub"], ["exp"], ["tanh"]]


def test_what_another_question_knows_keeps_nothing_apart(
    pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = issue("tanh", symptom="crash", oracle="loop"), issue("exp", symptom="value")
    assert batches(pool, tmp_path, known, monkeypatch) == [sorted(OPERATORS)]
