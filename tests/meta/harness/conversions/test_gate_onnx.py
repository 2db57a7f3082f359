"""What the gate refuses of onnx files, and what it lets pass."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hostile.onnx_files import HARMLESS, HOSTILE
from hostile.onnx_registry import allowed
from onnx.backend.test.case.node import collect_testcases

from harness.conversions.gate import onnx as gate
from harness.conversions.gate.reading.words import listed


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


def test_operators_of_onnx_are_those_of_the_rule() -> None:
    """The list is what the rule makes of the registries of the installed versions."""
    assert sorted(listed("onnx.txt")) == allowed()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # numpy warns while ONNX casts
def test_all_operators_of_onnx_pass(tmp_path: Path) -> None:
    """What ONNX tests back ends with: a model for each operator and way to call it."""
    path = tmp_path / "model.onnx"
    models = {case.name: case.model for case in collect_testcases(None) if case.model is not None}
    refused = {}
    for name, proto in models.items():
        path.write_bytes(proto.SerializeToString())
        refused[name] = gate.check(path)
    assert len(models) > 1500
    assert {name: why for name, why in refused.items() if why} == {}
