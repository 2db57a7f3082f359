"""Work by several processes, each of which ends with the one that started it."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, TypeVar

from harness.execute.isolation import signals

T = TypeVar("T")
Work = Callable[[int, Callable[[T], None], T | None], T]
"""What one process does: given its number, who is told how far it is, and what an earlier one with this number told
last, which was lost (None: it is the first), it returns its result."""
OFTEN = 0.5
"""Seconds between two messages of a process."""
LEAVE = 20.0
"""Seconds that processes have to end when they are told to."""


class JobError(RuntimeError):
    """A process that ended before its time; the message says which and how."""


class Jobs(Generic[T]):
    """work: what each of `count` processes does. It has to be pickled: a function of a module, or a partial one."""

    def __init__(self, work: Work[T], count: int) -> None:
        self._work = work
        self._count = count
        self._running: dict[Connection, tuple[int, BaseProcess]] = {}
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
                    told, fault = reader.recv()
                except (EOFError, ConnectionResetError):
                    del self._running[reader]
                    reader.close()
                    job.join()
                    if job.exitcode:
                        how = signal.Signals(-job.exitcode).name if job.exitcode < 0 else f"status {job.exitcode}"
                        self.failures.append(f"job {number} of {self._count} ended with {how}")
                    continue
                if fault:
                    yield fault
                else:
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
            tell((told, None))

    def tell(message: tuple[Any, str | None]) -> None:
        """A message, whole: SIGTERM waits for its end."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        try:
            pipe.send(message)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    # nobody reads or writes there any more: what matters is in files; or all has been told
    with contextlib.suppress(BrokenPipeError, ConnectionResetError, EOFError, signals.Terminated):
        try:
            signals.end_with(parent)
            work: Work[Any] = pipe.recv()
            latest = work(number, report, None)
            tell((latest, None))
        except signals.Terminated:
            if latest is not None:
                tell((latest, None))
        except Exception as error:  # told to the parent, which ends all with it
            tell((None, told_of(error)))
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # all is told: Python's own end is not interrupted


def told_of(error: Exception) -> str:
    """A fault in a line."""
    return ", ".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
