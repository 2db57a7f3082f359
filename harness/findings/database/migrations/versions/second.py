"""Runs that are part of another one, as of a night."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision, down_revision = "2", "1"


def upgrade() -> None:
    op.add_column("run", sa.Column("part_of", sa.String(32)))
