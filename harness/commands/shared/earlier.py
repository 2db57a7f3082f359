"""What a findings folder has that its store has not: counts that an earlier Dissent kept in `coverage.json`, findings
that could not be written when they were found. Both are taken over by the next run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Select, delete, select

from harness.execute.files import locked
from harness.execute.reading import read_json
from harness.findings.database import opened
from harness.findings.database.recorder import Recorder, begin
from harness.findings.database.tables import FINDING, RUN
from harness.findings.store import Store
from harness.search import coverage

COMMAND = "taken over from {}"


def check(findings: Path) -> None:
    """Can what is in a findings folder be gone on with: records, coverage, the store? Raises FileError, before anything
    is lost."""
    Store(findings).check()
    old = findings / coverage.FILE
    if old.exists():
        coverage.load_file(old)
    if opened.there(url := opened.url_of(findings)):
        opened.checked(url)


def take_over(findings: Path) -> None:
    """Write it into the store, which is there. Raises FileError and OSError."""
    url, old = opened.url_of(findings), findings / coverage.FILE
    with locked(findings / ".lock"):
        if old.exists():
            counted = coverage.load_file(old)
            mark = hashlib.sha256(old.read_bytes()).hexdigest()[:32]
            if not _whole(url, mark):
                with _taken(url, findings, coverage.FILE, mark) as record:
                    coverage.save(record, counted)
            old.unlink()
        paths = sorted(findings.glob("[!.]*/finding.json"))
        have = set(_asked(url, select(FINDING.c.fingerprint).distinct()))
        left = [one for one in (read_json(path, dict[str, Any]) for path in paths) if one["fingerprint"] not in have]
        if left:
            with _taken(url, findings, "finding.json") as record:
                for one in left:
                    targets = one.get("targets") or [one.get("strategy", "")]
                    cause = one.get("guilty_pass") or one.get("part") or ""
                    record.finding(one["fingerprint"], targets, one["symptom"], cause)


@contextmanager
def _taken(url: str, findings: Path, name: str, run: str = "") -> Iterator[Recorder]:
    """A run of the store that stands for a file. Raises StoreError where something of it cannot be written."""
    record = begin(url, COMMAND.format(name), findings, None, {}, "", run)
    yield record
    if record.failure:
        raise opened.StoreError(record.failure)
    record.end(0)


def _whole(url: str, run: str) -> bool:
    """Is all of such a run there? What a killed process has left of it is removed."""
    if any(_asked(url, select(RUN.c.ended).where(RUN.c.id == run))):
        return True
    with opened.changing(url) as connection:
        connection.execute(delete(RUN).where(RUN.c.id == run))
    return False


def _asked(url: str, question: Select[Any]) -> list[Any]:
    with opened.asking(url) as connection:
        return list(connection.execute(question).scalars())
