"""The study of invariance: which operators have a batch dimension, and that dependence on the batch is found."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from harness.backends import TARGETS, Target
from harness.commands.app import app_of
from harness.execute.pool import Limits, Pool
from harness.studies.invariance import network, transformers
from harness.studies.invariance.batches import SIZES, Batched, batched
from harness.studies.invariance.examine import (
    BEYOND,
    EQUAL,
    NONE,
    VARIATIONS,
    VARIES,
    WITHIN,
    Cell,
    cells_from,
    examine,
    prepared,
    size_by_size,
)  # fmt: skip
from harness.studies.invariance.packs import ELEMENTS, packed
from harness.studies.invariance.report import page, varying
from oracles.judge.reference import evaluate

_FAULT = """

plain = load


def load(parameters):
    compiled = plain(parameters)

    def changed(out):
        {fault}
        return out

    def run(*inputs):
        return [changed(np.array(out)) for out in compiled(*inputs)]

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


def cells_of(pools: tuple[Pool, Pool], target: Target, name: str) -> list[Cell]:
    (cells,) = examine(*pools, target, [operator(name)], 0)
    return cells


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
    cells = cells_of(pools, TARGETS["torch-eager"], "gelu")
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
    cells = cells_of(pools, planted(fault), "gelu")
    assert states(cells) == dict.fromkeys(states(cells), EQUAL) | expected
    size = next(cell for cell in cells if cell.variation == "size")
    if expected == {"size": WITHIN}:
        assert (size.sizes, size.largest) == ((1, 2, 3, 4), 1)
    if "== 3" in fault:
        assert size.sizes == (3,)
    assert page(cells, {}).count("bit for bit the same") > 0
    assert len(varying(cells)) == len(expected)


@pytest.mark.parametrize("names", [("gelu", "linear", "softmax", "attention"), ("sinh", "conv2d")])
def test_operators_of_one_program_come_out_as_alone(pools: tuple[Pool, Pool], names: tuple[str, ...]) -> None:
    """Joined with others, and each size in a program of its own."""
    target = TARGETS["torch-eager"]
    together = list(examine(*pools, target, [operator(name) for name in names], 0))
    assert [cells[0].operator for cells in together] == list(names)
    assert together == [cells_of(pools, target, name) for name in names]
    for name, cells in zip(names, together, strict=True):
        own = prepared(operator(name), 0)
        assert cells_from(target, own, size_by_size(*pools, target, own)) == cells


def test_a_size_that_is_refused_takes_nothing_else_with_it(pools: tuple[Pool, Pool]) -> None:
    """The program that two operators share is refused: each is tried alone, and one of them size by size."""
    fault = "assert not any(x.shape == (3, 67) for x in inputs)"
    target = replace(planted("pass"), load=planted("pass").load.replace("(*inputs):", f"(*inputs):\n        {fault}"))
    refused, whole = examine(*pools, target, [operator("gelu"), operator("add")], 0)
    assert states(whole) == dict.fromkeys(VARIATIONS, EQUAL)
    (missing,) = [cell for cell in refused if cell.state == NONE]
    assert (missing.variation, missing.sizes) == ("size", (3,))
    assert states([cell for cell in refused if cell != missing]) == dict.fromkeys(VARIATIONS, EQUAL)


def test_operands_have_values_of_their_own() -> None:
    """A sum of a value and itself, or a convolution of one with itself, is not what is meant; and axes that are summed
    over are long."""
    assert [leaf.type.shape for leaf in operator("add").graph.leaves] == [(2, 67), (2, 67)]
    assert operator("linear").graph.leaves[1].type.shape == (67, 67)
    assert len(operator("conv2d").graph.leaves) == 3


def test_packs() -> None:
    """In order; one that is too large by itself is alone."""
    assert packed([1, 2, ELEMENTS, 3], lambda n: n) == [[1, 2], [ELEMENTS], [3]]
    assert [len(pack) for pack in packed([1] * 30, lambda n: n)] == [12, 12, 6]


@pytest.mark.slow
def test_a_study_by_two_processes(tmp_path: Path) -> None:
    """Every operator once; done again nothing is added."""
    arguments = ["study", "invariance", "--targets", "torch-eager", "--operators", "gelu,linear,so*", "--jobs", "2"]
    for _ in range(2):
        done = CliRunner().invoke(app_of(), [*arguments, "--out", str(tmp_path)])
        assert done.exit_code == 0, done.output
    lines = (tmp_path / "cells.jsonl").read_text().splitlines()[1:]
    found = [json.loads(line) for line in lines]
    assert len({(cell["operator"], cell["variation"]) for cell in found}) == len(found)
    assert {cell["operator"] for cell in found} >= {"gelu", "linear", "softmax"}


@pytest.mark.nightly
@pytest.mark.parametrize("style", network.STYLES)
def test_transformers(pools: tuple[Pool, Pool], style: str) -> None:
    """In parts with a cache a network gives what the whole gives, but for rounding; every variation is there."""
    cells = {cell.variation: cell for cell in transformers.examine(*pools, TARGETS["torch-eager"], style, 0)}
    assert list(cells) == ["size", "position", "neighbours", "padding", "threads", "chunks", "cache"]
    assert {cell.state for cell in cells.values()} <= {EQUAL, VARIES}
    for cell in cells.values():
        assert not cell.why or cell.why.endswith("next tokens that differ: 0 %")


def test_the_page_counts_operators_and_not_networks() -> None:
    """Of those that have a result; what has none varies nowhere."""
    cells = [
        Cell("gelu", "t", "size", WITHIN, 1.0, (1,)), Cell("exp", "t", "size", EQUAL), Cell("sum", "t", "size", NONE),
        Cell("transformer gpt", "t", "cache", VARIES, 3.0, why="first at x"),
    ]  # fmt: skip
    text = page(cells, {})
    assert "targets: 1 combinations" in text
    assert '<code>t</code></td><td class="n">2</td><td class="n">1</td><td class="n">0</td>' in text
    assert "cache: first at x; 3 ulps at most" in text


def test_a_transformer_whose_cache_is_wrong_is_found(pools: tuple[Pool, Pool], monkeypatch: pytest.MonkeyPatch) -> None:
    """Positions that begin anew with every chunk: the embedding is the first that varies."""
    plain = network.transformer

    def wrong(style: str, given: Mapping[str, np.ndarray], batch: int, times: int, before: int = 0) -> network.Made:
        made = plain(style, given, batch, times, before)
        return replace(made, arrays={**made.arrays, "positions_here": given["positions"][:times]})

    monkeypatch.setattr(transformers, "transformer", wrong)
    cells = {cell.variation: cell for cell in transformers.examine(*pools, TARGETS["torch-eager"], "gpt", 0)}
    assert "embedding" not in cells["size"].why
    for name in ("chunks", "cache"):
        assert cells[name].state == VARIES
        assert cells[name].largest > 1e6
        assert cells[name].why.startswith("first at embedding")


def test_a_target_that_does_not_run_a_transformer(pools: tuple[Pool, Pool]) -> None:
    target = replace(planted("pass"), load="\n\ndef load(parameters):\n    raise NotImplementedError('no attention')\n")
    cells = transformers.examine(*pools, target, "gpt", 0)
    assert {cell.state for cell in cells} == {NONE}
    assert "no attention" in cells[0].why
