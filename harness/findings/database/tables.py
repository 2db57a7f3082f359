"""The tables of the store, as the newest revision of `migrations/` leaves them."""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Column, Float, ForeignKey, Index, Integer, MetaData, String, Table, Text

METADATA = MetaData()
LONGEST = 256
"""Characters of a name."""


def _run() -> Column:
    return Column("run", String(32), ForeignKey("run.id", ondelete="CASCADE"), primary_key=True)


def _name(name: str) -> Column:
    return Column(name, String(LONGEST), primary_key=True)


RUN = Table(
    "run", METADATA,
    Column("id", String(32), primary_key=True),
    Column("command", Text, nullable=False, comment="line"),
    Column("folder", Text, nullable=False, comment="where its findings or results are"),
    Column("seed", BigInteger),
    Column("versions", JSON, nullable=False),
    Column("machine", Text, nullable=False),
    Column("started", String(24), nullable=False, comment="UTC, to the millisecond"),
    Column("ended", String(24), comment="none: it runs, or was killed"),
    Column("status", Integer, comment="of its exit"),
    Column("part_of", String(32), comment="the id of the run that it is a part of"),
)  # fmt: skip
EXAMINED = Table(
    "examined", METADATA,
    Column("id", Integer, primary_key=True),
    Column("run", String(32), ForeignKey("run.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("kind", String(LONGEST), nullable=False, comment="a question, or what a study examines"),
    Column("number", BigInteger, comment="of the case, by which the seed draws it again"),
    Column("subject", Text, nullable=False, comment="a target, a route, a strategy; empty: several"),
    Column("outcomes", JSON, nullable=False, comment="outcome -> how often"),
    Column("seconds", Float, nullable=False),
)  # fmt: skip
CASE = Index(
    "examined_case", EXAMINED.c.run, EXAMINED.c.kind, EXAMINED.c.number, EXAMINED.c.subject, unique=True,
    sqlite_where=EXAMINED.c.number.is_not(None), postgresql_where=EXAMINED.c.number.is_not(None),
)  # fmt: skip
"""What has a number stands once: a task that was lost examines the case under way once more."""
FINDING = Table(
    "finding", METADATA,
    _run(), _name("fingerprint"), _name("target"),
    Column("state", String(16), nullable=False, comment="one of STATES"),
    Column("symptom", String(16), nullable=False),
    Column("cause", Text, nullable=False, comment="the guilty pass or the part that is wrong, where it is known"),
    Column("count", BigInteger, nullable=False),
    Column("seen", String(24), nullable=False, comment="last"),
)  # fmt: skip
CELL = Table(
    "cell", METADATA,
    _run(), *map(_name, ("question", "operator", "dtype", "target", "outcome")),
    Column("count", BigInteger, nullable=False, comment="nodes in cases with this outcome"),
)  # fmt: skip
PAIR = Table(
    "pair", METADATA,
    _run(), *map(_name, ("question", "first", "second")),
    Column("count", BigInteger, nullable=False, comment="how often the second took a result of the first"),
)  # fmt: skip
ELEMENT = Table(
    "element", METADATA,
    _run(), *map(_name, ("question", "operator", "kind")),
    Column("count", BigInteger, nullable=False, comment="of elements; kind: computed, or undetermined"),
)  # fmt: skip
TIMING = Table(
    "timing", METADATA,
    _run(), _name("activity"),
    Column("count", Float, nullable=False, comment="processor seconds"),
)  # fmt: skip
STATES = ("found", "known", "shows", "fixed", "dropped")
"""Found, or met again; explained by the entry of this name; run again and still there, or not any more; turned out
to be another."""
