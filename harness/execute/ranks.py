"""Pools of ranks: processes that run one training program together. Started from a zygote that has imported the
framework, kept as long as all goes well, thrown away whole after a failure; nothing outlives them."""

from __future__ import annotations

import contextlib
import selectors
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO

import numpy as np

from harness.execute import environments
from harness.execute.isolation import folders
from harness.execute.pool import HarnessError, OutOfTime, ProgramError, Unavailable, zygotes_of
from harness.execute.processes.worker import read_message, write_message
from harness.execute.processes.zygotes import Forked, Patience, ZygoteError
from harness.execute.variables import variables_in
from oracles.judge.outcome import Crash, Rejected, Timeout

PORT_TAKEN = ("Could not start gRPC server", "EADDRINUSE", "Address already in use")
"""What frameworks say when another process took a port before they did."""


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


@dataclass(frozen=True)
class _Rank:
    """One process: its number, what it sends and what it is sent."""

    number: int
    process: Forked
    replies: IO[bytes]
    requests: IO[bytes]


@dataclass
class _Group:
    """The ranks of one world."""

    ranks: list[_Rank]
    served: int = 0

    def kill(self) -> None:
        """End all ranks."""
        for rank in self.ranks:
            rank.process.kill()
        for rank in self.ranks:
            for stream in (rank.replies, rank.requests):
                with contextlib.suppress(OSError):
                    stream.close()
            rank.process.close()


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
        self._patience = Patience(self.limits.start, lambda: self.until)
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
        self._groups.clear()
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
            outcome = self._collect(group, path, arrays)
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
        self.started += 1
        name = self._folder / f"group{self.started}"
        order = {"kind": "rank", "world": world, "folder": str(self._folder)}
        given = {**variables_in(self._folder, environment_name), "GLOO_SOCKET_IFNAME": "lo"}
        given |= {"WORLD_SIZE": str(world), "RENDEZVOUS": f"file://{name}.meet"}
        ranks: list[_Rank] = []
        try:
            zygotes = zygotes_of(1, environment_name)
            for rank in range(world):
                spot = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
                told = {**order, "rank": rank, "variables": {**given, **spot, **dict(variables)}}
                process = zygotes.fork(told, modules, Path(f"{name}.{rank}.log"), self._patience)
                connection = process.connection
                ranks.append(_Rank(rank, process, connection.makefile("rb"), connection.makefile("wb")))
            for rank in ranks:
                self._await(rank, modules[0])
        except (environments.EnvironmentsError, ZygoteError) as error:
            _Group(ranks).kill()
            raise Unavailable(f"{modules[0]}: {error}") from error
        except BaseException:
            _Group(ranks).kill()
            raise
        return _Group(ranks)

    def _await(self, rank: _Rank, framework: str) -> None:
        """Until a rank has imported what its zygote could not. Raises Unavailable, HarnessError and OutOfTime."""
        rank.process.connection.settimeout(max(0.1, min(self.limits.start, self.until - time.monotonic())))
        try:
            header, _ = read_message(rank.replies)
        except TimeoutError as error:
            if time.monotonic() >= self.until:
                raise OutOfTime from error
            raise HarnessError(f"{framework}: a rank did not start within {self.limits.start:g} s") from error
        except (EOFError, ConnectionError) as error:
            how = ": ".join(filter(None, rank.process.death()))
            raise Unavailable(f"{framework}: a rank died while importing it ({how})") from error
        if header["outcome"] == "unavailable":
            raise Unavailable(f"{framework}: {header['message']}")
        rank.process.connection.settimeout(None)

    def _collect(self, group: _Group, path: Path, arrays: Mapping[str, np.ndarray]) -> RankOutcome:
        """Give all ranks the program and wait for all, or for the first that fails and a little longer."""
        for rank in group.ranks:
            with contextlib.suppress(ConnectionError):  # a dead rank shows when its reply is read
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
                except (EOFError, ConnectionError):
                    how, words = rank.process.death()
                    found = Crash(how, f"rank {rank.number}: {words}".rstrip(": "))
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
