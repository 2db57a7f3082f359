"""The study of seeds: what it says of runs of one seed and of different ones."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from harness.commands.app import app_of
from harness.studies.seeds.protocol import DIFFERENT, SAME, runs_of, share_of

SMALL = "--width 2 --train 64 --test 40 --batch 16 --drops 1 --rate 0.02 --runs 2 --epochs 1"


def test_runs() -> None:
    runs = runs_of(("torch",), 3, 7, 2, False)
    same, different = ([run for run in runs if run.group == name] for name in (SAME, DIFFERENT))
    assert {(run.init, run.order) for run in same} == {(7, 7)}
    assert len({run.init for run in different}) == len({run.order for run in different}) == 3
    assert [run.threads for run in same] == [run.threads for run in different] == [1, 2, 1]


def test_share() -> None:
    """Ratios of standard deviations, worked out by hand: 1 of 2."""
    found = share_of("accuracy", [1.0, 2.0, 3.0], [2.0, 4.0, 6.0], 0)
    assert found.ratio
    assert found.ratio.value == pytest.approx(0.5)
    assert found.ratio.low < 0.5 < found.ratio.high
    assert share_of("loss", [1.0, 2.0], [3.0, 3.0], 0).ratio is None
    nothing = share_of("loss", [0.1, 0.1, 0.1], list(np.linspace(0, 1, 3)), 0).ratio
    assert nothing
    assert (nothing.value, nothing.low, nothing.high) == (0, 0, 0)


@pytest.mark.slow
def test_a_study_says_what_is_the_same(tmp_path: Path) -> None:
    """One seed in the deterministic mode: bit for bit; different seeds: the initial model differs first."""
    arguments = ["study", "seeds", "--frameworks", "torch", "--deterministic", "--out", str(tmp_path), *SMALL.split()]
    done = CliRunner().invoke(app_of(), arguments)
    assert done.exit_code == 0, done.output
    same, different = json.loads((tmp_path / "results.json").read_text())["groups"]
    assert [one["same"] for one in same["checked"]] == [True, True, True]
    assert same["differences"] == []
    assert [one["same"] for one in different["checked"]] == [False, True, False]
    assert different["named"][0].startswith("run 1, initial, layer l0, array parameter.l0.weight, element [0, 0, 0, 0]")
    assert "bit for bit run 0: 1 of 1 other runs" in done.output
    assert "runs of one seed show 0 %" in (tmp_path / "report.html").read_text()
    assert (tmp_path / "runs.csv").read_text().count("\n") == 5
