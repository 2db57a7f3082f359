"""Tasks of Ray do what processes do; one that is lost is gone on with, and nothing of Ray is left behind."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psutil
import pytest

from harness.findings.database import opened

ROOT = Path(__file__).parents[4]
CASES = 24
TASK = "ray::_task"


@contextmanager
def hunting(home: Path, folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A hunt by Ray, with a home folder and a temporary folder of its own (short, since Ray's sockets are there)."""
    (home / "t").mkdir()
    environment = {**os.environ, "HOME": str(home), "TMPDIR": str(home / "t"), "NO_COLOR": "1", "COLUMNS": "200"}
    whole = [sys.executable, "-m", "harness", "hunt", "--engine", "ray", "--seed", "11", "--targets", "ort-disable"]
    whole += ["--findings", str(folder), "--json", str(folder.with_suffix(".json")), *arguments]
    with subprocess.Popen(
        whole, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def examined(folder: Path) -> list[tuple[int, dict[str, int]]]:
    """The drawn cases that are in the store, by number."""
    if not (folder / opened.FILE).exists():
        return []
    with closing(sqlite3.connect(folder / opened.FILE)) as store:
        try:
            rows = store.execute("SELECT number, outcomes FROM examined ORDER BY number").fetchall()
        except sqlite3.OperationalError:  # it is just being made
            return []
    return [(number, json.loads(outcomes)) for number, outcomes in rows]


def tasks(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """Processes that carry out tasks at the moment."""
    found = []
    for child in psutil.Process(process.pid).children(recursive=True):
        try:
            found += [child] if child.cmdline()[:1] == [TASK] else []
        except psutil.NoSuchProcess:
            continue
    return found


def left(home: Path) -> list[str]:
    """What a hunt has left: files in its home and temporary folders, and processes that know them."""
    found = [str(path) for path in (home / "t").iterdir()]
    found += [str(path) for path in (home / ".ray").glob("*")]
    for process in psutil.process_iter():
        try:
            found += [str(process)] if process.environ().get("HOME") == str(home) else []
        except psutil.Error:
            continue
    return found


def soon(home: Path) -> list[str]:
    """The same, ten seconds later at most."""
    until = time.monotonic() + 10
    while (found := left(home)) and time.monotonic() < until:
        time.sleep(0.2)
    return found


@pytest.fixture
def home() -> Iterator[Path]:
    """With a short path."""
    with tempfile.TemporaryDirectory(prefix="h", dir="/tmp") as folder:
        yield Path(folder)


def test_a_hunt_by_tasks_one_of_which_is_killed_examines_the_same_cases(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "ray"
    with hunting(home, folder, "--cases", str(CASES), "--jobs", "2") as process:
        until = time.monotonic() + 120
        while len(examined(folder)) < 4 and process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        assert process.poll() is None, process.communicate()[0]
        both = tasks(process)
        assert len(both) == 2
        both[0].kill()
        said, _ = process.communicate(timeout=180)
    assert process.returncode == 0, said
    assert "was lost (WorkerCrashedError) and gone on with" in said
    report = json.loads(folder.with_suffix(".json").read_text())
    assert len(report["workers"]["repeated"]) == 1
    assert report["workers"]["died"] == []

    alone = tmp_path / "alone"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "harness", "hunt", "--seed", "11", "--targets", "ort-disable", "--jobs", "1"),
            *("--cases", str(CASES), "--findings", str(alone), "--json", str(alone.with_suffix(".json"))),
        ],
        cwd=ROOT, capture_output=True, text=True, timeout=180, check=True,
    )  # fmt: skip
    assert done.stdout
    other = json.loads(alone.with_suffix(".json").read_text())
    for key in ("cases", "elements", "targets", "cut", "known_issues", "findings"):
        assert report[key] == other[key], key
    assert examined(folder) == examined(alone)
    assert [number for number, _ in examined(folder)] == list(range(CASES))
    assert soon(home) == []


@pytest.mark.nightly
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_an_ended_hunt_leaves_nothing_of_ray(number: signal.Signals, home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "ray"
    with hunting(home, folder, "--budget", "10m", "--plan", "0", "--jobs", "2") as process:
        until = time.monotonic() + 120
        while len(examined(folder)) < 4 and process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(number)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: 130}[number], said
    assert len(examined(folder)) >= 4
    assert soon(home) == []
