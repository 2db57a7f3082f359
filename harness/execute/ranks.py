"""Pools of ranks: processes that run one training program together. Started from a zygote that has imported the
framework, kept as long as all goes well, thrown away whole after a failure; nothing outlives them."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO

import numpy as np

from harness.execute import environments
from harness.execute.isolation import folders
from harness.execute.pool import HarnessError, OutOfTime, ProgramError, Unavailable, death_message, environment
from harness.execute.worker import address, read_message, write_message
from oracles.judge.outcome import Crash, Rejected, Timeout

PORT_TAKEN = ("Could not start gRPC server", "EADDRINUSE", "Address already in use")
"""What frameworks say when another process took a port before they did."""
ZYGOTE = Path(__file__).with_name("zygote.py")


@dataclass(frozen=True)
class RankLimits:
    """seconds: wall-clock time for one program; start: for the framework to be imported, and for a pool to meet; grace:
    for the other ranks once one has failed, which are waiting for it as a rule; jobs: after so many a pool is replaced,
    since groups of processes are never given back; ranks: so many are kept (1, 2, 3, 4 and 8 of one framework), of 0.1
    to 0.35 GB each: groups that have waited longest end first."""

    seconds: float = 60.0
    start: float = 180.0
    grace: float = 3.0
    jobs: int = 200
    ranks: int = 18


@dataclass(frozen=True, eq=False)
class RankOutputs:
    """What every rank returned: its arrays by name. cpu: seconds of processor time, all ranks together."""

    ranks: tuple[Mapping[str, np.ndarray], ...]
    cpu: float = 0.0


_Key = tuple[str, tuple[str, ...], int, tuple[tuple[str, str], ...]]
RankOutcome = RankOutputs | Rejected | Crash | Timeout
"""What came of one program. The message of a failure names the rank that failed first."""


class _Zygote:
    """The process that forks ranks of one framework."""

    def __init__(self, modules: tuple[str, ...], folder: Path, limits: RankLimits, environment_name: str) -> None:
        try:
            python = environments.interpreter(environment_name)
        except environments.EnvironmentsError as error:
            raise Unavailable(f"{modules[0]}: {error}") from error
        self.log = (folder / "zygote.log").open("ab")
        self.process = subprocess.Popen(
            [python, str(ZYGOTE), "--modules", *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env=environment(folder, 1, environment_name) | {"GLOO_SOCKET_IFNAME": "lo"},
            cwd=folder,
            start_new_session=True,
        )
        self.ended: dict[int, int] = {}
        self._pending = b""
        first = self._line(limits.start)
        if first is None or "ready" not in first:
            self.stop()
            why = (first or {}).get("unavailable", f"not imported within {limits.start:g} s")
            raise Unavailable(f"{modules[0]}: {why}")

    def _line(self, seconds: float) -> dict | None:
        """The next line within so many seconds."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + seconds
        handle = self.process.stdout.fileno()
        while b"\n" not in self._pending:
            with selectors.DefaultSelector() as selector:
                selector.register(handle, selectors.EVENT_READ)
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    return None
            data = os.read(handle, 4096)
            if not data:
                return None
            self._pending += data
        line, self._pending = self._pending.split(b"\n", 1)
        return json.loads(line)

    def fork(self, order: dict) -> None:
        """Start one rank."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        self.process.stdin.flush()

    def status_of(self, pid: int) -> int | None:
        """The exit status of a rank that has ended (negative: by a signal)."""
        deadline = time.monotonic() + 2
        while pid not in self.ended and time.monotonic() < deadline:
            line = self._line(deadline - time.monotonic())
            if line is None:
                break
            self.ended[line["pid"]] = line["status"]
        return self.ended.get(pid)

    def stop(self) -> None:
        """Kill it, and its ranks with it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.log.close()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()


@dataclass(frozen=True)
class _Rank:
    """One process: its number, its process id, what it sends and what it is sent."""

    number: int
    pid: int
    replies: IO[bytes]
    requests: IO[bytes]
    log: Path


@dataclass
class _Group:
    """The ranks of one world."""

    ranks: list[_Rank]
    served: int = 0

    def kill(self) -> None:
        """End all ranks."""
        for rank in self.ranks:
            with contextlib.suppress(ProcessLookupError):
                os.kill(rank.pid, signal.SIGKILL)
            for stream in (rank.replies, rank.requests):
                with contextlib.suppress(OSError):
                    stream.close()


@dataclass
class RankPools:
    """Groups of ranks by framework and world size. Use as a context manager."""

    limits: RankLimits = field(default_factory=RankLimits)
    until: float = float("inf")
    """Time (`time.monotonic`) after which nothing runs on: `OutOfTime`."""
    started: int = 0
    """Groups that were started so far."""

    def __post_init__(self) -> None:
        self._kept = folders.make()
        self._folder = self._kept.path
        self._zygotes: dict[tuple[str, tuple[str, ...]], _Zygote] = {}
        self._groups: dict[_Key, _Group] = {}

    def __enter__(self) -> RankPools:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kill all processes and remove all files."""
        for group in self._groups.values():
            group.kill()
        for zygote in self._zygotes.values():
            zygote.stop()
        self._groups.clear()
        self._zygotes.clear()
        self._kept.close()

    def run(
        self,
        modules: tuple[str, ...],
        world: int,
        program: str,
        arrays: Mapping[str, np.ndarray],
        variables: Mapping[str, str] | None = None,
        environment_name: str = "",
    ) -> RankOutcome:
        """Run one program on `world` ranks that have imported the modules. variables: of the ranks' environment;
        environment_name: whose interpreter runs them (`environments.py`; empty: the one that runs Dissent). Ranks that
        could not meet since a port was taken meet once more, elsewhere. Raises Unavailable, ProgramError and
        OutOfTime."""
        key = (environment_name, modules, world, tuple(sorted((variables or {}).items())))
        outcome = self._run(key, program, arrays)
        if isinstance(outcome, Rejected) and any(words in outcome.message for words in PORT_TAKEN):
            outcome = self._run(key, program, arrays)
        return outcome

    def _run(self, key: _Key, program: str, arrays: Mapping[str, np.ndarray]) -> RankOutcome:
        group = self._groups.pop(key, None)
        if group is None or group.served >= self.limits.jobs:
            if group:
                group.kill()
            self._make_room(key[2])
            group = self._start(key)
        self._groups[key] = group  # the last one is the last used
        path = self._folder / "program_ranks.py"
        path.write_text(program, encoding="utf-8")
        group.served += 1
        try:
            outcome = self._collect(group, self._zygotes[key[:2]], path, arrays)
        except BaseException:
            self._drop(key)
            raise
        if not isinstance(outcome, RankOutputs):
            self._drop(key)
        return outcome

    def _make_room(self, world: int) -> None:
        """End groups that have waited longest, until so many ranks more are not too many."""
        while self._groups and sum(len(group.ranks) for group in self._groups.values()) + world > self.limits.ranks:
            self._drop(next(iter(self._groups)))

    def _drop(self, key: _Key) -> None:
        group = self._groups.pop(key, None)
        if group:
            group.kill()

    def _start(self, key: _Key) -> _Group:
        environment_name, modules, world, variables = key
        if (environment_name, modules) not in self._zygotes:
            self._zygotes[environment_name, modules] = _Zygote(modules, self._folder, self.limits, environment_name)
        zygote = self._zygotes[environment_name, modules]
        self.started += 1
        name = self._folder / f"group{self.started}"
        ranks: dict[int, _Rank] = {}
        with socket.socket(socket.AF_UNIX) as listener:
            with address(f"{name}.sock") as near:
                listener.bind(near)
            listener.listen(world)
            listener.settimeout(max(0.1, min(self.limits.start, self.until - time.monotonic())))
            for rank in range(world):
                spot = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world)}
                meeting = {"RENDEZVOUS": f"file://{name}.meet"}
                log = f"{name}.{rank}.log"
                order = {"socket": f"{name}.sock", "rank": rank, "world": world, "log": log}
                zygote.fork({**order, "environment": {**spot, **meeting, **dict(variables)}})
            for _ in range(world):
                try:
                    connection, _ = listener.accept()
                except TimeoutError as error:
                    if time.monotonic() >= self.until:
                        raise OutOfTime from error
                    raise HarnessError(f"{modules[0]}: a rank did not start within {self.limits.start:g} s") from error
                replies, requests = connection.makefile("rb"), connection.makefile("wb")
                connection.close()
                header, _ = read_message(replies)
                rank = header["rank"]
                ranks[rank] = _Rank(rank, header["pid"], replies, requests, Path(f"{name}.{rank}.log"))
        return _Group([ranks[rank] for rank in range(world)])

    def _collect(self, group: _Group, zygote: _Zygote, path: Path, arrays: Mapping[str, np.ndarray]) -> RankOutcome:
        """Give all ranks the program and wait for all, or for the first that fails and a little longer."""
        for rank in group.ranks:
            with contextlib.suppress(BrokenPipeError):  # a dead rank shows when its reply is read
                write_message(rank.requests, {"program": str(path)}, dict(arrays))
        waiting = {rank.number: rank for rank in group.ranks}
        replies: dict[int, Mapping[str, np.ndarray]] = {}
        failure: Rejected | Crash | None = None
        cpu = 0.0
        deadline = time.monotonic() + self.limits.seconds
        while waiting:
            with selectors.DefaultSelector() as selector:
                for rank in waiting.values():
                    selector.register(rank.replies, selectors.EVENT_READ, rank)
                events = selector.select(max(0.0, min(deadline, self.until) - time.monotonic()))
            if time.monotonic() >= self.until:
                raise OutOfTime
            if not events:
                break
            for rank in (event[0].data for event in events):
                del waiting[rank.number]
                try:
                    header, results = read_message(rank.replies)
                except (EOFError, ConnectionResetError):
                    found = self._death(zygote, rank)
                else:
                    cpu += float(header["cpu"])
                    if header["outcome"] == "value":
                        replies[rank.number] = results
                        continue
                    if header["own"]:
                        text = path.read_text(encoding="utf-8")
                        raise ProgramError(f"{header['kind']}: {header['message']}\nin this program:\n{text}")
                    found = Rejected(header["kind"], f"rank {rank.number}: {header['message']}")
                # a rank that dies is why the others' collectives fail, whoever tells first
                if failure is None or (isinstance(found, Crash) and not isinstance(failure, Crash)):
                    failure = found
                    deadline = min(deadline, time.monotonic() + self.limits.grace)
        if failure:
            return failure
        if waiting:
            names = ", ".join(f"rank {number}" for number in sorted(waiting))
            return Timeout(self.limits.seconds, missing=names)
        return RankOutputs(tuple(replies[rank.number] for rank in group.ranks), cpu)

    def _death(self, zygote: _Zygote, rank: _Rank) -> Crash:
        """How a rank ended."""
        status = zygote.status_of(rank.pid)
        how = "of unknown cause" if status is None else f"exit {status}"
        if status is not None and status < 0:
            how = f"signal {signal.Signals(-status).name}"
        words = death_message(rank.log.read_text(encoding="utf-8", errors="replace")) if rank.log.exists() else ""
        return Crash(how, f"rank {rank.number}: {words}".rstrip(": "))
