"""Tasks of a long command by several processes, all of which write to the record that it is gone on with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from harness.commands.shared.bar import Bar
from harness.commands.shared.record import Record
from harness.commands.shared.terminal import console
from harness.execute.isolation.jobs import JobError, Jobs
from harness.execute.isolation.signals import status_of

Task = TypeVar("Task")
Line = TypeVar("Line")
Keep = Callable[[Sequence[Line]], None]
"""Told of the lines that belong together: they are written at once, or not at all."""
Work = Callable[[Sequence[Task], Keep[Line]], None]
"""Does tasks one after another. It has to be pickled: a function of a module, or a partial one."""


def together(
    kept: Record[Line], kind: type[Line], tasks: Sequence[Task], jobs: int, work: Work[Task, Line], total: int
) -> tuple[Record[Line], int, str]:
    """The record with what these tasks add, dealt out to so many processes in turn; the exit status of an
    interruption, or 0; and why not all was done, where a process failed. total: of lines that are kept at once, for the
    bar. Raises OSError and RecordError."""
    assert kept.path
    code, failure, count = 0, "", max(1, min(jobs, len(tasks)))
    if not tasks:
        return kept, code, failure
    shared = Jobs[int](partial(_share, kept.path, kept.head, tuple(tasks), count, work), count)
    try:
        with Bar(console=console) as progress:
            task = progress.add_task("done", total=total)
            shared.run(lambda latest: progress.update(task, completed=sum(latest.values())))
    except KeyboardInterrupt as stop:
        code = status_of(stop)
    except JobError as error:
        failure = str(error)
    if shared.failures and not code:
        failure = failure or shared.failures[0]
    kept.close()
    whole = Record.opened(kept.path, kept.head, kind)
    whole.told = kept.told
    for line in whole.runs[len(kept.runs) :]:  # processes have no store of their own
        whole.told(line)
    return whole, code, failure


def _share(
    path: Path, head: dict[str, int], tasks: Sequence[Task], count: int, work: Work[Task, Line], number: int,
    report: Callable[[int], None],
) -> int:  # fmt: skip
    """Every `count`-th task: how many times lines were kept."""
    record, done = Record[Line](path, head), 0

    def keep(lines: Sequence[Line]) -> None:
        nonlocal done
        record.add(*lines)
        done += 1
        report(done)

    work(tasks[number::count], keep)
    return done
