"""What a store has: rows for people and for other programs, the runs of another store, and old runs left out."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sqlalchemy import Row, delete, func, insert, select

from harness.findings.database.opened import asking, changing
from harness.findings.database.recorder import added, now
from harness.findings.database.tables import CELL, ELEMENT, EXAMINED, FINDING, METADATA, PAIR, RUN

TABLES = {table.name: table for table in METADATA.sorted_tables}
PRUNED = "pruned"
"""The run that has what was covered by those that were left out."""


def runs(url: str) -> list[tuple[Row[Any], int, dict[str, int]]]:
    """Runs by their start, each with how much it examined, and how many findings it has in each state. Raises
    StoreError throughout this file."""
    with asking(url) as connection:
        cases = {row[0]: row[1] for row in connection.execute(select(EXAMINED.c.run, func.count()).group_by("run"))}
        states: dict[str, dict[str, int]] = {}
        counted = select(FINDING.c.run, FINDING.c.state, func.count(FINDING.c.fingerprint.distinct()))
        for run, state, count in connection.execute(counted.group_by(FINDING.c.run, FINDING.c.state)):
            states.setdefault(run, {})[state] = count
        found = connection.execute(select(RUN).order_by(RUN.c.started, RUN.c.id)).all()
    return [(row, cases.get(row.id, 0), states.get(row.id, {})) for row in found]


def rows(url: str, name: str, run: str | None = None) -> list[dict[str, Any]]:
    """Those of a table, of one run or of all."""
    table = TABLES[name]
    asked = select(table).order_by(*table.primary_key)
    if run is not None:
        asked = asked.where((table.c.id if table is RUN else table.c.run) == run)
    with asking(url) as connection:
        return [dict(row._mapping) for row in connection.execute(asked)]


def merge(url: str, other: str) -> int:
    """Copy the runs of another store that are not here, or were not over when they were copied: how many."""
    there = {row["id"]: row for row in rows(other, "run")}
    with changing(url) as connection:
        here = {row.id: row.ended for row in connection.execute(select(RUN.c.id, RUN.c.ended))}
        new = [name for name, row in there.items() if here.get(name, "") != row["ended"]]
        for name in new:
            connection.execute(delete(RUN).where(RUN.c.id == name))  # with all that is its own
            connection.execute(insert(RUN), there[name])
            for table in METADATA.sorted_tables:
                own = rows(other, table.name, name) if table is not RUN else []
                if table is EXAMINED:
                    own = [{key: value for key, value in row.items() if key != "id"} for row in own]
                if own:
                    connection.execute(insert(table), own)
    return len(new)


def prune(url: str, days: float) -> int:
    """Leave out runs that began so long ago: how many. What they covered is kept as of one run."""
    since = now(timedelta(days=days))
    with changing(url) as connection:
        old = (RUN.c.started < since) & (RUN.c.id != PRUNED)
        names = list(connection.execute(select(RUN.c.id).where(old)).scalars())
        if names and not connection.execute(select(RUN.c.id).where(RUN.c.id == PRUNED)).scalar():
            row = {"id": PRUNED, "command": PRUNED, "folder": "", "seed": None, "versions": {}, "machine": ""}
            connection.execute(insert(RUN), {**row, "started": now(), "ended": now(), "status": 0})
        for name in names:
            for table in (CELL, PAIR, ELEMENT):
                own = connection.execute(select(table).where(table.c.run == name)).all()
                added(connection, table, PRUNED, {tuple(row)[1:-1]: row[-1] for row in own})
            connection.execute(delete(RUN).where(RUN.c.id == name))
    return len(names)
