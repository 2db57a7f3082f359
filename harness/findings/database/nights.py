"""What a night found beside what was found before it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select

from harness.findings.database.opened import asking
from harness.findings.database.tables import FINDING, RUN

SEEN = ("found", "shows")


@dataclass(frozen=True)
class Difference:
    """Names of findings. new: never met before; again: met before, and this night; gone: of the last night, and not of
    this one; fixed: known issues that show no more on a target where they did the last time; last: when the last night
    began (None: this is the first)."""

    new: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    last: str | None = None


def difference(url: str, night: str) -> Difference:
    """Of the run of a night, with its parts, to all that is older. Raises StoreError."""
    asked = select(RUN.c.id, RUN.c.part_of, FINDING.c.fingerprint, FINDING.c.target, FINDING.c.state)
    with asking(url) as connection:
        began = {row.id: row.started for row in connection.execute(select(RUN.c.id, RUN.c.started))}
        parts = {*connection.execute(select(RUN.c.part_of).where(RUN.c.part_of.is_not(None))).scalars()}
        rows = connection.execute(asked.join_from(RUN, FINDING).order_by(FINDING.c.seen)).all()
    nights = sorted((began[name], name) for name in parts if name in began and began[name] < began[night])
    last = nights[-1][1] if nights else None
    tonight = [row for row in rows if night in (row.id, row.part_of)]
    before = [row for row in rows if night not in (row.id, row.part_of)]
    seen = {row.fingerprint for row in tonight if row.state in SEEN}
    ever = {row.fingerprint for row in before if row.state in SEEN}
    lately = {row.fingerprint for row in before if row.state in SEEN and last and last in (row.id, row.part_of)}
    state = {(row.fingerprint, row.target): row.state for row in before}
    fixed = [row for row in tonight if _mended(row.state, state.get((row.fingerprint, row.target)))]
    mended = {f"{row.fingerprint} ({row.target})" for row in fixed}
    new, again, gone, fixed_now = (tuple(sorted(names)) for names in (seen - ever, seen & ever, lately - seen, mended))
    return Difference(new, again, gone, fixed_now, began[last] if last else None)


def _mended(now: str, before: str | None) -> bool:
    """Is it fixed, and was not? A finding that is run again was at least found."""
    return now == "fixed" and before not in ("fixed", None)
