"""The store of a folder: where it is, its engine, and its schema brought up to date."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from harness.execute.files import locked
from harness.execute.reading import FileError

VARIABLE = "DISSENT_STORE"
"""Names another store than the folder's: a file of SQLite, or the URL of a database of PostgreSQL."""
PART_OF = "DISSENT_PART_OF"
"""Names the run that a command is a part of."""
FILE = "store.sqlite"
NEWEST = "3"
"""The revision that `tables.py` has."""
PATIENCE = 60.0
"""Seconds that a writer waits for others."""
_LOCK = 0x64697373656E74
"""By which processes of PostgreSQL take turns to bring the schema up to date."""


class StoreError(FileError):
    """A store that cannot be used; the message names it and says why."""


def url_of(folder: Path) -> str:
    """The store of a folder of findings or results. Raises StoreError."""
    named = os.environ.get(VARIABLE) or str(folder / FILE)
    return url_of_store(named)


def url_of_store(named: str) -> str:
    """That of a file, or of a URL, with the driver that is installed here. Raises StoreError."""
    if "://" not in named:
        return f"sqlite:///{Path(named).absolute()}"
    try:
        url = make_url(named)
    except (ArgumentError, ValueError) as error:
        raise StoreError(f"{named!r} is no URL of a store") from error
    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg")
    if url.drivername not in ("sqlite", "postgresql+psycopg"):
        raise StoreError(f"{told(str(url))}: a store is sqlite or postgresql, not {url.drivername}")
    return url.render_as_string(hide_password=False)


def told(url: str) -> str:
    """A store as people know it: the file, or the URL without its password."""
    known = make_url(url)
    return known.database or url if known.drivername == "sqlite" else known.render_as_string(hide_password=True)


def failed(url: str, error: SQLAlchemyError) -> StoreError:
    """What is told of a store that does not do as it should."""
    return StoreError(f"cannot use {told(url)}: {reason(error)}")


def reason(error: SQLAlchemyError) -> str:
    """What a database says, in one line."""
    return str(getattr(error, "orig", None) or error)


@cache
def engine(url: str, process: int) -> Engine:
    """That of a process, by its id: connections do not outlive a fork."""
    sqlite = url.startswith("sqlite")
    try:
        made = create_engine(url, **({"connect_args": {"timeout": PATIENCE}} if sqlite else {"pool_pre_ping": True}))
    except (ImportError, NoSuchModuleError, SQLAlchemyError) as error:
        raise StoreError(f"cannot use {told(url)}: {error}") from error
    if sqlite:
        event.listen(made, "connect", _connected)
        event.listen(made, "begin", _begun)
    return made


def _connected(connection: Any, _: object) -> None:
    """Transactions are begun by `_begun`, not by Python. Of what is committed, only a machine that loses its power
    takes the last moments."""
    connection.isolation_level = None
    for pragma in ("synchronous=NORMAL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begun(connection: Connection) -> None:
    """A writer takes its turn at once: one that read first could not write once another has."""
    connection.exec_driver_sql("BEGIN" if connection.get_execution_options().get("reading") else "BEGIN IMMEDIATE")


def writing(url: str) -> Engine:
    """For transactions that write."""
    return engine(url, os.getpid())


def reading(url: str) -> Engine:
    """For transactions that only read. Raises StoreError where there is no such file."""
    if not there(url):
        raise StoreError(f"{told(url)}: No such file or directory")
    return engine(url, os.getpid()).execution_options(reading=True)


def there(url: str) -> bool:
    """Is there such a file? Databases are."""
    return not url.startswith("sqlite") or Path(make_url(url).database or "").exists()


def opened(url: str) -> None:
    """Make the store where there is none yet, and bring its schema up to date. Raises StoreError where it cannot be
    used, or written, or was written by a newer Dissent."""
    path = Path(make_url(url).database or "") if url.startswith("sqlite") else None
    try:
        if path is None:
            with writing(url).begin() as connection:
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
                _upgraded(url, connection)
        elif not path.is_file() or revision(url) != NEWEST:
            with locked(path.with_name(f".{path.name}.lock")):
                # a file in which one process writes while others read: it keeps a log beside it
                with writing(url).execution_options(reading=True).connect() as connection:
                    connection.connection.cursor().execute("PRAGMA journal_mode=WAL")
                with writing(url).begin() as connection:
                    _upgraded(url, connection)
        elif not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK):
            raise StoreError(f"cannot write {path}: it is read-only")
    except SQLAlchemyError as error:
        raise failed(url, error) from error
    except OSError as error:
        raise StoreError(f"cannot use {error.filename or told(url)}: {error.strerror}") from error


def _upgraded(url: str, connection: Connection) -> None:
    if _revision(url, connection) != NEWEST:
        from harness.findings.database.migrations.upgrade import upgrade  # the rest does without alembic

        upgrade(connection)


def revision(url: str) -> str | None:
    """Of its schema; None: it is empty. Raises StoreError where it is none that is known, and SQLAlchemyError."""
    with reading(url).connect() as connection:
        return _revision(url, connection)


def _revision(url: str, connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        if inspect(connection).has_table("run"):
            raise StoreError(f"{told(url)}: a database of something else")
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    if found is not None and (not str(found).isdigit() or int(found) > int(NEWEST)):
        raise StoreError(f"{told(url)} has a schema of revision {found}, and this Dissent knows {NEWEST} at most")
    return found


def checked(url: str) -> None:
    """Can it be read: is it there, and of this revision? Raises StoreError."""
    try:
        found = revision(url)
    except SQLAlchemyError as error:
        raise failed(url, error) from error
    if found != NEWEST:
        opened(url)


@contextmanager
def asking(url: str) -> Iterator[Connection]:
    """To read what there is. Raises StoreError."""
    checked(url)
    try:
        with reading(url).connect() as connection:
            yield connection
    except SQLAlchemyError as error:
        raise failed(url, error) from error


@contextmanager
def changing(url: str) -> Iterator[Connection]:
    """One transaction, in a store that is made where there is none. Raises StoreError."""
    opened(url)
    try:
        with writing(url).begin() as connection:
            yield connection
    except SQLAlchemyError as error:
        raise failed(url, error) from error
