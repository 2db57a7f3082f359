"""`--json` with a file, and without: then on standard output, alone. Terminals without UTF-8."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from generators.ops import OPS
from harness.commands import app
from harness.commands.shared.terminal import console, say, spelled_out
from harness.conversions.edges import EDGES
from harness.search import hunt
from harness.search.hunt import Tally


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("ops --json", "ops --json -"),
        ("ops --json ops.json", "ops --json ops.json"),
        ("ops --json=ops.json", "ops --json=ops.json"),
        ("conversions --json --edges tflite", "conversions --json - --edges tflite"),
        ("ops", "ops"),
    ],
)
def test_a_file_may_be_left_out(given: str, meant: str) -> None:
    assert spelled_out(given.split()) == meant.split()


def test_a_line_is_said_as_it_stands() -> None:
    line = f"[bold]float32[2,3][/bold] {'x' * console.width} 12 of 'it'"
    with console.capture() as shown:
        say(line, style="dim")
    assert shown.get() == line + "\n"


def run(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """A command, with its output as plain text whatever the terminal of who runs the tests."""
    colours = ("FORCE_COLOR", "TTY_COMPATIBLE", "PYTHONIOENCODING")
    environment = {name: value for name, value in os.environ.items() if name not in colours} | settings
    command = [sys.executable, "-m", "harness", *arguments]
    shown = subprocess.run(
        command, capture_output=True, encoding="utf-8", cwd=Path(__file__).parents[4], env=environment, check=False
    )
    assert shown.returncode == 0, f"exit status {shown.returncode}\n{shown.stdout}\n{shown.stderr}"
    return shown


@pytest.mark.slow
def test_json_on_standard_output_is_all_that_is_there(tmp_path: Path) -> None:
    shown = run("ops", "--json")
    assert [row["name"] for row in json.loads(shown.stdout)] == list(OPS)
    assert f"{len(OPS)} operators" in shown.stderr
    kept = run("ops", "--json", str(tmp_path / "ops.json"))
    assert (tmp_path / "ops.json").read_text(encoding="utf-8") == shown.stdout
    assert f"{len(OPS)} operators" in kept.stdout


def test_wide_tables_stay_out_of_it() -> None:
    shown = run("conversions", "--json", "--edges", "tvm-*")
    named = [row["name"] for row in json.loads(shown.stdout)]
    assert named == [name for name in EDGES if name.startswith("tvm-")]
    assert all(name in shown.stderr for name in named)


@pytest.mark.slow
def test_a_terminal_without_utf_8_is_no_error() -> None:
    shown = run("ops", PYTHONIOENCODING="ascii")
    assert shown.stdout.isascii()
    assert f"{len(OPS)} operators" in shown.stdout


@pytest.mark.parametrize(
    ("tally", "status", "message"),
    [
        (Tally(), 2, "dissent: nothing was compared: no case ended within 1s"),
        (Tally(cases=3), 2, "dissent: nothing was compared: none of 3 cases had a result"),
        (Tally(cases=3, elements=1), 0, ""),
        (Tally(cases=3, excused=Counter({"known": 1})), 0, ""),
    ],
)
def test_a_hunt_that_compared_nothing_says_so(
    tally: Tally, status: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hunt, "run", lambda *_: tally)
    few = ["hunt", "--budget", "1s", "--targets", "ort-all", "--findings", str(tmp_path)]
    result = CliRunner().invoke(app.app_of(), few, catch_exceptions=False)
    assert result.exit_code == status
    assert result.stderr.strip() == message
