"""A command's run in the store: begun here, ended with the command, whatever ends it."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer
from typer._click.globals import get_current_context  # typer has no name of its own for it

from harness.backends import TARGETS, probe
from harness.commands.shared import earlier
from harness.commands.shared.terminal import fail
from harness.execute.isolation.signals import status_of
from harness.findings.database import opened
from harness.findings.database.recorder import NOTHING, Recorder, begin


def recorded(folder: Path | None, seed: int | None = None) -> Recorder:
    """The run of the command that calls this, in the store of its folder of findings or results, which is there. What
    an earlier run could not write there is taken over. Without a folder only a store that is named has it. Raises
    FileError."""
    if folder is None and not os.environ.get(opened.VARIABLE):
        return NOTHING
    record = started(folder or Path(), seed)
    return get_current_context().with_resource(_ended(record))


def started(folder: Path, seed: int | None = None) -> Recorder:
    """The same, of a run that ends otherwise."""
    here = [target for target in TARGETS.values() if not target.environment]
    machine = f"{probe.cpu()}, {len(os.sched_getaffinity(0))} cores"
    program = Path(sys.argv[0])
    command = shlex.join([program.parent.name if program.stem == "__main__" else program.name, *sys.argv[1:]])
    record = begin(opened.url_of(folder), command, folder, seed, probe.versions(here), machine)
    if folder != Path():
        earlier.take_over(folder)
    return record


@contextmanager
def _ended(record: Recorder) -> Iterator[Recorder]:
    status = 2
    try:
        yield record
        status = 0
    except typer.Exit as stop:
        status = stop.exit_code
        raise
    except KeyboardInterrupt as stop:
        status = status_of(stop)
        raise
    finally:
        record.end(max(status, 2) if record.failure else status)
        if record.failure:
            told = fail(record.failure)
            if status < 2:  # other ends say more than that something is not written
                raise told
