"""Trouble of the machine, workers that do not start, time that is over: none of it is an outcome of a program."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from harness.execute import machine
from harness.execute.files import whole
from harness.execute.pool import Job, Limits, OutOfTime, Pool, Unavailable
from oracles.judge.outcome import Timeout, Unsupported, Value

HEADER = "import os, time\nimport numpy as np\nINPUTS, PARAMETERS = [], []\ndef load(parameters):\n"


def job(body: str = "pass", framework: str = "one", modules: tuple[str, ...] = ("json",)) -> Job:
    return Job(framework, modules, f"{HEADER}    {body}\n    return lambda: [np.ones(1)]\n", {})


@pytest.fixture
def dying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A framework that ends the process that imports it, until a file `well` is there."""
    text = "import os, pathlib\nhere = pathlib.Path(__file__).parent\n"
    text += "(here / 'tries').open('a').write('x')\nif not (here / 'well').exists():\n    os._exit(3)\n"
    (tmp_path / "dying_framework.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def test_a_worker_that_dies_at_its_start_is_tried_once_more(dying: Path) -> None:
    other = job(framework="two")
    with Pool(Limits(seconds=5.0), tolerant=True) as pool:
        bad, good = pool.run([job(modules=("dying_framework",)), other])
        assert isinstance(good, Value)
        assert bad == Unsupported("one is switched off: its worker died while importing it (exit 3)")
        assert (dying / "tries").read_text() == "xxx"  # what would be shared by all workers was the first
        assert pool.run([job(modules=("dying_framework",))]) == [bad]  # it is not tried for ever
        assert (dying / "tries").read_text() == "xxx"  # what would be shared by all workers was the first
        assert [Unsupported(why) for why in pool.off.values()] == [bad]
    with Pool(Limits(seconds=5.0)) as pool, pytest.raises(Unavailable, match="one: its worker died while importing it"):
        pool.run([job(modules=("dying_framework",))])


def test_one_that_is_well_at_the_second_try_goes_on(dying: Path) -> None:
    text = (dying / "dying_framework.py").read_text()
    (dying / "dying_framework.py").write_text(
        text.replace("    os._exit(3)", "    (here / 'well').touch()\n    os._exit(3)")
    )
    with Pool(Limits(seconds=5.0)) as pool:
        assert isinstance(pool.run([job(modules=("dying_framework",))])[0], Value)
        assert not pool.off


def test_when_its_time_is_over_nothing_runs_on() -> None:
    started = time.monotonic()
    with Pool(Limits(seconds=60.0), until=started + 2.0) as pool, pytest.raises(OutOfTime):
        pool.run([job("time.sleep(60)")])
    assert time.monotonic() - started < 10


def test_a_job_may_have_less_time_than_its_pool() -> None:
    with Pool(Limits(seconds=60.0)) as pool:
        first, second = pool.run([replace(job("time.sleep(60)"), seconds=1.0), job()])
    assert first == Timeout(1.0)
    assert isinstance(second, Value)


@pytest.mark.slow
def test_a_worker_that_was_stopped_does_not_hang(tmp_path: Path) -> None:
    """The first run writes its number down, and is stopped; the second one ends."""
    mark = tmp_path / "number"
    body = f"number = open({str(mark)!r}, 'x').write(str(os.getpid())) if not os.path.exists({str(mark)!r}) else 0"
    stop = threading.Thread(target=_stop, args=(mark,))
    stop.start()
    with Pool(Limits(seconds=4.0)) as pool:
        outcome = pool.run([job(f"{body}\n    time.sleep(2 if number else 0)")])[0]
        assert isinstance(outcome, Value)
        assert dict(pool.unconfirmed) == {"a worker was stopped, and a fresh worker did not repeat it": 1}
        (again,) = pool.run([job("time.sleep(60)")])
        assert isinstance(again, Timeout)  # which is one
        assert pool.unconfirmed.total() == 1
    stop.join()


def _stop(mark: Path) -> None:
    until = time.monotonic() + 20
    while not (mark.exists() and mark.read_text()) and time.monotonic() < until:
        time.sleep(0.02)
    os.kill(int(mark.read_text()), signal.SIGSTOP)


def test_what_the_machine_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.trouble("ValueError: shapes differ", tmp_path) is None
    for number in (28, 24, 12):
        assert machine.trouble(f"OSError: [Errno {number}] {os.strerror(number)}: 'x'", tmp_path)
    monkeypatch.setattr(machine, "free_disk", lambda folder: 1 << 20)
    assert machine.trouble("ValueError", tmp_path) == f"the disk of {tmp_path} is full"
    monkeypatch.undo()
    monkeypatch.setattr(machine, "free_memory", lambda: 1 << 20)
    assert machine.trouble("ValueError", tmp_path) == "the machine has no memory left"
    assert not machine.is_stopped(os.getpid())


def test_a_folder_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    folder = tmp_path / "finding"
    for text in ("first", "second"):
        with whole(folder) as scratch:
            (scratch / "report").write_text(text)
            assert not (folder / "report").exists() or (folder / "report").read_text() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["finding"]
    with pytest.raises(OSError, match=r"No space left on device: .*finding'") as caught, whole(folder):
        raise OSError(28, "No space left on device")
    assert caught.value.filename == str(folder)
    assert (folder / "report").read_text() == "second"
    (tmp_path / ".finding.new").mkdir()  # a process was killed while it wrote
    folder.rename(tmp_path / ".finding.old")  # and another one between two steps
    with pytest.raises(ZeroDivisionError), whole(folder) as scratch:
        raise ZeroDivisionError
    assert (folder / "report").read_text() == "second"
    assert [path.name for path in tmp_path.iterdir()] == ["finding"]
