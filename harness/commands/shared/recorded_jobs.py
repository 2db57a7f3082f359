"""Tasks of a long command by several processes, all of which write to the record that it is gone on with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from harness.commands.shared.bar import Bar
from harness.commands.shared.engine import cluster_of
from harness.commands.shared.record import Record, RecordError, lines_of
from harness.commands.shared.terminal import console, fail, say, unwritten
from harness.execute.isolation.cluster import Cluster, jobs
from harness.execute.isolation.jobs import JobError, Jobs, Share
from harness.execute.isolation.signals import status_of
from harness.execute.pool import HarnessError

ONE_MACHINE = "what is done is kept in one file, to which processes of one machine may add"
Task = TypeVar("Task")
Line = TypeVar("Line")
Told = TypeVar("Told")
Keep = Callable[[Sequence[Line]], None]
"""Told of the lines that belong together: they are written at once, or not at all."""
Work = Callable[[Iterable[Task], Keep[Line]], None]
"""Does tasks one after another; none is given out before it is asked for. It has to be pickled: a function of a
module, or a partial one."""
Left = Callable[[Task, Sequence[Line]], Task | None]
"""What of a task is not in these lines yet; None: nothing."""


def cluster_with(
    record: Path | None, jobs: int, engine: str, address: str, gpus: float, resource: str
) -> Cluster | None:
    """Where tasks run whose lines this file keeps; None: processes do the work. One clear line where it cannot be, or
    several processes have no file."""
    if (jobs > 1 or engine != "processes") and not record:
        raise fail("what several processes do is shared out and kept: give --record")
    return cluster_of(engine, address, gpus, resource, record.parent if record else Path(), ONE_MACHINE)


def here_or_together(
    kept: Record[Line], kind: type[Line], tasks: Sequence[Task], what: str, most: int, work: Work[Task, Line],
    left: Left[Task, Line], cluster: Cluster | None,
) -> tuple[Record[Line], int, str]:  # fmt: skip
    """As `together`, or where one process is enough, by this one. what: tasks are called. Nothing is raised: it is said
    why not all was done."""
    code, failure = 0, ""
    try:
        if most > 1 or cluster:
            return together(kept, kind, tasks, most, work, len(tasks), left, cluster)
        with Bar(console=console) as progress:
            task = progress.add_task(what, total=len(tasks))

            def keep(lines: Sequence[Line]) -> None:
                kept.add(*lines)
                progress.advance(task)

            work(tasks, keep)
    except (KeyboardInterrupt, HarnessError, RecordError, OSError) as error:
        code, failure = _ended(error, kept.path)
    return kept, code, failure


def together(
    kept: Record[Line],
    kind: type[Line],
    tasks: Sequence[Task],
    most: int,
    work: Work[Task, Line],
    total: int,
    left: Left[Task, Line],
    cluster: Cluster | None = None,
) -> tuple[Record[Line], int, str]:
    """The record with what these tasks add, handed to so many processes at most, or tasks of Ray; the exit
    status of an interruption, or 0; and why not all was done, where one failed. total: of lines that are kept at once,
    for the bar; left: what one that is begun again has to do of a task. Raises OSError and RecordError."""
    assert kept.path
    count = max(1, min(most, len(tasks)))
    if not tasks:
        return kept, 0, ""
    share = partial(_share, kept.path, kept.head, kind, tuple(tasks), work, left)
    code, failure = carried_out(jobs(share, count, cluster), "done", total, lambda latest: sum(latest.values()))
    kept.close()
    whole = Record.opened(kept.path, kept.head, kind)
    whole.told = kept.told
    for line in whole.runs[len(kept.runs) :]:  # processes have no store of their own
        whole.told(line)
    return whole, code, failure


def carried_out(
    shared: Jobs[Told], what: str, total: int, done: Callable[[Mapping[int, Told]], int]
) -> tuple[int, str]:
    """Run jobs under a bar. The exit status of an interruption, or 0, and why not all was done, where one failed.
    done: how much of the total is, by what each has told last."""
    with Bar(console=console) as progress:
        task = progress.add_task(what, total=total)
        return run_jobs(shared, lambda latest: progress.update(task, completed=done(latest)))


def run_jobs(shared: Jobs[Told], show: Callable[[Mapping[int, Told]], None]) -> tuple[int, str]:
    """Run jobs, and show what each has told last. Returns as `carried_out`."""
    code, failure = 0, ""
    try:
        shared.run(show)
    except KeyboardInterrupt as stop:
        code = status_of(stop)
    except JobError as error:
        failure = str(error)
    if shared.failures and not code:
        failure = failure or shared.failures[0]
    for line in shared.repeated:
        say(line, style="yellow")
    return code, failure


def shared_out(
    work: Callable[[Share[Told]], Told], most: int, cluster: Cluster | None,
    show: Callable[[Mapping[int, Told]], None], folder: Path,
) -> tuple[int, str]:  # fmt: skip
    """Share work out to so many jobs, or have this process do it where there is one. folder: that they write to.
    Returns as `carried_out`."""
    if most > 1 or cluster:
        return run_jobs(jobs(work, most, cluster), show)
    try:
        show({0: work(Share(0, lambda told: show({0: told})))})
    except (KeyboardInterrupt, HarnessError, OSError) as error:
        return _ended(error, folder)
    return 0, ""


def _ended(error: BaseException, where: Path | None) -> tuple[int, str]:
    """The exit status of an interruption, or 0, and what an error says, with where it was met."""
    if isinstance(error, KeyboardInterrupt):
        return status_of(error), ""
    if isinstance(error, OSError):
        return 0, unwritten(error, where)
    return 0, ", ".join([str(error), *getattr(error, "__notes__", ())])


def _share(
    path: Path, head: dict[str, int], kind: type[Line], tasks: Sequence[Task], work: Work[Task, Line],
    left: Left[Task, Line], share: Share[int],
) -> int:  # fmt: skip
    """The tasks that this job is given, without what one that was lost has kept: how many times lines were kept."""
    record, done = Record[Line](path, head), share.before or 0
    there = [] if share.before is None else lines_of(path, kind)

    def mine() -> Iterator[Task]:
        for number in share.numbers("task", len(tasks)):
            rest = left(tasks[number], there) if there else tasks[number]
            if rest is not None:
                yield rest

    def keep(lines: Sequence[Line]) -> None:
        nonlocal done
        record.add(*lines)
        done += 1
        share.tell(done)

    work(mine(), keep)
    return done
