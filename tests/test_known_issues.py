"""Every known issue still shows itself on every target that it names: one that does not is fixed, or is worded
too widely, and either way its entry must go or change."""

from __future__ import annotations

from pathlib import Path

import pytest

from generators import caseio
from harness.commands.app import KNOWN_ISSUES
from harness.findings import known_issues
from harness.search.campaign import Campaign

ISSUES = known_issues.load(KNOWN_ISSUES)


def _parameter(issue: known_issues.KnownIssue):
    """Those of conversions in the nightly profile: each imports several frameworks."""
    return pytest.param(issue, id=issue.id, marks=[pytest.mark.nightly] if "/" in issue.targets[0] else [])


@pytest.mark.slow(one_in=19)
@pytest.mark.parametrize("issue", map(_parameter, ISSUES))
def test_known_issue(issue: known_issues.KnownIssue, campaign: Campaign) -> None:
    case = caseio.loads(Path(KNOWN_ISSUES.parent, issue.case).read_text(encoding="utf-8"))
    if not issue.here:
        pytest.skip(f"{issue.id}: shows itself on processors with {issue.cpu} only")
    targets = known_issues.targets_of(issue)
    if not targets:
        pytest.skip(f"{issue.id}: none of {', '.join(issue.targets)} is available in a version that it names")
    statuses = {target.name: known_issues.still_shows(campaign.lab, issue, target, case) for target in targets}
    if issue.cpu and "fixed" in statuses.values():
        pytest.skip(f"{issue.id}: depends on the processor; on this one {statuses}")
    assert "fixed" not in statuses.values(), statuses
    assert "shows" in statuses.values(), statuses
