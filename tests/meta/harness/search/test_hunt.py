"""The main job with targets that misbehave: it ends in time, counts each, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Container
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from examples.commands import workers
from planted.targets import planted

from generators.graphs import Case, seeded_case
from generators.ops import DRAWN
from harness.backends import TARGETS, Level, Target
from harness.execute.pool import Limits, zygotes_of
from harness.findings.known import issues as known_issues
from harness.search import hunt
from harness.search.hunting import faults
from oracles.judge.verdict import STATUSES

_TROUBLE = """
import hashlib, os, time

KEY = int(hashlib.sha256(repr((INPUTS, PARAMETERS, OUTPUTS)).encode()).hexdigest(), 16)


def load(parameters):
    {trouble}
    return correct_load(parameters)
"""


def troubled(name: str, trouble: str) -> Target:
    """ort-disable in a worker of its own, in trouble on some programs, always the same ones."""
    good = TARGETS["ort-disable"]
    load = good.load.replace("def load(", "def correct_load(") + _TROUBLE.format(trouble=trouble)
    return replace(good, name=name, framework=name, load=load, level=Level(name, 0))


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files of this test alone: what is left in it was left by this test."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


@pytest.mark.slow
def test_a_hunt_survives_crashes_hangs_and_memory_hogs(tmp_path: Path, scratch: Path) -> None:
    """One target crashes on every third program, one hangs on every fifth, one eats memory on every fourth."""
    targets = (
        troubled("crasher", "KEY % 3 or os.abort()"),
        troubled("hanger", "KEY % 5 or time.sleep(1000)"),
        troubled("eater", "KEY % 4 or np.ones(100 << 30, np.uint8)"),
    )
    names = tuple(target.name for target in targets)
    known = tuple(replace(issue, targets=names) for issue in known_issues.load() if issue.names("ort-disable"))
    limits = Limits(seconds=2.0, memory=2 << 30)
    options = hunt.Options(targets, 200.0, 1, 3, tmp_path / "findings", DRAWN, known, limits, cases=12, reduction=0.5)
    before = workers()  # of other tests
    started = time.monotonic()
    tally = hunt.run(options, lambda tally: None)
    assert time.monotonic() - started < 300
    for name, status in (("crasher", "crash"), ("hanger", "timeout"), ("eater", "crash")):
        counts = tally.statuses[name]
        assert sum(counts.values()) == tally.cases
        assert counts[status] > 0
        assert counts["agree"] > 0
    for finding in tally.findings.values():
        assert finding.nodes <= 3
        assert (Path(finding.path) / "reproducer.py").exists()
    assert {f.symptom for f in tally.findings.values()} == {"crash", "timeout"}
    assert workers() == before
    zygotes_of(limits.threads, "").stop()  # whose folder lives as long as they do
    assert not list(scratch.iterdir())


def test_workers_that_voted_only_are_gone_at_the_next_case(tmp_path: Path) -> None:
    """A finding in the first case asks a framework that the hunt does not run; the finding is met again after that."""
    good = TARGETS["ort-disable"]
    wrong = replace(
        good,
        name="wrong",
        framework="wrong",
        load=good.load.replace("def load(", "def right(")
        + "\n\ndef load(parameters):\n    run = right(parameters)\n    return lambda *x: [y + 1 for y in run(*x)]\n",
    )
    voter = replace(good, name="voter", framework="voter")
    before, seen = workers(), []
    options = hunt.Options(
        (wrong,), 200.0, 1, 1, tmp_path / "findings", ("abs",), cases=8, favoured=("float32",), voters=(voter,)
    )
    tally = hunt.run(options, lambda tally: seen.append(len(workers() - before)))
    assert [finding.votes["voter"] for finding in tally.findings.values()] == ["agree"]
    assert max(seen) == 2
    assert seen[-2:] == [1, 1]


def test_workers_that_vote_and_hunt_stay(tmp_path: Path) -> None:
    """A voter of a framework that the hunt runs, too: no more workers are started for a finding than without it."""
    wrong = planted("abs", "-torch.abs({0})")
    voters, started = (), []
    for name in ("without", "with"):
        options = hunt.Options(
            (wrong,), 200.0, 1, 1, tmp_path / name, ("abs",), cases=8, favoured=("float32",), voters=voters
        )
        tally = hunt.run(options, lambda tally: None)
        assert len(tally.findings) == 1
        started.append(tally.restarts)
        voters = (replace(wrong, name="voter"),)
    assert started[0] == started[1]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "harness", *arguments]


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1", "PYTHONPATH": str(Path.cwd())}
    return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=300, env=environment, cwd=cwd)


@pytest.mark.slow
def test_hunt_reports_in_json(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    done = run(
        *("hunt", "--cases", "12", "--seed", "7", "--targets", "torch-eager,ort-all", "--question", "forward"),
        *("--findings", str(tmp_path / "findings"), "--json", str(report)),
    )
    assert done.returncode == 0, done.stderr
    data = json.loads(report.read_text())
    assert data["seed"] == 7
    assert data["question"] == "forward"
    assert data["cases"] == 12
    assert set(data["targets"]) == {"torch-eager", "ort-all"}
    for counts in data["targets"].values():
        assert set(counts) == set(STATUSES)
        assert sum(counts.values()) == 12
    assert {"numpy", "torch", "onnxruntime"} <= set(data["versions"])
    assert data["elements"]["compared"] > 0
    assert "12 cases" in done.stdout


@pytest.mark.slow
def test_same_seed_same_cases(tmp_path: Path) -> None:
    counts = []
    for jobs in ("1", "2"):
        report = tmp_path / f"{jobs}.json"
        arguments = ("--cases", "100", "--seed", "11", "--targets", "ort-disable", "--jobs", jobs)
        done = run("hunt", *arguments, "--findings", str(tmp_path / jobs), "--json", str(report))
        assert done.returncode == 0, done.stderr
        data = json.loads(report.read_text())
        counts.append((data["targets"], data["elements"], data["known_issues"]))
    assert counts[0] == counts[1]


def test_a_hunt_that_ends_before_its_first_case_has_a_report(tmp_path: Path) -> None:
    options = hunt.Options((TARGETS["ort-all"],), 1.0, 1, 3, tmp_path, DRAWN)
    assert hunt.to_json(options, hunt.Tally(), 0.5)["targets"] == {"ort-all": dict.fromkeys(STATUSES, 0)}


def broken(at: Container[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing the cases of these numbers fails."""

    def drawn(seed: int, index: int, *rest: object) -> Case:
        if index in at:
            raise ValueError("no such shape")
        return seeded_case(seed, index, 2)

    monkeypatch.setattr(hunt, "seeded_case", drawn)


def test_a_fault_of_ours_names_the_case_and_the_hunt_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken({3}, monkeypatch)
    options = hunt.Options((TARGETS["ort-disable"],), 60.0, 7, 2, tmp_path, DRAWN, cases=10)
    tally = hunt.run(options, lambda tally: None)
    assert tally.cases == 9
    (line,) = tally.faults
    assert re.fullmatch(r"fault of ours: ValueError: no such shape \(test_hunt.py:\d+\) case 3 of seed 7", line)
    assert "Traceback" in (tmp_path / faults.FILE).read_text()
    assert hunt.to_json(options, tally, 1.0)["workers"]["faults"] == [line]


def test_too_many_faults_of_ours_end_a_hunt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken(range(100), monkeypatch)
    options = hunt.Options((TARGETS["ort-disable"],), 60.0, 7, 2, tmp_path, DRAWN, cases=100)
    with pytest.raises(ValueError, match="no such shape"):
        hunt.run(options, lambda tally: None)
    assert (tmp_path / faults.FILE).read_text().count("ValueError: no such shape") == faults.MOST


def test_interrupt_ends_everything_and_keeps_findings(tmp_path: Path, scratch: Path) -> None:
    report = tmp_path / "report.json"
    arguments = ("hunt", "--budget", "10m", "--targets", "ort-*,torch-eager", "--findings", str(tmp_path / "f"))
    whole = command(*arguments, "--json", str(report))
    with subprocess.Popen(whole, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        parent = psutil.Process(process.pid)
        deadline = time.monotonic() + 60
        while len(parent.children(recursive=True)) < 2 and time.monotonic() < deadline:
            time.sleep(0.2)
        time.sleep(3)
        children = parent.children(recursive=True)
        process.send_signal(signal.SIGINT)
        try:
            output, _ = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 130, output
    assert "interrupted; everything found so far is kept" in output
    assert "Traceback" not in output
    assert set(json.loads(report.read_text())["targets"]["torch-eager"]) == set(STATUSES)
    _, alive = psutil.wait_procs(children, timeout=5)
    assert not alive
    assert not list(scratch.iterdir())


@pytest.mark.slow(one_in=3, ci=3)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("hunt", "--targets", "torch-eagre"), "no target matches 'torch-eagre'; known: torch-eager,"),
        (("hunt", "--operators", "frob*"), "no operator matches 'frob*'"),
        (("hunt", "--question", "why"), "no question is called 'why'; there are forward"),
        (("replay", "absent.json", "--question", "why"), "no question is called 'why'; there are forward"),
        (("hunt", "--budget", "soon"), "'soon' is not a duration such as 90s, 5m or 1h"),
        (("hunt", "--known-issues", "absent.toml"), "absent.toml: No such file or directory"),
        (("hunt", "--findings", "/proc/nowhere"), "cannot use /proc/nowhere for findings: "),
        (("replay", "absent.json"), "dissent: absent.json: No such file or directory"),
        (("replay", "corrupt.json"), "corrupt.json: not JSON: "),
        (("replay", "odd.json"), "odd.json: node v0: unknown operator 'frobnicate'"),
        (("targets", "--json", "/proc/x.json"), "cannot write /proc/x.json: "),
    ],
)
def test_bad_input_gets_one_clear_line(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    (tmp_path / "corrupt.json").write_text('{"graph": ')
    graph = {
        "format": "dissent-graph",
        "version": 1,
        "outputs": ["v0"],
        "leaves": [{"name": "x0", "dtype": "float32", "shape": [1], "role": "input", "domain": None}],
        "nodes": [
            {"name": "v0", "op": "frobnicate", "operands": ["x0"], "attrs": {}, "dtype": "float32", "shape": [1]}
        ],
    }
    (tmp_path / "odd.json").write_text(json.dumps({"graph": graph, "arrays": {}}))
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.stderr + done.stdout


def test_a_full_disk_is_one_clear_line_and_keeps_what_was_found(tmp_path: Path) -> None:
    done = run("targets", "--json", "/dev/full", cwd=tmp_path)
    assert done.returncode == 2
    assert "dissent: cannot write /dev/full: No space left on device" in done.stderr


@pytest.mark.slow
def test_lists_as_json(tmp_path: Path) -> None:
    assert run("targets", "--json", str(tmp_path / "t.json")).returncode == 0
    assert run("ops", "--json", str(tmp_path / "o.json")).returncode == 0
    targets = json.loads((tmp_path / "t.json").read_text())
    ops = json.loads((tmp_path / "o.json").read_text())
    assert all(set(t) == {"name", "framework", "version", "available", "reason"} for t in targets)
    assert len(targets) >= 17
    assert len(ops) >= 60
    for row in ops:
        assert set(row) == {"name", "family", "dtypes", "dialects"}
        assert row["dtypes"], row
        assert all(c is True or c["unsupported"] for c in row["dialects"].values())
