"""Temporary folders of processes that run others: gone with their owner, however it ends, and all that runs in them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from harness.execute.isolation import keeper

PREFIX = "dissent-"
_LOCK = ".owner"
_NEW = 60.0
"""Seconds in which a folder may still be without its lock."""
_KEEPER = Path(keeper.__file__).absolute()


@dataclass(frozen=True)
class Folder:
    """path: of a folder that its keeper removes, with all processes that belong to it, once this is closed or this
    process has ended."""

    path: Path
    _lock: IO[str]
    _keeper: subprocess.Popen[bytes]

    @property
    def variables(self) -> dict[str, str]:
        """By which a process belongs to it."""
        return {keeper.VARIABLE: str(self.path)}

    def close(self) -> None:
        """End what runs in it, and remove it."""
        assert self._keeper.stdin is not None
        self._keeper.stdin.close()
        self._keeper.wait()
        if self.path.exists():  # somebody has killed the keeper
            keeper.clear(str(self.path))
        self._lock.close()


def make() -> Folder:
    """A new folder; those that killed processes have left are removed first. Raises OSError."""
    remove_stale()
    path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
    lock = (path / f"{_LOCK}-new").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    (path / f"{_LOCK}-new").rename(path / _LOCK)  # nobody sees it without its lock
    # the keeper holds the lock, too, so that the folder is not stale while it works
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", str(_KEEPER), str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(lock.fileno(),),
        start_new_session=True,
    )
    return Folder(path, lock, process)


def remove_stale() -> None:
    """Remove folders, with what runs in them, that neither an owner nor a keeper has any more."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*"):
        with contextlib.suppress(OSError):  # it is somebody else's, or has just been removed
            if _stale(folder):
                keeper.clear(str(folder))


def _stale(folder: Path) -> bool:
    """Can its lock be had? Without one, is it older than a moment? Raises OSError."""
    if not (folder / _LOCK).exists():
        return time.time() - folder.stat().st_mtime > _NEW
    with (folder / _LOCK).open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True
