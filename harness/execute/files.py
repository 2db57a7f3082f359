"""Files that several processes share."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait for the lock that this file stands for; its folder is made. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def sole(path: Path) -> IO[str]:
    """A lock beside a file that one process at a time goes on with: until it is closed, or the process ends. Raises
    OSError, and BlockingIOError at once where another one has it."""
    lock = path.with_name(f".{path.name}.lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise
    return lock


@contextmanager
def whole(folder: Path) -> Iterator[Path]:
    """A folder to write into, which takes the place of `folder` once all is written: that is whole, old or new,
    whatever interrupts. What a killed process has left beside it is removed. Raises OSError, with a name."""
    scratch, old = (folder.with_name(f".{folder.name}.{what}") for what in ("new", "old"))
    if old.exists() and not folder.exists():  # killed between the two steps below
        old.rename(folder)
    for left in (scratch, old):
        shutil.rmtree(left, ignore_errors=True)
    try:
        scratch.mkdir(parents=True)
        yield scratch
        if folder.exists():
            folder.rename(old)
        scratch.rename(folder)
    except OSError as error:
        if error.filename:
            raise
        raise OSError(error.errno, error.strerror, str(folder)) from error  # a full disk names nothing
    finally:
        for left in (scratch, old):
            shutil.rmtree(left, ignore_errors=True)


def replace_text(path: Path, text: str) -> None:
    """Write a file whole or not at all, whatever interrupts. Raises OSError."""
    scratch = path.with_name(f"{path.name}.tmp")
    scratch.write_text(text, encoding="utf-8")
    scratch.replace(path)
