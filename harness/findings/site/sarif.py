"""All that was found, as SARIF 2.1.0 (OASIS), which code hosts show beside the source: a rule a cause, a result an
instance, at the program that shows it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from harness.findings import written
from harness.findings.site.pages import place_of
from harness.findings.triage.causes import Cause
from harness.findings.triage.severity import SEVERITIES
from harness.findings.triage.words import headline

LEVELS: dict[str, str] = dict(
    zip(SEVERITIES, ("error", "error", "error", "error", "warning", "warning", "note", "note"), strict=True)
)
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif_of(causes: Sequence[Cause]) -> str:
    """A log of one run. What is new has the baseline state "new", what is known "unchanged"."""
    rules, results = [], []
    for number, cause in enumerate(causes):
        properties = {"severity": cause.severity, "reach": cause.reach, "tags": [cause.first.framework]}
        rule = {
            "id": cause.id,
            "shortDescription": {"text": headline(cause.first)},
            "fullDescription": {"text": cause.first.reason or headline(cause.first)},
            "defaultConfiguration": {"level": LEVELS[cause.severity]},
            "properties": properties,
        }
        rules.append(rule | ({"helpUri": cause.upstream[0]} if cause.upstream else {}))
        for one in cause.instances:
            there = (one.folder / written.FILE).is_file()
            uri = place_of(one.folder) + (f"/{written.FILE}" if there else "/issue.toml")
            result = {
                "ruleId": cause.id,
                "ruleIndex": number,
                "level": LEVELS[cause.severity],
                "message": {"text": one.reason or one.message or headline(one)},
                "locations": [{"physicalLocation": {"artifactLocation": {"uri": uri}}}],
                "partialFingerprints": {"dissent/v1": one.id},
                "baselineState": "new" if one.kind == "finding" else "unchanged",
            }
            results.append(result)
    driver = {"name": "Dissent", "rules": rules}
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
    return json.dumps(log, indent=1) + "\n"
