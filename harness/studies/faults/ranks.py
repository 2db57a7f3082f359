"""A fault on one rank of a distribution strategy of PyTorch: in a layer of its replica, or in its copy of a gradient
after all ranks have added theirs up. The strategy is another one, with a piece around its backward pass.

A study draws training runs and faults, and says which of them the oracle of ranks finds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from generators.faults import bits
from generators.faults.fault import (
    FORWARD,
    REDUCED,
    TO_INPUT,
    TO_WEIGHT,
    Fault,
    Injection,
    Site,
    injection,
    models_for,
    seeded_fault,
    sites_of,
)
from generators.faults.models import FaultModel
from generators.training.runs import Training, arrays_of
from harness.execute.ranks import RankOutputs, RankPools
from harness.strategies.strategy import Strategy
from harness.strategies.torch.program import SINGLE_DEVICE
from harness.studies.faults.injection import HERE, canonical, native
from harness.training.judge import Arrays, TrainingJudge, drawn_for
from harness.training.programs import program
from oracles.determinism import same

_AROUND = """

FAULT = {fault!r}
GUARDED = False
STATE = {{"fault.index": np.array({index}, np.int64), "fault.put": np.array({put}, "{integer}")}}
FOUND = {{"captured": np.zeros(0), "step": 0, "passes": 0}}


def backward(subject, x, y, coefficient, last, world):
    here, inner = dist.get_rank() == {worker} and FOUND["step"] == FAULT["step"], module(subject)
    named = dict(inner.named_parameters())
    computed = FAULT["stage"] != "{reduced}"
    site = struck(inner, named, dict(inner.named_buffers()), None, STATE, FOUND) if here else nothing()
    with site if computed and not FOUND["passes"] else nothing():  # the first of the passes of a step
        loss = fault_free_backward(subject, x, y, coefficient, last, world)
    if here and last and not computed:
        gradient = named[FAULT["layer"] + "." + FAULT["array"]].grad
        gradient.copy_(site.strike(gradient))
    FOUND["passes"] = 0 if last else FOUND["passes"] + 1
    FOUND["step"] += last
    return loss
"""
_CAPTURED = """

def states(subject, optimizer):
    return {**fault_free_states(subject, optimizer), "captured": torch.from_numpy(FOUND["captured"].copy())}
"""


def struck_strategy(strategy: Strategy, fault: Fault, done: Injection | None) -> Strategy:
    """The strategy with the fault on the rank `fault.worker`, in the step `fault.step` of the run. done: what it does;
    None: the array is looked at, and is among what the rank returns, as `state.captured`."""
    pieces = {**SINGLE_DEVICE, **strategy.pieces}
    described = {
        "layer": fault.site.layer, "stage": fault.site.stage, "array": fault.site.array, "step": fault.step, "lasts": 1,
        "keep": 0, "capture": done is None,
    }  # fmt: skip
    index, put, width = [], [], 32
    if done:
        strike, width = done.strike, bits.WIDTHS[done.dtype]
        index = native(done.shape, fault.site)[strike.places].tolist()
        put = strike.put.view(f"int{width}").tolist()
        described["keep"] = int(np.array(done.keep, f"uint{width}").view(f"int{width}"))
    own = pieces["backward"].replace("def backward(", "def fault_free_backward(")
    around = _AROUND.format(
        fault=described, index=index, put=put, integer=f"int{width}", worker=fault.worker, reduced=REDUCED
    )
    text = (HERE / "helpers/torch_steps.py").read_text(encoding="utf-8")
    changed = {"backward": f"{text.rstrip()}\n\n\n{own.strip()}\n{around}"}
    if done is None:
        changed["states"] = (
            pieces["states"].replace("def states(", "def fault_free_states(").rstrip() + "\n" + _CAPTURED
        )
    return replace(strategy, pieces={**strategy.pieces, **changed})


def inject_on_rank(pools: RankPools, training: Training, strategy: Strategy, world: int, fault: Fault) -> Injection:
    """What the fault does to the array on its rank. Raises ValueError where the run has no result, or the array cannot
    be struck."""
    array = _captured(pools, training, strategy, world, fault)
    return injection(array, fault.strike(array))


def _captured(pools: RankPools, training: Training, strategy: Strategy, world: int, fault: Fault) -> np.ndarray:
    """The array that the fault would strike; one without elements where its rank has no samples in this step."""
    looked = struck_strategy(strategy, fault, None)
    text = program(training, looked)
    outcome = pools.run(
        looked.modules, looked.processes(world), text, arrays_of(training), looked.variables(world), looked.environment
    )
    if not isinstance(outcome, RankOutputs):
        raise ValueError(f"no result: {outcome}")
    return canonical(outcome.ranks[fault.worker]["state.captured"], fault.site)


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
    sites = _sites(training, stages)
    if right.status != "agree" or not any(models_for(site, models) for site in sites):
        return
    steps = len(training.settings.batches)
    for turn in range(turns):
        fault = seeded_fault(seed, number * MOST_TURNS + turn, sites, (0,), steps, ranks=world, models=models)
        array = _captured(pools, training, strategy, world, fault)
        if not array.size:
            continue
        done = injection(array, fault.strike(array))
        found, after = judge.observe(training, struck_strategy(strategy, fault, done), world)
        told = found.discrepancy
        yield RankFault(
            strategy.name, world, number, turn, training.settings.optimizer, training.settings.dtype, fault.model,
            fault.site.layer, fault.site.stage, fault.site.array, fault.worker, fault.step,
            sum(count for _, count in done.ranges), _visible(before, after), found.status,
            f"{told.symptom}: {told.message}" if told else "", _finite(before) == _finite(after),
        )  # fmt: skip


def _sites(training: Training, stages: Sequence[str]) -> list[Site]:
    """In mixed precision no layer is struck: autocast rounds its operands behind its back."""
    network, mixed = training.network, training.settings.dtype == "mixed"
    able = {la.name for la in network.layers if la.kind in LAYERS and not la.tied and not mixed}
    return [
        site for site in sites_of(network, ranks=2)
        if site.stage in stages and (site.stage == REDUCED or site.layer in able)
    ]  # fmt: skip


def _visible(before: Sequence[Arrays], after: Sequence[Arrays]) -> bool:
    if not after:
        return True
    return any(not same(own[name], other[name]) for own, other in zip(before, after, strict=True) for name in own)


def _finite(ranks: Sequence[Arrays]) -> list[tuple[str, bool]]:
    return [(name, bool(np.isfinite(array).all())) for rank in ranks for name, array in sorted(rank.items())]
