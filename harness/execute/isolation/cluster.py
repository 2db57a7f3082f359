"""Work by tasks of Ray, on this machine or on a cluster: what `jobs.py` does by processes. A task that is
lost with its process or its node is begun again where it stood."""

from __future__ import annotations

import importlib.util
import logging
import math
import os
import secrets
import signal
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from harness.execute.isolation import folders, keeper
from harness.execute.isolation.jobs import LEAVE, OFTEN, JobError, Jobs, Numbers, Share, Work, told_of

T = TypeVar("T")
RETRIES = 3
"""How often a task that is lost is begun again."""
_OBJECTS = 100 << 20
"""Bytes that a Ray of our own has for objects: what tasks tell is small, and the least that it takes is 75 MiB."""
_SILENT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_kill_child_processes_on_worker_exit": "0"}
"""It sends nothing home, and does not kill the keepers of what a task has started, which end that (`keeper.py`)."""
_OWN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
"""Nobody else may give tasks to a Ray of our own. Without it Ray writes a token into the home folder. It reads this
once, when it is imported."""


@dataclass(frozen=True)
class Cluster:
    """Where tasks run, and what each of them takes. address: of a Ray that is there (empty: one on this machine, for as
    long as it is needed); cpus, gpus: of each task, parts of one, too; resource: of Ray's, by name, of which each task
    takes one (empty: none), so that it runs on a node that has it; folder: to which all tasks write, which all nodes
    have to see; alone: why all of them have to be on one machine (empty: they need not)."""

    address: str = ""
    cpus: float = 1.0
    gpus: float = 0.0
    resource: str = ""
    folder: Path = Path()
    alone: str = ""


def check_installed() -> None:
    """Raises JobError where the package is not there."""
    if importlib.util.find_spec("ray") is None:
        raise JobError("--engine ray: Ray is not installed; `make setup` installs it")


def jobs(work: Work[T], count: int, cluster: Cluster | None) -> Jobs[T]:
    """So many shares of the work: by processes of this machine, or by tasks of Ray."""
    return _Tasks(work, count, cluster) if cluster else Jobs(work, count)


def capacity(cluster: Cluster) -> int:
    """How many tasks a Ray that is there has room for, or as many as this machine has cores. Raises JobError."""
    if not cluster.address:
        return len(os.sched_getaffinity(0))
    with _connected(cluster, 1) as ray:
        total = ray.cluster_resources()
    needs = _needs(cluster)
    return max(1, math.floor(min(total.get(name, 0.0) / need for name, need in needs.items())))


class _Board:
    """What tasks have told last, by number, and what each has been given to do: an actor."""

    def __init__(self) -> None:
        self.told: dict[int, Any] = {}
        self.numbers = Numbers()

    def tell(self, number: int, told: Any) -> None:
        self.told[number] = told

    def take(self, number: int, kind: str, had: int) -> int:
        """As `Numbers.take`."""
        return self.numbers.take(number, kind, had)

    def news(self) -> dict[int, Any]:
        """What is new since this was asked last."""
        new, self.told = self.told, {}
        return new


class _Tasks(Jobs[T]):
    """The same by tasks. Each tells all that it does, and waits until that has arrived: one that is begun again goes on
    behind what was told, and none is ahead of who listens."""

    def __init__(self, work: Work[T], count: int, cluster: Cluster) -> None:
        super().__init__(work, count)
        self._cluster = cluster

    def run(self, progress: Callable[[Mapping[int, T]], None]) -> None:
        cluster = self._cluster
        with _connected(cluster, self._count) as ray, _seen(cluster.folder) as token:
            _check(ray, cluster)
            here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
                ray.get_runtime_context().get_node_id(), soft=False
            )
            board = ray.remote(num_cpus=0, scheduling_strategy=here)(_Board).remote()
            needs = {"num_cpus": cluster.cpus, "num_gpus": cluster.gpus, "max_retries": 0}
            named = {"resources": {cluster.resource: 1}} if cluster.resource else {}
            task = ray.remote(**needs, **named)(_task)
            running: dict[Any, int] = {}
            lost = dict.fromkeys(range(self._count), 0)

            def begin(number: int) -> None:
                running[task.remote(self._work, number, self.latest.get(number), board, token)] = number

            def take() -> None:
                new = ray.get(board.news.remote())
                if new:
                    self.latest = dict(sorted({**self.latest, **new}.items()))
                    progress(self.latest)

            try:
                for number in range(self._count):
                    begin(number)
                while running:
                    done, _ = ray.wait(list(running), timeout=OFTEN)
                    take()
                    for reference in done:
                        number = running.pop(reference)
                        why = self._ended(ray, reference)
                        if why is None:
                            continue
                        lost[number] += 1
                        if lost[number] <= RETRIES:
                            self.repeated.append(f"task {number} of {self._count} was lost ({why}) and gone on with")
                            begin(number)
                        else:
                            self.failures.append(f"task {number} of {self._count} was lost {lost[number]} times: {why}")
            except ray.exceptions.RayError as error:  # who keeps what is told, or all of Ray
                raise JobError(f"Ray is lost: {_line(error)}") from error
            finally:
                self._leave(ray, running, take)

    def _ended(self, ray: Any, reference: Any) -> str | None:
        """How a task was lost; None: it is done. Raises JobError where it met a fault of its own."""
        try:
            fault = ray.get(reference)
        except ray.exceptions.RayTaskError as error:  # before our code had its turn: it is not there, say
            raise JobError(f"a task of Ray cannot run: {str(error).strip().splitlines()[-1]}") from error
        except ray.exceptions.RayError as error:
            return type(error).__name__
        if fault:
            raise JobError(fault)
        return None

    def _leave(self, ray: Any, running: Mapping[Any, int], take: Callable[[], None]) -> None:
        """Let all that still run save what they have, and take it."""
        if not running or not ray.is_initialized():
            return
        try:
            for reference in running:
                ray.cancel(reference, recursive=False)
            until = time.monotonic() + LEAVE
            ray.wait(list(running), num_returns=len(running), timeout=max(0.0, until - time.monotonic()))
            take()
        except ray.exceptions.RayError:
            return  # what matters is in files; why it ended is told already


def _task(work: Work[T], number: int, before: T | None, board: Any, token: Path) -> str | None:
    """The life of one task: the fault that it met, or None."""
    import ray

    # keepers of its own folders outlive it for a moment, and are not killed with it
    os.environ.pop(keeper.VARIABLE, None)
    latest: T | None = None

    def report(told: T) -> None:
        nonlocal latest
        latest = told
        ray.get(board.tell.remote(number, told))

    def take(kind: str, had: int) -> int:
        return ray.get(board.take.remote(number, kind, had))

    if not token.exists():
        return f"{os.uname().nodename} does not see {token.parent}: it has to be on a file system that all nodes share"
    try:
        with _woken():
            report(work(Share(number, report, before, take)))
    except KeyboardInterrupt:  # it is told to end
        if latest is not None:
            report(latest)
    except Exception as error:  # told to who began all, which ends with it
        return told_of(error)
    return None


@contextmanager
def _woken() -> Iterator[None]:
    """Be interrupted also while this thread waits. Ray has Python look for the interruption, which it does between two
    instructions only; a signal ends the waiting, too. One interruption is enough."""
    main, before = threading.get_ident(), signal.getsignal(signal.SIGINT)

    def stop(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise KeyboardInterrupt

    def wake() -> None:
        while number := theirs.recv(1):
            if number[0] == signal.SIGINT:
                signal.pthread_kill(main, signal.SIGINT)
                return

    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    thread = threading.Thread(target=wake, daemon=True)
    signal.signal(signal.SIGINT, stop)
    old = signal.set_wakeup_fd(ours.fileno(), warn_on_full_buffer=False)
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(old)
        ours.close()
        thread.join()
        theirs.close()
        signal.signal(signal.SIGINT, before)


def _needs(cluster: Cluster) -> dict[str, float]:
    found = {"CPU": cluster.cpus, "GPU": cluster.gpus, cluster.resource: 1.0 if cluster.resource else 0.0}
    return {name: need for name, need in found.items() if need}


def _check(ray: Any, cluster: Cluster) -> None:
    """Raises JobError where no task would ever begin, or they would be where they may not."""
    nodes = [node for node in ray.nodes() if node["Alive"]]
    for name, need in _needs(cluster).items():
        most = max((node["Resources"].get(name, 0.0) for node in nodes), default=0.0)
        if most < need:
            raise JobError(f"a task takes {need:g} of {name}, and no node of Ray has more than {most:g}")
    hosts = {node["NodeManagerHostname"] for node in nodes}
    if cluster.alone and len(hosts) > 1:
        raise JobError(f"{cluster.alone}; Ray has {len(hosts)} machines")


@contextmanager
def _connected(cluster: Cluster, count: int) -> Iterator[Any]:
    """The package, with Ray reached or started. One that is started ends here, with all its processes and files, and
    with this process however that ends (`folders.py`). Raises JobError."""
    logging.getLogger("ray").setLevel(logging.CRITICAL)  # what it says of lost tasks is told by us
    quiet: dict[str, Any] = {"configure_logging": False, "log_to_driver": False}
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    folder = None if cluster.address else folders.make()
    variables = {**_SILENT, **(_OWN if folder else {}), **(folder.variables if folder else {})}
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        import ray  # a second, which other engines do without

        try:
            if folder:
                cpus = math.ceil(count * cluster.cpus)
                own = {cluster.resource: float(count)} if cluster.resource else None
                ray.init(
                    address="local", num_cpus=cpus, resources=own, include_dashboard=False,
                    object_store_memory=_OBJECTS, _temp_dir=str(folder.path), **quiet,
                )  # fmt: skip
            else:
                ray.init(address=cluster.address, **quiet)
        except Exception as error:  # of many classes, none of which is documented
            where = f"reach Ray at {cluster.address}" if cluster.address else "start Ray"
            raise JobError(f"cannot {where}: {_line(error)}") from error
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        yield ray
    finally:
        if "ray" in sys.modules:
            sys.modules["ray"].shutdown()
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        if folder:
            folder.close()


@contextmanager
def _seen(folder: Path) -> Iterator[Path]:
    """A file by which a node sees that it has the folder, and not another one of the same name."""
    token = folder.absolute() / f".cluster-{uuid.uuid4().hex}"
    token.touch()
    try:
        yield token
    finally:
        token.unlink(missing_ok=True)


def _line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
