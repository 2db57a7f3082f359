"""The layer that adds error: named where one is planted, none where all are right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from onnx_networks import FAULTS, WRITE

from harness.layers import LayerError, first_wrong, localise, ranked
from harness.pool import HarnessError, Job, Pool
from oracles.outcome import Value


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool() as pool:
        yield pool


def planted(pool: Pool, folder: Path, seed: int) -> str:
    """Writes a network, and the same with a wrong node; the node's name."""
    header = f"SEED, FOLDER, FAULT = {seed}, {str(folder)!r}, {FAULTS[seed % len(FAULTS)]!r}\n"
    outcome = pool.run([Job("onnxruntime", ("onnx", "onnxruntime"), header + WRITE, {})])[0]
    assert isinstance(outcome, Value), outcome
    return outcome.outputs[0].tobytes().decode()


def image(seed: int) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(seed).standard_normal((1, 3, 16, 16)).astype(np.float32)}


def test_the_wrong_layer_is_named_in_19_of_20(pool: Pool, tmp_path: Path) -> None:
    named = []
    for seed in range(20):
        guilty = planted(pool, tmp_path, seed)
        layers = localise(pool, tmp_path / "right.onnx", image(seed), observed=tmp_path / "wrong.onnx")
        first = first_wrong(layers)
        named.append(first is not None and first.name == guilty == ranked(layers)[0].name)
        assert not [layer.why for layer in layers if layer.why]
    assert sum(named) >= 19, named


def test_no_layer_of_a_right_network_is_named(pool: Pool, tmp_path: Path) -> None:
    """Whatever ONNX Runtime's optimisations do to it."""
    for seed in range(5):
        planted(pool, tmp_path, seed)
        layers = localise(pool, tmp_path / "right.onnx", image(seed))
        assert first_wrong(layers) is None, [layer for layer in layers if layer.wrong]
        assert 0 < max(layer.excess for layer in layers) <= 1  # something was compared


def test_the_one_that_shows_error_is_not_the_one_that_adds_it(pool: Pool, tmp_path: Path) -> None:
    guilty = planted(pool, tmp_path, 0)
    layers = localise(pool, tmp_path / "right.onnx", image(0), observed=tmp_path / "wrong.onnx")
    at = next(layer.index for layer in layers if layer.name == guilty)
    after: list[LayerError] = [layer for layer in layers if layer.index > at]
    assert all(layer.shown < 1e-5 for layer in layers if layer.index < at)
    assert any(layer.shown > 1e-3 and not layer.wrong for layer in after)
    assert [layer.name for layer in layers if layer.wrong] == [guilty]


def test_a_model_that_cannot_be_run_is_named(pool: Pool, tmp_path: Path) -> None:
    path = tmp_path / "empty.onnx"
    path.write_bytes(b"no model")
    with pytest.raises(HarnessError, match=r"empty\.onnx with all values as outputs"):
        localise(pool, path, {})
