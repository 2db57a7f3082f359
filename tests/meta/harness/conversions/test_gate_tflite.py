"""What the gate refuses of tflite files, and what it lets pass."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hostile.tflite_files import HARMLESS, HOSTILE

from harness.conversions.gate import tflite as gate


def place(folder: Path) -> tuple[Path, Path]:
    """(folder of the model, marker), with the secret beside the marker."""
    (folder / "model").mkdir()
    (folder / "secret.txt").write_text("the secret text")
    return folder / "model", folder / "marker"


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.filterwarnings("ignore")
def test_hostile(name: str, tmp_path: Path) -> None:
    folder, marker = place(tmp_path)
    path = HOSTILE[name](folder, marker)
    started = time.monotonic()
    why = gate.check(path)
    assert time.monotonic() - started < 10
    assert why
    assert why.isprintable()
    assert len(why) < 400
    assert "the secret text" not in why
    assert not marker.exists()


@pytest.mark.parametrize("name", HARMLESS)
@pytest.mark.filterwarnings("ignore")
def test_harmless(name: str, tmp_path: Path) -> None:
    assert gate.check(HARMLESS[name](*place(tmp_path))) is None
