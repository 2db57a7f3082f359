"""The layer that adds error: named where one is planted, none where all are right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from networks_onnx import DRAWN, FAULTS, blocks

from harness.formats import RUNNERS
from harness.models.localising import Layers, layers_of
from harness.models.variants import ModelFile, Variant
from harness.pool import Pool


@pytest.fixture(scope="module")
def workers() -> Iterator[Pool]:
    with Pool() as pool:
        yield pool


PLANTS = [plant for plant, networks in FAULTS.values() if DRAWN in networks]


def planted(folder: Path, seed: int) -> str:
    """Writes a network, and the same with a wrong node; the node's result."""
    model = blocks(seed)
    onnx.save(model, folder / "right.onnx")
    guilty = PLANTS[seed % len(PLANTS)](model)
    onnx.save(model, folder / "wrong.onnx")
    return guilty


def errors(pool: Pool, folder: Path, which: str, seed: int) -> Layers:
    """By layer, of a run of one of the two by ONNX Runtime with all optimisations."""
    image = np.random.default_rng(seed).standard_normal((1, 3, 16, 16)).astype(np.float32)
    variant = Variant(ModelFile(folder / f"{which}.onnx", "onnx"), RUNNERS["ort-all"])
    found = layers_of(pool, folder / "right.onnx", variant, [image])
    assert not found.why
    assert all(layer.judged for layer in found.errors)
    return found


def test_the_wrong_layer_is_named_in_19_of_20(workers: Pool, tmp_path: Path) -> None:
    named = []
    for seed in range(20):
        guilty = planted(tmp_path, seed)
        found = errors(workers, tmp_path, "wrong", seed)
        named.append([layer.output for layer in found.errors if layer.wrong] == [guilty])
    assert sum(named) >= 19, named


def test_no_layer_of_a_right_network_is_named(workers: Pool, tmp_path: Path) -> None:
    """Whatever ONNX Runtime's optimisations do to it."""
    for seed in range(5):
        planted(tmp_path, seed)
        found = errors(workers, tmp_path, "right", seed)
        assert found.culprit is None
        assert 0 < max(layer.excess for layer in found.errors) <= 1  # something was compared


def test_the_one_that_shows_error_is_not_the_one_that_adds_it(workers: Pool, tmp_path: Path) -> None:
    guilty = planted(tmp_path, 0)
    found = errors(workers, tmp_path, "wrong", 0)
    assert found.culprit
    assert found.culprit.output == guilty
    at = found.culprit.index
    assert all(layer.shown < 1e-5 for layer in found.errors if layer.index < at)
    assert any(layer.shown > 1e-3 and not layer.wrong for layer in found.errors if layer.index > at)
