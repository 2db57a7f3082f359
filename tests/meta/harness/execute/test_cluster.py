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
import typer

from harness.commands.shared import engine
from harness.execute.isolation import cluster
from harness.execute.isolation.cluster import Cluster
from harness.execute.isolation.jobs import JobError, Jobs
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


@pytest.mark.slow
def test_a_hunt_by_tasks_one_of_which_is_killed_examines_the_same_cases(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "ray"
    with hunting(home, folder, "--cases", str(CASES), "--jobs", "2") as process:
        until = time.monotonic() + 300
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
    assert dict(examined(folder)) == dict(examined(alone))
    assert [number for number, _ in examined(alone)] == list(range(CASES))
    assert len(examined(folder)) <= CASES + 1  # the one under way may have been written, and not told yet
    assert soon(home) == []


@pytest.mark.nightly
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_an_ended_hunt_leaves_nothing_of_ray(number: signal.Signals, home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "ray"
    with hunting(home, folder, "--budget", "10m", "--plan", "0", "--jobs", "2") as process:
        until = time.monotonic() + 300
        while len(examined(folder)) < 4 and process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(number)
        said, _ = process.communicate(timeout=120)
    assert process.returncode == {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: 130}[number], said
    assert len(examined(folder)) >= 4
    assert soon(home) == []


@pytest.mark.nightly
def test_a_ray_that_is_there_is_used_and_stays(home: Path, tmp_path: Path) -> None:
    """Two nodes of Ray on one machine; the one that does the work is killed, and another one takes its place."""
    environment = {**os.environ, "HOME": str(home), "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "a" * 64}
    environment |= {"RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": str(ROOT)}
    ray = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats"]
    address, folder = "127.0.0.1:26379", tmp_path / "ray"
    head = ["--head", "--port=26379", "--num-cpus=0", "--include-dashboard=false", f"--temp-dir={home}/r"]
    started = []

    def start(*arguments: str) -> psutil.Popen:
        quiet = subprocess.DEVNULL
        process = psutil.Popen([*ray, *arguments], env=environment, cwd=ROOT, stdout=quiet, stderr=quiet)
        started.append(process)
        return started[-1]

    try:
        start(*head)
        time.sleep(20)
        first = start(f"--address={address}", "--num-cpus=2")
        time.sleep(20)
        options = ("--address", address, "--cases", str(CASES), "--jobs", "2")
        os.environ |= {name: environment[name] for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN")}
        with hunting(home, folder, *options) as process:
            until = time.monotonic() + 300
            while len(examined(folder)) < 4 and process.poll() is None and time.monotonic() < until:
                time.sleep(0.05)
            for one in [*first.children(recursive=True), first]:
                one.kill()
            start(f"--address={address}", "--num-cpus=2")
            said, _ = process.communicate(timeout=240)
        assert process.returncode == 0, said
        assert said.count("gone on with") == 2
        assert sorted(dict(examined(folder))) == list(range(CASES))
        assert len(examined(folder)) <= CASES + 2
        assert started[0].is_running()
    finally:
        for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN"):
            os.environ.pop(name, None)
        for process in started:
            for child in [*process.children(recursive=True), process] if process.is_running() else []:
                child.kill()
            process.wait()


def test_bad_options_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments in (("threads", "", 0.0, ""), ("processes", "here:1", 0.0, "")):
        with pytest.raises(typer.Exit) as stop:
            engine.cluster_of(*arguments, tmp_path)
        assert stop.value.exit_code == 2
    monkeypatch.setattr(cluster.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(typer.Exit) as stop:
        engine.cluster_of("ray", "", 0.0, "", tmp_path)
    assert stop.value.exit_code == 2
    assert [line for line in capsys.readouterr().err.splitlines() if line] == [
        "dissent: --engine: no engine is called 'threads'; there are processes, ray",
        "dissent: --address, --gpus and --resource are of --engine ray",
        "dissent: --engine ray: Ray is not installed; `make setup` installs it",
    ]
    monkeypatch.undo()
    found = engine.cluster_of("ray", "here:1", 0.5, "iree", tmp_path)
    assert found == Cluster("here:1", 1.0, 0.5, "iree", tmp_path.absolute())


class Nodes:
    """As much of Ray as `_check` asks."""

    def __init__(self, *hosts: str) -> None:
        self.hosts = hosts

    def nodes(self) -> list[dict]:
        return [
            {"Alive": host != "gone", "NodeManagerHostname": host, "Resources": {"CPU": 2.0, "iree": 1.0}}
            for host in self.hosts
        ]


def test_what_could_never_run_is_said_at_once() -> None:
    cluster._check(Nodes("a", "b"), Cluster(resource="iree"))
    cluster._check(Nodes("a", "a", "gone"), Cluster(alone="a file of SQLite"))
    for asked, said in (
        (Cluster(gpus=1), "a task takes 1 of GPU, and no node of Ray has more than 0"),
        (Cluster(cpus=3), "a task takes 3 of CPU, and no node of Ray has more than 2"),
        (Cluster(resource="ncnn"), "a task takes 1 of ncnn, and no node of Ray has more than 0"),
        (Cluster(alone="a file of SQLite"), "a file of SQLite; Ray has 2 machines"),
    ):
        with pytest.raises(JobError) as error:
            cluster._check(Nodes("a", "b"), asked)
        assert str(error.value) == said


def test_a_store_of_one_machine_is_told_from_one_of_many() -> None:
    assert engine.alone_by("postgresql+psycopg://x/y", Path("f")) == ""
    assert "DISSENT_STORE" in engine.alone_by("sqlite:///f/store.sqlite", Path("f"))


def test_processes_are_the_engine_without_a_cluster() -> None:
    assert type(cluster.jobs(lambda share: share.number, 2, None)) is Jobs


def test_the_board_tells_what_is_new() -> None:
    board = cluster._Board()
    board.tell(1, "a")
    board.tell(1, "b")
    assert board.news() == {1: "b"}
    assert board.news() == {}
    assert [board.take(0, "case", 0), board.take(1, "case", 0), board.take(1, "case", 0)] == [0, 1, 1]
