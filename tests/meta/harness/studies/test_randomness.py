"""The study of randomness: which runs there are, what they come to, and that it goes on where it was interrupted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from harness.commands.app import app_of
from harness.execute.reading import FileError
from harness.studies.randomness.protocol import SETTINGS, run_of
from harness.studies.runs import perform
from harness.studies.runs.first import kept_difference, named_difference
from harness.studies.runs.history import read, write
from harness.studies.runs.opened import opened
from harness.studies.runs.plan import Plan, Run, augmented
from harness.studies.runs.together import path_of
from oracles.determinism import Moment

SMALL = [
    "--network",
    "smallcnn",
    "--width",
    "2",
    "--train",
    "64",
    "--test",
    "40",
    "--batch",
    "16",
    "--drops",
    "1",
    "--rate",
    "0.02",
]
PLAN = Plan(width=2, train=64, test=40, batch=16, drops=(1,), epochs=2)


def run(folder: Path, *arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app_of(), ["study", "randomness", *SMALL, "--out", str(folder), *arguments])
    return done.exit_code, done.output


def test_settings_are_three_switches() -> None:
    for setting in SETTINGS:
        runs = [run_of("torch", setting, number, 5, 3) for number in range(4)]
        assert len({run.init for run in runs}) == (1 if setting.initial else 4)
        assert len({run.order for run in runs}) == (1 if setting.order else 4)
        assert {run.deterministic for run in runs} == {setting.framework}
        assert [run.threads for run in runs] == ([1] * 4 if setting.framework else [1, 2, 3, 1])


@pytest.mark.slow
def test_a_study(tmp_path: Path) -> None:
    """Control is exactly zero and ALGO is not; done again it trains nothing; more models are added to what is there."""
    code, said = run(tmp_path, "--frameworks", "torch", "--settings", "algo,control", "--models", "2", "--epochs", "2")
    assert code == 0, said
    results = json.loads((tmp_path / "results.json").read_text())
    algo, control = results["settings"]
    assert (algo["setting"], control["setting"]) == ("algo", "control")
    assert control["zero"]
    assert not control["differences"]
    assert not algo["zero"]
    assert "batch" not in algo["differences"][0]
    assert "initial" in algo["differences"][0]
    assert algo["churn"]["value"] > 0
    assert algo["distance"]["value"] > 0.1
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").iterdir()}
    code, said = run(tmp_path, "--frameworks", "torch", "--settings", "algo,control", "--models", "2", "--epochs", "2")
    assert (code, before) == (0, {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").iterdir()})
    assert "4 models, 4 of them there already" in said
    text = (tmp_path / "report.html").read_text()
    assert "Control is exactly zero" in text
    assert "http" not in text
    assert len(text) < 1_000_000
    code, said = run(tmp_path, "--frameworks", "torch", "--models", "2", "--epochs", "3")
    assert code == 2
    assert "is of another study: epochs 2, not 3" in said


@pytest.mark.slow
def test_control_that_is_not_zero_is_named(tmp_path: Path) -> None:
    """One bit of one weight of a model, changed where it is kept: the study says which model, and ends with 1."""
    arguments = ("--frameworks", "torch", "--settings", "control", "--models", "2", "--epochs", "1")
    assert run(tmp_path, *arguments)[0] == 0
    path = path_of(tmp_path, Run("torch", "control", 1, 0, 0))
    kept = read(path)
    weight = kept.state["parameter.l0.weight"]
    weight.reshape(-1).view(np.uint32)[3] ^= 1
    kept.digests[1, list(kept.state).index("parameter.l0.weight")] ^= 1
    write(path, kept)
    code, said = run(tmp_path, *arguments)
    assert code == 1
    assert (
        "run 1, epoch 0, state, layer l0, array parameter.l0.weight: other bits; not when both were run again" in said
    )


@pytest.mark.slow
def test_an_interrupted_run_goes_on_bit_for_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped after an epoch, the next process does the rest, and nothing differs from a run that was not stopped."""
    one, data = Run("torch", "control", 0, 3, 4), PLAN.data()
    whole = perform.perform(PLAN, one, data, tmp_path / "whole.npz", lambda epochs: None)

    def stop(epochs: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        perform.perform(PLAN, one, data, tmp_path / "cut.npz", stop)
    assert read(tmp_path / "cut.npz").epochs == 1
    cut = perform.perform(PLAN, one, data, tmp_path / "cut.npz", lambda epochs: None)
    assert kept_difference(1, whole, cut) is None
    np.testing.assert_array_equal(whole.predictions, cut.predictions)


@pytest.mark.nightly
def test_first_differences_are_found(tmp_path: Path) -> None:
    """Another seed of the initialisation, and another one of the order of the samples."""
    plan, base = replace(PLAN, epochs=1), Run("torch", "control", 0, 3, 4)
    data, forget = plan.data(), lambda epochs: None
    whole = perform.perform(plan, base, data, tmp_path / "base.npz", forget)
    order = perform.perform(plan, base.again(order=9), data, tmp_path / "order.npz", forget)
    init = perform.perform(plan, base.again(init=9), data, tmp_path / "init.npz", forget)
    kept = [kept_difference(1, whole, history) for history in (order, init)]
    assert [(one.moment, one.array) for one in kept if one] == [
        (Moment("batch", 0, 0), "x"), (Moment("initial"), "parameter.l0.weight"),
    ]  # fmt: skip
    assert kept[0]
    found = named_difference(plan, data, base, base.again(order=9), kept[0])
    assert (found.moment, found.array) == (Moment("batch", 0, 0), "x")
    assert len(found.element) == 4
    assert found.ulps > 0


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(FileError, match=r"broken\.npz: not the state of a run"):
        read(tmp_path / "broken.npz")
    with opened(tmp_path, {"seed": "0"}), pytest.raises(FileError, match="another process"), opened(tmp_path, {}):
        pass
    with pytest.raises(FileError, match="of another study: seed 0, not 1"), opened(tmp_path, {"seed": "1"}):
        pass


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--settings", "algo,none"], "no setting is called 'none'"),
        (["--network", "vgg"], "no network is called 'vgg'"),
        (["--dataset", "cifar10"], "cifar10 is read from a folder"),
        (["--drops", "a"], "'a' is no list of epochs"),
        (["--optimizer", "lion"], "no optimizer is called 'lion'"),
        (["--frameworks", "chainer"], "chainer"),
    ],
)
def test_bad_input(tmp_path: Path, arguments: list[str], message: str) -> None:
    code, said = run(tmp_path, *arguments)
    assert code == 2
    assert message in said


def test_augmentation_moves_and_mirrors() -> None:
    x = np.arange(2 * 1 * 8 * 8, dtype=np.float32).reshape(2, 1, 8, 8) + 1
    assert augmented(x, 0, 0, "none") is x
    first, again, other = (augmented(x, 1, epoch, "crop+flip") for epoch in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert first.shape == x.shape
    assert not np.array_equal(first, other)
    assert set(np.unique(augmented(x, 3, 0, "crop"))) <= {0.0, *x.reshape(-1).tolist()}
