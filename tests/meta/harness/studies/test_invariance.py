"""The study of invariance: which operators have a batch dimension, and that dependence on the batch is found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from harness.backends import TARGETS, Target
from harness.execute.pool import Job, Limits, Pool
from harness.studies.invariance import transformers
from harness.studies.invariance.batches import SIZES, Batched, batched
from harness.studies.invariance.examine import BEYOND, EQUAL, VARIES, WITHIN, Cell, examine
from harness.studies.invariance.report import page, varying
from oracles.judge.reference import evaluate

_FAULT = """

plain = load


def load(parameters):
    compiled = plain(parameters)

    def run(*inputs):
        out = np.array(compiled(*inputs)[0])
        {fault}
        return [out]

    return run
"""


@pytest.fixture(scope="module")
def pools() -> Iterator[tuple[Pool, Pool]]:
    with Pool(Limits(seconds=120)) as one, Pool(Limits(seconds=120, threads=2)) as two:
        yield one, two


def operator(name: str) -> Batched:
    found = batched(name)
    assert found is not None
    return found


def planted(fault: str) -> Target:
    target = TARGETS["torch-eager"]
    return replace(target, load=target.load.rstrip("\n") + "\n" + _FAULT.format(fault=fault))


def states(cells: list[Cell]) -> dict[str, str]:
    return {cell.variation: cell.state for cell in cells}


@pytest.mark.parametrize(
    "name", ["gelu", "matmul", "linear", "layer_norm", "softmax", "conv1d", "attention", "mse_loss"]
)
def test_operators_with_a_batch_dimension(name: str) -> None:
    """Rows come out of the reference alone as they do together."""
    found = operator(name)
    arrays = found.arrays(SIZES[-1], 3)
    (output,) = found.graph.outputs
    values = [evaluate(found.at(n), found.rows(arrays, np.arange(n)))[output].value for n in (SIZES[-1], 4)]
    np.testing.assert_allclose(values[0][:4], values[1], 1e-9, 1e-12)


def test_operators_without_one() -> None:
    """Results of all rows together."""
    assert [name for name in ("cov", "histogram", "dot", "bincount") if batched(name)] == []


def test_a_correct_target_is_accepted(pools: tuple[Pool, Pool]) -> None:
    cells = examine(*pools, TARGETS["torch-eager"], operator("gelu"), 0)
    assert set(states(cells).values()) <= {EQUAL, WITHIN}
    assert list(states(cells)) == ["size", "position", "neighbours", "padding", "threads"]


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("out = np.nextafter(out, np.float32(9)) if len(out) < 8 else out", {"size": WITHIN}),
        ("out = out + 1 if len(out) == 3 else out", {"size": BEYOND}),
        ("out[0] += 1", {"position": BEYOND}),
        ("out = out + (out[-1] == out[0]).all()", {"size": BEYOND, "padding": BEYOND}),
        ("out = out + out.max()", {"size": BEYOND, "neighbours": BEYOND}),
    ],
)
def test_planted_dependence_is_found(pools: tuple[Pool, Pool], fault: str, expected: dict[str, str]) -> None:
    cells = examine(*pools, planted(fault), operator("gelu"), 0)
    assert states(cells) == dict.fromkeys(states(cells), EQUAL) | expected
    size = next(cell for cell in cells if cell.variation == "size")
    if expected == {"size": WITHIN}:
        assert (size.sizes, size.largest) == ((1, 2, 3, 4), 1)
    if "== 3" in fault:
        assert size.sizes == (3,)
    assert page(cells, {}).count("bit for bit the same") > 0
    assert len(varying(cells)) == len(expected)


@pytest.mark.nightly
@pytest.mark.parametrize("style", transformers.STYLES)
def test_transformers(pools: tuple[Pool, Pool], style: str) -> None:
    """In parts with a cache a network gives what the whole gives, but for rounding; every variation is there."""
    cells = {cell.variation: cell for cell in transformers.examine(*pools, "torch-eager", style, 0)}
    assert list(cells) == ["size", "position", "neighbours", "padding", "chunks", "cache", "threads"]
    assert {cell.state for cell in cells.values()} <= {EQUAL, VARIES}
    for cell in cells.values():
        assert not cell.why or cell.why.endswith("next tokens that differ: 0 %")


def test_a_transformer_whose_cache_is_wrong_is_found(pools: tuple[Pool, Pool], monkeypatch: pytest.MonkeyPatch) -> None:
    """Positions that begin anew with every chunk: the embedding is the first that varies."""
    plain = transformers.job

    def wrong(style: str, target: str, seed: int) -> Job:
        job = plain(style, target, seed)
        text = job.program.replace(
            'p["positions"][start : start + tokens.shape[1]]', 'p["positions"][: tokens.shape[1]]'
        )
        assert text != job.program
        return replace(job, program=text)

    monkeypatch.setattr(transformers, "job", wrong)
    cells = {cell.variation: cell for cell in transformers.examine(*pools, "torch-eager", "gpt", 0)}
    assert "embedding" not in cells["size"].why
    for name in ("chunks", "cache"):
        assert cells[name].state == VARIES
        assert cells[name].why.startswith("first at embedding")
