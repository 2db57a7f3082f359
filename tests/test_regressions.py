"""Each known issue's reproducer, as a person would run it: expected to fail as long as the framework is wrong. One that
no longer fails is news: a strict expected failure that passes fails the test."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import settings

from harness.commands.shared.terminal import KNOWN_ISSUES
from harness.execute import environments
from harness.execute.pool import environment
from harness.findings import known_issues
from harness.findings.known_issues import KnownIssue

FOLDER = Path(__file__).with_name("regressions")
ISSUES = known_issues.load(KNOWN_ISSUES)
CHOSEN = ISSUES[:: max(1, len(ISSUES) // settings().max_examples)]
"""All in the nightly profile: each costs the import of a framework."""


class StillWrong(AssertionError):
    """What is expected of a reproducer."""


@pytest.mark.parametrize("issue", CHOSEN, ids=lambda issue: issue.id)
@pytest.mark.xfail(strict=True, raises=StillWrong, reason="a framework is wrong: see known_issues.toml")
def test_reproducer(issue: KnownIssue, tmp_path: Path) -> None:
    if not issue.here:
        pytest.skip(f"{issue.id}: shows itself on processors with {issue.cpu} only")
    elsewhere = {target.environment for target in known_issues.targets_of(issue)}
    result = subprocess.run(
        [environments.interpreter(max(elsewhere, default="")), str(FOLDER / issue.id / "reproducer.py")],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
        env=environment(tmp_path, issue.threads),
    )
    last = result.stdout.strip().splitlines()[-1:] or [""]
    if result.returncode == 77:
        pytest.skip(f"{issue.id}: {last[0]}")
    if result.returncode == 1 and last[0].startswith(("reproduced", "the process ended")):
        raise StillWrong(last[0])
    assert result.returncode == 0, result.stdout + result.stderr
    if issue.cpu:
        pytest.skip(f"{issue.id}: depends on the processor, and does not show itself on this one")


def test_every_known_issue_has_a_reproducer() -> None:
    """`python -m harness known --write tests/regressions` writes those that are missing."""
    kept = {path.parent.name for path in FOLDER.glob("*/reproducer.py")}
    assert kept == {issue.id for issue in ISSUES}
