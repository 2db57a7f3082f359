"""Work by several processes, each of which ends with the one that started it."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, TypeVar

from harness.execute.isolation import signals

T = TypeVar("T")


def _all(_: str, had: int) -> int:
    """What one that is alone takes."""
    return had


@dataclass(frozen=True)
class Share(Generic[T]):
    """What one job is given. number: its own, from 0; tell: who is told how far it is; before: what an earlier one with
    this number told last, which was lost (None: it is the first); take: as `Numbers.take`, for this job."""

    number: int
    tell: Callable[[T], None]
    before: T | None = None
    take: Callable[[str, int], int] = _all

    def numbers(self, kind: str, below: int | None = None, had: int = 0) -> Iterator[int]:
        """Numbers of a kind of work, ascending, each of which no other job is given: 0, 1, 2, … where there is none.
        Each is asked for when it is needed, so that a slow job has fewer. below: where they end (None: they do not);
        had: so many an earlier job with this number that was lost has done; what it had not done is given again."""
        taken = map(partial(self.take, kind), itertools.count(had))
        return taken if below is None else itertools.takewhile(lambda number: number < below, taken)


class Numbers:
    """Hands 0, 1, 2, … of each kind out, and remembers who has which."""

    def __init__(self) -> None:
        self._next: Counter[str] = Counter()
        self._given: dict[tuple[int, str], list[int]] = {}

    def take(self, job: int, kind: str, had: int) -> int:
        """The number behind the first `had` that were given to this job: a new one, or one that it was given before."""
        mine = self._given.setdefault((job, kind), [])
        if had == len(mine):
            mine.append(self._next[kind])
            self._next[kind] += 1
        return mine[had]


Work = Callable[[Share[T]], T]
"""What one process does: it returns its result."""
OFTEN = 0.5
"""Seconds between two messages of a process."""
LEAVE = 20.0
"""Seconds that processes have to end when they are told to."""
_TOLD, _FAULT, _TAKE = "told", "fault", "take"
"""What a message of a process is: how far it is, why all has to end, or which number it asks for."""


class JobError(RuntimeError):
    """A process that ended before its time; the message says which and how."""


class Jobs(Generic[T]):
    """work: what each of `count` processes does. It has to be pickled: a function of a module, or a partial one."""

    def __init__(self, work: Work[T], count: int) -> None:
        self._work = work
        self._count = count
        self._running: dict[Connection, tuple[int, BaseProcess]] = {}
        self._numbers = Numbers()
        self.latest: dict[int, T] = {}
        """What each has told last, by its number."""
        self.failures: list[str] = []
        """Of those that ended before their time, a line each."""
        self.repeated: list[str] = []
        """Of those that were lost and begun again, a line each."""

    def run(self, progress: Callable[[Mapping[int, T]], None]) -> None:
        """Until all have ended. A KeyboardInterrupt ends them, each with what it has, and is raised again. One that
        dies takes no other with it. Raises JobError where one of them met a fault of its own, which ends all."""
        context = multiprocessing.get_context("spawn")
        try:
            for number in range(self._count):
                ours, theirs = context.Pipe()
                job = context.Process(target=_job, args=(number, theirs, os.getpid()))
                job.start()
                theirs.close()
                self._running[ours] = number, job
            # sent when all import what they need, and not by start(), which waits for each of them to do so
            for ours in self._running:
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it has died, which is told below
                    ours.send(self._work)
            for fault in self._messages(progress):
                raise JobError(fault)
        finally:
            self._end(progress)

    def _messages(self, progress: Callable[[Mapping[int, T]], None], until: float = float("inf")) -> Iterator[str]:
        """Take what they tell until all have ended, or it is too late; yields the faults that they met."""
        while self._running and time.monotonic() < until:
            for reader in wait(list(self._running), timeout=OFTEN):
                assert isinstance(reader, Connection)
                number, job = self._running[reader]
                try:
                    what, told = reader.recv()
                    if what == _TAKE:
                        reader.send(self._numbers.take(number, *told))
                except (EOFError, BrokenPipeError, ConnectionResetError):
                    del self._running[reader]
                    reader.close()
                    job.join()
                    if job.exitcode:
                        how = signal.Signals(-job.exitcode).name if job.exitcode < 0 else f"status {job.exitcode}"
                        self.failures.append(f"job {number} of {self._count} ended with {how}")
                    continue
                if what == _FAULT:
                    yield told
                elif what == _TOLD:
                    self.latest[number] = told
                    progress(self.latest)

    def _end(self, progress: Callable[[Mapping[int, T]], None]) -> None:
        """Let all that still run save what they have, and take it."""
        for _, job in self._running.values():
            job.terminate()
        for _ in self._messages(progress, time.monotonic() + LEAVE):
            continue  # the first fault is the one that is told
        for _, job in self._running.values():
            job.kill()
            job.join()


def _job(number: int, pipe: Connection, parent: int) -> None:
    """The life of one process. It is given its work by way of the pipe, and tells there how far it is."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the parent decides when to stop
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    sent, latest = 0.0, None

    def report(told: Any) -> None:
        nonlocal sent, latest
        latest = told
        if time.monotonic() - sent > OFTEN:
            sent = time.monotonic()
            tell(_TOLD, told)

    def tell(what: str, told: Any) -> Any:
        """A message, whole, and the answer where one is waited for: SIGTERM waits for its end."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        try:
            pipe.send((what, told))
            return pipe.recv() if what == _TAKE else None
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def take(kind: str, had: int) -> int:
        return tell(_TAKE, (kind, had))

    # nobody reads or writes there any more: what matters is in files; or all has been told
    with contextlib.suppress(BrokenPipeError, ConnectionResetError, EOFError, signals.Terminated):
        try:
            signals.end_with(parent)
            work: Work[Any] = pipe.recv()
            latest = work(Share(number, report, None, take))
            tell(_TOLD, latest)
        except signals.Terminated:
            if latest is not None:
                tell(_TOLD, latest)
        except Exception as error:  # told to the parent, which ends all with it
            tell(_FAULT, told_of(error))
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # all is told: Python's own end is not interrupted


def told_of(error: Exception) -> str:
    """A fault in a line."""
    return ", ".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
