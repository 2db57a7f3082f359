"""torchao and Keras: what they do right is accepted; another rounding, a scale that is a little off, in the model or in
a kernel, and a wrong zero point are found."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from examples.small_graphs import layers

from harness.execute.pool import Pool
from harness.quantisers import QUANTISERS
from harness.questions.quantisers import QUANTISATION
from harness.search.laboratory import Laboratory
from harness.search.quantisation import draw_case
from oracles.judge.outcome import Value
from oracles.quantised import model as quantised_model
from oracles.quantised.dense import check_weight
from oracles.quantised.model import Judgement, RecordedModel

pytestmark = pytest.mark.slow
"""Each path is run once, which takes most of a minute."""

LAYERS = ("torchao-int8-weight", "torchao-int4-weight", "torchao-int8-dynamic", "torchao-int8-dynamic-int4",
          "keras-int8", "keras-int4", "keras-int4-channels", "keras-float8")  # fmt: skip
GRAPHS = ("torchao-pt2e-x86-dynamic", "torchao-pt2e-xnnpack")
AFFINE = ("torchao-int4-weight", "keras-int4")
FLOAT8 = "keras-float8"
Change = Callable[[RecordedModel], None]


@pytest.fixture(scope="module")
def runs(pool: Pool) -> dict[str, Value]:
    """The case on each path, once."""
    paths = (*LAYERS, *GRAPHS)
    found = Laboratory(pool, QUANTISATION).outcomes([(QUANTISERS[name], layers()) for name in paths])
    values = {name: outcome for name, outcome in zip(paths, found, strict=True) if isinstance(outcome, Value)}
    assert set(values) == set(paths), found
    return values


def judged(name: str, run: Value, change: Change = lambda record: None) -> Judgement:
    """The judgement of a run in which something is changed first."""
    record = quantised_model.read([array.copy() for array in run.outputs])
    change(record)
    return QUANTISERS[name].judge(record)


@pytest.mark.parametrize("name", [*LAYERS, *GRAPHS])
def test_a_correct_run_is_accepted(name: str, runs: dict[str, Value]) -> None:
    found = judged(name, runs[name])
    assert not found.wrong
    assert not found.skipped
    assert found.real >= 2
    assert found.checked > 700 or name == FLOAT8
    assert found.loss is not None
    assert (found.loss["sqnr_db"] or 0) > 20


def parts(record: RecordedModel, ending: str) -> list[np.ndarray]:
    """Arrays of all runs whose name ends so."""
    groups = [group for group in record.groups if group in ("converted", "eager", "graph")]
    return [array for group in groups for name, array in record.groups[group].items() if name.endswith(ending)]


@pytest.mark.parametrize("name", [name for name in LAYERS if name != FLOAT8])
def test_a_weight_one_level_off_and_truncated_weights_are_found(name: str, runs: dict[str, Value]) -> None:
    def one_level(record: RecordedModel) -> None:
        for array in parts(record, ".weight") + parts(record, ".kernel"):
            array.reshape(-1)[np.argmin(np.abs(array.astype(float)))] += 1

    def truncated(record: RecordedModel) -> None:
        for array in parts(record, ".weight") + parts(record, ".kernel"):
            array -= (np.arange(array.size).reshape(array.shape) % 2 * (array > 0)).astype(array.dtype)

    for change in (one_level, truncated):
        assert any("levels wrong" in text for text in judged(name, runs[name], change).wrong)


@pytest.mark.parametrize("name", LAYERS)
def test_scales_off_in_the_fifth_digit_are_named(name: str, runs: dict[str, Value]) -> None:
    def scaled(record: RecordedModel) -> None:
        for array in parts(record, ".scale"):
            array *= np.float32(1 + 1e-5)

    found = judged(name, runs[name], scaled)
    assert any(text.startswith("scale of") for text in found.wrong) or name == FLOAT8
    assert any("mismatched" in text for text in found.wrong)


@pytest.mark.parametrize("name", AFFINE)
def test_wrong_zero_points_are_named(name: str, runs: dict[str, Value]) -> None:
    def shifted(record: RecordedModel) -> None:
        for array in parts(record, ".zero"):
            array += 1

    found = judged(name, runs[name], shifted)
    assert any(text.startswith("zero point of") for text in found.wrong)
    assert any("mismatched" in text for text in found.wrong)


@pytest.mark.parametrize("name", LAYERS)
def test_kernels_that_rescale_wrongly_are_found(name: str, runs: dict[str, Value]) -> None:
    """A factor that is off in the fifth digit, in the kernel alone."""

    def rescaled(record: RecordedModel) -> None:
        for nodes, group in ((record.nodes[g], record.groups[g]) for g in record.nodes):
            for node in nodes:
                if node.op in ("Int8Tensor", "IntxUnpackedToInt8Tensor") or node.domain == "keras":
                    np.multiply(group[node.results[0]], np.float32(1 + 1e-5), out=group[node.results[0]])

    assert any("mismatched" in text for text in judged(name, runs[name], rescaled).wrong)


def test_a_kernel_whose_range_has_no_zero_and_does_not_reach_it_is_found() -> None:
    real = np.array([[2.0], [2.5], [3.0]])
    for zero, levels, wrong in ((-8.0, [7, 7, 7], 1), (-38.0, [-8, 0, 7], 0)):
        found = Judgement()
        unit = np.array([[1 / 15]])
        got = np.array(levels, np.int8).reshape(3, 1)
        check_weight(found, "kernel", got, real, unit, np.array([[zero]]), (-8, 7))
        assert len(found.wrong) == wrong
    assert "does not reach as far as the weight" in str(_unreached())


def _unreached() -> list[str]:
    found = Judgement()
    check_weight(
        found, "kernel", np.array([7], np.int8), np.array([3.0]), np.array([1 / 15]), np.array([-8.0]), (-8, 7)
    )
    return found.wrong


@pytest.mark.parametrize("name", GRAPHS)
def test_faults_of_exported_graphs_are_found(name: str, runs: dict[str, Value]) -> None:
    def quantised(record: RecordedModel) -> np.ndarray:
        node = next(n for n in record.nodes["converted"] if n.op == "quantize_per_tensor")
        return record.groups["converted"][node.results[0]]

    def one_level(record: RecordedModel) -> None:
        array = quantised(record).reshape(-1)
        array[np.argmin(np.abs(array.astype(float) - 60))] += 1

    def truncated(record: RecordedModel) -> None:
        array = quantised(record)
        array -= (np.arange(array.size).reshape(array.shape) % 2 * (array > 0)).astype(array.dtype)

    def compiled(record: RecordedModel) -> None:
        array = record.groups["inductor"]["0"]
        array *= np.float32(1 + 1e-5)

    for change in (one_level, truncated):
        found = judged(name, runs[name], change).wrong
        assert any("quantize_per_tensor" in text and "levels wrong" in text for text in found)
    assert any(text.startswith("inductor: output 0") for text in judged(name, runs[name], compiled).wrong)


@pytest.mark.parametrize("name", GRAPHS)
def test_wrong_scales_and_zero_points_of_exported_graphs_are_named(name: str, runs: dict[str, Value]) -> None:
    def scaled(record: RecordedModel) -> None:
        for node in record.nodes["converted"]:
            if node.op.endswith("quantize_per_tensor") and len(node.operands) == 1:
                node.attrs["args"][1] *= 1 + 1e-5
        for array in parts(record, "_scale_0"):
            array *= np.float32(1 + 1e-5)

    def shifted(record: RecordedModel) -> None:
        for node in record.nodes["converted"]:
            if node.op.endswith("quantize_per_tensor") and len(node.operands) == 1:
                node.attrs["args"][2] += 1
        for array in parts(record, "_zero_point_0"):
            array += 1

    for change, said in ((scaled, "scale of"), (shifted, "zero point of")):
        found = judged(name, runs[name], change).wrong
        assert any(text.startswith(said) for text in found)
        assert any("mismatched" in text or "levels wrong" in text for text in found)


def test_a_path_that_quantises_few_operators_is_given_graphs_with_them() -> None:
    path = QUANTISERS["torchao-int8-weight"]
    given = [draw_case(1, index, path, 8) for index in range(20)]
    assert [path.unsupported(case.graph) for case in given] == [None] * 20
    assert all(not {"linear", "matmul"}.isdisjoint(case.graph.operators) for case in given)
