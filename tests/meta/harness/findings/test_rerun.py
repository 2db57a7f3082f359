"""What is known, run again: what shows itself, what looks fixed, and what cannot be told."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from examples.one_node import applied
from typer.testing import CliRunner

from generators import caseio
from harness.commands import app
from harness.commands.findings.rerun import entries
from harness.findings.known import issues
from harness.findings.known.entry import FOLDER
from harness.findings.triage.instance import Instance
from harness.search.known_cases import targets_of

ISSUE = 'targets = ["torch-eager"]\nsymptoms = ["value"]\noperators = ["neg"]\nreason = "planted"\n'
PROGRAM = """kind = "program"
symptoms = ["value"]
targets = ["torch-export"]
package = "torch"
versions = "<=2.13.0"
reason = "planted"
"""
PROGRAMS = {
    "still-wrong": 'print("reproduced: 1 instead of 2")\nraise SystemExit(1)',
    "right-now": 'print("not reproduced")',
    "needs-more": 'print("skipped: no such package")\nraise SystemExit(77)',
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Entries that show themselves, look fixed, and cannot be run: with a case, and with a program."""
    known = tmp_path / "known"
    shutil.copytree(FOLDER / "torch" / "torch-lstsq-nan", known / "torch" / "torch-lstsq-nan")
    other = {"no-neg-fault": ISSUE, "of-another-processor": ISSUE + 'cpu = "no_such_flag"\n'}
    for name, text in other.items():
        (known / "torch" / name).mkdir(parents=True)
        (known / "torch" / name / "issue.toml").write_text(text)
        (known / "torch" / name / "case.json").write_text(caseio.dumps(applied("neg", np.array([1, 2], np.float32))))
    for name, text in PROGRAMS.items():
        (known / "onnx" / name).mkdir(parents=True)
        (known / "onnx" / name / "issue.toml").write_text(PROGRAM)
        (known / "onnx" / name / "reproducer.py").write_text(text)
    return known


@pytest.mark.parametrize("jobs", ["1", pytest.param("2", marks=pytest.mark.nightly)])
def test_each_entry_has_a_status(jobs: str, root: Path, tmp_path: Path) -> None:
    told = tmp_path / "rows.json"
    few = ["known", "--known-issues", str(root), "--findings", str(tmp_path / "f"), "--jobs", jobs, "--json", str(told)]
    # a process of its own: what other tests have imported here may not be forked
    result = subprocess.run([sys.executable, "-m", "harness", *few], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert {row["id"]: row["status"] for row in json.loads(told.read_text())} == {
        "no-neg-fault": "fixed",
        "of-another-processor": "not run: of processors with no_such_flag",
        "torch-lstsq-nan": "shows",
        "still-wrong": "shows",
        "right-now": "fixed",
        "needs-more": "not run: skipped: no such package",
    }
    lines = " ".join(result.stdout.split())
    assert "looks fixed: no-neg-fault (torch-eager)" in lines
    assert "looks fixed: right-now (torch-export)" in lines
    assert "not run: skipped: no such package: needs-more (torch-export)" in lines
    assert "2 show themselves, 2 look fixed, 2 not run" in lines


def test_an_entry_that_there_is_not(root: Path) -> None:
    result = CliRunner().invoke(app.app_of(), ["known", "no-such-*", "--known-issues", str(root)])
    assert result.exit_code == 2
    assert "no known issue matches 'no-such-*'" in " ".join(result.output.split())


def test_entries_of_all_kinds_are_run() -> None:
    chosen = entries(FOLDER)
    folders = {path.parent.name for path in FOLDER.glob("*/*/issue.toml")}
    without = {path.name for path in FOLDER.glob("*/*") if path.is_dir() and not (path / "reproducer.py").is_file()}
    assert {one.id for one in chosen} == folders - without
    assert {one.kind for one in chosen if isinstance(one, Instance)} == {"deviation", "model", "program"}


def test_a_conversion_is_run_by_the_route_of_its_program() -> None:
    """The shortest of those that an entry names may be one that a later form of the model takes elsewhere."""
    entry = next(one for one in issues.load() if one.id == "tvm-onnx-shape-operands")
    assert [target.name for target in targets_of(entry)] == ["onnx/onnx-shapes/tvm-onnx/tvm"]
