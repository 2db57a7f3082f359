"""Worker processes: started when first needed, killed at a deadline, replaced after a crash; nothing outlives
the pool, neither a process nor a file."""

from __future__ import annotations

import contextlib
import selectors
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from harness.execute import environments, machine
from harness.execute.isolation import confinement, folders
from harness.execute.isolation.confinement import Confinement
from harness.execute.processes.worker import loses_device, read_message, write_message
from harness.execute.processes.zygotes import SCRIPT, Forked, OutOfTime, Patience, ZygoteError, Zygotes, shared
from harness.execute.variables import variables_in, variables_of
from oracles.judge.outcome import Crash, Outcome, Rejected, Timeout, Unsupported, Value

MISSING = "not in this version: "
"""How the reason of an `Unsupported` begins where a version has not what a program names."""
_ABSENT = ("AttributeError", "ImportError", "ModuleNotFoundError")

Key = tuple[str, str]
"""(framework, environment) of a worker."""


@dataclass(frozen=True)
class Limits:
    """seconds: wall-clock time for one program; start: for a worker to import its framework; memory: bytes that
    a program may allocate beyond what the framework itself holds; recycle: growth of resident memory after
    which a worker is replaced, since compilers' caches only grow; threads: for each library's own thread pool (one
    by default: hunting is parallel already; more bring out races); workers: that a pool keeps at once, if it is not
    asked for more at once."""

    seconds: float = 120.0
    start: float = 180.0
    memory: int = 4 << 30
    recycle: int = 3 << 29
    threads: int = 1
    workers: int = 12


@dataclass(frozen=True)
class Job:
    """One program for the worker of one framework, which imports `modules` first. arrays: inputs and parameters
    by name; environment: whose interpreter runs it (`environments.py`; empty: the one that runs Dissent); foreign: it
    was written for another version, so that what its text names may not be there: an `Unsupported` that says so, and
    no fault of the text; own: it runs code of the user's, so that its worker is never confined; reads, writes: files
    and folders of models that it opens, and may leave behind; seconds: that it may take, if less than the pool's."""

    framework: str
    modules: tuple[str, ...]
    program: str
    arrays: Mapping[str, np.ndarray]
    environment: str = ""
    foreign: bool = False
    own: bool = False
    reads: tuple[Path, ...] = ()
    writes: tuple[Path, ...] = ()
    seconds: float = float("inf")

    @property
    def worker(self) -> Key:
        """Of the worker that it needs."""
        return self.framework, self.environment


class HarnessError(Exception):
    """A bug of Dissent or of its set-up; never reported as a finding."""


class Unavailable(HarnessError):
    """A framework that cannot be imported here; the message says why."""


class ProgramError(HarnessError):
    """A printed program is wrong by itself (a misspelt name, a syntax error)."""


class _Worker:
    """One process and its place in the protocol. alone: the zygotes that have forked it and nothing else."""

    def __init__(self, key: Key, folder: Path, limits: Limits, process: Forked, alone: Zygotes | None) -> None:
        self.key, self.limits, self.process, self._alone = key, limits, process, alone
        self.name = name_of(key)
        self.program = folder / f"program_{self.name}.py"  # never a name that an import could find
        self.requests, self.replies = process.connection.makefile("wb"), process.connection.makefile("rb")
        self.ready = False
        self.served = 0
        self.job: tuple[int, Job] | None = None
        self.deadline = time.monotonic() + limits.start

    def send(self, index: int, job: Job) -> None:
        """Hand over one job; the worker must be idle."""
        try:
            self.program.write_text(job.program, encoding="utf-8")
        except OSError as error:  # it names no file where the disk is full
            raise OSError(error.errno, error.strerror, str(self.program)) from error
        self.job = (index, job)
        self.deadline = time.monotonic() + min(self.limits.seconds, job.seconds)
        with contextlib.suppress(ConnectionError):  # a dead worker shows when its reply is read
            write_message(self.requests, {"program": str(self.program)}, dict(job.arrays))

    def stop(self) -> None:
        """End the process and everything that it started."""
        for stream in (self.requests, self.replies):
            with contextlib.suppress(ConnectionError):
                stream.close()
        self.process.close()
        if self._alone:
            self._alone.close()


def name_of(key: Key) -> str:
    """Of a worker, as messages and files have it."""
    return "@".join(part for part in key if part)


def zygotes_of(threads: int, name: str) -> Zygotes:
    """What forks the processes of an environment that share their imports; so many threads a library. Raises
    EnvironmentsError and OSError."""
    return shared(environments.interpreter(name), variables_of(threads, name))


@dataclass
class Pool:
    """Runs jobs on one worker for each framework and environment, all side by side. Use as a context manager. confined:
    what its workers may reach, where they open files of strangers (None: everything); shared: are they forked from
    processes that have imported their modules? Otherwise each imports them anew, and has a memory layout of its own, as
    confined ones always do."""

    limits: Limits = field(default_factory=Limits)
    confined: Confinement | None = None
    shared: bool = True
    tolerant: bool = False
    """Is a framework whose worker does not start switched off, with `Unsupported` outcomes, and no error?"""
    until: float = float("inf")
    """Time (`time.monotonic`) after which nothing runs on: `OutOfTime`."""
    restarts: int = 0
    unconfirmed: Counter[str] = field(default_factory=Counter)
    """What a fresh worker did not repeat with the same program, by reason: counted, never dropped."""
    off: dict[Key, str] = field(default_factory=dict)
    """Why a framework was switched off, by worker."""

    def __post_init__(self) -> None:
        self._kept = folders.make()
        self._folder = self._kept.path
        self._workers: dict[Key, _Worker] = {}
        self._patience = Patience(self.limits.start, lambda: self.until)
        self._failed: set[Key] = set()
        self._stopped: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kill all workers and remove all files."""
        self.stop_workers()
        self._kept.close()

    def run(self, jobs: Iterable[Job], confirm: bool = True) -> list[Outcome]:
        """The outcomes of all jobs, in order. With `confirm` a crash, and an error that costs a process its GPU, is
        repeated in a fresh worker, so that damage done by an earlier program is not blamed on the one that was
        running. Raises Unavailable and ProgramError."""
        listed = list(jobs)
        outcomes = self._run(listed)
        if not confirm:
            return outcomes
        doubted = {i: what for i, outcome in enumerate(outcomes) if (what := _damage(outcome))}
        doubted |= dict.fromkeys(self._stopped, "a worker was stopped")
        for i, what in doubted.items():
            self._retire(listed[i].worker)
            again = self._run([listed[i]])[0]
            if type(again) is not type(outcomes[i]) or bool(_damage(again)) != bool(_damage(outcomes[i])):
                self.unconfirmed[f"{what}, and a fresh worker did not repeat it"] += 1
                outcomes[i] = again
        return outcomes

    @property
    def temporary(self) -> Path:
        """The folder of its temporary files."""
        return self._folder

    def restart_worker(self, framework: str, environment: str = "") -> None:
        """Make the next job of this framework in this environment run in a new process."""
        self._retire((framework, environment))

    def abandon(self) -> None:
        """Called by another thread than the one that waits for an outcome: nothing runs on, `OutOfTime` there."""
        self.until = 0.0
        for worker in list(self._workers.values()):  # the one that waits sees their end
            worker.process.kill()

    def stop_workers(self) -> None:
        """Let all workers go; the next jobs start new ones."""
        for key in list(self._workers):
            self._retire(key)

    def _run(self, jobs: list[Job]) -> list[Outcome]:
        outcomes: dict[int, Outcome] = {}
        queues: dict[Key, deque[tuple[int, Job]]] = {}
        self._stopped = []
        for index, job in enumerate(jobs):
            if job.worker in self.off:
                outcomes[index] = Unsupported(self.off[job.worker])
            else:
                queues.setdefault(job.worker, deque()).append((index, job))
        try:
            self._prepare([queue[0][1] for key, queue in queues.items() if key not in self._workers])
            for key, queue in queues.items():
                self._feed(key, queue)
            while len(outcomes) < len(jobs):
                self._step(queues, outcomes)
        except BaseException:  # an interrupted worker still has a reply under way: its protocol state is lost
            for key in queues:
                self._retire(key)
            raise
        return [outcomes[i] for i in range(len(jobs))]

    def _feed(self, key: Key, queue: deque[tuple[int, Job]]) -> None:
        """Start the worker if there is none; give it the next job if it is idle."""
        if not queue:
            return
        if key not in self._workers:
            self._make_room()
            self._workers[key] = self._start(queue[0][1])
            self.restarts += 1
        worker = self._workers[key] = self._workers.pop(key)  # the last one used stands last
        if worker.ready and worker.job is None:
            worker.send(*queue.popleft())

    def _prepare(self, jobs: Sequence[Job]) -> None:
        """Import what the workers of these jobs need, side by side."""
        for name in {job.environment for job in jobs if not self._is_alone(job)}:
            wanted = [job.modules for job in jobs if job.environment == name and not self._is_alone(job)]
            with contextlib.suppress(environments.EnvironmentsError, ZygoteError):  # said where one is forked
                zygotes_of(self.limits.threads, name).prepare(wanted, self._patience)

    def _start(self, first: Job) -> _Worker:
        """A worker for this job. Raises Unavailable, OSError and OutOfTime."""
        name, limits, folder = first.environment, self.limits, self._folder
        own = variables_in(folder, name)
        order = {"kind": "worker", "memory": limits.memory, "recycle": limits.recycle}
        order |= {"folder": str(folder), "variables": own}
        log, zygotes = folder / f"{name_of(first.worker)}.log", None
        try:
            zygotes = self._alone(first, own) if self._is_alone(first) else zygotes_of(limits.threads, name)
            process = zygotes.fork(order, first.modules, log, self._patience)
        except BaseException as error:
            if zygotes and not zygotes.shared:
                zygotes.close()
            if isinstance(error, environments.EnvironmentsError | ZygoteError):
                raise Unavailable(f"{first.framework}: {error}") from error
            raise
        return _Worker(first.worker, folder, limits, process, None if zygotes.shared else zygotes)

    def _alone(self, job: Job, own: Mapping[str, str]) -> Zygotes:
        """What forks the worker of this job and nothing else. own: variables of the pool. Raises EnvironmentsError."""
        python = environments.interpreter(job.environment)
        variables = variables_of(self.limits.threads, job.environment)
        command = [python]
        if self.confined and not job.own:
            command = confinement.command(self.confined, self._folder, python, SCRIPT.parent)
            variables = confinement.environment(variables, self._folder)
        return Zygotes(command, {**variables, **own}, shared=False)

    def _is_alone(self, job: Job) -> bool:
        """Does its worker share nothing with others?"""
        return not self.shared or (self.confined is not None and not job.own)

    def _make_room(self) -> None:
        """Let those workers go that were used longest ago, where there are too many; none that is at work or starts."""
        idle = [key for key, worker in self._workers.items() if worker.ready and worker.job is None]
        for key in idle[: max(0, len(self._workers) + 1 - self.limits.workers)]:
            self._retire(key)

    def _step(self, queues: dict[Key, deque[tuple[int, Job]]], outcomes: dict[int, Outcome]) -> None:
        """Wait for one reply or deadline and deal with it."""
        busy = [w for name, w in self._workers.items() if name in queues and (w.job or not w.ready)]
        with selectors.DefaultSelector() as selector:
            for worker in busy:
                selector.register(worker.replies, selectors.EVENT_READ, worker)
            soonest = min(self.until, *(worker.deadline for worker in busy))
            events = selector.select(max(0.0, soonest - time.monotonic()))
        if time.monotonic() >= self.until:
            raise OutOfTime
        for key, _ in events:
            self._receive(key.data, queues, outcomes)
        now = time.monotonic()
        for worker in busy:
            if worker.deadline <= now and self._workers.get(worker.key) is worker:
                self._expire(worker, queues, outcomes)

    def _receive(self, worker: _Worker, queues: dict, outcomes: dict[int, Outcome]) -> None:
        try:
            header, arrays = read_message(worker.replies)
        except (EOFError, ConnectionError):
            self._bury(worker, Crash(*worker.process.death()), queues, outcomes)
            return
        else:
            if not worker.ready:
                if header["outcome"] == "unavailable":
                    self._not_started(worker, header["message"], queues, outcomes)
                    return
                worker.ready, worker.deadline = True, float("inf")
            else:
                assert worker.job is not None
                outcomes[worker.job[0]] = _outcome(header, arrays, worker.job[1])
                worker.job, worker.deadline, worker.served = None, float("inf"), worker.served + 1
                if header.get("leaving"):
                    self._retire(worker.key)
        if queues[worker.key]:
            self._feed(worker.key, queues[worker.key])

    def _expire(self, worker: _Worker, queues: dict, outcomes: dict[int, Outcome]) -> None:
        if not worker.ready:
            self._not_started(worker, f"not imported within {self.limits.start:g} s", queues, outcomes)
            return
        if worker.job and machine.is_stopped(worker.process.pid):
            self._stopped.append(worker.job[0])
        allowed = min(self.limits.seconds, worker.job[1].seconds) if worker.job else self.limits.seconds
        self._bury(worker, Timeout(allowed), queues, outcomes)

    def _bury(self, worker: _Worker, outcome: Crash | Timeout, queues: dict, outcomes: dict[int, Outcome]) -> None:
        """Book the outcome of a worker's last job, and go on with another worker."""
        if not worker.ready:
            assert isinstance(outcome, Crash)
            how = ": ".join(filter(None, (outcome.how, outcome.detail)))
            self._not_started(worker, f"its worker died while importing it ({how})", queues, outcomes)
            return
        assert worker.job is not None
        outcomes[worker.job[0]] = outcome
        self._retire(worker.key)
        self._feed(worker.key, queues[worker.key])

    def _not_started(self, worker: _Worker, why: str, queues: dict, outcomes: dict[int, Outcome]) -> None:
        """Try once more; then the framework is switched off, or it is an error. Raises Unavailable."""
        key = worker.key
        self._retire(key)
        if key not in self._failed:
            self._failed.add(key)
            self._feed(key, queues[key])
            return
        if not self.tolerant:
            raise Unavailable(f"{worker.name}: {why}")
        self.off[key] = f"{worker.name} is switched off: {why}"
        while queues[key]:
            outcomes[queues[key].popleft()[0]] = Unsupported(self.off[key])

    def _retire(self, key: Key) -> None:
        worker = self._workers.pop(key, None)
        if worker:
            worker.stop()


def _damage(outcome: Outcome) -> str:
    """What may be the work of an earlier program of the same worker: empty where nothing may."""
    if isinstance(outcome, Crash):
        return "a crash"
    return "a lost GPU" if isinstance(outcome, Rejected) and loses_device(outcome.message) else ""


def _outcome(header: dict, arrays: dict[str, np.ndarray], job: Job) -> Outcome:
    cpu = float(header["cpu"])
    match header["outcome"]:
        case "value":
            return Value(tuple(arrays.values()), cpu)
        case "memory":
            return Crash("out of memory", header["message"], cpu)
        case "rejected" if header["own"] and job.foreign and header["kind"] in _ABSENT:
            return Unsupported(f"{MISSING}{header['message'].splitlines()[0]}", cpu)
        case "rejected" if header["own"]:
            raise ProgramError(f"{header['kind']}: {header['message']}\nin this program:\n{job.program}")
        case "rejected":
            return Rejected(header["kind"], header["message"], cpu, tuple(header["lines"]))
        case other:
            raise HarnessError(f"a worker answered {other!r}")
