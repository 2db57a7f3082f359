"""Every reader gets mutated files: it returns what it reads or raises its own error, in one line, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from examples.read_files import (
    AUDIO,
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

from generators import caseio
from generators.training import runs
from harness.commands.shared.record import Record
from harness.execute import environments
from harness.execute.reading import FileError, read_by, read_json
from harness.findings.deviation import Deviation
from harness.findings.known import deviations, entry, issues
from harness.findings.store import Finding
from harness.models import known
from harness.models.given import inputs, media
from harness.models.given.audio import AudioPreprocessing
from harness.models.given.images import ImagePreprocessing
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


Kind = tuple[str, Callable[[], str], Callable[[Path], object], type[Exception]]
KINDS: dict[str, Kind] = {
    "case": (".json", lambda: caseio.dumps(chain_case()), lambda p: read_by(p, caseio.loads), FileError),
    "training": (".json", lambda: runs.dumps(runs.seeded_training(1, 0)), lambda p: read_by(p, runs.loads), FileError),
    "finding": (".json", finding_file, lambda p: read_json(p, Finding), FileError),
    "training finding": (".json", deviation_file, lambda p: read_json(p, Deviation), FileError),
    "model": (".toml", lambda: MODEL, _known(known.load), FileError),
    "coverage": (".json", coverage_file, coverage.load_file, FileError),
    "record": (".jsonl", record_file, lambda p: Record.opened(p, {"seed": 1}, Run), FileError),
    "labels": (".json", lambda: '["cat", "dog"]', inputs.labels_of, inputs.FormatError),
    "issue": (".toml", lambda: ISSUE, _known(issues.load), FileError),
    "deviation": (".toml", lambda: DEVIATION, _known(deviations.load), FileError),
    "environments": (".toml", lambda: PINS, environments._load.__wrapped__, FileError),
    "images": (".toml", lambda: IMAGES, lambda p: media.read_preprocessing(p, ImagePreprocessing), inputs.FormatError),
    "audio": (".toml", lambda: AUDIO, lambda p: media.read_preprocessing(p, AudioPreprocessing), inputs.FormatError),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_mutated_file_is_read_or_refused_in_one_line(kind: str, tmp_path: Path, record_property: Callable) -> None:
    suffix, good, read, error = KINDS[kind]
    text = good()
    path = tmp_path / f"file{suffix}"
    path.write_text(text, encoding="utf-8")
    read(path)  # as it is
    refused, slowest = 0, 0.0

    @settings(max_examples=10_000 if hypothesis_profiles.nightly() else settings().max_examples)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        nonlocal refused, slowest
        path.write_bytes(mutated(data.draw, text.encode()))
        said, started = "", time.monotonic()
        try:
            read(path)
        except error as caught:
            said = str(caught)
            refused += 1
        slowest = max(slowest, time.monotonic() - started)
        assert said.isprintable()
        assert str(tmp_path) in (said or str(path))

    check()
    record_property("refused", refused)
    record_property("slowest, in seconds", slowest)
    assert refused
    assert slowest < 10
