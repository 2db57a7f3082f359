"""All that was found, as Markdown for the summary of a CI run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from harness.findings.triage.causes import Cause
from harness.findings.triage.severity import SEVERITIES
from harness.findings.triage.words import headline


def summary_of(causes: Sequence[Cause], hunted: bool) -> str:
    """What is new first, then how much is known, by framework and severity. hunted: were findings looked at?"""
    fresh = [cause for cause in causes if cause.state == "new"]
    known = [cause for cause in causes if cause.state != "new"]
    lines = [f"## Dissent: {_count(len(fresh), 'new fault')}" if hunted else "## Dissent: known faults", ""]
    if fresh:
        lines += ["| severity | framework | what | finding |", "|---|---|---|---|"]
        for cause in fresh:
            what = headline(cause.first).replace("|", "\\|")
            lines.append(f"| {cause.severity} | {cause.first.framework} | {what} | `{cause.id}` |")
        lines.append("")
    lines += [f"{_count(len(known), 'known cause')}:", ""]
    severities = [name for name in SEVERITIES if any(cause.severity == name for cause in known)]
    lines += ["| framework | " + " | ".join(severities) + " | all |", "|---" * (len(severities) + 2) + "|"]
    counts = Counter((cause.first.framework, cause.severity) for cause in known)
    totals = Counter(cause.first.framework for cause in known)
    for name, total in sorted(totals.items(), key=lambda item: (-item[1], item[0])):
        cells = " | ".join(str(counts[name, severity] or "") for severity in severities)
        lines.append(f"| {name} | {cells} | {total} |")
    return "\n".join(lines) + "\n"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
