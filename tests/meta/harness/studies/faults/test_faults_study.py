"""The study of faults from the command line: campaigns, files from which faults are done again, and what is shown."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from harness.commands.app import app_of
from harness.execute.pool import Pool
from harness.execute.reading import FileError, read_text
from harness.studies.faults import store
from harness.studies.faults.experiment import Experiment, read
from harness.studies.faults.protocol import Plan, PlanError, Study
from harness.studies.faults.report import (
    GROUPS,
    FaultFree,
    as_json,
    comparisons,
    conditions,
    csv_of,
    detections,
    lines,
    page,
)
from oracles import outcomes

SMALL = ("--steps-after-injection", "6", "--band", "3", "--warm", "1", "--width", "4", "--batch", "256", "--seed", "3")
ARTIFACT = """model,resnet18
stage,bkwd_inject
fmodel,WT
target_worker,1
target_layer,basicblock_1_basic_0_conv1_grad_in
target_epoch,21
target_step,9
inj_pos,2/2/3/1
inj_values,3.31100061855285e+12
learning_rate,0.001
seed,123
"""
ONE = Experiment(
    0, "adam", "INPUT", "l0", "conv2d", 0.0, "forward", "input", 3, 4, "float32", 30, 32, 1, outcomes.MASKED, -1, False,
    0.0, 0.0, 0.5, 0.0, (0.5, 0.75), "", 1.0, True,
)  # fmt: skip


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app_of(), list(arguments))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("faults")
    given = ("study", "faults", "--baseline", "adam", "--test-optimizers", "sgd", "rmsprop", *SMALL)
    first = run(*given, "--num-experiments", "2", "--out", str(out))
    assert first.exit_code == 0, first.output
    assert "6 experiments, 0 of them there already" in first.output
    return out


def experiments(folder: Path) -> list[dict]:
    found = json.loads((folder / "study.json").read_text())["experiments"]
    return [{key: value for key, value in one.items() if key != "cpu"} for one in found]


@pytest.mark.slow
def test_a_study_goes_on_and_is_the_same_with_several_jobs(folder: Path, tmp_path: Path) -> None:
    """Three optimisers and two faults; then a third fault, by the same command and by two jobs at once."""
    assert [(one["number"], one["optimizer"]) for one in experiments(folder)] == [
        (number, name) for number in (0, 1) for name in ("adam", "sgd", "rmsprop")
    ]
    given = ("study", "faults", "--test-optimizers", "sgd,rmsprop", *SMALL, "--num-experiments", "3")
    again = run(*given, "--out", str(folder))
    assert again.exit_code == 0, again.output
    assert "9 experiments, 6 of them there already" in again.output
    other = run(*given, "--jobs", "2", "--out", str(tmp_path))
    assert other.exit_code == 0, other.output
    assert experiments(tmp_path) == experiments(folder)
    rows = list(csv.DictReader(io.StringIO((folder / "experiments.csv").read_text())))
    assert [row["digest"] for row in rows] == [one["digest"] for one in experiments(folder)]
    text = (folder / "report.html").read_text()
    assert "9 experiments with adam, sgd, rmsprop" in text
    assert "0 false alarms in 4 fault-free runs" in text
    assert 'src="http' not in text


@pytest.mark.slow
def test_another_plan_is_refused_a_folder(folder: Path) -> None:
    other = run("study", "faults", *SMALL, "--num-experiments", "1", "--warm", "2", "--out", str(folder))
    assert other.exit_code == 2
    assert "experiments.jsonl is of" in other.output


@pytest.mark.slow
def test_a_fault_is_done_again_bit_for_bit(folder: Path, tmp_path: Path) -> None:
    path = folder / "faults" / "sgd-1.json"
    found = run("faults", "replay", str(path))
    assert found.exit_code == 0, found.output
    assert "the same bit for bit" in found.output
    file = read(path)
    kept = {(one["number"], one["optimizer"]): one["digest"] for one in experiments(folder)}
    assert file.digest == kept[1, "sgd"]
    data = json.loads(path.read_text())
    data["digest"] = "0" * 64
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(data))
    assert run("faults", "replay", str(changed)).exit_code == 1


def test_a_fault_of_the_artifact(tmp_path: Path) -> None:
    path, out = tmp_path / "inj.csv", tmp_path / "inj.json"
    given = ("--dataset", "digits", "--width", "4", "--batch", "64", "--epoch", "0", "--step", "1", "--after", "2")
    path.write_text(ARTIFACT)
    found = run("faults", "replay", str(path), *given, "--out", str(out))
    assert found.exit_code == 0, found.output
    assert "WT in l3, backward-input, weight; adam, epoch 0, step 1" in found.output
    assert "-> 3311000616960.0" in found.output
    file = read(out)
    # its operand is turned and transposed: 2/2/3/1 is kernel place 0, 0, input 1, output 3
    assert file.injection.shape == (3, 3, 4, 4)
    assert file.injection.strike.places.tolist() == [0 * 48 + 0 * 16 + 1 * 4 + 3]
    for old, new, told in (
        ("2/2/3/1", "2/2/3/9", "inj_pos: 2/2/3/9 is behind the last element of an array of shape [3, 3, 4, 4]"),
        ("resnet18", "effnet", "model: 'effnet' is not here; there are resnet18, resnet18_sgd"),
        ("basicblock_1", "basicblock_9", "is none of conv1"),
        ("fmodel,WT", "fmodel,WTX", "'WTX' is none of"),
    ):
        path.write_text(ARTIFACT.replace(old, new))
        wrong = run("faults", "replay", str(path), *given)
        assert wrong.exit_code == 2, wrong.output
        assert told in wrong.output.replace("\n", "")
    # the artifact's gradients have a zero ahead of each row and column, and one behind it
    for position, told in (
        ("2/0/3/1", "2/0/3/1 lies in the zeros that the artifact puts between and around elements"),
        ("2/9/3/1", "2/9/3/1 is behind the last element of an array of shape [64, 8, 8, 4], in what the artifact pads"),
    ):
        path.write_text(ARTIFACT.replace("fmodel,WT", "fmodel,INPUT").replace("2/2/3/1", position))
        wrong = run("faults", "replay", str(path), *given)
        assert wrong.exit_code == 2, wrong.output
        assert told in wrong.output.replace("\n", "")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("--baseline", "adamant"),
            "no optimiser is called 'adamant'; there are sgd, momentum, adam, rmsprop, adagrad",
        ),
        (("--models", "INPUT,OUTPUT"), "no fault model is called 'OUTPUT'"),
        (("--precision", "float8"), "no precision is called 'float8'"),
        (("--framework", "numpy"), "no framework whose loops take faults is called 'numpy'"),
        (("--network", "resnet19"), "no network is called 'resnet19'"),
        (("--dataset", "cifar10"), "cifar10 is read from a folder"),
        (("--batch", "5000"), "batches of 5000 of 1438 samples"),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[str, ...], told: str, tmp_path: Path) -> None:
    found = run("study", "faults", *arguments, "--out", str(tmp_path / "out"))
    assert found.exit_code == 2
    assert told in found.output.replace("\n", "")
    assert "Traceback" not in found.output


def test_files_that_are_no_faults(tmp_path: Path) -> None:
    path = tmp_path / "fault.json"
    for text, told in (("{", "not JSON"), ("{}", "missing required field"), ('{"plan": 3}', "plan")):
        path.write_text(text)
        found = run("faults", "replay", str(path))
        assert found.exit_code == 2
        assert told in found.output
    assert run("faults", "replay", str(tmp_path / "none.json")).exit_code == 2


def test_points_are_kept_and_those_of_another_plan_made_anew(tmp_path: Path) -> None:
    study = Study(Plan(batch=32, width=4, warm=1, after=5, band=3, train=64, test=20))
    with Pool() as pool:
        starts = study.starts(pool, "adam")
        state = study.state_at(pool, "adam", 1)
    assert all(state[name].tobytes() == array.tobytes() for name, array in starts[1].state.items())
    store.save(tmp_path / "adam", study.about, starts)
    back = store.load(tmp_path / "adam", study.about)
    assert back is not None
    for one, other in zip(starts, back, strict=True):
        assert all(np.array_equal(one.state[name], array) for name, array in other.state.items())
        assert one.band.ordinary == other.band.ordinary
        assert np.array_equal(one.band.parts, other.band.parts)
        assert (one.alarmed, one.again, one.steps) == (other.alarmed, other.again, other.steps)
    assert store.load(tmp_path / "adam", study.about | {"seed": "9"}) is None
    assert store.load(tmp_path / "sgd", study.about) is None
    (tmp_path / "adam" / "arrays.npz").write_bytes(b"PK nothing")
    with pytest.raises(FileError, match="not the points of a fault-free run"):
        store.load(tmp_path / "adam", study.about)


def test_a_point_is_in_an_epoch() -> None:
    with pytest.raises(PlanError, match="steps 0 to 1, and no step 2"):
        _ = Study(Plan(batch=32, width=4, train=64), at=(0, 2)).points


def test_tables_by_hand() -> None:
    found = [
        replace(
            ONE, number=number, optimizer=name, outcome=outcome, alarm=alarm, recovered=outcomes.MASKED, history=high
        )
        for name in ("adam", "sgd")
        for number, (outcome, alarm, high) in enumerate(
            [(outcomes.MASKED, -1, 0.5)] * (30 if name == "sgd" else 5)
            + [(outcomes.SLOW, 1, 9.0)] * 20
            + [(outcomes.IMMEDIATE, 7, float("inf"))] * (5 if name == "sgd" else 30)
        )
    ]
    table = {line.group: line for line in lines(found, GROUPS["optimiser"])}
    assert table["adam"].counts[outcomes.SLOW] == 20
    assert table["adam"].changed.low > table["sgd"].changed.high
    (one,) = comparisons(found)
    assert (one.first, one.second) == ("adam", "sgd")
    assert one.p < 1e-6
    seen = {line.outcome: line for line in detections(found)}
    assert (seen[outcomes.SLOW].soon, seen[outcomes.SLOW].late) == (40, 0)
    assert (seen[outcomes.IMMEDIATE].soon, seen[outcomes.IMMEDIATE].late) == (0, 35)
    assert seen["all but Masked"].total == 75
    assert seen[outcomes.MASKED].ended_well == 35
    high = {line.outcome: line for line in conditions(found)}
    assert (high[outcomes.MASKED].history, high[outcomes.SLOW].history) == (0, 40)
    told = as_json(Plan(), found, {"adam": FaultFree(0, 21, 3, 900)})
    assert json.loads(json.dumps(told, allow_nan=False))["experiments"][-1]["history"] == "inf"
    assert csv_of(found).count("\n") == 111
    text = page(Plan(optimizers=("adam", "sgd")), found, {"torch": "1"}, {"adam": FaultFree(1, 21, 3, 900)})
    assert "1 false alarm in 21 fault-free runs; 3 of 900 steps were run again" in text


@pytest.mark.slow
def test_the_guard_can_be_left_out(tmp_path: Path) -> None:
    found = run(
        "study", "faults", *SMALL, "--num-experiments", "1", "--no-guard", "--models", "FLIP", "--out", str(tmp_path)
    )
    assert found.exit_code == 0, found.output
    assert experiments(tmp_path)[0]["guarded"] is False
    assert "The guard" not in read_text(tmp_path / "report.html")
