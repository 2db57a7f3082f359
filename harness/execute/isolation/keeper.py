"""What ends and removes all that belongs to a folder once its owner has ended, however it ended. Standalone, as
`worker.py` is: the standard library only.

    python keeper.py FOLDER

The owner alone holds the other end of its standard input, which therefore ends with the owner, also by SIGKILL. To the
folder belongs every process that has it in its variables (`VARIABLE`) or works in it: workers, what they started, and
what that put into sessions of its own."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

VARIABLE = "DISSENT_FOLDER"
SECONDS = 8.0
"""So long processes are killed that start others in the meantime."""


def belonging(folder: str) -> Iterator[int]:
    """Process ids of what belongs to a folder, this process apart."""
    marked = os.fsencode(f"{VARIABLE}={folder}\0")
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                inside = f"{(entry / 'cwd').readlink()}/".startswith(f"{folder}/")
                if inside or marked in (entry / "environ").read_bytes():
                    yield int(entry.name)
            except OSError:  # it has ended, or is somebody else's
                continue


def clear(folder: str) -> None:
    """End all that belongs to the folder, and remove it."""
    until = time.monotonic() + SECONDS
    while found := list(belonging(folder)):
        for process in found:
            try:
                os.kill(process, signal.SIGKILL)
            except OSError:
                continue
        if time.monotonic() > until:
            break
        time.sleep(0.02)
    shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.chdir("/")
    sys.stdin.buffer.read()
    clear(sys.argv[1])


if __name__ == "__main__":
    main()
