"""Commands that are ended at random moments leave no process and no temporary folder, only files that can be read, and
can be run again."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import onnx
import psutil
import pytest
from examples.networks_onnx import blocks

from harness.execute.isolation import keeper

WAIT = 10.0
"""Seconds after which nothing may be left."""
LATEST = 25.0
"""Seconds at which the last moment is: that is when a first case has run, on a slow machine too."""
STATUSES = {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: 130}
INTERRUPTED = {**STATUSES, signal.SIGTERM: 2, signal.SIGINT: 2}
"""pytest's own."""
UNTOLD = (
    'Traceback (most recent call last):\n  File "<string>", line 1, in <module>\n  File "<string>", line 0\n'
    "    \nSyntaxError: invalid syntax\n"
)
"""What execnet's side of a process of `pytest -n` says where pytest has ended before it told it what to run: it
evaluates an empty line."""
MOMENTS = 9
"""For each command and signal: 54 kills by each signal."""
FEW = "ort-all,torch-eager,jax-eager,tf-eager"
COMMANDS = {
    "hunt": ["harness", "hunt", "--jobs", "4", "--budget", "10m", "--targets", FEW, "--findings", "{out}"],
    "train": [
        *("harness", "train", "--strategies", "torch-ddp*,torch-fsdp*,jax-*", "--budget", "10m"),
        *("--findings", "{out}", "--record", "{out}/runs.jsonl"),
    ],
    "conversions": [
        *("harness", "conversions", "--cases", "1000", "--budget", "10m", "--edges", "torch-onnx,tf2onnx"),
        *("--findings", "{out}", "--record", "{out}/conversions.jsonl"),
    ],
    "model": ["harness", "model", "{network}", "--out", "{out}", "--runs", "1000", "--iterations", "1"],
    "study": ["harness", "study", "distribution", "--preset", "d3-pytorch", "--models", "400", "--out", "{out}"],
    "pytest": [
        *("pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "tests/test_forward.py", "tests/test_gradients.py"),
        *("--targets", FEW, "--findings", "{out}", "--hypothesis-profile", "ci"),
    ],
}


def belonging(mark: str, folder: Path) -> Iterator[tuple[psutil.Process, str]]:
    """Processes that a command started, with their commands: by their variables, or by where their temporary folders
    are."""
    for process in psutil.process_iter():
        try:
            variables = process.environ()
            ours = variables.get("DISSENT_TEST") == mark or str(folder) in variables.get(keeper.VARIABLE, "")
            if (ours or process.cwd().startswith(str(folder))) and process.status() != psutil.STATUS_ZOMBIE:
                yield process, " ".join(process.cmdline())
        except psutil.Error:  # it has ended
            continue


def left_of(mark: str, folder: Path) -> list[str]:
    """Processes and temporary folders that are there still, those of pytest and its keep of three runs apart."""
    processes = [f"{process.pid} {command[:150]}" for process, command in belonging(mark, folder)]
    return [*processes, *(path.name for path in folder.iterdir() if not path.name.startswith("pytest-of-"))]


def unreadable(out: Path) -> Iterator[str]:
    """Stored files that do not parse. A line that is added to a record is whole or the last one."""
    for path in out.rglob("*"):
        try:
            if path.suffix == ".json":
                msgspec.json.decode(path.read_bytes())
            elif path.suffix == ".jsonl":
                for line in path.read_bytes().split(b"\n")[:-1]:
                    msgspec.json.decode(line)
            elif path.suffix == ".npz":
                with np.load(path, allow_pickle=False) as arrays:
                    assert all(arrays[name].ndim >= 0 for name in arrays)
            elif path.suffix == ".py":
                compile(path.read_text(encoding="utf-8"), path.name, "exec")
        except Exception as error:  # whatever is wrong with the file
            yield f"{path.relative_to(out)}: {error!r}"


def start(command: str, out: Path, folder: Path, mark: str, *more: str) -> subprocess.Popen[str]:
    """A command, in a session of its own, with its temporary files in a folder."""
    network = out.parent / "network.onnx"
    if not network.exists():
        onnx.save(blocks(2), network)
    given = [word.format(out=out, network=network) for word in COMMANDS[command]]
    return subprocess.Popen(
        [sys.executable, "-m", *given, *more],
        env={**os.environ, "TMPDIR": str(folder), "DISSENT_TEST": mark, "PYTEST_ADDOPTS": ""},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


@pytest.mark.nightly
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_is_left_of_a_command_that_is_ended(command: str, number: signal.Signals, tmp_path: Path) -> None:
    draw = random.Random(zlib.crc32(f"{command} {number}".encode()))
    statuses = INTERRUPTED if command == "pytest" else STATUSES
    out = tmp_path / "out"
    out.mkdir()
    problems: list[str] = []
    unstarted = 0
    for moment in sorted(draw.uniform(0.2, LATEST) for _ in range(MOMENTS)):
        folder, mark = tmp_path / "temporary", f"{tmp_path} {moment}"
        folder.mkdir(exist_ok=True)
        with start(command, out, folder, mark) as process:
            time.sleep(moment)
            early = process.poll()
            process.send_signal(number)
            until = time.monotonic() + WAIT
            while (left := left_of(mark, folder)) and time.monotonic() < until:
                time.sleep(0.1)
            for other, _ in belonging(mark, folder):
                with contextlib.suppress(psutil.NoSuchProcess):
                    other.kill()
            told = process.stdout.read() if process.stdout else ""
        told = told.replace(UNTOLD, "") if command == "pytest" else told
        if early is not None:
            problems.append(f"ended by itself before {moment:.1f} s, status {early}: {told[-2000:]}")
        elif (process.returncode == -number and not told) or (command == "pytest" and "bringing up" not in told):
            unstarted += 1  # it was still importing: there was nothing to save
        elif process.returncode != statuses[number] or "Traceback" in told:
            problems.append(f"after {moment:.1f} s: status {process.returncode}: {told[-2000:]}")
        problems += [f"after {moment:.1f} s: {line}" for line in [*left, *unreadable(out)]]
    assert not problems, "\n".join(problems)
    assert unstarted <= MOMENTS * 2 / 3 or number == signal.SIGKILL  # which ends all without a word
