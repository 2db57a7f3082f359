"""The command `site`: pages of all that was found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from harness.backends import TARGETS
from harness.commands.findings import gather
from harness.commands.shared.terminal import Known, fail, say, unwritten, write_text
from harness.execute import environments
from harness.execute.reading import FileError, read_json
from harness.findings.database import opened
from harness.findings.database.history import Past, first_seen, history
from harness.findings.known.entry import FOLDER
from harness.findings.site import pages
from harness.findings.site.hunted import Hunted, outcomes_of
from harness.findings.site.sarif import sarif_of
from harness.findings.site.summary import summary_of
from harness.findings.store import Finding
from harness.findings.triage.causes import causes_of
from harness.search import coverage
from harness.search.hunting import plan


def site(
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the pages go; index.html is the first.")
    ] = None,
    findings: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Findings that are shown as new, and what they say of hunts.")
    ] = None,
    summary: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write Markdown for the summary of a CI run.")
    ] = None,
    sarif: Annotated[Path | None, typer.Option(metavar="FILE", help="Write SARIF 2.1.0.")] = None,
    known_issues: Known = FOLDER,
) -> None:
    """Make a static site of all faults: by cause, with severity, reach, programs; it opens without a network."""
    if not (out or summary or sarif):
        raise fail("nothing to write: --out DIR, --summary FILE or --sarif FILE is needed")
    if findings and not findings.is_dir():
        raise fail(f"{findings}: no folder of findings")
    if out and out.exists() and not (out / "index.html").is_file() and (not out.is_dir() or any(out.iterdir())):
        raise fail(f"{out}: there is something else in it")
    try:
        instances = gather.found(findings) if findings else []
        seen = seen_of(findings) if findings else {}
        instances = [replace(one, seen=seen.get(one.id, "")) for one in instances]
        hunts = hunts_of(findings) if findings else None
        past = runs_of(findings) if findings else []
        instances += gather.entries(known_issues)
        causes = causes_of(instances)
        say(f"{len(instances)} instances, {len(causes)} causes")
        if out:
            count = pages.write(out, causes, versions(), hunts, past)
            say(f"{count} pages: {out / 'index.html'}")
    except FileError as error:
        raise fail(str(error)) from error
    except OSError as error:
        raise fail(unwritten(error, out)) from error
    if summary:
        write_text(summary, summary_of(causes, hunts is not None))
    if sarif:
        write_text(sarif, sarif_of(causes))


def versions() -> dict[str, str]:
    """Of the frameworks' distributions, as they are installed here."""
    named = dict.fromkeys(next(iter(target.packages)) for target in TARGETS.values() if not target.environment)
    found = environments.versions_of(list(named))
    return {names.split("|")[0]: found[names] for names in named if names in found}


def runs_of(findings: Path) -> list[Past]:
    """Of the store of a findings folder, if there is one. Raises FileError."""
    url = opened.url_of(findings)
    return history(url) if opened.there(url) else []


def seen_of(findings: Path) -> dict[str, str]:
    """By finding, when it was first seen, as the store of its folder says. Raises FileError."""
    url = opened.url_of(findings)
    return first_seen(url) if opened.there(url) else {}


def hunts_of(findings: Path) -> Hunted:
    """What a findings folder has of hunts. Raises FileError."""
    covered = coverage.load(findings)
    done: dict[str, tuple[int, int]] = {}
    for (question, _, _), cell in plan.cells(findings).items():
        before = done.get(question, (0, 0))
        done[question] = (before[0] + int(cell.done, 16).bit_count(), before[1] + cell.places)
    records = [path for path in sorted(findings.glob("[!.]*/finding.json")) if "strategy" not in read_json(path, dict)]
    return Hunted(
        str(findings),
        {question: outcomes_of(counted.cells) for question, counted in covered.items()},
        done,
        sum(counted.elements.total() for counted in covered.values()),
        sum(counted.undetermined.total() for counted in covered.values()),
        [read_json(path, Finding).votes for path in records],
    )


COMMANDS = (site,)
