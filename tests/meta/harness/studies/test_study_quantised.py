"""D3's 8-bit settings: which models they leave out, what their reference says of ranges, a fault that they must see.
What runs needs the environment `tfmot`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from generators.training.d3 import Protocol, study_arrays, study_training
from generators.training.networks import Layer, Network, checked
from generators.training.runs import Training
from harness.execute.ranks import RankPools
from harness.findings.known.deviations import load
from harness.strategies import STRATEGIES
from harness.strategies.strategy import anything
from harness.strategies.tensorflow.tfmot_program import SINGLE_DEVICE
from harness.studies.distribution.protocol import Study, run_case
from harness.studies.distribution.report import state_of
from harness.studies.distribution.store import Result
from harness.training.judge import TrainingJudge, available
from oracles.training import d3, sharding

PROTOCOL = Protocol(seed=0, batch=8, image=6, freeze="layer")
STUDY = Study("d3-tensorflow", 8, 1, PROTOCOL)
MIRRORED = STRATEGIES["tfmot-mirrored"]
TAKEN = 7
"""The number of a model of convolutions and dense layers, one of which is frozen."""
CONV = (("channels", 2), ("kernel", 3))
LINEAR = (("features", 10), ("bias", 1))


@pytest.fixture(scope="module")
def judge() -> Iterator[TrainingJudge]:
    why = available(MIRRORED)
    if why:
        pytest.skip(why)
    with RankPools() as pools:
        yield TrainingJudge(pools, load(), study_arrays)


def result_of(judge: TrainingJudge, setting: str) -> Result:
    (case,) = [case for case in STUDY.cases() if case[0] == TAKEN and case[2].name == setting]
    return run_case(judge, STUDY, case)


def of_layers(*layers: Layer) -> Training:
    """A run of the study on other layers, which return an image of two channels, and a dense one behind them."""
    rest = (Layer("l8", "flatten", (layers[-1].name,), (32,)), Layer("l9", "linear", ("l8",), (10,), LINEAR))
    network = checked(Network((3, 4, 4), 0, (*layers, *rest)))
    return replace(study_training(PROTOCOL, TAKEN, 0), network=network)


def image(name: str, kind: str, *inputs: str) -> Layer:
    return Layer(name, kind, inputs, (2, 4, 4), CONV if kind == "conv2d" else ())


def test_models_that_quantize_model_refuses_are_left_out_with_the_reason() -> None:
    convolution = image("l0", "conv2d", "x")
    behind = of_layers(convolution, image("l1", "batch_norm", "l0"))
    assert MIRRORED.refusal(behind, 2) is None
    alone = "quantize_model refuses BatchNormalization that is not alone behind a layer with weights"
    twice = of_layers(convolution, image("l1", "batch_norm", "l0"), image("l2", "add", "l1", "l0"))
    later = of_layers(convolution, image("l1", "relu", "l0"), image("l2", "batch_norm", "l1"))
    assert [MIRRORED.refusal(run, 2) for run in (twice, later)] == [alone, alone]
    normed = of_layers(convolution, image("l1", "layer_norm", "l0"))
    assert MIRRORED.refusal(normed, 2) == "quantize_model refuses LayerNormalization"
    tables = MIRRORED.refusal(study_training(PROTOCOL, 0, 0), 2)
    assert tables == "quantize_model refuses models with tables: it puts a quantiser on inputs of integers"
    assert MIRRORED.refusal(study_training(PROTOCOL, TAKEN, 0), 2) is None
    few = study_training(replace(PROTOCOL, batch=2), TAKEN, 0)
    assert MIRRORED.refusal(few, 4) == "a replica without samples has no range"


@pytest.mark.distributed
@pytest.mark.parametrize("kind", ["batch_norm", "add"])
def test_what_is_left_out_is_refused(kind: str, judge: TrainingJudge) -> None:
    """By tfmot itself; an addition in the same place is not."""
    layer = image("l2", "add", "l1", "l0") if kind == "add" else image("l2", kind, "l1")
    training = of_layers(image("l0", "conv2d", "x"), image("l1", "relu", "l0"), layer)
    found = judge.examine(training, replace(MIRRORED, unsupported=anything), 1)
    assert found.status == ("agree" if kind == "add" else "unsupported")
    assert ("is not supported" in found.reason) == (kind == "batch_norm")


@pytest.mark.distributed
def test_a_sound_setting_is_consistent_on_one_device(judge: TrainingJudge) -> None:
    for setting in ("8-bit-cpu-0", "8-bit-cpu-1"):
        found = result_of(judge, setting)
        assert (state_of(found), found.ours, found.largest) == ("consistent", "agree", 0.0)


@pytest.mark.distributed
def test_a_replica_that_drops_its_gradient_is_inconsistent(
    judge: TrainingJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By D3's judgement, and by ours; on two devices by ours, where D3's has other ranges than its base anyway."""
    sound = result_of(judge, "8-bit-cpu-2")
    assert (sound.ours, sound.part) == ("known", "tfmot-replica-ranges")
    update = SINGLE_DEVICE["update"]
    last = "tf.distribute.get_replica_context().replica_id_in_sync_group == len(DEVICES) - 1"
    dropped = f"    gradients = [tf.where({last}, tf.zeros_like(g), g) for g in gradients]\n    subject.optimizer"
    faulty = replace(MIRRORED, pieces={**MIRRORED.pieces, "update": update.replace("    subject.optimizer", dropped)})
    monkeypatch.setitem(STRATEGIES, "tfmot-mirrored", faulty)
    one, two = result_of(judge, "8-bit-cpu-1"), result_of(judge, "8-bit-cpu-2")
    assert (state_of(one), one.ours, one.close) == ("both", "deviates", False)
    assert (state_of(two), two.ours) == ("both", "deviates")
    assert one.cluster not in ("", d3.INFERENCE)


@pytest.mark.distributed
def test_ranges_are_those_of_shares(judge: TrainingJudge) -> None:
    """What two replicas return is within the bound of two shares, and not within that of the whole batch."""
    training = study_training(PROTOCOL, TAKEN, 0)
    given = judge.returned(training, MIRRORED, 2)
    for shares, right in ((2, True), (1, False)):
        expected = judge.reference(training, "tf_keras", shares)
        ranges = {
            name: sharding.excess(bound, given[name]) <= 1
            for name, bound in zip(expected.names, expected.values, strict=True)
            if name.startswith("buffer.") and "kernel" not in name
        }
        assert len(ranges) >= 8
        assert all(ranges.values()) == right, ranges
        assert not any(np.isinf(bound.error).any() for bound in expected.values if bound.value.ndim == 0)
