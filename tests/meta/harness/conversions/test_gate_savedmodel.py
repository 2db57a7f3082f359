"""What the gate refuses of savedmodel files, and what it lets pass."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hostile.savedmodel_files import EXECUTES, HARMLESS, HOSTILE

from harness.conversions.gate import savedmodel as gate
from harness.conversions.gate.tensorflow_nodes import operators


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


def test_operators_are_those_of_the_rule() -> None:
    """The list is what the rule makes of the registry of the installed version."""
    from hostile.tensorflow_registry import allowed

    assert sorted(operators()) == allowed()


@pytest.mark.nightly
@pytest.mark.parametrize("name", EXECUTES)
@pytest.mark.filterwarnings("ignore")
def test_attacks_are_real(name: str, tmp_path: Path) -> None:
    folder, marker = place(tmp_path)
    path = HOSTILE[name](folder, marker)
    import tensorflow as tf

    tf.saved_model.load(str(path)).signatures["serving_default"](x=tf.constant([1.0, 2.0]))
    assert marker.exists()
