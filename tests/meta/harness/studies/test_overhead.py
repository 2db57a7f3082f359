"""The study of overhead: ratios of times that were taken in turn."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from harness.commands.app import app_of
from harness.execute.pool import Limits, Pool
from harness.studies.loops import draws
from harness.studies.loops.loop import Loop
from harness.studies.loops.train import Part, train
from harness.studies.overhead.kernels import profiled, read
from harness.studies.overhead.measure import KERNELS, Timed, by_kernel, networks


def test_ratios() -> None:
    one = Timed("torch", "smallcnn", 10, 4, (2.0, 1.0, 3.0), (4.0, 3.0, 3.0))
    assert one.ratio == 1.5
    assert one.ends == (1.0, 3.0)


def test_networks() -> None:
    found, refused = networks(("smallcnn", "inceptionv3"), tuple(KERNELS), 16, 4)
    assert list(refused) == ["inceptionv3"]
    assert list(found) == ["smallcnn", *(f"kernel {size}x{size}" for size in range(1, 8))]
    assert found["kernel 4x4"].layers[0].shape == (4, 17, 17)
    assert found["kernel 5x5"].layers[0].shape == (4, 16, 16)


def test_kernels_beside_each_other() -> None:
    found = by_kernel({"relu": 5, "fast": 30}, {"relu": 6, "slow": 90})
    assert found == (("slow", 0, 90), ("fast", 30, 0), ("relu", 5, 6))


@pytest.mark.slow(one_in=2)
@pytest.mark.parametrize(("framework", "kernel"), [("tensorflow", "Conv2D"), ("jax", "convolution")])
def test_profilers(framework: str, kernel: str) -> None:
    """A step has the convolution, and training is the same under the profiler, bit for bit (torch: in the study)."""
    networks_, _ = networks(("smallcnn",), (), 8, 2)
    loop, rng = Loop(framework, networks_["smallcnn"], "sgd", batch=4), np.random.default_rng(0)
    x, y = rng.random((8, 3, 8, 8), dtype=np.float32), rng.integers(0, 10, 8)
    part = Part(x, y, np.full(2, 1e-3), x[:0], y[:0])
    with Pool(Limits(seconds=300)) as pool:
        state = loop.begin(draws.initial(pool, loop, 0))
        plain, shown = (train(pool, one, state, part) for one in (loop, profiled(loop)))
    assert any(kernel in name and time > 0 for name, time in read(shown).items())
    for name, value in plain.state.items():
        np.testing.assert_array_equal(shown.state[name], value, name)


@pytest.mark.slow
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
    assert any("conv" in name and default > 0 for name, default, _ in row["kernels"])
    assert "conv" in (tmp_path / "kernels.csv").read_text()
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
