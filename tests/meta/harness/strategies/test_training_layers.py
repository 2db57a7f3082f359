"""Layers that are a module in one framework and a formula in another, and that round within where there is noise: all
of them are the same function. Networks lose them one by one, and keep what they take of a sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from generators.training.networks import Layer, Network, columns_of
from generators.training.runs import Training, arrays_of, fitted, loads, valid, without
from generators.training.settings import Settings
from harness.execute.ranks import RankLimits, RankOutputs, RankPools
from harness.search.reduce import Budget
from harness.strategies import STRATEGIES
from harness.strategies.strategy import Noise
from harness.training.judge import TrainingJudge, adapted
from harness.training.programs import program, single_device
from harness.training.reduce import reduce_training

SETTINGS = Settings(
    "mse", "mean", True, 4, 4, 1, 1, 0.0, 1.0, "sgd",
    (("lr", 0.125), ("momentum", 0.0), ("weight_decay", 0.0), ("nesterov", 0.0)), "float64",
)  # fmt: skip


def made(width: int, *layers: Layer) -> Training:
    """A run of these layers on samples of so many columns."""
    training = fitted(Training(Network((width,), 0, ()), SETTINGS, 7), layers)
    assert training is not None
    return training


def layer(name: str, kind: str, *inputs: str, **numbers: int) -> Layer:
    """A layer whose shape is worked out later."""
    return Layer(name, kind, inputs, (), tuple(numbers.items()))


SERIES = made(
    24,
    layer("l0", "columns", "x", first=0, times=3, width=4),
    layer("l1", "attention", "l0", heads=2, bias=1),
    layer("l2", "dropout", "l1", "x", first=12, keep=50),
    layer("l3", "gru", "l2", features=3),
    layer("l4", "lstm", "l3", features=2),
    layer("l5", "flatten", "l4"),
    layer("l6", "linear", "l5", features=2, bias=1),
)
TABLES = made(
    8,
    layer("l0", "columns", "x", first=0, width=3),
    layer("l1", "linear", "l0", features=4, bias=1),
    layer("l2", "embedding_bag", "x", first=3, features=4, count=2, vocabulary=5, mean=1, ragged=1),
    layer("l3", "embedding_bag", "x", first=6, features=4, count=1, vocabulary=7, mean=0, ragged=1),
    layer("l4", "interaction", "l1", "l2", "l3"),
    layer("l5", "linear", "l4", features=2, bias=1),
)
NORMS = made(
    8,
    layer("l0", "columns", "x", first=0, width=8),
    layer("l1", "batch_norm", "l0"),
    layer("l2", "linear", "l1", features=3, bias=1),
    layer("l3", "batch_norm", "l2"),
    layer("l4", "linear", "l3", features=2, bias=1),
)
RUNS = pytest.mark.parametrize("training", [SERIES, TABLES], ids=["series", "tables"])


@pytest.fixture(scope="module")
def pools() -> Iterator[RankPools]:
    with RankPools(RankLimits(seconds=300)) as started:  # JAX compiles
        yield started


def returned(pools: RankPools, training: Training, framework: str, noise: Noise | None = None) -> Mapping:
    """What one device returns; of a run with noise the part without."""
    one = single_device(framework, 1)
    outcome = pools.run(one.modules, 1, program(training, one, noise), arrays_of(training), one.variables(1))
    assert isinstance(outcome, RankOutputs)
    found = outcome.ranks[0]
    return {k.removeprefix("0/"): v for k, v in found.items() if k.startswith("0/")} if noise else found


@pytest.mark.slow(one_in=7)
@RUNS
def test_frameworks_agree_on_every_layer(training: Training, pools: RankPools) -> None:
    """Losses, gradients and predictions in float64, by PyTorch's modules and by the formulas of all."""
    module = returned(pools, training, "torch")
    for framework, noise in (("torch", Noise(0, 0.0)), ("tensorflow", None), ("jax", None)):
        formula = returned(pools, training, framework, noise)
        for name in module:
            if name.split(".")[0] != "state":
                np.testing.assert_allclose(formula[name], module[name], 1e-11, 1e-13, err_msg=f"{framework}: {name}")


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize("framework", ["torch", "tensorflow", "jax"])
def test_what_rounds_within_is_the_same_function(framework: str, pools: RankPools) -> None:
    """Normalisation, with its running statistics, and cross entropy."""
    training = replace(NORMS, settings=replace(SETTINGS, loss="cross_entropy"))
    module, formula = returned(pools, training, framework), returned(pools, training, framework, Noise(0, 0.0))
    assert any(name.startswith("buffer.") for name in module)
    for name in module:
        np.testing.assert_allclose(formula[name], module[name], 1e-11, 1e-13, err_msg=name)


@pytest.mark.slow
def test_what_rounding_leaves_of_gradients_within_normalisation_is_allowed(pools: RankPools) -> None:
    """A column that is masked but for one sample is normalised to the same, whatever that one is: its gradient is what
    terms that cancel leave, and Adamax makes steps of it. Was off by 2.2 of what noise outside of the layer allows."""
    training = loads(Path(__file__).with_name("masked_then_normalised.json").read_text(encoding="utf-8"))
    found = TrainingJudge(pools).examine(training, STRATEGIES["torch-dtensor-data"], 3)
    assert (found.status, found.part) == ("agree", "")
    assert found.largest < 0.5
    assert found.undetermined < 0.1 * found.elements


@RUNS
def test_samples_hold_what_layers_take(training: Training) -> None:
    x, network = arrays_of(training)["x"], training.network
    for bag in network.bags:
        first, last = columns_of(bag, network.shapes)
        assert set(x[:, first:last].ravel()) <= set(range(bag.numbers["vocabulary"]))
    for mask in network.masks:
        first, last = columns_of(mask, network.shapes)
        assert set(x[:, first:last].ravel()) == {0.0, 2.0}


@RUNS
def test_every_new_layer_can_be_taken_out(training: Training) -> None:
    for one in training.network.layers[:-1]:
        smaller = without(training, one.name)
        if one.kind in ("attention", "dropout", "gru", "lstm", "interaction"):
            assert smaller is not None
        if smaller:
            assert valid(smaller) == smaller
            assert not smaller.network.idle


def test_reduction_leaves_two_tables_of_three() -> None:
    """An interaction needs two vectors: one of the three goes, and its table with it."""
    small, _ = reduce_training(TABLES, 2, (2,), lambda run, world: "interaction" in run.traits, Budget(2000, 60))
    (last,) = (one for one in small.network.layers if one.kind == "interaction")
    assert len(last.inputs) == 2
    assert len(small.network.bags) <= 1 or not any(one.kind == "columns" for one in small.network.layers)


def test_pytorch_has_no_lamb_and_trains_otherwise(pools: RankPools) -> None:
    lamb = SETTINGS.__class__(
        **{**vars(SETTINGS), "optimizer": "lamb", "options": (("lr", 0.125), ("eps", 1e-3), ("weight_decay", 0.0))}
    )
    training = Training(SERIES.network, lamb, 7)
    strategy = STRATEGIES["torch-ddp"]
    assert TrainingJudge(pools).examine(training, strategy, 2).reason == "PyTorch has no LAMB"
    assert adapted(training, strategy, 2).settings.optimizer == "sgd"
    assert STRATEGIES["jax-data"].refusal(training, 1) is None
