"""All runs of a store, one after another: what each examined, and what it found that none before it had."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from sqlalchemy import func, select

from harness.findings.database.nights import SEEN
from harness.findings.database.opened import asking
from harness.findings.database.tables import CELL, EXAMINED, FINDING, RUN


@dataclass(frozen=True)
class Past:
    """A run, with those that are parts of it. kind: its command, with the study's name; folder: of its findings or
    results; seconds: by the clock (None: it has no end); status: of its exit; examined: cases or other things;
    outcomes: by name, nodes in cases that ended so; new: findings that no run before it had; again: those that one had;
    known: entries that explained something; fixed: findings that showed no more."""

    id: str
    kind: str
    command: str
    folder: str
    started: str
    seconds: float | None
    status: int | None
    examined: int
    outcomes: Mapping[str, int] = field(default_factory=dict)
    new: int = 0
    again: int = 0
    known: int = 0
    fixed: int = 0

    @property
    def report(self) -> Path | None:
        """The page that the run left in its folder, if it did."""
        page = Path(self.folder) / "report.html"
        return page if page.is_file() else None


def history(url: str) -> list[Past]:
    """The oldest first. Raises StoreError."""
    with asking(url) as connection:
        runs = connection.execute(select(RUN).order_by(RUN.c.started, RUN.c.id)).all()
        counts = connection.execute(select(EXAMINED.c.run, func.count()).group_by(EXAMINED.c.run)).all()
        summed = select(CELL.c.run, CELL.c.outcome, func.sum(CELL.c.count)).group_by(CELL.c.run, CELL.c.outcome)
        cells = connection.execute(summed).all()
        findings = connection.execute(select(FINDING.c.run, FINDING.c.fingerprint, FINDING.c.state)).all()
    there = {run.id for run in runs}
    owner = {run.id: run.part_of if run.part_of in there else run.id for run in runs}
    examined, outcomes, states = Counter[str](), dict[str, Counter[str]](), dict[str, set[tuple[str, str]]]()
    for run, count in counts:
        examined[owner[run]] += count
    for run, outcome, count in cells:
        outcomes.setdefault(owner[run], Counter())[outcome] += int(count)
    for run, fingerprint, state in findings:
        states.setdefault(owner[run], set()).add((fingerprint, state))
    found: list[Past] = []
    ever: set[str] = set()
    for run in runs:
        if owner[run.id] != run.id:
            continue
        own = states.get(run.id, set())
        seen = {name for name, state in own if state in SEEN}
        known, fixed = (len({name for name, state in own if state == which}) for which in ("known", "fixed"))
        found.append(
            Past(
                run.id, kind_of(run.command), run.command, run.folder, run.started, _between(run.started, run.ended),
                run.status, examined[run.id], dict(outcomes.get(run.id, {})), len(seen - ever), len(seen & ever), known,
                fixed,
            )
        )  # fmt: skip
        ever |= seen
    return found


def first_seen(url: str) -> dict[str, str]:
    """By finding, when the run began that had it first. Raises StoreError."""
    asked = select(FINDING.c.fingerprint, func.min(RUN.c.started)).join_from(FINDING, RUN)
    with asking(url) as connection:
        rows = connection.execute(asked.where(FINDING.c.state.in_(SEEN)).group_by(FINDING.c.fingerprint)).all()
    return {row[0]: row[1] for row in rows}


def kind_of(command: str) -> str:
    """`hunt`, or `study faults`: the words of a command line behind the program's name."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    named = words[1:] if len(words) > 1 else words
    many = 2 if named[:1] == ["study"] else 1
    return " ".join(named[:many]) or "unknown"


def _between(started: str, ended: str | None) -> float | None:
    if ended is None:
        return None
    return (datetime.fromisoformat(ended) - datetime.fromisoformat(started)).total_seconds()
