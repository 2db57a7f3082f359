"""The table of strategies: what a line counts, what its file keeps, and the command that goes through all cells."""

from __future__ import annotations

import csv
import errno
import io
import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
from rich.console import Console
from typer.testing import CliRunner

from generators.bounds.bounded import Bounded
from generators.training.runs import seeded_training
from harness.commands import app
from harness.commands.shared.record import Record, RecordError
from harness.strategies import STRATEGIES
from harness.training.judge import Judgement, TrainingJudge, adapted, drawn_for
from harness.training.share import untrained
from harness.training.table import (
    OUTCOMES,
    Cell,
    Run,
    as_json,
    cells_of,
    csv_of,
    rows_of,
    run_of,
    table_of,
)
from oracles.judge.discrepancy import Discrepancy
from oracles.training import sharding

ROOT = Path(__file__).parents[4]
CELL = Cell("torch-ddp", 2, "float32")
WRONG = Discrepancy("value", "mismatched 1 of 2\nmore")
HEAD = {"seed": 3, "blocks": 1}
JUDGEMENTS = (
    Judgement("agree", elements=10, undetermined=1, largest=0.5, difference=2e-3, allowed=8e-3, cpu=1.0),
    Judgement("agree", elements=10, largest=0.75, difference=1e-3, allowed=4e-3, cpu=3.0),
    Judgement("agree", excused=("a-known-one",), elements=10, largest=0.1),
    Judgement("unsupported", excused=("a-known-crash",), reason="known: a-known-crash"),
    Judgement("mismatch", WRONG, "gradient.l0.weight", elements=10),
    Judgement("crash", Discrepancy("crash", "signal SIGSEGV: rank 1")),
    Judgement("undetermined", elements=10, undetermined=10),
    Judgement("unsupported", reason="weights are tied"),
)


def lines() -> list[Run]:
    return [run_of(CELL, number, judgement) for number, judgement in enumerate(JUDGEMENTS)]


def test_a_row_counts_every_way_to_end() -> None:
    row = rows_of(lines())[CELL]
    assert [row.outcomes[outcome] for outcome in OUTCOMES] == [2, 2, 2, 1, 1]
    assert row.reasons["new"] == {"gradient.l0.weight: mismatched 1 of 2": 1, "the run: signal SIGSEGV: rank 1": 1}
    assert row.reasons["known"] == {"a-known-one": 1, "a-known-crash": 1}
    assert row.reasons["left_out"] == {"weights are tied": 1}
    assert (row.difference, row.allowed, row.ratio) == (2e-3, 8e-3, 0.75)
    assert row.ran == 7
    assert row.seconds == 4 / 7
    assert row.share == 11 / 50


def test_a_cell_without_a_run_is_shown_and_left_out_of_nothing() -> None:
    cells = cells_of({STRATEGIES["torch-ddp"]: (2, 3)})
    assert [(cell.world_size, cell.dtype) for cell in cells] == [
        (2, "float32"), (2, "float64"), (2, "mixed"), (3, "float32"), (3, "float64"), (3, "mixed"),
    ]  # fmt: skip
    rows = rows_of(lines(), cells)
    assert len(as_json(rows)) == 6
    assert as_json(rows)[1]["cpu_seconds_a_run"] is None
    json.dumps(as_json(rows), allow_nan=False)


def test_the_table_as_text_and_as_csv_says_the_same() -> None:
    rows = rows_of(lines())
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(table_of(rows))
    text = console.export_text()
    assert "torch-ddp" in text
    assert "2.0e-03" in text
    assert "8.0e-03" in text
    (record,) = csv.DictReader(io.StringIO(csv_of(rows)))
    assert record["new"] == "2"
    assert float(record["allowed_there"]) == 8e-3
    assert "left_out: weights are tied (1)" in record["reasons"]
    assert csv_of({}) == ""


def test_a_record_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    record = Record.opened(path, HEAD, Run)
    for run in lines()[:2]:
        record.add(run)
    with path.open("a") as file:
        file.write('{"strategy": "torch-d')  # cut short
    with pytest.raises(RecordError, match="another process is writing to it"):
        Record.opened(path, HEAD, Run)
    record.close()
    again = Record.opened(path, HEAD, Run)
    assert again.runs == lines()[:2]
    assert [(run.cell, run.number) for run in again.runs] == [(CELL, 0), (CELL, 1)]
    again.add(lines()[2])
    again.close()
    assert Record.opened(path, HEAD, Run).runs == lines()[:3]


def test_a_record_of_other_runs_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    Record.opened(path, HEAD, Run)
    with pytest.raises(RecordError, match="give these, or another file"):
        Record.opened(path, HEAD | {"seed": 4}, Run)
    path.write_text(json.dumps(HEAD) + "\n{}\n")
    with pytest.raises(RecordError, match="line 2: . Object missing".replace(".", r"\$:")):
        Record.opened(path, HEAD, Run)
    path.write_text("nonsense\n{}\n")
    with pytest.raises(RecordError, match="line 1: not JSON"):
        Record.opened(path, HEAD, Run)


def test_a_margin_is_of_what_is_determined() -> None:
    bound = Bounded(np.zeros(3), np.array([1e-3, 1.0, np.inf]), "float64")
    margin = sharding.margin(bound, np.array([5e-4, 0.25, 9.0]))
    assert (margin.ratio, margin.difference, margin.allowed) == (0.5, 0.25, 1.0)
    assert sharding.margin(Bounded(np.zeros(1), np.full(1, np.inf), "float64"), np.ones(1)) == sharding.Margin()


# ---- the command --------------------------------------------------------------------------------------------


def train(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "harness", "train", *arguments], cwd=cwd, env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip


ONE = ("--strategies", "torch-ddp", "--worlds", "2", "--runs", "1", "--blocks", "1", "--seed", "3")


@pytest.mark.parametrize("name", ["torch-ddp", "torch-loss-parallel", "torchrec-rows", "torchrec-quantised-int8"])
def test_a_strategy_gets_runs_that_it_takes(name: str) -> None:
    strategy = STRATEGIES[name]
    taken = 0
    for number in range(6):
        drawn = seeded_training(3, number, 2)
        run = drawn_for(3, number, 2, None, strategy, 2)
        assert run == drawn_for(3, number, 2, None, strategy, 2)
        if strategy.refusal(adapted(drawn, strategy, 2), 2) is None:
            assert run == adapted(drawn, strategy, 2)  # the same for all that take it
        taken += strategy.refusal(run, 2) is None
    assert taken >= 4


def test_a_run_that_no_other_can_stand_in_for_is_left_as_it_is() -> None:
    never = replace(STRATEGIES["torch-ddp"], name="never", unsupported=lambda *_: "nothing is good enough")
    assert drawn_for(3, 0, 2, "float64", never, 2).network == seeded_training(3, 0, 2).network


@pytest.mark.slow
@pytest.mark.distributed
def test_all_cells_are_gone_through_and_not_twice(tmp_path: Path) -> None:
    files = ("--record", "runs.jsonl", "--json", "table.json", "--csv", "table.csv")
    first = train(*ONE, *files, cwd=tmp_path)
    assert first.returncode == 0, first.stdout + first.stderr
    data = json.loads((tmp_path / "table.json").read_text())
    assert [(row["world_size"], row["dtype"]) for row in data["rows"]] == [(2, "float32"), (2, "float64"), (2, "mixed")]
    assert all(sum(row[outcome] for outcome in OUTCOMES) == 1 for row in data["rows"])
    assert len((tmp_path / "table.csv").read_text().splitlines()) == 4
    again = train(*ONE, *files, cwd=tmp_path)
    assert again.returncode == 0
    assert "going on with 3 runs" in again.stdout
    assert ", 0 of all in " in again.stdout
    assert json.loads((tmp_path / "table.json").read_text())["rows"] == data["rows"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--worlds", "two"), "--worlds 'two' is not a list of numbers"),
        (("--runs", "1", "--cases", "1"), "give one of them"),
        (("--record", "other.jsonl", "--seed", "4"), "give these, or another file"),
        (("--record", "/proc/nowhere/r.jsonl"), "cannot use /proc/nowhere/r.jsonl"),
        ((*ONE, "--record", "/dev/full"), "/dev/full: not a plain file"),
        ((*ONE, "--jobs", "2"), "give --record, and --cases or --runs"),
        (("--engine", "ray", "--record", "r.jsonl"), "give --record, and --cases or --runs"),
    ],
)
def test_bad_input_is_one_clear_line(
    arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("other.jsonl").write_text(json.dumps({"seed": 3, "blocks": 4}) + "\n")
    done = CliRunner().invoke(app.app_of(), ["train", *arguments])
    assert done.exit_code == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_full_disk_is_one_clear_line_and_keeps_what_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Record, run: Run) -> None:
        if self.runs:
            raise OSError(errno.ENOSPC, "No space left on device", str(self.path))
        self.runs.append(run)

    monkeypatch.setattr(Record, "add", full)
    monkeypatch.setattr(TrainingJudge, "examine", lambda *_: JUDGEMENTS[0])
    files = ("--record", str(tmp_path / "r.jsonl"), "--json", str(tmp_path / "t.json"))
    done = CliRunner().invoke(app.app_of(), ["train", *ONE, *files, "--findings", str(tmp_path / "f")])
    assert done.exit_code == 2
    assert done.stderr.strip() == f"dissent: cannot write {tmp_path / 'r.jsonl'}: No space left on device"
    assert sum(row["agree"] for row in json.loads((tmp_path / "t.json").read_text())["rows"]) == 1


def test_what_is_left_of_runs_that_others_have_kept() -> None:
    line = run_of(Cell("torch-ddp", 2, "mixed"), 7, JUDGEMENTS[0])
    jobs = [(7, "torch-ddp", 2, dtype) for dtype in (None, "mixed", "float64")]
    assert [untrained(job, [line]) for job in jobs] == [None, None, jobs[2]]
    other = (8, "torch-ddp", 2, None)
    assert untrained(other, [line]) == other


@pytest.mark.nightly
@pytest.mark.distributed
@pytest.mark.parametrize("how", [("--jobs", "2"), ("--engine", "ray", "--jobs", "2")])
def test_several_processes_train_the_same_runs(how: tuple[str, ...], tmp_path: Path) -> None:
    found = []
    for name, more in (("one", ()), ("several", how)):
        done = train(*ONE, "--record", f"{name}.jsonl", "--findings", name, *more, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        lines = [json.loads(line) | {"cpu": 0} for line in (tmp_path / f"{name}.jsonl").read_text().splitlines()]
        found.append(sorted(lines, key=str))
    assert found[0] == found[1]
    assert len(found[0]) == 4


@pytest.mark.nightly
@pytest.mark.distributed
def test_an_interruption_keeps_every_run(tmp_path: Path) -> None:
    record = tmp_path / "runs.jsonl"
    arguments = ("--strategies", "torch-ddp", "--worlds", "2", "--runs", "5000", "--blocks", "1", "--seed", "3")
    process = subprocess.Popen(
        [sys.executable, "-m", "harness", "train", *arguments, "--record", str(record), "--json", "table.json"],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline and not (record.exists() and len(record.read_text().splitlines()) > 2):
        time.sleep(0.2)
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert "everything found so far is kept" in output
    kept = len(record.read_text().splitlines()) - 1
    rows = json.loads((tmp_path / "table.json").read_text())["rows"]
    assert sum(row[outcome] for row in rows for outcome in OUTCOMES) == kept >= 2
    assert not psutil.wait_procs(children, timeout=10)[1]


def test_a_ratio_that_is_not_there_is_no_number() -> None:
    run = run_of(CELL, 0, Judgement("unsupported", reason="no"))
    assert not math.isnan(run.ratio)
    assert not run.compared
