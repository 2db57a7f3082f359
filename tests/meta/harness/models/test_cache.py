"""A model that was run in part is gone on with: what counts as the same program, what an interruption leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from examples.networks_onnx import blocks
from hostile import onnx_files
from typer.testing import CliRunner

from harness.commands import app
from harness.execute.isolation import signals
from harness.execute.pool import Job, Limits
from harness.models import cache
from harness.models.cache import CachingPool
from harness.search import quantisation
from harness.search.quantisation import Row, Tally
from oracles.judge.outcome import Rejected, Timeout, Value

WRITES = """
import ml_dtypes
import numpy as np

INPUTS, PARAMETERS = ["x"], []


def load(parameters):
    def run(x):
        with open(TARGET, "w") as file:
            file.write("written")
        return [x + 1, np.float32(NUMBER), x.astype(ml_dtypes.bfloat16)]

    return run
"""


def job(folder: Path, number: int = 1, text: str = WRITES, value: float = 2.0) -> Job:
    """A program that reads one file and writes another."""
    settings = f"TARGET, NUMBER = {str(folder / 'made')!r}, {number}\n"
    reads, writes = (folder / "given",), (folder / "made",)
    return Job("numpy", (), settings + text, {"x": np.full(3, value)}, reads=reads, writes=writes)


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[CachingPool]:
    (tmp_path / "given").write_text("given")
    with CachingPool(Limits(seconds=30), folder=tmp_path / "kept") as one:
        yield one


def counted(pool: CachingPool, one: Job) -> bool:
    """Was it run?"""
    before = pool.misses
    pool.run([one])
    return pool.misses > before


def test_what_was_run_is_not_run_again(pool: CachingPool, tmp_path: Path) -> None:
    (first,) = pool.run([job(tmp_path)])
    (second,) = pool.run([job(tmp_path)])
    assert (pool.hits, pool.misses) == (1, 1)
    assert isinstance(first, Value)
    assert isinstance(second, Value)
    assert [str(y.dtype) for y in second.outputs] == ["float64", "float32", "bfloat16"]
    assert all((a == b).all() for a, b in zip(first.outputs, second.outputs, strict=True))
    pool.refresh = True
    assert counted(pool, job(tmp_path))


def test_data_that_an_onnx_file_declares_counts_and_what_lies_beside_it_does_not(
    pool: CachingPool, tmp_path: Path
) -> None:
    """Two hundred gigabytes that are not there would be digested for minutes."""
    path = onnx_files.HARMLESS["external"](tmp_path, tmp_path / "mark")
    with path.with_name("model.onnx.data").open("wb") as file:
        file.truncate(200 << 30)
    one = replace(job(tmp_path), reads=(path,))
    assert counted(pool, one)
    with path.with_name("model.onnx.data").open("r+b") as file:
        file.write(b"another")
    assert not counted(pool, one)
    path.with_name("w.data").write_bytes(b"other values")
    assert counted(pool, one)


def test_what_makes_it_another_program(pool: CachingPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pool.run([job(tmp_path)])
    assert counted(pool, job(tmp_path, number=2))
    assert counted(pool, job(tmp_path, value=3.0))
    assert not counted(pool, job(tmp_path))
    (tmp_path / "given").write_text("another model")
    assert counted(pool, job(tmp_path))
    (tmp_path / "made").unlink()
    assert counted(pool, job(tmp_path))
    (tmp_path / "made").write_text("something else")
    assert counted(pool, job(tmp_path))
    pool.limits = replace(pool.limits, threads=2)
    assert counted(pool, job(tmp_path))
    monkeypatch.setattr(cache, "installed", lambda environment: "another version")
    assert counted(pool, job(tmp_path))


@pytest.mark.slow
def test_other_outcomes_are_kept_and_a_deadline_as_long_as_it_is_no_longer(pool: CachingPool, tmp_path: Path) -> None:
    refused = replace(job(tmp_path), program="INPUTS, PARAMETERS = [], []\nimport json\n" + REFUSES)
    assert pool.run([refused]) == pool.run([refused])
    assert isinstance(pool.run([refused])[0], Rejected)
    assert pool.misses == 1
    pool.limits = replace(pool.limits, seconds=2)
    pool.stop_workers()
    slow = replace(job(tmp_path), program="INPUTS, PARAMETERS = [], []\nimport time\n" + SLEEPS)
    assert isinstance(pool.run([slow])[0], Timeout)
    assert not counted(pool, slow)
    pool.limits = replace(pool.limits, seconds=60)
    pool.stop_workers()
    (late,) = pool.run([slow])
    assert isinstance(late, Value)


REFUSES = "def load(parameters):\n    return lambda: json.loads('{')\n"
SLEEPS = "def load(parameters):\n    time.sleep(4)\n    return lambda: []\n"


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_command_that_is_ended_tells_what_it_has_and_is_gone_on_with(
    number: int, status: int, tmp_path: Path
) -> None:
    onnx.save(blocks(2), tmp_path / "net.onnx")
    out = tmp_path / "out"
    few = ["--targets", "ort-*", "--no-conversions", "--no-layers", "--out", str(out), "--iterations", "1", "--runs"]
    command = [sys.executable, "-m", "harness", "model", str(tmp_path / "net.onnx"), *few]
    wide = {**os.environ, "COLUMNS": "200"}

    many = [*command, "100000"]
    with subprocess.Popen(many, stdout=subprocess.PIPE, text=True, env=wide) as process:
        assert process.stdout
        assert any(line.startswith("round 3 ") for line in process.stdout)
        process.send_signal(number)
        told = process.stdout.read()
    assert process.returncode == status
    assert "All 4 variants return what a correct evaluation may return. Interrupted: 4 of 4 variants and" in told
    assert f"interrupted; all that was done is kept in {out}: the same command goes on" in told
    results = json.loads((out / "results.json").read_text())
    assert results["unfinished"].startswith("Interrupted")
    assert results["rounds"] >= 2
    timed = [json.loads(path.read_text())["seconds_of_rounds"] for path in out.glob("*/*/*/*.json")]
    assert [len(seconds) for seconds in timed] == [results["rounds"]] * 4
    done = subprocess.run([*command, "2"], capture_output=True, text=True, check=True, env=wide)
    found, made = map(int, done.stdout.split(" programs had run before")[0].splitlines()[-1].split(" of "))
    assert found == made  # the two rounds are the first two
    assert json.loads((out / "results.json").read_text())["unfinished"] == ""


def test_a_command_heeds_sigterm_with_its_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(*_: object) -> Iterator[Tally]:
        yield Tally(rows={"ort-dynamic-s8": Row(cases=3)})
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(quantisation, "examine", ended)
    monkeypatch.setattr(signals, "_heard", [])  # this process is not ended by what it hears
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    signals.heed()
    try:
        few = ["quantise", "--paths", "ort-dynamic-s8", "--findings", str(tmp_path)]
        result = CliRunner().invoke(app.app_of(), few, catch_exceptions=False)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert result.exit_code == 143
    assert "3 cases in 0 s" in result.output
    assert "interrupted; everything found so far is kept" in result.output
