"""Every known issue still shows itself on every target that it names: one that does not is fixed, or is worded
too widely, and either way its entry must go or change. And its reproducer does, as a person would run it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet
from hypothesis import settings

from generators import caseio
from harness.execute import environments
from harness.execute.variables import variables_in, variables_of
from harness.findings.known import issues as known_issues
from harness.findings.known import programs as known_programs
from harness.findings.known.entry import FOLDER
from harness.findings.known.issues import KnownIssue
from harness.findings.known.programs import KnownProgram
from harness.models import known as known_models
from harness.models.known import KnownModel
from harness.search import known_cases
from harness.search.campaign import Campaign

ISSUES = known_issues.load()
WITHOUT_CASE = [*(issue for issue in known_models.load() if issue.reproducer.exists()), *known_programs.load()]
CHOSEN = ISSUES[:: max(1, 2 * len(ISSUES) // settings().max_examples)]
"""Whose reproducers run. All in the nightly profile: each costs the import of a framework."""


def _name(issue: KnownIssue | KnownModel | KnownProgram) -> str:
    return str(issue.folder.relative_to(FOLDER))


def _parameter(issue: KnownIssue) -> ParameterSet:
    """Those of conversions in the nightly profile: each imports several frameworks."""
    return pytest.param(issue, id=_name(issue), marks=[pytest.mark.nightly] if "/" in issue.targets[0] else [])


@pytest.mark.slow(one_in=151, ci=40)
@pytest.mark.parametrize("issue", map(_parameter, ISSUES))
def test_known_issue(issue: KnownIssue, campaign: Campaign) -> None:
    case = caseio.loads(issue.case.read_text(encoding="utf-8"))
    if not issue.here:
        pytest.skip(f"{issue.id}: shows itself on processors with {issue.cpu} only")
    targets = known_cases.targets_of(issue)
    if not targets:
        pytest.skip(f"{issue.id}: none of {', '.join(issue.targets)} is available in a version that it names")
    statuses = {target.name: known_cases.still_shows(campaign.lab, issue, target, case) for target in targets}
    if issue.cpu and "fixed" in statuses.values():
        pytest.skip(f"{issue.id}: depends on the processor; on this one {statuses}")
    assert "fixed" not in statuses.values(), statuses
    assert "shows" in statuses.values(), statuses


class StillWrong(AssertionError):
    """What is expected of a reproducer. One that no longer fails is news: a strict expected failure that passes fails
    the test."""


@pytest.mark.slow(one_in=9)
@pytest.mark.parametrize("issue", CHOSEN, ids=_name)
@pytest.mark.xfail(strict=True, raises=StillWrong, reason="a framework is wrong: see issue.toml beside the reproducer")
def test_reproducer(issue: KnownIssue, tmp_path: Path) -> None:
    if not issue.here:
        pytest.skip(f"{issue.id}: shows itself on processors with {issue.cpu} only")
    elsewhere = {target.environment for target in known_cases.targets_of(issue)}
    result = subprocess.run(
        [environments.interpreter(max(elsewhere, default="")), str(issue.reproducer)],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
        env=variables_of(issue.threads) | variables_in(tmp_path),
    )
    last = result.stdout.strip().splitlines()[-1:] or [""]
    if result.returncode == 77:
        pytest.skip(f"{issue.id}: {last[0]}")
    lines = result.stdout.splitlines()  # a message of a framework may have several
    told = [line for line in lines if line.startswith(("reproduced", "the process ended"))]
    if result.returncode == 1 and told:
        raise StillWrong(told[-1])
    if result.returncode < 0 and "crash" in issue.symptoms:  # damage to memory may end the program at any moment
        raise StillWrong(f"ended by signal {-result.returncode}")
    assert result.returncode == 0, result.stdout + result.stderr
    if issue.cpu:
        pytest.skip(f"{issue.id}: depends on the processor, and does not show itself on this one")


@pytest.mark.slow(one_in=61, ci=9)
@pytest.mark.parametrize("issue", WITHOUT_CASE, ids=_name)
@pytest.mark.xfail(strict=True, raises=StillWrong, reason="a framework is wrong: see issue.toml beside the reproducer")
def test_reproducer_of_models_and_programs(issue: KnownModel | KnownProgram, tmp_path: Path) -> None:
    result = subprocess.run(
        [environments.interpreter(""), str(issue.reproducer)],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
        env=variables_of(1) | variables_in(tmp_path),
    )
    last = result.stdout.strip().splitlines()[-1:] or [""]
    if result.returncode == 77:
        pytest.skip(f"{issue.id}: {last[0]}")
    if result.returncode == 1 and last[0].startswith("reproduced"):
        raise StillWrong(last[0])
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_known_issue_has_a_reproducer() -> None:
    """`python -m harness known --write` writes those that are missing."""
    assert [issue.id for issue in ISSUES if not issue.reproducer.exists()] == []
