"""PyTorch's quantisers: what they and their engines do right is accepted; another rounding, a scale that is a little
off, a wrong zero point, a wrong weight and a wrong range are found."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from examples.small_graphs import layers

from harness.execute.pool import Pool
from harness.quantisers import QUANTISERS
from harness.questions.quantisers import QUANTISATION
from harness.search.laboratory import Laboratory
from oracles.judge.outcome import Value
from oracles.quantised import model as quantised_model
from oracles.quantised.model import Judgement, RecordedModel
from oracles.quantised.torch.integers import chosen
from oracles.quantised.torch.quantiser import parameters

STATIC = ("torch-static-x86", "torch-static-onednn", "torch-static-qnnpack", "torch-trained-x86", "torch-eager-x86")
PATHS = (*STATIC, "torch-dynamic")


@pytest.fixture(scope="module")
def runs(pool: Pool) -> dict[str, Value]:
    """The case on each path, once."""
    found = Laboratory(pool, QUANTISATION).outcomes([(QUANTISERS[name], layers()) for name in PATHS])
    values = {name: outcome for name, outcome in zip(PATHS, found, strict=True) if isinstance(outcome, Value)}
    assert set(values) == set(PATHS), found
    return values


def judged(name: str, run: Value, change: Callable[[RecordedModel], None] = lambda record: None) -> Judgement:
    """The judgement of a run in which something is changed first."""
    record = quantised_model.read([array.copy() for array in run.outputs])
    change(record)
    return QUANTISERS[name].judge(record)


@pytest.mark.parametrize("name", PATHS)
def test_a_correct_run_is_accepted(name: str, runs: dict[str, Value]) -> None:
    found = judged(name, runs[name])
    assert not found.wrong
    assert not found.skipped
    assert (found.exact + found.near > 0) == (name in STATIC)
    assert found.checked > 500  # the weights among them
    assert found.loss is not None
    assert (found.loss["sqnr_db"] or 0) > 20


def levels(record: RecordedModel, operator: str) -> np.ndarray:
    """What the first node of this operator returned."""
    node = next(node for node in record.nodes["converted"] if node.op == operator)
    return record.groups["converted"][node.results[0]]


@pytest.mark.parametrize(
    ("name", "operator"),
    [
        (name, operator)
        for name in STATIC
        for operator in ("quantize_per_tensor", "linear", "add", "sigmoid")
        if (name, operator) != ("torch-eager-x86", "sigmoid")  # of which its stubs make real numbers
    ],
)
def test_a_level_that_is_one_off_and_truncation_are_found(name: str, operator: str, runs: dict[str, Value]) -> None:
    def one_level(record: RecordedModel) -> None:
        array = levels(record, operator).reshape(-1)
        array[np.argmin(np.abs(array.astype(float) - 60))] += 1

    def truncated(record: RecordedModel) -> None:
        array = levels(record, operator)
        array -= (np.arange(array.size).reshape(array.shape) % 2 * (array > 0)).astype(array.dtype)

    for change in (one_level, truncated):
        found = judged(name, runs[name], change)
        assert any(operator in text and "levels wrong" in text for text in found.wrong)


@pytest.mark.parametrize("name", PATHS)
def test_scales_and_zero_points_that_no_observer_has_are_named(name: str, runs: dict[str, Value]) -> None:
    def scaled(record: RecordedModel) -> None:
        for how in record.header["tensors"].values():
            how["scale"] = [scale * (1 + 1e-5) for scale in how["scale"]]

    def shifted(record: RecordedModel) -> None:
        for how in record.header["tensors"].values():
            how["zero"] = [zero + 1 for zero in how["zero"]]

    found = judged(name, runs[name], scaled)
    assert any(text.startswith("scale of") for text in found.wrong)
    assert any("mismatched" in text or "levels wrong" in text for text in found.wrong)
    found = judged(name, runs[name], shifted)
    assert any(text.startswith("zero point of") for text in found.wrong)


@pytest.mark.parametrize(("key", "by", "said"), [("scale", 1e-5, "scale of"), ("zero", 0.02, "zero point of")])
def test_observers_that_do_not_follow_their_range_are_named(
    key: str, by: float, said: str, runs: dict[str, Value]
) -> None:
    def changed(record: RecordedModel) -> None:
        for observer in record.header["observers"].values():
            if observer["kind"] == "HistogramObserver":
                observer[key] = [value * (1 + by) + (by > 1e-3) for value in observer[key]]

    found = judged("torch-static-x86", runs["torch-static-x86"], changed)
    assert any(text.startswith(said) and "by its range" in text for text in found.wrong)


def test_a_range_that_was_not_seen_and_a_bit_that_is_not_free_are_named(runs: dict[str, Value]) -> None:
    def wider(record: RecordedModel) -> None:
        for observer in record.header["observers"].values():
            observer["seen"][1] = [high / 2 for high in observer["seen"][1]]

    def elsewhere(record: RecordedModel) -> None:
        record.header.update(engine="onednn")  # type: ignore[attr-defined]  # its observers take 8 bits

    run = runs["torch-static-x86"]
    assert any(text.startswith("range of") for text in judged("torch-static-x86", run, wider).wrong)
    found = judged("torch-static-x86", run, elsewhere).wrong
    assert any("levels 0 to 127 of quint8, for onednn it is (0, 255)" in text for text in found)


@pytest.mark.parametrize("name", PATHS)
def test_a_weight_that_is_one_level_off_is_found(name: str, runs: dict[str, Value]) -> None:
    def changed(record: RecordedModel) -> None:
        for weight, array in record.groups["converted"].items():
            if weight.endswith(".weight"):
                array.reshape(-1)[np.argmin(np.abs(array.astype(float)))] += 1

    found = judged(name, runs[name], changed)
    assert any(".weight: 1 of 768 levels wrong" in text for text in found.wrong)


def test_a_range_that_is_no_moving_average_and_other_fake_quantisation_are_found(runs: dict[str, Value]) -> None:
    def remembered(record: RecordedModel) -> None:
        for observer in record.header["observers"].values():
            observer["averaged"] = 0.011 if observer["averaged"] else 0.0

    def faked(record: RecordedModel) -> None:
        for name, array in record.groups["faked"].items():
            if name.endswith(" out"):
                scale = record.header["faked"][name.removesuffix(" out")]["scale"][0]
                array.reshape(-1)[0] += scale

    name = "torch-trained-x86"
    assert any(text.startswith("range of") for text in judged(name, runs[name], remembered).wrong)
    found = judged(name, runs[name], faked).wrong
    assert sum(text.startswith("fake quantisation") for text in found) == len(found) > 2


def test_a_model_that_returns_something_else_than_its_nodes_is_found(runs: dict[str, Value]) -> None:
    def changed(record: RecordedModel) -> None:
        record.groups["called"]["1"].reshape(-1)[0] += 1

    found = judged("torch-static-qnnpack", runs["torch-static-qnnpack"], changed)
    assert found.wrong == ["a call returns another output 1 than its nodes one by one"]


def test_ranges_give_scales_and_zero_points() -> None:
    low, high = np.array([-1.0, 1.0]), np.array([3.0, 4.0])
    scale, zero = parameters(low, high, (0, 127), False)
    assert scale.tolist() == [4 / 127, 4 / 127]
    assert zero.tolist() == [31.75, 0]
    scale, zero = parameters(low, high, (-128, 127), True)
    assert scale.tolist() == [3 / 127.5, 4 / 127.5]
    assert not zero.any()
    assert chosen(-1.0, 3.0, 127) == (float(np.float32(4 / 127)), 32)
    assert chosen(0.0, 0.0, 255) == (float(np.float32(0.1)), 0)
