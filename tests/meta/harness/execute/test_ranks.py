"""Pools of ranks: what comes of a rank that dies, hangs or refuses; nothing is left behind."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest
from examples.commands import started

from harness.execute.pool import ProgramError, Unavailable
from harness.execute.ranks import RankLimits, RankOutcome, RankOutputs, RankPools
from harness.execute.templates import render
from harness.findings.reproducer import WRONG
from oracles.judge.outcome import Crash, Rejected, Timeout

GOOD = """
import numpy as np

def train(rank, world, arrays):
    return {"sum": arrays["x"].sum() + np.array(rank), "world": np.array(world)}
"""
LIMITS = RankLimits(seconds=3.0, grace=1.0)
X = {"x": np.arange(3.0)}


@pytest.fixture(scope="module")
def pools() -> Iterator[RankPools]:
    with RankPools(LIMITS) as pools:
        yield pools


def run(pools: RankPools, body: str, world: int = 2) -> RankOutcome:
    return pools.run(("numpy",), world, f"import os, signal, time\nimport numpy as np\n{body}", X)


def test_every_rank_returns_its_own(pools: RankPools) -> None:
    found = pools.run(("numpy",), 3, GOOD, X)
    assert isinstance(found, RankOutputs)
    assert [float(rank["sum"]) for rank in found.ranks] == [3.0, 4.0, 5.0]
    assert {int(rank["world"]) for rank in found.ranks} == {3}


def test_ranks_are_kept_until_one_fails(pools: RankPools) -> None:
    run(pools, GOOD)
    before = pools.started
    run(pools, GOOD)
    assert pools.started == before
    run(pools, "def train(rank, world, arrays):\n    raise ValueError('no')")
    assert isinstance(run(pools, GOOD), RankOutputs)
    assert pools.started == before + 1


def test_groups_that_waited_longest_make_room() -> None:
    with RankPools(RankLimits(seconds=3.0, grace=1.0, ranks=5)) as pools:
        for world in (2, 3, 2, 1):  # three ranks end for the one
            run(pools, GOOD, world)
        assert pools.started == 3
        run(pools, GOOD, 2)
        assert pools.started == 3
        run(pools, GOOD, 3)
        assert pools.started == 4


def test_a_refusal_names_the_rank(pools: RankPools) -> None:
    """The other rank waits for it for ever, as in a collective."""
    body = "def train(rank, world, arrays):\n    if rank == 1: raise ValueError('no such thing')\n    time.sleep(60)"
    started = time.monotonic()
    assert run(pools, body) == Rejected("ValueError", "rank 1: no such thing")
    assert time.monotonic() - started < LIMITS.seconds


def test_a_death_names_the_rank_and_the_signal(pools: RankPools) -> None:
    body = "def train(rank, world, arrays):\n    if rank == 1: os.kill(os.getpid(), signal.SIGSEGV)\n    time.sleep(60)"
    assert run(pools, body) == Crash("signal SIGSEGV", "rank 1")


def test_ranks_may_die_together(pools: RankPools) -> None:
    """A line about one is written while that about another is."""
    body = "def train(rank, world, arrays):\n    os.kill(os.getpid(), signal.SIGSEGV)"
    for _ in range(4):
        found = run(pools, body, 8)
        assert isinstance(found, Crash)
        assert found.how == "signal SIGSEGV"


def test_a_hang_ends_in_time_and_names_who_is_missing(pools: RankPools) -> None:
    body = "def train(rank, world, arrays):\n    if rank == 0: time.sleep(60)\n    return {}"
    started = time.monotonic()
    assert run(pools, body) == Timeout(3.0, missing="rank 0")
    assert time.monotonic() - started < 2 * LIMITS.seconds


def test_an_error_of_the_program_itself_is_no_outcome(pools: RankPools) -> None:
    with pytest.raises(ProgramError, match="NameError"):
        run(pools, "def train(rank, world, arrays):\n    return oops")


def test_a_framework_that_is_not_there_has_a_reason() -> None:
    with RankPools(LIMITS) as pools, pytest.raises(Unavailable, match="no_such_module"):
        pools.run(("no_such_module",), 2, GOOD, X)


JOINED = """
import os, signal, socket, time
import numpy as np
import torch, torch.distributed as dist

def join(rank, world, where):
    dist.init_process_group("gloo", init_method=where, rank=rank, world_size=world)
"""


@pytest.fixture(scope="module")
def collectives() -> Iterator[RankPools]:
    with RankPools(RankLimits(seconds=15.0, grace=3.0)) as pools:
        yield pools


def together(pools: RankPools, body: str) -> RankOutcome:
    return pools.run(("torch", "torch.distributed"), 2, f"{JOINED}\ndef train(rank, world, arrays):\n{body}", X)


def test_a_rank_killed_in_a_collective_is_named(collectives: RankPools) -> None:
    """The other one's collective fails, too, and may say so first."""
    body = """
    join(rank, world, os.environ["RENDEZVOUS"])
    dist.all_reduce(torch.ones(3))
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(torch.ones(3))
    return {}
"""
    found = together(collectives, body)
    assert isinstance(found, Crash), found
    assert (found.how, found.detail.split(":")[0]) == ("signal SIGKILL", "rank 1")


@pytest.mark.slow
def test_a_rank_that_never_joins_ends_in_time(collectives: RankPools) -> None:
    body = """
    if rank == 1:
        time.sleep(600)
    join(rank, world, os.environ["RENDEZVOUS"])
    return {}
"""
    started = time.monotonic()
    assert together(collectives, body) == Timeout(15.0, missing="rank 0, rank 1")
    assert time.monotonic() - started < 40


def test_a_port_in_use_is_named(collectives: RankPools) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        body = f"""
    if rank == 1:
        time.sleep(600)
    join(rank, world, "tcp://127.0.0.1:{port}")
    return {{}}
"""
        found = together(collectives, body)
    assert isinstance(found, Rejected), found
    assert found.message.startswith("rank 0: ")
    assert "EADDRINUSE" in found.message
    assert str(port) in found.message


def test_ranks_whose_port_was_taken_meet_once_more(pools: RankPools) -> None:
    body = """
def train(rank, world, arrays):
    mark = os.path.join(os.path.dirname(os.environ["RENDEZVOUS"].removeprefix("file://")), "met")
    if rank == 0 and not os.path.exists(mark):
        open(mark, "w").close()
        raise RuntimeError("Could not start gRPC server")
    return {}
"""
    run(pools, GOOD)
    before = pools.started
    assert isinstance(run(pools, body), RankOutputs)
    assert pools.started == before + 1


def test_nothing_is_left() -> None:
    others = set(psutil.Process().children(recursive=True))
    with RankPools(LIMITS) as pools:
        run(pools, GOOD)
        run(pools, "def train(rank, world, arrays):\n    time.sleep(60 * (1 - rank))\n    return {}")
        run(pools, GOOD, world=3)
        folder = pools._folder
        ranks = [process for process in started("rank") if process not in others]
        assert len(ranks) >= 3
    _, alive = psutil.wait_procs(ranks, timeout=5)
    assert not alive
    assert not folder.exists()


STORED = """
import sys
import time

import numpy as np


def train(rank, world, arrays):
    with open("pid." + str(rank), "w") as file:
        file.write(str(os.getpid()))
    if rank == 1:
        {second}
    time.sleep(600)


"""


def stored(folder: Path, second: str, seconds: float = 60.0) -> Path:
    """A stored program of two ranks, of which the first one waits for ever; what the second one does."""
    check = render(
        "training/check.py.j2", world=2, replicas=(), variables={}, symptom="rejected", seconds=seconds, types={},
        wrong=WRONG, inline={"arrays": "{}", "expected": "{}", "allowed": "{}"},
    )  # fmt: skip
    path = folder / "reproducer.py"
    path.write_text(STORED.format(second=second) + check, encoding="utf-8")
    return path


def ends(folder: Path) -> bool:
    """Do both ranks end within a few seconds?"""
    deadline = time.monotonic() + 10
    while any(map(running, pids(folder))) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(map(running, pids(folder)))


def pids(folder: Path) -> list[int]:
    """Of the ranks that have begun."""
    return [int(text) for path in folder.glob("pid.*") if (text := path.read_text())]


def running(pid: int) -> bool:
    """Is it more than an entry that nobody has asked for?"""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_reproducer_ends_all_ranks_when_one_has_failed(tmp_path: Path) -> None:
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, str(stored(tmp_path, 'raise ValueError("no such thing")'))],
        cwd=tmp_path, capture_output=True, text=True, timeout=50,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "rank 1: ValueError: no such thing" in done.stdout
    assert "exit statuses of the ranks: [None, 1]" in done.stdout
    assert time.monotonic() - started < 30  # of the minute that all ranks have
    assert ends(tmp_path)


def test_a_reproducer_whose_ranks_come_to_no_end_could_not_be_run(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(stored(tmp_path, "pass", 2.0))], cwd=tmp_path, capture_output=True, text=True, timeout=50
    )
    assert done.returncode == 77, done.stderr
    assert "could not be run - exit statuses of the ranks: [None, None]" in done.stdout
    assert ends(tmp_path)


def test_ranks_do_not_outlive_a_reproducer_that_is_killed(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, str(stored(tmp_path, "pass"))], cwd=tmp_path)
    while len(pids(tmp_path)) < 2:
        time.sleep(0.05)
    process.kill()
    process.wait()
    assert ends(tmp_path)


def test_the_temporary_folder_may_have_a_long_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address of a Unix socket has 107 bytes at most."""
    folder = tmp_path / ("a" * 120)
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    with RankPools(LIMITS) as pools:
        found = run(pools, GOOD)
    assert isinstance(found, RankOutputs)
    assert [float(rank["sum"]) for rank in found.ranks] == [3.0, 4.0]
