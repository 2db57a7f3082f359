"""Runs, what they examined, found and covered, and how long it took."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision, down_revision = "1", None


def _run() -> sa.Column:
    return sa.Column("run", sa.String(32), sa.ForeignKey("run.id", ondelete="CASCADE"), primary_key=True)


def _name(name: str) -> sa.Column:
    return sa.Column(name, sa.String(256), primary_key=True)


def upgrade() -> None:
    op.create_table(
        "run",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("command", sa.Text, nullable=False),
        sa.Column("folder", sa.Text, nullable=False),
        sa.Column("seed", sa.BigInteger),
        sa.Column("versions", sa.JSON, nullable=False),
        sa.Column("machine", sa.Text, nullable=False),
        sa.Column("started", sa.String(24), nullable=False),
        sa.Column("ended", sa.String(24)),
        sa.Column("status", sa.Integer),
    )
    op.create_table(
        "examined",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("run", sa.String(32), sa.ForeignKey("run.id", ondelete="CASCADE"), nullable=False, index=True),
        sa.Column("kind", sa.String(256), nullable=False),
        sa.Column("number", sa.BigInteger),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("outcomes", sa.JSON, nullable=False),
        sa.Column("seconds", sa.Float, nullable=False),
    )
    op.create_table(
        "finding",
        _run(),
        _name("fingerprint"),
        _name("target"),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("symptom", sa.String(16), nullable=False),
        sa.Column("cause", sa.Text, nullable=False),
        sa.Column("count", sa.BigInteger, nullable=False),
        sa.Column("seen", sa.String(24), nullable=False),
    )
    for table, keys in (
        ("cell", ("question", "operator", "dtype", "target", "outcome")),
        ("pair", ("question", "first", "second")),
        ("element", ("question", "operator", "kind")),
    ):
        op.create_table(table, _run(), *map(_name, keys), sa.Column("count", sa.BigInteger, nullable=False))
    op.create_table("timing", _run(), _name("activity"), sa.Column("count", sa.Float, nullable=False))
