"""What a run writes into the store: an event a transaction, as soon as it is known."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Table, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError

from harness.findings.database import opened
from harness.findings.database.tables import CELL, ELEMENT, EXAMINED, FINDING, LONGEST, PAIR, RUN, TIMING


def now(before: timedelta = timedelta()) -> str:
    """UTC to the millisecond, as the store has it, or so long ago."""
    return (datetime.now(UTC) - before).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(eq=False)
class Recorder:
    """A run in a store. url: of the store (empty: nothing is written); run: its id; failure: why something of it is not
    there (None: all is), which a command says at its end. Jobs write by copies of it."""

    url: str = ""
    run: str = ""
    failure: str | None = None

    def case(
        self, kind: str, outcomes: Mapping[str, int], seconds: float, *, number: int | None = None, subject: str = ""
    ) -> None:
        """What was examined at once, and what came of it; in place of what was told of the same number before. seconds:
        that it took."""
        row = {"kind": kind, "number": number, "subject": subject, "outcomes": dict(outcomes), "seconds": seconds}

        def write(connection: Connection) -> None:
            new = _insert(connection, EXAMINED)
            said = {name: new.excluded[name] for name in ("outcomes", "seconds")}
            key = [EXAMINED.c[name] for name in ("run", "kind", "number", "subject")]
            once = new.on_conflict_do_update(index_elements=key, index_where=EXAMINED.c.number.is_not(None), set_=said)
            connection.execute(once, {"run": self.run, **row})

        self._write(write)

    def finding(
        self, fingerprint: str, targets: Iterable[str], symptom: str = "", cause: str = "", state: str = "found",
        times: int = 0,
    ) -> None:  # fmt: skip
        """Something that was found, or is looked at again, by each of its targets. times: that it was met beside the
        first time; 0: it is told of once more, since more is known of it."""
        rows = [
            {
                "run": self.run, "fingerprint": fingerprint[:LONGEST], "target": target, "state": state,
                "symptom": symptom, "cause": cause, "count": max(1, times), "seen": now(),
            }
            for target in dict.fromkeys(targets)
        ]  # fmt: skip

        def write(connection: Connection) -> None:
            new = _insert(connection, FINDING)
            said = {name: new.excluded[name] for name in ("state", "seen")}
            said |= {"symptom": new.excluded.symptom} if symptom else {}
            said |= {"cause": new.excluded.cause} if cause else {}
            said |= {"count": FINDING.c.count + times} if times else {}
            connection.execute(new.on_conflict_do_update(index_elements=FINDING.primary_key, set_=said), rows)

        self._write(write)

    def again(self, fingerprint: str, target: str, symptom: str) -> None:
        """A finding that was met once more."""
        self.finding(fingerprint, [target], symptom, times=1)

    def dropped(self, fingerprint: str) -> None:
        """A finding of this run that turned out to be another one, or known."""
        own = (FINDING.c.run == self.run) & (FINDING.c.fingerprint == fingerprint[:LONGEST])
        self._write(lambda connection: connection.execute(update(FINDING).where(own).values(state="dropped")))

    def known(self, excused: Mapping[str, int]) -> None:
        """How often known issues explained what was seen, by id, since this was told last."""
        for name, times in excused.items():
            self.finding(name, [""], state="known", times=times)

    def covered(
        self, question: str, cells: Mapping[tuple[str, ...], int], pairs: Mapping[tuple[str, ...], int],
        elements: Mapping[str, int], undetermined: Mapping[str, int],
    ) -> None:  # fmt: skip
        """Counts of what was examined, which add up (`harness/search/coverage.py`)."""
        kinds = {(name, "computed"): n for name, n in elements.items()}
        kinds |= {(name, "undetermined"): n for name, n in undetermined.items()}

        def write(connection: Connection) -> None:
            for table, counts in ((CELL, cells), (PAIR, pairs), (ELEMENT, kinds)):
                added(connection, table, self.run, {(question, *key): count for key, count in counts.items()})

        self._write(write)

    def timings(self, seconds: Mapping[str, float]) -> None:
        """Processor seconds by activity, which add up."""
        spent = {(name,): round(value, 3) for name, value in seconds.items()}
        self._write(lambda connection: added(connection, TIMING, self.run, spent))

    def end(self, status: int) -> None:
        """The run is over, with this exit status."""
        own = RUN.c.id == self.run
        self._write(lambda connection: connection.execute(update(RUN).where(own).values(ended=now(), status=status)))

    def _write(self, work: Callable[[Connection], object]) -> None:
        """One transaction. What cannot be written stops nothing: findings have folders of their own."""
        if not self.url:
            return
        try:
            with opened.writing(self.url).begin() as connection:
                work(connection)
        except (SQLAlchemyError, opened.StoreError) as error:
            why = opened.reason(error) if isinstance(error, SQLAlchemyError) else str(error)
            self.failure = self.failure or f"cannot write {opened.told(self.url)}: {why}"


NOTHING = Recorder()
"""For what is no run of its own."""


def begin(
    url: str, command: str, folder: Path, seed: int | None, versions: Mapping[str, str], machine: str, run: str = ""
) -> Recorder:
    """A new run in the store, which is made where there is none yet. run: its id, a new one by default; nothing is
    written where it is there. Raises StoreError."""
    opened.opened(url)
    row: dict[str, Any] = {
        "id": run or uuid.uuid4().hex, "command": command, "folder": str(folder), "seed": seed,
        "versions": dict(versions), "machine": machine, "started": now(),
        "part_of": os.environ.get(opened.PART_OF),
    }  # fmt: skip
    try:
        with opened.writing(url).begin() as connection:
            connection.execute(_insert(connection, RUN).on_conflict_do_nothing(), row)
    except SQLAlchemyError as error:
        raise opened.StoreError(f"cannot write {opened.told(url)}: {opened.reason(error)}") from error
    return Recorder(url, row["id"])


def added(connection: Connection, table: Table, run: str, counts: Mapping[tuple[str, ...], float]) -> None:
    """Add counts to those that a run has in a table, by its key."""
    keys = [column.name for column in table.primary_key][1:]
    rows = [
        {"run": run, **dict(zip(keys, key, strict=True)), "count": count}
        for key, count in sorted(counts.items())  # in one order, so that writers do not wait for each other
    ]
    if rows:
        new = _insert(connection, table)
        more = {"count": table.c.count + new.excluded["count"]}
        connection.execute(new.on_conflict_do_update(index_elements=table.primary_key, set_=more), rows)


def _insert(connection: Connection, table: Table) -> Any:
    """Both dialects spell what is to be done about a row that is there alike, and have a class each for it."""
    return sqlite.insert(table) if connection.dialect.name == "sqlite" else postgresql.insert(table)
