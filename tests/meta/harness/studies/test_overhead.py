"""The study of overhead: ratios of times that were taken in turn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.commands.app import app_of
from harness.studies.overhead.measure import KERNELS, Timed, networks


def test_ratios() -> None:
    one = Timed("torch", "smallcnn", 10, 4, (2.0, 1.0, 3.0), (4.0, 3.0, 3.0))
    assert one.ratio == 1.5
    assert one.ends == (1.0, 3.0)


def test_networks() -> None:
    found = networks(("smallcnn",), tuple(KERNELS), 16, 4)
    assert list(found) == ["smallcnn", *(f"kernel {size}x{size}" for size in range(1, 8))]
    assert found["kernel 4x4"].layers[0].shape == (4, 15, 15)
    assert found["kernel 5x5"].layers[0].shape == (4, 16, 16)


def test_a_study(tmp_path: Path) -> None:
    """Figures, and nothing done twice."""
    arguments = ["study", "overhead", "--frameworks", "torch", "--networks", "smallcnn", "--no-kernels"]
    arguments += [
        "--jobs",
        "2",
        "--width",
        "2",
        "--side",
        "8",
        "--steps",
        "2",
        "--rounds",
        "2",
        "--batch",
        "4",
        "--out",
        str(tmp_path),
    ]
    for _ in range(2):
        done = CliRunner().invoke(app_of(), arguments)
        assert done.exit_code == 0, done.output
    (row,) = json.loads((tmp_path / "results.json").read_text())["networks"]
    assert row["ratio"] > 0
    assert len(row["default"]) == len(row["deterministic"]) == 2
    assert (tmp_path / "rounds.jsonl").read_text().count("\n") == 2
    text = (tmp_path / "report.html").read_text()
    assert "No GPU is at hand" in text
    assert "http" not in text
    refused = CliRunner().invoke(app_of(), [*arguments, "--rounds", "3"])
    assert refused.exit_code == 2


@pytest.mark.parametrize("option", [["--networks", "vgg"], ["--device", "tpu"]])
def test_bad_input(tmp_path: Path, option: list[str]) -> None:
    done = CliRunner().invoke(app_of(), ["study", "overhead", "--out", str(tmp_path), *option])
    assert done.exit_code == 2
    assert option[1] in done.output
