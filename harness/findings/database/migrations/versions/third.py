"""A case of a run stands once: of those that stand twice, the last is kept."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision, down_revision = "3", "2"
KEY = ("run", "kind", "number", "subject")


def upgrade() -> None:
    last = f"SELECT max(id) FROM examined WHERE number IS NOT NULL GROUP BY {', '.join(KEY)}"
    op.execute(f"DELETE FROM examined WHERE number IS NOT NULL AND id NOT IN ({last})")
    numbered = sa.text("number IS NOT NULL")
    op.create_index("examined_case", "examined", KEY, unique=True, sqlite_where=numbered, postgresql_where=numbered)
