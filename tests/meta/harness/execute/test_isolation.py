"""Processes end with the one that started them, and their folders go with them; jobs that die take no other along."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import psutil
import pytest

from harness.execute.isolation import folders, keeper, signals
from harness.execute.isolation.jobs import JobError, Jobs, Numbers, Share

ROOT = Path(__file__).parents[4]
SLEEP = "import time; time.sleep(600)"


def soon(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Does it come true within so long?"""
    until = time.monotonic() + seconds
    while not (true := condition()) and time.monotonic() < until:
        time.sleep(0.02)
    return true


def alive(process: str) -> bool:
    """Does a process still run? One that nobody has waited for does not."""
    try:
        return psutil.Process(int(process)).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def run(text: str, **variables: str) -> subprocess.Popen[str]:
    """A program that imports our code, and tells one line."""
    environment = {**os.environ, **variables}
    return subprocess.Popen([sys.executable, "-c", text], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)


OWNER = f"""
import subprocess, sys, time
from harness.execute.isolation import folders
folder = folders.make()
started = [
    subprocess.Popen([sys.executable, "-c", {SLEEP!r}], start_new_session=True, **how)
    for how in ({{"env": folder.variables}}, {{"cwd": folder.path}})
]
print(folder.path, *(process.pid for process in started), flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_folder_and_what_runs_in_it_go_with_their_owner(number: int) -> None:
    with run(OWNER) as owner:
        assert owner.stdout
        path, *started = owner.stdout.readline().split()
        assert Path(path).is_dir()
        assert all(map(alive, started))
        owner.send_signal(number)
        owner.wait()
    assert soon(lambda: not Path(path).exists())
    assert not any(map(alive, started))


def test_a_folder_whose_keeper_was_killed_is_removed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # elsewhere another test may be the next
    with run(OWNER, TMPDIR=str(tmp_path)) as owner:
        assert owner.stdout
        path, *started = owner.stdout.readline().split()
        kept = [child.pid for child in psutil.Process(owner.pid).children() if str(child.pid) not in started]
        assert len(kept) == 1
        os.kill(kept[0], signal.SIGKILL)
        owner.kill()
        owner.wait()
    time.sleep(0.2)
    assert Path(path).exists()
    folders.remove_stale()
    assert not Path(path).exists()
    assert not any(map(alive, started))


def test_folders_of_those_that_run_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    mine = folders.make()
    (tmp_path / "dissent-1-young").mkdir()
    (old := tmp_path / "dissent-1-old").mkdir()
    os.utime(old, (0, 0))
    folders.remove_stale()
    assert sorted(tmp_path.iterdir()) == sorted([mine.path, tmp_path / "dissent-1-young"])
    with (mine.path / ".owner").open() as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    mine.close()
    assert [path.name for path in tmp_path.iterdir()] == ["dissent-1-young"]


def test_a_process_belongs_to_the_folder_itself_not_to_one_whose_name_begins_alike(tmp_path: Path) -> None:
    (tmp_path / "ab").mkdir()
    environment = {**os.environ, keeper.VARIABLE: str(tmp_path / "ab")}
    with subprocess.Popen([sys.executable, "-c", SLEEP], env=environment, cwd=tmp_path / "ab") as process:
        assert soon(lambda: list(keeper.belonging(str(tmp_path / "ab"))) == [process.pid])
        assert list(keeper.belonging(str(tmp_path / "a"))) == []
        process.kill()


PARENT = """
import os, subprocess, sys, time
child = '''
import sys, time
from harness.execute.isolation import signals
try:
    signals.end_with(int(sys.argv[1]))
    print("ready", flush=True)
    while True:
        time.sleep(1)
except signals.Terminated:
    open(sys.argv[2], "w").write("saved")
    while sys.argv[3:]:
        time.sleep(1)
'''
subprocess.Popen([sys.executable, "-c", child, str(os.getpid()), *sys.argv[1:]])
time.sleep(600)
"""


@pytest.mark.parametrize("stubborn", [False, True])
def test_a_process_is_told_that_its_parent_has_died_and_does_not_outlive_it_for_long(
    stubborn: bool, tmp_path: Path
) -> None:
    saved = tmp_path / "saved"
    command = [sys.executable, "-c", PARENT, str(saved), *["for ever"] * stubborn]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        assert parent.stdout.readline() == "ready\n"
        (child,) = psutil.Process(parent.pid).children()
        parent.kill()
    assert soon(saved.exists, 3)
    assert soon(lambda: not alive(str(child.pid)), 8)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_the_status_says_which_signal_it_was(number: int, status: int) -> None:
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, *signals.ENDING)}
    try:
        signal.signal(number, signal.SIG_DFL)  # nohup(1) has SIGHUP passed over, also by these tests
        signals.heed()
        with pytest.raises(KeyboardInterrupt) as stop:
            signal.raise_signal(number)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    assert signals.status_of(stop.value) == status
    assert signals.status_of(KeyboardInterrupt()) == status  # Ray makes a plain one of it while it waits
    signals._heard.clear()
    assert signals.status_of(KeyboardInterrupt()) == 130


def count(kills: int, share: Share[int]) -> int:
    """Counts to three; the process of one number is killed on its way."""
    for done in range(3):
        share.tell(done)
        if share.number == kills:
            os.kill(os.getpid(), signal.SIGKILL)
    return 10 + share.number


def fails(ready: Path, share: Share[int]) -> int:
    """A fault of its own, in the first process, once the second is at work, which would be so for ever."""
    share.tell(share.number)
    if not share.number and soon(ready.exists, 60):
        raise OSError("the disk is full")
    ready.touch()
    time.sleep(600)
    return share.number


def collect(folder: Path, share: Share[list[int]]) -> list[int]:
    """All numbers below 20 that it is given. The first process waits with its first one until the second, which waits
    for that, has had all the others."""
    mine, slow = [], folder / "slow"
    if share.number:
        assert soon(slow.exists, 60)
    for number in share.numbers("case", 20):
        mine.append(number)
        (folder / str(number) if share.number else slow).touch()
        if not share.number:
            assert soon(lambda: len(list(folder.iterdir())) == 20, 60)
    return mine


def ignore(_: Mapping[int, object]) -> None:
    """Progress that nobody follows."""


def test_jobs_return_what_each_has_told_last() -> None:
    jobs: Jobs[int] = Jobs(partial(count, -1), 3)
    jobs.run(ignore)
    assert jobs.latest == {0: 10, 1: 11, 2: 12}
    assert jobs.failures == []


def test_a_job_that_is_killed_is_told_and_takes_no_other_with_it() -> None:
    jobs: Jobs[int] = Jobs(partial(count, 1), 3)
    jobs.run(ignore)
    assert jobs.latest == {0: 10, 1: 0, 2: 12}
    assert jobs.failures == ["job 1 of 3 ended with SIGKILL"]


def test_a_number_is_given_to_one_job_alone_and_a_slow_one_has_fewer(tmp_path: Path) -> None:
    jobs: Jobs[list[int]] = Jobs(partial(collect, tmp_path), 2)
    jobs.run(ignore)
    assert [len(jobs.latest[number]) for number in range(2)] == [1, 19]
    assert sorted(jobs.latest[0] + jobs.latest[1]) == list(range(20))
    assert jobs.latest[1] == sorted(jobs.latest[1])


def test_a_job_that_is_begun_again_is_given_what_the_lost_one_had_not_done() -> None:
    numbers = Numbers()
    shares = [Share[int](number, lambda told: None, take=partial(numbers.take, number)) for number in range(2)]
    assert [next(shares[0].numbers("case")), next(shares[1].numbers("case"))] == [0, 1]
    first = shares[0].numbers("case", had=1)
    assert [next(first), next(first)] == [2, 3]
    assert next(shares[1].numbers("step")) == 0  # each kind by itself
    again = shares[0].numbers("case", below=6, had=2)  # 0 and 2 are done
    assert next(again) == 3
    assert next(shares[1].numbers("case", had=1)) == 4
    assert list(again) == [5]
    assert list(Share[int](0, lambda told: None).numbers("case", 3)) == [0, 1, 2]


def test_a_fault_of_one_job_ends_all_each_with_what_it_has(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    jobs: Jobs[int] = Jobs(partial(fails, tmp_path / "ready"), 2)
    with pytest.raises(JobError, match="OSError: the disk is full"):
        jobs.run(ignore)
    assert jobs.latest == {0: 0, 1: 1}
    assert capfd.readouterr().err == ""
