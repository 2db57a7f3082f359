"""The schema of a store brought up to date by Alembic."""

from __future__ import annotations

import logging
from pathlib import Path

from alembic.command import upgrade as alembic_upgrade
from alembic.config import Config
from sqlalchemy import Connection

HERE = Path(__file__).parent


def upgrade(connection: Connection, revision: str = "head") -> None:
    """As far as a revision, in the connection's transaction."""
    logging.getLogger("alembic").setLevel(logging.WARNING)
    config = Config()
    config.set_main_option("script_location", str(HERE).replace("%", "%%"))
    config.attributes["connection"] = connection
    alembic_upgrade(config, revision)
