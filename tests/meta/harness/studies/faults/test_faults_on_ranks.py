"""A fault on one rank of a distribution strategy."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from generators.faults.fault import FORWARD, REDUCED, TO_INPUT, TO_WEIGHT, Fault, Site
from generators.training.networks import Layer, Network
from generators.training.runs import Training, arrays_of, fitted
from generators.training.settings import Settings
from harness.commands.app import app_of
from harness.execute.ranks import RankOutputs, RankPools
from harness.strategies import STRATEGIES
from harness.strategies.strategy import Strategy
from harness.studies.faults.ranks.struck import inject_on_rank, struck_strategy, unchanged
from harness.training.judge import TrainingJudge
from harness.training.programs import program

pytestmark = pytest.mark.distributed
SETTINGS = Settings(
    "mse", "mean", False, 8, 8, 2, 1, 0.0, 1.0, "sgd",
    (("lr", 0.125), ("momentum", 0.0), ("weight_decay", 0.0), ("nesterov", 0.0)), "float32",
)  # fmt: skip
LAYERS = (
    Layer("l0", "linear", ("x",), (), (("features", 5), ("bias", 1))),
    Layer("l1", "tanh", ("l0",), ()),
    Layer("l2", "linear", ("l1",), (), (("features", 3), ("bias", 1))),
)
DDP = STRATEGIES["torch-ddp"]


def made() -> Training:
    training = fitted(Training(Network((4,), 0, ()), SETTINGS, 7), LAYERS)
    assert training is not None
    return training


def ranks(pools: RankPools, strategy: Strategy) -> tuple:
    given = strategy.modules, strategy.processes(2), program(made(), strategy), arrays_of(made())
    outcome = pools.run(*given, strategy.variables(2), "")
    assert isinstance(outcome, RankOutputs), outcome
    return outcome.ranks


SITES = (
    Site("l2", FORWARD, "input"), Site("l2", TO_INPUT, "weight"), Site("l2", TO_WEIGHT, "output"),
    Site("l2", REDUCED, "weight"),
)  # fmt: skip


@pytest.mark.slow
def test_one_replica_is_struck() -> None:
    """Bit for bit the same where the fault does nothing."""
    with RankPools() as pools:
        plain = ranks(pools, DDP)
        judge = TrainingJudge(pools)
        for site in SITES:
            flip = Fault("FLIP", site, 0, 1, 1, 3, chosen=(28,))
            done = inject_on_rank(pools, made(), DDP, 2, flip)
            same = ranks(pools, struck_strategy(DDP, made(), flip, unchanged(done)))
            for rank, other in zip(plain, same, strict=True):
                assert {k: v.tobytes() for k, v in rank.items()} == {k: v.tobytes() for k, v in other.items()}, site
            faulty = struck_strategy(DDP, made(), flip, done)
            first, second = ranks(pools, faulty)
            together = all(np.array_equal(first[name], second[name]) for name in first)
            assert together == (site.stage != REDUCED)  # what is added up spreads, what comes after does not
            assert judge.examine(made(), faulty, 2).status == "mismatch", site


@pytest.mark.slow(ci=3)
@pytest.mark.parametrize("name", ["tf-mirrored-reduction", "tf-multi-worker", "jax-shard-map"])
def test_one_replica_of_compiled_programs_is_struck(name: str) -> None:
    """As what one replica has is half of what a batch has, the array is that of PyTorch, but for the last bits and the
    factor of a mean; a program with a fault that does nothing agrees, one with a fault does not."""
    strategy = STRATEGIES[name]
    with RankPools() as pools:
        judge = TrainingJudge(pools)
        for site in SITES:
            flip = Fault("FLIP", site, 0, 1, 1, 3, chosen=(28,))
            done, other = (inject_on_rank(pools, made(), one, 2, flip) for one in (strategy, DDP))
            mean = 2 if site in SITES[1:3] else 1  # DistributedDataParallel averages over the ranks
            weight = 1 if site.array == "weight" and site.stage == TO_INPUT else mean
            assert (done.shape, done.ranges) == (other.shape, other.ranges)
            assert np.allclose(done.values[0] * weight, other.values[0], rtol=1e-5), site
            same = judge.examine(made(), struck_strategy(strategy, made(), flip, unchanged(done)), 2)
            assert same.status == "agree", site
            found = judge.examine(made(), struck_strategy(strategy, made(), flip, done), 2)
            assert found.status == "mismatch", site
            if site.stage == REDUCED and strategy.one_process:
                assert found.part == "apart.parameters"


@pytest.mark.slow
def test_a_study_of_gradients_on_one_rank(tmp_path: Path) -> None:
    given = ["study", "rank-faults", "--runs", "3", "--each", "2", "--models", "CHANNEL,FLIP"]
    files = ["--record", str(tmp_path / "r"), "--json", str(tmp_path / "a.json"), "--csv", str(tmp_path / "a.csv")]
    told = CliRunner().invoke(app_of(), [*given, *files])
    assert told.exit_code == 0, told.output
    found = json.loads((tmp_path / "a.json").read_text())["faults"]
    assert found
    assert any(one["visible"] for one in found)
    assert all(bool(one["said"]) == one["visible"] for one in found)  # replicas are apart: found without a tolerance
    assert len(found) == (tmp_path / "a.csv").read_text().count("\n") - 1
    again = CliRunner().invoke(app_of(), [*given, *files])
    assert json.loads((tmp_path / "a.json").read_text())["faults"] == found
    assert again.exit_code == 0


def test_a_study_of_layers_on_one_rank(tmp_path: Path) -> None:
    """What is struck in one replica's layer spreads to all ranks alike; large numbers in a channel are found."""
    given = ["study", "rank-faults", "--runs", "3", "--each", "2", "--models", "CHANNEL", "--seed", "4"]
    found = CliRunner().invoke(app_of(), [*given, "--stages", "backward-weight", "--json", str(tmp_path / "a.json")])
    assert found.exit_code == 0, found.output
    told = json.loads((tmp_path / "a.json").read_text())["faults"]
    assert told
    assert {one["stage"] for one in told} == {TO_WEIGHT}
    assert any(one["visible"] and one["said"] for one in told)
    assert not any("is apart from rank 0" in one["said"] for one in told)


@pytest.mark.slow(ci=3)
@pytest.mark.parametrize("strategy", ["tf-mirrored-reduction", "jax-shard-map"])
def test_a_study_of_compiled_programs(strategy: str, tmp_path: Path) -> None:
    given = ["study", "rank-faults", "--strategy", strategy, "--runs", "3", "--each", "2", "--models", "CHANNEL"]
    stages = ["--stages", "forward,backward-weight,reduced-gradient", "--json", str(tmp_path / "a.json")]
    told = CliRunner().invoke(app_of(), [*given, *stages])
    assert told.exit_code == 0, told.output
    found = json.loads((tmp_path / "a.json").read_text())["faults"]
    assert any(one["visible"] and one["said"] for one in found)
    assert not any(one["said"] and not one["visible"] for one in found)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--strategy", "torch-fully-shard"], "no strategy of replicas is called 'torch-fully-shard'"),
        (["--models", "WARP"], "no fault model is called 'WARP'"),
        (["--stages", "sideways"], "no stage is called 'sideways'"),
        (["--models", "INPUT"], "none of these strikes a result"),
    ],
)
def test_what_cannot_strike_is_refused(given: list[str], message: str) -> None:
    told = CliRunner().invoke(app_of(), ["study", "rank-faults", *given])
    assert (told.exit_code, message in told.output) == (2, True), told.output


@pytest.mark.nightly
@pytest.mark.parametrize("how", [["--jobs", "2"], ["--engine", "ray", "--jobs", "2"]], ids=["processes", "ray"])
def test_processes_share_the_runs(how: list[str], tmp_path: Path) -> None:
    """The same faults as one process finds."""
    given = ["study", "rank-faults", "--runs", "3", "--each", "2", "--models", "CHANNEL,FLIP"]
    found = []
    for name, more in (("a", []), ("b", how)):
        files = ["--record", str(tmp_path / name), "--json", str(tmp_path / f"{name}.json")]
        told = CliRunner().invoke(app_of(), [*given, *files, *more])
        assert told.exit_code == 0, told.output
        found.append(json.loads((tmp_path / f"{name}.json").read_text())["faults"])
    assert sorted(found[0], key=str) == sorted(found[1], key=str)
    assert found[0]
