"""Mutated files by way of the command line: a line on standard error and exit status 2, or the command goes on."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples.read_files import (
    DEVIATION,
    IMAGES,
    ISSUE,
    MODEL,
    PINS,
    coverage_file,
    deviation_file,
    finding_file,
    mutated,
    record_file,
)
from examples.small_graphs import chain_case
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from generators import caseio
from generators.training import runs
from harness.commands import app, hunt, training
from harness.commands.findings import known
from harness.commands.reach import coverage
from harness.commands.study import distribution
from harness.conversions.model_file import Port
from harness.execute import environments
from harness.findings.known import entry
from harness.models import examine
from harness.models.given import inputs, media
from harness.models.given.images import ImagePreprocessing
from harness.search import hypothesis_profiles
from harness.studies.distribution import share
from harness.studies.distribution.store import Result, Store
from harness.training import known_runs

SECONDS = 10
"""What a bad file may cost."""


def _arrays() -> bytes:
    file = io.BytesIO()
    np.savez(file, x=np.ones((2, 3), np.float32))
    return file.getvalue()


def _study(folder: Path) -> bytes:
    """The store of `study distribution --preset d3-pytorch`, with one result."""
    plan = distribution.Study(
        "d3-pytorch", 8, 1, distribution.Protocol(0, 24, 8, distribution.PRESETS["d3-pytorch"]().freeze)
    )
    versions = distribution.versions_of(["numpy", *distribution.PACKAGES["torch"]])
    store = Store(folder / "good.sqlite", plan.about | versions)
    store.add(Result(0, 0, "a", "q", "compared"))
    store.close()
    return (folder / "good.sqlite").read_bytes()


Command = tuple[Callable[[Path], bytes], str, str]
"""What makes a good file, where it is put, and the command that reads it."""
TRAIN = "train --runs 1 --seed 1 --blocks 4"
COMMANDS: dict[str, Command] = {
    "case": (lambda _: caseio.dumps(chain_case()).encode(), "case.json", "replay case.json --targets torch-eager"),
    "training": (
        lambda _: runs.dumps(runs.seeded_training(1, 0)).encode(),
        "k/torch/x/case.json",
        "known --write --known-issues k",
    ),
    "finding": (lambda _: finding_file().encode(), "f/x/finding.json",
                "hunt --targets torch-eager --findings f"),
    "training finding": (lambda _: deviation_file().encode(), "f/x/finding.json", f"{TRAIN} --findings f"),
    "coverage": (lambda _: coverage_file().encode(), "f/coverage.json", "coverage --findings f --operators neg"),
    "record": (lambda _: b'{"seed": 1, "blocks": 4}\n' + record_file().encode().split(b"\n", 1)[1], "r.jsonl",
               f"{TRAIN} --record r.jsonl"),
    "issue": (lambda _: ISSUE.encode(), "k/torch/x/issue.toml", "known --known-issues k --write"),
    "deviation": (lambda _: DEVIATION.encode(), "k/torch/x/issue.toml", "known --known-issues k --write"),
    "model": (lambda _: MODEL.encode(), "k/torch/x/issue.toml", "model digits --known-issues k"),
    "environments": (lambda _: PINS.encode(), "environments.toml", "env list"),
    "labels": (lambda _: b'["cat", "dog"]', "labels.json", "model digits --labels labels.json"),
    "preprocessing": (lambda _: IMAGES.encode(), "p.toml", "model digits --inputs i --preprocess p.toml"),
    "inputs": (lambda _: _arrays(), "i.npz", "model digits --inputs i.npz"),
    "study": (_study, "s/study.sqlite", "study distribution --preset d3-pytorch --out s"),
}  # fmt: skip


def _stop(*_: object, **__: object) -> Any:
    """Stands where a command would begin to run what it has read."""
    raise SystemExit(0)


def _examine(options: examine.Options, *_: object) -> Any:
    """What `model` reads, without a model."""
    examine.known.load(options.known)
    if options.labels:
        inputs.labels_of(options.labels)
    if options.preprocess:
        media.read_preprocessing(options.preprocess, ImagePreprocessing)
    elif options.inputs:
        inputs.read_arrays(options.inputs, [Port("x", "float32", (None, 3))])
    raise SystemExit(0)


@pytest.fixture
def reading_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands in a folder of their own that end when all is read."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(environments.VARIABLE, str(tmp_path / "environments.toml"))
    monkeypatch.setattr(hunt, "Pool", _stop)
    monkeypatch.setattr(hunt.hunting, "run", _stop)
    monkeypatch.setattr(hunt, "load", lambda _: ())
    monkeypatch.setattr(training, "load", lambda: ())
    monkeypatch.setattr(training, "_usable", _stop)
    monkeypatch.setattr(known.known_cases, "write_reproducers", lambda *_: [])
    monkeypatch.setattr(known_runs, "available", lambda _: "off")
    monkeypatch.setattr(coverage, "usable", lambda _: [])
    monkeypatch.setattr(distribution, "load", lambda: ())
    monkeypatch.setattr(share, "RankPools", _stop)
    monkeypatch.setattr("harness.commands.model.examine", _examine)


@pytest.mark.slow(one_in=6, ci=2)
@pytest.mark.parametrize("kind", COMMANDS)
def test_a_bad_file_is_one_line_and_exit_status_2(kind: str, tmp_path: Path, reading_only: None) -> None:
    make, place, command = COMMANDS[kind]
    good = make(tmp_path)
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.parent.name == "x" and place.startswith("k/"):
        (path.parent / "case.json").write_text(runs.dumps(runs.seeded_training(1, 0)))
        (path.parent / entry.FILE).write_text(DEVIATION)
    path.write_bytes(good)
    done = CliRunner().invoke(app.app_of(), command.split())
    assert done.exit_code == 0, done.output
    refused = 0

    @settings(max_examples=200 if hypothesis_profiles.nightly() else settings().max_examples)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        nonlocal refused
        path.write_bytes(mutated(data.draw, good))
        environments._load.cache_clear()
        started = time.monotonic()
        done = CliRunner().invoke(app.app_of(), command.split())
        assert time.monotonic() - started < SECONDS
        assert done.exit_code in (0, 2), done.exception
        assert isinstance(done.exception, SystemExit | None), done.exception
        if done.exit_code:
            refused += 1
            lines = done.stderr.splitlines()
            assert len(lines) == 1, lines
            assert lines[0].startswith("dissent: ")

    check()
    assert refused
