"""Strategies: planted faults are found and made small, one device agrees with itself, files and programs are whole."""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from planted.faults.strategies import FAULTS as PLANTED
from planted.faults.strategy_fault import StrategyFault
from planted.faults.torchrec import TABLE_FAULTS

from generators.training.networks import Layer, Network, NetworkError, checked
from generators.training.runs import (
    LEFT_OUT,
    Training,
    TrainingError,
    arrays_of,
    dumps,
    loads,
    plainer,
    seeded_training,
    valid,
    without,
)
from generators.training.settings import RARE, SettingsError
from harness.execute import environments
from harness.execute.ranks import RankPools
from harness.findings.known.deviations import KnownDeviation, load
from harness.findings.known.entry import FOLDER
from harness.search.hypothesis_profiles import nightly
from harness.search.reduce import Budget
from harness.strategies import STRATEGIES
from harness.strategies.strategy import Strategy
from harness.training.findings import investigate, text_of
from harness.training.judge import Judgement, TrainingJudge, adapted, available, version_of
from harness.training.programs import program
from harness.training.reduce import candidates, reduce_training
from oracles.training import sharding

FAULTS = (*PLANTED, *TABLE_FAULTS)
RUNS = [seeded_training(50, number) for number in range(60)]
COMPOSED = {"layer_norm", "batch_norm", "sigmoid", "tanh", "gelu", "silu", "attention", "gru", "lstm"}
COMPOSED |= {"embedding", "interaction", "clipped", "parts"}
"""What compilers, and strategies that add up in parts, compute otherwise than one device."""


@cache
def simple_runs() -> list[Training]:
    """Runs of layers that are computed one way."""
    drawn = (seeded_training(50, number) for number in range(400))
    return [run for run in drawn if run.traits.isdisjoint(COMPOSED)]


def simple_run(judge: TrainingJudge, strategy: Strategy) -> Training:
    """The first of them that the strategy can have on one rank and that no known deviation is about."""

    def sound(run: Training) -> bool:
        return not any(known.concerns(strategy.name, run.traits, version_of(strategy)) for known in judge.known)

    return next(run for run in simple_runs() if not strategy.refusal(run, 1) and sound(run))


TABLE = loads((FOLDER / "torch/torchrec-fused-empty-shard/case.json").read_text(encoding="utf-8"))
"""A run that TorchRec's strategies take: simple ones have no tables."""
RANGES = loads((FOLDER / "tensorflow/tfmot-replica-ranges/case.json").read_text(encoding="utf-8"))
RUNS_BY_ENVIRONMENT = {"torchrec": TABLE, "tfmot": RANGES}
"""Runs that strategies take which have an environment of their own."""
LINEAR = (("features", 2), ("bias", 1))
OTHERWISE = ("tf-mirrored-xla", "jax-pmap", "torch-pipeline-looped-bfs", "torch-pipeline-interleaved-1f1b")
OTHERWISE += ("torch-pipeline-interleaved-zb", "torch-pipeline-zbv", "torch-pipeline-dualpipev")
"""What compiles the same steps otherwise than one device does, or has two stages on one rank, to which batches go in
parts, whose gradients are added up: right, but not to the last place."""
DEVIATING = ("torch-fsdp", "torch-fsdp-grad-op", "torch-fsdp-each", "torch-tensor-columns", "torch-tensor-rows")
DEVIATING += ("torch-sequence-rows", "torch-sequence-columns", "tf-fit-mirrored")
"""Of which known deviations are about any run."""
SHOWN = ("uneven batches are cut",)
"""What is minimised and handed over, too: the nightly profile does it for all."""


@pytest.fixture(scope="module")
def judge() -> Iterator[TrainingJudge]:
    with RankPools() as pools:
        yield TrainingJudge(pools, load())


def detect(judge: TrainingJudge, fault: StrategyFault, most: int = len(RUNS)) -> tuple[Training, int, Judgement] | None:
    """The first run that shows a fault, ranks, and what it shows."""
    strategy = fault.planted()
    worlds = [world for world in strategy.worlds if 1 < world <= 4]
    for number, drawn in enumerate(RUNS[:most]):
        world = worlds[number % len(worlds)]
        training = adapted(drawn, strategy, world)
        if fault.trait and fault.trait not in training.traits:
            continue
        judgement = judge.examine(training, strategy, world)
        if judgement.discrepancy:
            return training, world, judgement
    return None


def test_there_are_enough_faults() -> None:
    assert len(FAULTS) >= 30
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert all(fault.planted().pieces != STRATEGIES[fault.strategy].pieces for fault in FAULTS)


@pytest.mark.slow
def test_at_least_95_percent_are_found_within_60_runs(judge: TrainingJudge) -> None:
    """The nightly profile plants all of them, the others every 36th."""
    faults = [fault for fault in FAULTS[:: 1 if nightly() else 36] if not available(STRATEGIES[fault.strategy])]
    missed = [fault.name for fault in faults if detect(judge, fault) is None]
    assert len(missed) <= 0.05 * len(faults), missed


@pytest.mark.slow
@pytest.mark.parametrize("fault", [f for f in FAULTS if nightly() or f.name in SHOWN], ids=lambda fault: fault.name)
def test_fault_is_made_small(fault: StrategyFault, judge: TrainingJudge, tmp_path: Path) -> None:
    """At most two layers with parameters, two ranks, and a program that fails with the fault and passes without."""
    found = detect(judge, fault)
    if found is None:
        pytest.skip("not found: counted above")
    training, world, judgement = found
    strategy = fault.planted()
    kept = investigate(judge, tmp_path, training, strategy, world, judgement, Budget(150, 150))
    small = loads((Path(kept.path) / "training.json").read_text(encoding="utf-8"))
    assert len(small.network.parameterised) <= 2
    assert kept.world == min(w for w in strategy.worlds if w > 1)
    assert kept.strategy in text_of(kept)
    script = Path(kept.path) / "reproducer.py"
    assert exit_status(script, strategy.environment) == 1
    piece = strategy.pieces[fault.piece].strip("\n")
    assert piece in script.read_text(encoding="utf-8")
    repaired = script.with_name("repaired.py")
    text = script.read_text(encoding="utf-8").replace(piece, fault.sound.strip("\n"))
    repaired.write_text(text, encoding="utf-8")
    right = judge.examine(small, STRATEGIES[fault.strategy], kept.world)
    assert right.discrepancy is None
    # a program does not know what is known
    assert exit_status(repaired, strategy.environment) == (1 if right.excused else 0)


@pytest.mark.slow
def test_replicas_that_are_apart_by_less_than_is_allowed(judge: TrainingJudge, tmp_path: Path) -> None:
    fault = next(fault for fault in FAULTS if fault.name == "one rank's gradient is off by a millionth")
    found = detect(judge, fault, 2)
    assert found is not None
    training, world, judgement = found
    assert judgement.discrepancy is not None
    assert "rank 1 is apart from rank 0" in judgement.discrepancy.message
    assert detect(judge, replace(fault, new=fault.old), 2) is None
    kept = investigate(judge, tmp_path, training, fault.planted(), world, judgement, Budget(0, 0))
    script = Path(kept.path) / "reproducer.py"
    assert exit_status(script, "") == 1
    repaired = script.with_name("repaired.py")
    repaired.write_text(script.read_text(encoding="utf-8").replace(fault.new, fault.old), encoding="utf-8")
    assert exit_status(repaired, "") == 0


@pytest.mark.nightly
def test_workers_can_be_started_with_tf_config(judge: TrainingJudge, tmp_path: Path) -> None:
    """A printed program, one process a worker, as a person starts them on machines of a cluster: right without a fault
    and wrong with one."""
    fault = next(fault for fault in FAULTS if fault.strategy == "tf-multi-worker-sync-norm")
    found = detect(judge, fault)
    assert found is not None
    training, _, judgement = found
    investigate(judge, tmp_path, training, fault.planted(), 2, judgement, Budget(0, 0))
    (script,) = tmp_path.glob("*/reproducer.py")
    assert with_tf_config(script) == [1, 1]
    sound = script.with_name("sound.py")
    sound.write_text(script.read_text(encoding="utf-8").replace(fault.new, fault.old), encoding="utf-8")
    assert with_tf_config(sound) == [0, 0]


def with_tf_config(script: Path) -> list[int]:
    """The exit statuses of two workers on the loopback interface."""
    workers = [f"127.0.0.1:{port}" for port in free_ports(2)]
    started = []
    for index in range(2):
        config = json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}})
        started.append(subprocess.Popen([sys.executable, str(script)], env={**os.environ, "TF_CONFIG": config}))
    try:
        return [process.wait(200) for process in started]
    finally:
        for process in started:
            process.kill()


def free_ports(count: int) -> list[int]:
    """So many that nothing holds now, below those of outgoing connections."""
    draw, found = random.Random(os.getpid()), set[int]()
    while len(found) < count:
        with socket.socket() as one, contextlib.suppress(OSError):
            one.bind(("127.0.0.1", draw.randrange(10000, 32768)))
            found.add(one.getsockname()[1])
    return sorted(found)


def exit_status(script: Path, environment: str) -> int:
    """Of a reproducer, run as a person would, in this environment."""
    command = [environments.interpreter(environment), str(script)]
    return subprocess.run(command, capture_output=True, timeout=200).returncode


@pytest.mark.slow
def test_one_rank_is_one_device(judge: TrainingJudge) -> None:
    """On one rank a strategy has nothing to do: each gives what one device gives, within a unit in the last place. All
    of them in the nightly profile, otherwise every third."""
    for strategy in list(STRATEGIES.values())[:: 1 if nightly() else 3]:
        if available(strategy) or 1 not in strategy.worlds or strategy.name in (*OTHERWISE, *DEVIATING):
            continue
        if not strategy.lossy and not strategy.reference:
            training = (
                RUNS_BY_ENVIRONMENT[strategy.environment] if strategy.environment else simple_run(judge, strategy)
            )
            found, once = judge.returned(training, strategy, 1), judge.on_one_device(training, strategy, 1)
            assert found.keys() == once.keys(), strategy.name
            for name in once:
                np.testing.assert_array_max_ulp(found[name], once[name], 1)


def test_noise_is_allowed_and_a_shift_is_not(judge: TrainingJudge) -> None:
    training = simple_run(judge, STRATEGIES["torch-ddp"])
    expected, once = (
        judge.expected(training, STRATEGIES["torch-ddp"], 1),
        judge.on_one_device(training, STRATEGIES["torch-ddp"], 1),
    )
    assert sharding.missing(expected, once) is None
    assert sharding.missing(expected, {**once, "extra": once["loss.0"]}) == "with extra"
    assert "without" in str(sharding.missing(expected, {"loss.0": once["loss.0"]}))
    bounds = dict(zip(expected.names, expected.values, strict=True))
    assert all(sharding.excess(bounds[name], once[name]) <= 1 for name in expected.names if bounds[name].floating)
    weight = next(name for name in expected.names if name.startswith("parameter."))
    assert sharding.excess(bounds[weight], once[weight] * 1.001) > 1


def test_what_overflows_under_noise_is_undetermined_and_its_neighbours_are_not() -> None:
    value = np.array([1.0, 2.0, 3.0])
    noisy = [{"w": np.array([np.inf, 2.0 + 1e-9, 3.0])}, {"w": np.array([np.nan, 2.0, 3.0 - 1e-9])}]
    bounds = sharding.expect({"w": value}, noisy, {"w": value.astype(np.float32)}).values[0]
    assert bounds.undetermined.tolist() == [True, False, False]
    assert (bounds.error[1:] < 1e-5).all()


@pytest.mark.parametrize("number", range(0, 60, 6))
def test_runs_are_valid_the_same_every_time_and_survive_their_file(number: int) -> None:
    training = RUNS[number]
    assert valid(training) == training
    assert loads(dumps(training)) == training == seeded_training(50, number)
    first, second = arrays_of(training), arrays_of(training)
    assert {name: array.tobytes() for name, array in first.items()} == {n: a.tobytes() for n, a in second.items()}
    assert {name.removeprefix("initial.") for name in first} >= set(training.network.parameters)


@pytest.mark.parametrize("number", range(0, 60, 6))
def test_whatever_reduction_tries_is_valid(number: int) -> None:
    for candidate in candidates(RUNS[number]):
        assert valid(candidate) == candidate
        assert str(candidate) != str(RUNS[number])


@pytest.mark.parametrize("number", range(0, 60, 6))
def test_plainer_runs_are_valid_and_evenly_shared(number: int) -> None:
    runs = list(plainer(RUNS[number], 6))
    assert all(valid(run) == run for run in runs)
    refused = {"tied", "idle", "clipped", "frozen", *LEFT_OUT, *RARE}
    assert any(run.settings.part_sizes <= {6, 12} and run.traits.isdisjoint(refused) for run in runs)


def test_a_run_is_made_plainer_in_two_ways_and_keeps_the_rest() -> None:
    """Tables that are frozen, in batches that ranks can't share evenly, under an optimiser that PyTorch has not."""
    strategy = STRATEGIES["torchrec-rows-fused"]
    drawn = (seeded_training(1, number) for number in range(10**6))
    run = next(
        run for run in drawn if run.network.bags and "frozen" in run.traits and run.settings.optimizer == "lamb"
        and {size % 2 for size in run.settings.part_sizes} != {0} and "batch_norm" not in run.traits
        and "frozen table" in run.traits and run.settings.clip == 0 and run.settings.decay == 1
        and all(bag.numbers["features"] % 4 == 0 for bag in run.network.bags)
    )  # fmt: skip
    given = adapted(run, strategy, 2)
    assert strategy.refusal(given, 2) is None
    assert given.network.bags
    assert given.settings.optimizer == "sgd"


def test_a_collection_looks_up_all_tables() -> None:
    """By what the model's own layers would have been given."""
    run = loads((FOLDER / "torch/torchrec-mixed-pooling/case.json").read_text(encoding="utf-8"))
    strategy = STRATEGIES["torchrec-collection-mixed"]
    assert strategy.refusal(run, 2) is None
    text = program(run, strategy)
    names = [bag.name for bag in run.network.bags]
    assert f"TABLES = {names}" in text
    bags = text[text.index("def bags_of") : text.index("def distribute")]
    for name in names:
        given = bags.partition(f'"{name}": (')[2].partition(",),")[0]
        assert f"{name} = self.{name}({given})" in text
    assert "def bags_of" not in program(run, STRATEGIES["torchrec-rows"])
    alone = loads((FOLDER / "torch/torchrec-fused-empty-shard/case.json").read_text(encoding="utf-8"))
    assert strategy.refusal(alone, 2) == "a collection of several tables, and there are not as many"


def test_reduction_keeps_what_matters() -> None:
    training = next(run for run in RUNS if "layer_norm" in run.traits and run.settings.steps > 2)
    small, world = reduce_training(
        training, 4, (1, 2, 4), lambda t, w: "layer_norm" in t.traits and t.settings.steps > 1, Budget(2000, 60)
    )
    assert world == 2
    assert small.settings.steps == 2
    assert "layer_norm" in small.traits
    assert len(small.network.layers) <= 3


@pytest.mark.parametrize("trait", ["attention", "batch_norm", "conv2d", "gru", "interaction", "lstm", "tied"])
def test_reduction_keeps_two_layers_at_most(trait: str) -> None:
    """Whatever else there is, and for little."""
    for run in [run for run in RUNS if trait in run.traits][:4]:
        small, _ = reduce_training(run, 2, (2,), lambda t, w: trait in t.traits, Budget(60, 60))
        assert len(small.network.parameterised) <= 2, str(small)


def test_a_layer_can_be_taken_out() -> None:
    network = Network((4,), 0, (Layer("l0", "tanh", ("x",), (4,)), Layer("l1", "linear", ("l0",), (2,), LINEAR)))
    training = seeded_training(0, 0)
    changed = type(training)(checked(network), training.settings, 0)
    smaller = without(changed, "l0")
    assert smaller is not None
    assert [layer.inputs for layer in smaller.network.layers] == [("x",)]


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (Layer("l0", "linear", ("y",), (2,), LINEAR), "l0: y is not what comes before"),
        (Layer("l0", "linear", ("x",), (3,), LINEAR), "l0: the result is (2,), not (3,)"),
        (Layer("l0", "embedding", ("x",), (4, 2), (("vocabulary", 3), ("features", 2))), "l0: only embeddings take"),
        (Layer("l0", "whirl", ("x",), (4,)), "l0: whirl does not take"),
    ],
)
def test_layers_that_do_not_fit(layer: Layer, message: str) -> None:
    with pytest.raises(NetworkError) as caught:
        checked(Network((4,), 0, (layer,)))
    assert message in str(caught.value)


def test_files_that_hold_no_run() -> None:
    for text in ("", "{}", dumps(RUNS[0]).replace('"loss": "', '"loss": "no ')):
        with pytest.raises(TrainingError, match="not a training run"):
            loads(text)
    with pytest.raises(SettingsError, match="unknown loss"):
        type(RUNS[0].settings)(**{**vars(RUNS[0].settings), "loss": "hinge"})


def test_a_known_deviation_concerns_runs_with_all_of_its_traits_and_one_of_others() -> None:
    known = KnownDeviation(
        Path("a"), ("tf-*",), ("state.*",), ("value",), "", 1, ("embedding",), ("adam", "clipped"), versions="<=2.21.0"
    )
    for strategy, traits, version, concerned in (
        ("tf-fit", {"embedding", "adam"}, "2.21.0", True),
        ("tf-fit", {"embedding", "clipped", "sgd"}, "2.20.1", True),
        ("tf-fit", {"embedding", "sgd"}, "2.21.0", False),
        ("tf-fit", {"adam"}, "2.21.0", False),
        ("torch-ddp", {"embedding", "adam"}, "2.21.0", False),
        ("tf-fit", {"embedding", "adam"}, "2.22.0", False),
    ):
        assert known.concerns(strategy, frozenset(traits), version) is concerned


def test_names_that_a_known_deviation_is_about_are_excused(judge: TrainingJudge) -> None:
    """What is returned beside what one device returns: the gradient of a frozen parameter."""
    (known,) = (known for known in judge.known if known.id == "torch-sequence-frozen")
    training = loads(known.case.read_text(encoding="utf-8"))
    strategy = STRATEGIES["torch-sequence-rows"]
    assert judge.examine(training, strategy, 2).excused == (known.id,)
    found = TrainingJudge(judge.pools).examine(training, strategy, 2)
    assert found.discrepancy is not None
    assert "with gradient.l1.bias" in found.discrepancy.message
