"""The gate for .pt2: hostile files are refused in one line that names the spot, real programs pass."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hostile import pt2_programs
from hostile.pt2 import EXECUTES, HARMLESS, HOSTILE, good, written
from hostile.torch_registry import allowed
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.conversions.formats import runners_of
from harness.conversions.gate.pt2 import check
from harness.conversions.gate.reading.words import listed
from harness.conversions.model_file import program

pytestmark = pytest.mark.filterwarnings("ignore")
"""torch warns while it exports."""


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused(name: str, tmp_path: Path) -> None:
    folder, marker = tmp_path / "in", tmp_path / "marker"
    folder.mkdir()
    path = HOSTILE[name](folder, marker)
    start = time.perf_counter()
    told = check(path)
    assert time.perf_counter() - start < 10
    assert told
    assert len(told.splitlines()) == 1
    assert len(told) < 400
    assert not told.startswith("it cannot be parsed"), told
    assert not marker.exists()


REAL = HARMLESS | pt2_programs.HARMLESS


@pytest.mark.parametrize("name", REAL)
def test_a_real_program_passes(name: str, tmp_path: Path) -> None:
    assert check(REAL[name](tmp_path, tmp_path / "marker")) is None


@pytest.mark.nightly
@pytest.mark.parametrize("name", EXECUTES)
def test_the_attack_is_real(name: str, tmp_path: Path) -> None:
    """Without the gate the file creates the marker, when it is opened and called as the product does."""
    folder, marker = tmp_path / "in", tmp_path / "marker"
    folder.mkdir()
    path = HOSTILE[name](folder, marker)
    text = program(runners_of("pt2")[0], path, [])
    called = "\nopen_model(PATH)[2](np.ones((4, 4), 'float32'), np.ones(3, 'float32'))"
    subprocess.run([sys.executable, "-c", text + called], capture_output=True, timeout=120, env=os.environ)
    assert marker.exists()


def test_operators_of_pytorch_are_those_of_the_rule() -> None:
    """The list is what the rule makes of the dispatcher of the installed version."""
    assert sorted(listed("aten.txt")) == allowed()


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_a_mutated_file_is_no_exception(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = written(tmp_path_factory.mktemp("mutated"), dict(good()))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    told = check(path)
    assert told is None or len(told.splitlines()) == 1


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_a_mutated_program_is_no_exception(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    told = json.loads(good()["models/model.json"])
    spot = told
    while isinstance(spot, dict | list) and spot:
        key = data.draw(st.sampled_from(sorted(spot) if isinstance(spot, dict) else range(len(spot))))
        inner = spot[key]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.integers(0, 4)) == 0:
            spot[key] = data.draw(
                st.sampled_from([None, True, -1, 2**70, 0.5, "", "a b", "x'\"", [], [1], {}, {"a": 1}])
            )
            break
        spot = inner
    members = dict(good()) | {"models/model.json": json.dumps(told).encode()}
    found = check(written(tmp_path_factory.mktemp("mutated"), members))
    assert found is None or len(found.splitlines()) == 1
