"""Two versions on the same cases: planted regressions are found and named, and what did not change is not one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from planted.targets import planted as stand_in
from typer.testing import CliRunner, Result

from harness.backends import TARGETS
from harness.commands.app import app_of
from harness.execute import environments
from harness.search.versions import Options, Pair, run, state_of
from oracles.judge.discrepancy import Discrepancy
from oracles.judge.verdict import Verdict

SHIM = """
import sys
sys.path.remove({here!r})
del sys.modules["onnxruntime"]
import numpy as np
import onnxruntime


class Session(onnxruntime.InferenceSession):
    def __init__(self, model, *rest, **named):
        super().__init__(model, *rest, **named)
        self.model = model

    def run(self, *given):
        outputs = super().run(*given)
        if b"Neg" in self.model:
            return [output + 1 if output.dtype.kind == "f" else output for output in outputs]
        if b"Exp" in self.model:
            ordinary = [(output > 1e-3) & (output < 1e3) for output in outputs]
            moved = [np.nextafter(output, output.dtype.type(2)) for output in outputs]
            return [np.where(*chosen) for chosen in zip(ordinary, moved, outputs)]
        return outputs


onnxruntime.InferenceSession = Session
"""
"""Wrong negation of floating values, and another last bit of exponentials, which stays within the bound."""


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Environments `wrong` and `worse`, with the present packages and the shim in front of them."""
    pins = 'packages = ["ml_dtypes==0.6.0", "numpy==2.4.6"]\n'
    (tmp_path / "environments.toml").write_text(f"[wrong]\n{pins}[worse]\n{pins}")
    monkeypatch.setenv(environments.VARIABLE, str(tmp_path / "environments.toml"))
    shim = tmp_path / "shim" / "onnxruntime.py"
    shim.parent.mkdir()
    shim.write_text(SHIM.format(here=str(shim.parent)))
    for name in ("wrong", "worse"):
        environment = environments.named(name)
        environment.interpreter.parent.mkdir(parents=True)
        environment.interpreter.write_text(f'#!/bin/sh\nPYTHONPATH={shim.parent} exec "{sys.executable}" "$@"\n')
        environment.interpreter.chmod(0o755)
        installed = {"python": "3.11", "numpy": "2.4.6", "onnx": "1.23.2", "onnxruntime": "99.9"}
        environment.stamp.write_text(json.dumps({"digest": environment.digest, "versions": installed}))
    return tmp_path


def compared(folder: Path, old: str, new: str, operators: str, *more: str) -> tuple[Result, dict]:
    """What the command says, and its only target's part of the JSON file."""
    report = folder / "report.json"
    options = ["--targets", "ort-disable", "--operators", operators, "--seed", "1", "--max-nodes", "3", "--cases", "6"]
    kept = ["--findings", str(folder / "findings"), "--json", str(report), *more]
    result = CliRunner().invoke(app_of(), ["versions", old, new, *options, *kept])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result, json.loads(report.read_text())["targets"][0] if report.exists() else {}


def test_a_regression_becomes_a_finding_that_names_both_versions(planted: Path) -> None:
    result, found = compared(planted, environments.HERE, "wrong", "neg", "--strict")
    assert result.exit_code == 1
    assert found["states"]["regressed"] > 0
    assert found["states"]["fixed"] == found["states"]["same fault"] == found["states"]["another fault"] == 0
    assert set(found["faults"]["regressed"]) == {"neg value"}
    (path,) = found["findings"]
    finding = json.loads((Path(path) / "finding.json").read_text())
    assert finding["operators"] == ["neg"]
    assert finding["votes"] == {"ort-disable": "agree", "ort-disable@wrong": "mismatch"}
    here = found["versions"]["old"]["onnxruntime"]
    said = f"regression: onnxruntime {here} is right, 99.9 (environment wrong) is not"
    assert finding["condition"] == said
    assert said in (Path(path) / "report.md").read_text()
    reproducer = Path(path) / "reproducer.py"
    assert said in reproducer.read_text()
    interpreters = (sys.executable, str(environments.named("wrong").interpreter))
    codes = [subprocess.run([python, str(reproducer)], capture_output=True).returncode for python in interpreters]
    assert codes == [0, 1]


def test_the_other_way_round_it_is_fixed(planted: Path) -> None:
    result, found = compared(planted, "wrong", environments.HERE, "neg", "--strict")
    assert result.exit_code == 0
    assert found["states"]["fixed"] > 0
    assert found["states"]["regressed"] == 0
    assert found["findings"] == []


def test_a_fault_of_both_is_no_regression(planted: Path) -> None:
    _, found = compared(planted, "wrong", "worse", "neg")
    assert found["states"]["same fault"] > 0
    assert found["states"]["regressed"] == found["states"]["fixed"] == found["states"]["another fault"] == 0
    assert (found["changed_bits"], found["findings"]) == (0, [])


def test_other_bits_within_the_bound_are_counted(planted: Path) -> None:
    _, found = compared(planted, environments.HERE, "wrong", "exp")
    assert found["states"]["agree"] >= found["changed_bits"] > 0
    assert found["findings"] == []


def test_what_a_version_has_not_is_counted_by_operator_and_ends_nothing(planted: Path) -> None:
    """The program of neg names a function that the old version has not; the others run."""
    old = stand_in("neg", "(helper.newer, {right})[1]", of="ort-disable").elsewhere("wrong")
    pair = Pair(old, TARGETS["ort-disable"])
    rows = run(Options((pair,), 6, 1, 3, planted / "findings", operators=("abs", "neg")), lambda rows, count: None)
    row = rows["ort-disable"]
    assert row.states["agree"] > 0
    assert row.states["missing"] > 0
    assert row.states.total() == 6
    assert {state: set(faults) for state, faults in row.faults.items()} == {
        "missing": {"neg missing in 99.9 (environment wrong)"}
    }
    assert not row.findings


def test_states() -> None:
    wrong, fine = Verdict("mismatch", Discrepancy("value", "far off")), Verdict("agree")
    assert [state_of(old, new) for old in (fine, wrong) for new in (fine, wrong)] == [
        "agree",
        "regressed",
        "fixed",
        "same fault",
    ]
    assert state_of(Verdict("undetermined"), Verdict("undetermined")) == "undetermined"
    assert state_of(Verdict("unsupported"), Verdict("unsupported")) == "unsupported"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([".", "."], ". is compared with itself"),
        (["nope", "."], "no environment is called 'nope'"),
        ([".", "wrong", "--targets", "nothing"], "no target matches 'nothing'"),
        ([".", "wrong", "--targets", "torch-eager"], "is available in both . and wrong"),
        ([".", "wrong", "--question", "why"], "no question is called 'why'"),
    ],
)
def test_bad_input_is_one_line(planted: Path, arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(app_of(), ["versions", *arguments])
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())
