"""The study of faults on one rank of a distribution strategy: it draws training runs and faults, and says which of them
the oracle of ranks finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from generators.faults.fault import (
    FORWARD,
    REDUCED,
    TO_INPUT,
    TO_WEIGHT,
    Site,
    injection,
    models_for,
    seeded_fault,
    sites_of,
)
from generators.faults.models import MODELS, FaultModel
from generators.training.runs import Training
from harness.execute.pool import HarnessError
from harness.execute.ranks import RankPools
from harness.strategies.strategy import Strategy
from harness.studies.faults.ranks.struck import ABLE, captured, struck_strategy, unchanged
from harness.training.judge import Arrays, TrainingJudge, drawn_for
from oracles.determinism import same

STAGES = (FORWARD, TO_INPUT, TO_WEIGHT, REDUCED)
LAYERS = ("linear", "conv2d", "batch_norm", "layer_norm", "relu", "tanh", "gelu", "sigmoid", "silu")
"""Kinds that a fault strikes: modules of one tensor, and with one as their result."""
MOST_TURNS = 1000
"""Faults of one training run."""


@dataclass(frozen=True)
class RankFault:
    """What became of one fault. number: of the training run; turn: of its faults; layer, stage, array: where (`Site`);
    worker: the rank; step: of the run; elements: struck; visible: did any bit change of what any rank returned? status,
    said: the judgement (`harness/training/judge.py`) and its message; finite: is all that ranks returned as finite as
    it is without the fault?"""

    strategy: str
    world: int
    number: int
    turn: int
    optimizer: str
    dtype: str
    model: str
    layer: str
    stage: str
    array: str
    worker: int
    step: int
    elements: int
    visible: bool
    status: str
    said: str
    finite: bool

    @property
    def caught(self) -> bool:
        return bool(self.said)


def rank_faults(
    pools: RankPools, strategy: Strategy, world: int, stages: Sequence[str], models: Sequence[FaultModel], seed: int,
    number: int, turns: int,
) -> Iterator[RankFault]:  # fmt: skip
    """So many faults at these stages, each on one rank of the training run with this number. None where the strategy
    takes no such run, the run does not agree as it is, or it has nothing that these models strike there; and none on a
    rank that has no samples in the step."""
    training = drawn_for(seed, number, 1, None, strategy, world)
    judge = TrainingJudge(pools)
    right, before = judge.observe(training, strategy, world)
    sites = _sites(training, stages, strategy)
    if right.status != "agree" or not any(models_for(site, models) for site in sites):
        return
    steps = len(training.settings.batches)
    for turn in range(turns):
        fault = seeded_fault(seed, number * MOST_TURNS + turn, sites, (0,), steps, ranks=world, models=models)
        array = captured(pools, training, strategy, world, fault)
        if not array.size:
            continue
        done = injection(array, fault.strike(array))
        if strategy.framework != "torch":  # a compiler may round the program with a fault in it in other ways
            _, before = judge.observe(training, struck_strategy(strategy, training, fault, unchanged(done)), world)
        found, after = judge.observe(training, struck_strategy(strategy, training, fault, done), world)
        told = found.discrepancy
        yield RankFault(
            strategy.name, world, number, turn, training.settings.optimizer, training.settings.dtype, fault.model,
            fault.site.layer, fault.site.stage, fault.site.array, fault.worker, fault.step,
            sum(count for _, count in done.ranges), _visible(before, after), found.status,
            f"{told.symptom}: {told.message}" if told else "", _finite(before) == _finite(after),
        )  # fmt: skip


def each_run(
    numbers: Iterable[int], keep: Callable[[Sequence[RankFault]], None], *, strategy: str, world: int,
    stages: Sequence[str], models: Sequence[str], seed: int, turns: int,
) -> None:  # fmt: skip
    """The training runs with these numbers, one after another; what a run gives is kept at once. Raises HarnessError
    where a run has no result when its array is looked at."""
    able = [MODELS[name] for name in models]
    with RankPools() as pools:
        for number in numbers:
            try:
                found = list(rank_faults(pools, ABLE[strategy], world, stages, able, seed, number, turns))
            except ValueError as error:
                raise HarnessError(str(error)) from error
            keep(found)


def undone(number: int, there: Sequence[RankFault]) -> int | None:
    """A run of which there is no fault among these; None where there is."""
    return None if number in {one.number for one in there} else number


def _sites(training: Training, stages: Sequence[str], strategy: Strategy) -> list[Site]:
    """In mixed precision no layer is struck: autocast rounds its operands behind its back. Where gradients are clipped,
    TensorFlow adds them up for all replicas in one place."""
    network, mixed = training.network, training.settings.dtype == "mixed"
    able = {la.name for la in network.layers if la.kind in LAYERS and not la.tied and not mixed}
    copies = strategy.framework != "tensorflow" or not training.settings.clip
    return [
        site for site in sites_of(network, ranks=2)
        if site.stage in stages and (copies if site.stage == REDUCED else site.layer in able)
    ]  # fmt: skip


def _visible(before: Sequence[Arrays], after: Sequence[Arrays]) -> bool:
    if not after:
        return True
    return any(not same(own[name], other[name]) for own, other in zip(before, after, strict=True) for name in own)


def _finite(ranks: Sequence[Arrays]) -> list[tuple[str, bool]]:
    return [(name, bool(np.isfinite(array).all())) for rank in ranks for name, array in sorted(rank.items())]
