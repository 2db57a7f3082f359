"""Every reader gets mutated files: it returns what it reads or raises its own error, in one line, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from examples.small_graphs import chain_case
from hypothesis import given, settings
from hypothesis import strategies as st

from generators import caseio
from generators.training import runs
from harness.commands.shared.record import Record
from harness.execute import environments
from harness.execute.reading import FileError, read_by, read_json
from harness.findings.known import deviations, entry, issues
from harness.findings.store import Finding
from harness.models import inputs
from harness.search import coverage, hypothesis_profiles
from harness.training.table import Run


def _known(load: Callable[[Path], object]) -> Callable[[Path], object]:
    def read(path: Path) -> object:
        folder = path.parent / "known" / "torch" / "x"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / entry.FILE).write_bytes(path.read_bytes())
        (folder / "case.json").touch()
        return load(path.parent / "known")

    return read


def _finding() -> str:
    about = ("f", "forward", "value", "m", "torch-eager", ("torch-eager",), ("neg",), 1, None)
    return json.dumps(asdict(Finding(*about, {"torch-eager": "mismatch"}, {"torch": "2", "numpy": "2"})))


def _record() -> str:
    return f'{{"seed": 1}}\n{json.dumps(asdict(Run("torch-ddp", 2, "float32", 0, "agree")))}\n'


def _coverage() -> str:
    counts = {"neg": {"float32": {"torch-eager": {"agree": 3}}}}
    return json.dumps(
        {"forward": {"cells": counts, "elements": {"neg": 3}, "undetermined": {}, "pairs": {"neg": {"exp": 2}}}}
    )


ISSUE = 'targets = ["torch-*"]\nsymptoms = ["value"]\noperators = ["neg"]\nreason = "r"\nmessage = "a|b"\nthreads = 2\n'
DEVIATION = (
    'kind = "deviation"\nstrategies = ["torch-ddp"]\nparts = ["loss*"]\nsymptoms = ["value"]\nreason = "r"\nworld = 2\n'
)
PINS = '[a]\npackages = ["ml_dtypes==0.6.0", "numpy==2.4.6"]\npython = "3.11"\n'
IMAGES = 'size = [8, 8]\nmean = [0.5, 0.5, 0.5]\nstd = [1.0, 1.0, 1.0]\nresize = "bilinear"\nshorter = 9\n'

Kind = tuple[str, Callable[[], str], Callable[[Path], object], type[Exception]]
KINDS: dict[str, Kind] = {
    "case": (".json", lambda: caseio.dumps(chain_case()), lambda p: read_by(p, caseio.loads), FileError),
    "training": (".json", lambda: runs.dumps(runs.seeded_training(1, 0)), lambda p: read_by(p, runs.loads), FileError),
    "finding": (".json", _finding, lambda p: read_json(p, Finding), FileError),
    "coverage": (".json", _coverage, coverage.load, FileError),
    "record": (".jsonl", _record, lambda p: Record.opened(p, {"seed": 1}, Run), FileError),
    "labels": (".json", lambda: '["cat", "dog"]', inputs.labels_of, inputs.FormatError),
    "issue": (".toml", lambda: ISSUE, _known(issues.load), FileError),
    "deviation": (".toml", lambda: DEVIATION, _known(deviations.load), FileError),
    "environments": (".toml", lambda: PINS, environments._load.__wrapped__, FileError),
    "preprocessing": (".toml", lambda: IMAGES, inputs.read_preprocessing, inputs.FormatError),
}

ODD = ["", "x", "\u0000", "(", "torch", "class", "[" * 50, "float8", True, False, None, 0, -1, 1.5, 1e308, 2**31, 2**63,
       10**30, [], {}, [[]], [1, "a"], {"a": 1}, [-1], [2**40], [1.5], ["x", "x"]]  # fmt: skip
TEXTS = [b"NaN", b"-Infinity", b"1e999", b"9" * 5000, b"[" * 2000, b"{\"a\":" * 2000, b"\xff", b"\xef\xbb\xbf", b"\x00",
         b'"\\ud800"', b"\n", b'"', b"}", b",", b"=", b"true", b"-1", b"\r", b"[a.b.c]\n", b"a=1\na=1\n"]  # fmt: skip


def _places(data: Any) -> list[tuple[Any, Any]]:
    found = []
    below = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in below:
        found += [(data, key), *_places(value)]
    return found


def mutated(draw: Callable, text: str) -> bytes:
    """One to three changes: of values of JSON in their places, or of bytes."""
    data = text.encode()
    for _ in range(draw(st.integers(1, 3))):
        try:
            tree = json.loads(data)
        except (ValueError, RecursionError):
            tree = None
        places = _places(tree)
        if places and draw(st.booleans()):
            where, key = places[draw(st.integers(0, len(places) - 1))]
            how = draw(st.integers(0, 3))
            if how == 0 and isinstance(where, dict):
                where[draw(st.sampled_from(["extra", "name", "", "\n"]))] = where[key]
            elif how == 1:
                del where[key]
            elif how == 2:
                where[key] = [where[key]] * draw(st.integers(0, 3))
            else:
                where[key] = draw(st.sampled_from(ODD))
            data = json.dumps(tree).encode()
        else:
            start = draw(st.integers(0, len(data)))
            end = start + draw(st.sampled_from([0, 0, 1, 2, 20]))
            data = data[:start] + draw(st.sampled_from([*TEXTS, b"", data[end : end + 20]])) + data[end:]
    return data


@pytest.mark.parametrize("kind", KINDS)
def test_a_mutated_file_is_read_or_refused_in_one_line(kind: str, tmp_path: Path) -> None:
    suffix, good, read, error = KINDS[kind]
    text = good()
    path = tmp_path / f"file{suffix}"
    path.write_text(text, encoding="utf-8")
    read(path)  # as it is
    refused = 0

    @settings(max_examples=10_000 if hypothesis_profiles.nightly() else settings().max_examples)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        nonlocal refused
        path.write_bytes(mutated(data.draw, text))
        said = ""
        try:
            read(path)
        except error as caught:
            said = str(caught)
            refused += 1
        assert said.isprintable()
        assert str(tmp_path) in (said or str(path))

    check()
    assert refused
