"""Mixed precision: which layers compute in bfloat16, which strategies take such runs, and what is allowed for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from generators.training.networks import Layer, Network
from generators.training.runs import Training, arrays_of, dumps, fitted, loads
from generators.training.settings import Settings, SettingsError
from harness.execute.ranks import RankPools
from harness.strategies import STRATEGIES
from harness.strategies.mixed_precision import LowPrecision, low_precision_of
from harness.training.judge import TrainingJudge, adapted
from oracles.training import sharding

SETTINGS = Settings(
    "mse", "mean", True, 6, 6, 2, 1, 0.0, 1.0, "sgd",
    (("lr", 0.125), ("momentum", 0.0), ("weight_decay", 0.0), ("nesterov", 0.0)), "mixed",
)  # fmt: skip


def layer(name: str, kind: str, *inputs: str, **numbers: int) -> Layer:
    """A layer whose shape is worked out later."""
    return Layer(name, kind, inputs, (), tuple(numbers.items()))


def made(*layers: Layer) -> Training:
    """A run of these layers on samples of four columns."""
    training = fitted(Training(Network((4,), 0, ()), SETTINGS, 7), layers)
    assert training is not None
    return training


RUN = made(
    layer("l0", "layer_norm", "x"),
    layer("l1", "linear", "l0", features=4, bias=1),
    layer("l2", "tanh", "l1"),
    layer("l3", "layer_norm", "l2"),
    layer("l4", "add", "l0", "l3"),
    layer("l5", "linear", "l4", features=2, bias=0),
)


@pytest.fixture(scope="module")
def judge() -> Iterator[TrainingJudge]:
    with RankPools() as pools:
        yield TrainingJudge(pools)


def test_which_layers_autocast_computes_in_bfloat16() -> None:
    """Dense layers cast what they are given; others compute in what they get; a sum with float32 is in float32."""
    low = low_precision_of(RUN.network, "autocast")
    assert low == LowPrecision(("l1", "l2", "l3", "l5"), ("l1", "l5"), ("l1.weight", "l1.bias", "l5.weight"))
    assert low_precision_of(RUN.network, "all").layers == tuple(one.name for one in RUN.network.layers)
    assert set(low_precision_of(RUN.network, "all").narrow) == {"x", *RUN.network.parameters}


def test_a_weight_that_is_shared_is_cast_under_its_own_name() -> None:
    shared = replace(layer("l1", "linear", "l0", features=4, bias=1), tied="l0")
    tied = made(layer("l0", "linear", "x", features=4, bias=1), shared)
    assert low_precision_of(tied.network, "autocast").narrow == ("l0.weight", "l0.bias", "l1.bias")


def test_data_and_files_of_a_mixed_run_are_float32() -> None:
    assert {str(array.dtype) for array in arrays_of(RUN).values()} == {"float32"}
    assert loads(dumps(RUN)) == RUN
    with pytest.raises(SettingsError, match="unknown dtype"):
        replace(SETTINGS, dtype="bfloat16")


def test_strategies_get_runs_in_a_dtype_that_they_take() -> None:
    wide = replace(RUN, settings=replace(SETTINGS, dtype="float32"))
    cast, plain = STRATEGIES["torch-fully-shard-bfloat16"], STRATEGIES["tf-mirrored"]
    assert cast.refusal(wide, 2) == "runs in float32 are not for it"
    assert adapted(wide, cast, 2).settings.dtype == "mixed"
    assert plain.refusal(RUN, 2) == "runs in mixed are not for it"
    assert adapted(RUN, plain, 2).settings.dtype == "float32"
    assert adapted(RUN, STRATEGIES["jax-data"], 2) == RUN
    assert adapted(RUN, STRATEGIES["torch-ddp"], 2) == RUN


@pytest.mark.slow(one_in=2)
@pytest.mark.parametrize(
    "name",
    [
        "torch-ddp", "torch-fully-shard-bfloat16", "torch-pipeline-gpipe", "tf-mirrored-float16",
        pytest.param("tf-mirrored-bfloat16", marks=pytest.mark.nightly),
        pytest.param("jax-data", marks=pytest.mark.nightly),
    ],
)  # fmt: skip
def test_rounding_is_allowed_for_and_little_more(name: str, judge: TrainingJudge) -> None:
    """The rounding of bfloat16 or float16 is within, a quarter of a gradient is not."""
    strategy = STRATEGIES[name]
    found = judge.examine(RUN, strategy, 2)
    assert (found.status, found.part) == ("agree", "")
    assert found.undetermined < 0.05 * found.elements
    assert found.largest > 1e-3  # of what is allowed: float32 alone would be a thousandth of that
    expected, given = judge.expected(RUN, strategy, 2), judge.returned(RUN, strategy, 2)
    bounds = dict(zip(expected.names, expected.values, strict=True))
    gradient = "gradient.l5.weight"
    assert sharding.excess(bounds[gradient], given[gradient] * 1.25) > 1
    wide = np.abs(given[gradient] - bounds[gradient].value).max()
    assert wide > 1e-6 * np.abs(given[gradient]).max()  # it is not float32 that was computed in
