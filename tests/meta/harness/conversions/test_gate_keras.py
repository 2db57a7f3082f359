"""The gate for .keras: hostile files are refused in one line that names the spot."""

from __future__ import annotations

from pathlib import Path

import pytest
from hostile import keras, keras_models

from harness.conversions.gate.keras import check

HOSTILE, HARMLESS = keras.HOSTILE | keras_models.HOSTILE, keras.HARMLESS | keras_models.HARMLESS
pytestmark = pytest.mark.filterwarnings("ignore")
"""Keras warns while it saves."""


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_of_keras_is_refused(name: str, tmp_path: Path) -> None:
    folder, marker = tmp_path / "in", tmp_path / "marker"
    folder.mkdir()
    told = check(HOSTILE[name](folder, marker))
    assert told
    assert len(told.splitlines()) == 1
    assert not told.startswith("it cannot be parsed"), told
    assert not marker.exists()


@pytest.mark.parametrize("name", HARMLESS)
def test_a_model_of_keras_passes(name: str, tmp_path: Path) -> None:
    assert check(HARMLESS[name](tmp_path, tmp_path / "marker")) is None
