"""Cases that were seen to end with a traceback, to hang or to fill the memory: each is one line, word for word."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from examples.small_graphs import chain_case
from syrupy.assertion import SnapshotAssertion

from generators import caseio
from harness.execute.reading import LARGEST, FileError, read_by

ROOT = Path(__file__).parents[4]
GOOD = caseio.dumps(chain_case())


def _with(value: object, *place: str | int) -> bytes:
    """A good case with another value in a place."""
    data = json.loads(GOOD)
    inside: Any = data
    for step in place[:-1]:
        inside = inside[step]
    inside[place[-1]] = value
    return json.dumps(data).encode()


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(LARGEST + 1)


TEXTS = {
    "domain of nothing": _with([], "graph", "leaves", 0, "domain"),
    "domain to infinity": _with([float("inf")], "graph", "leaves", 0, "domain"),
    "domain of text": _with("ab", "graph", "leaves", 0, "domain"),
    "operator that is a list": _with(["matmul"], "graph", "nodes", 0, "op"),
    "unknown operator": _with("os.system", "graph", "nodes", 0, "op"),
    "unknown attribute": _with({"alpha": [1.0]}, "graph", "nodes", 0, "attrs"),
    "array that is a number": _with(3, "arrays", "x0"),
    "shape of 2**40": _with([2**40], "graph", "leaves", 0, "shape"),
    "100,000 lists": b"[" * 100_000 + b"]" * 100_000,
    "100,000 objects": b'{"a":' * 100_000,
    "5,000 digits": GOOD.encode().replace(b'"version": 1', b'"version": ' + b"1" * 5000),
    "NaN": b'{"graph": NaN}',
    "key twice": b'{"graph": 1, "graph": 2}',
    "byte order mark": b"\xef\xbb\xbf" + GOOD.encode(),
    "not UTF-8": b"\xff\xfe" + GOOD.encode(),
    "empty": b"",
    "control characters": b'{"graph\\u001b[31m\\n": 1}',
}
NAMES = ("__import__", "__class__", "class", "a b", "x;y", "", "None", "x\n", "é", "a" * 65)
FILES: dict[str, Callable[[Path], object]] = {
    "folder": Path.mkdir,
    "pipe": os.mkfifo,
    "too large": _sparse,
    "link to itself": lambda path: path.symlink_to(path),
    "nothing": lambda path: None,
    **{name: lambda path, text=text: path.write_bytes(text) for name, text in TEXTS.items()},
    **{
        f"name {name!r}": lambda path, name=name: path.write_bytes(_with(name, "graph", "nodes", 0, "name"))
        for name in NAMES
    },
}


@pytest.mark.parametrize("what", FILES)
def test_a_hostile_case_is_this_line(what: str, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    path = tmp_path / "case.json"
    FILES[what](path)
    with pytest.raises(FileError) as caught:
        read_by(path, caseio.loads)
    line = str(caught.value)
    assert line.isprintable()
    assert line.replace(str(tmp_path), "DIR") == snapshot


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read all files")
def test_a_file_without_permission_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    path.write_text(GOOD)
    path.chmod(0)
    with pytest.raises(FileError, match="Permission denied"):
        read_by(path, caseio.loads)


def test_pytest_refuses_it_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    path.write_text("[")
    arguments = ["-p", "no:cacheprovider", "--replay", str(path), "tests/test_conversions.py"]
    done = subprocess.run([sys.executable, "-m", "pytest", *arguments], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line]
    assert lines == [f"ERROR: --replay: {path}: not JSON: Expecting value: line 1 column 2 (char 1)"]
