"""Training runs under a distribution strategy with a fault on one rank: in a layer of its replica, or in its copy of a
gradient after all ranks have added theirs up. The strategy is another one, with a piece more, the last of its
program (helpers/*_rank.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from generators.faults.fault import Fault, Injection, injection
from generators.training.runs import Training, arrays_of
from harness.execute.ranks import RankOutputs, RankPools
from harness.strategies import STRATEGIES
from harness.strategies.jax import program as jax
from harness.strategies.strategy import Strategy
from harness.strategies.tensorflow import program as tensorflow
from harness.studies.faults.injection import canonical, printed, struck_model, text_of
from harness.training.programs import program

_HELPERS = {"torch": "torch_steps", "tensorflow": "tensorflow_layer", "jax": "jax_layer"}
_FORWARD: Mapping[str, Callable[..., list[str]]] = {"tensorflow": tensorflow.forward, "jax": jax.forward}
_NAMED = (
    "tf-mirrored", "tf-mirrored-reduction", "tf-mirrored-hierarchical", "tf-mirrored-eager", "tf-mirrored-sparse",
    "tf-central-storage", "tf-multi-worker", "jax-shard-map", "jax-pmap",
)  # fmt: skip
"""With a replica for each rank in their programs. Left out are those in which a struck replica would meet the others
once more (statistics that are synchronised), or whose step is another one (XLA, servers, `fit`)."""
ABLE: Mapping[str, Strategy] = {
    name: strategy
    for name, strategy in STRATEGIES.items()
    if name in _NAMED or (strategy.framework == "torch" and strategy.replicas)
}
"""Strategies that a fault can strike one rank of."""


def struck_strategy(strategy: Strategy, training: Training, fault: Fault, done: Injection | None) -> Strategy:
    """The strategy with the fault on the rank `fault.worker`, in the step `fault.step` of the run. done: what it does;
    None: the array is looked at, and is among what the rank returns, as `state.captured`."""
    described, arrays = printed(fault, done, fault.step)
    given = {name: f"np.array({array.tolist()}, {str(array.dtype)!r})" for name, array in arrays.items()}
    state = ", ".join(f"{name!r}: {text}" for name, text in given.items())
    head = f"FAULT = {described!r}\nGUARDED = False\nWORKER = {fault.worker}\nSTATE = {{{state}}}\n"
    text = head + text_of(f"helpers/{_HELPERS[strategy.framework]}.py", f"helpers/{strategy.framework}_rank.py")
    if strategy.framework in _FORWARD and fault.site.computed:
        forward = _FORWARD[strategy.framework](training.network, False)
        text += struck_model(strategy.framework, training.network, forward, fault.site)
    return replace(strategy, pieces={**strategy.pieces, "fault": text})


def inject_on_rank(pools: RankPools, training: Training, strategy: Strategy, world: int, fault: Fault) -> Injection:
    """What the fault does to the array on its rank. Raises ValueError where the run has no result, or the array cannot
    be struck."""
    array = captured(pools, training, strategy, world, fault)
    return injection(array, fault.strike(array))


def unchanged(done: Injection) -> Injection:
    """The same places, with what they had before: a program with a fault in it that does nothing."""
    return replace(done, put=done.before, keep=0)


def captured(pools: RankPools, training: Training, strategy: Strategy, world: int, fault: Fault) -> np.ndarray:
    """The array that the fault would strike, channels last; one without elements where its rank has no samples in this
    step. Raises ValueError where the run has no result."""
    looked = struck_strategy(strategy, training, fault, None)
    text = program(training, looked)
    outcome = pools.run(
        looked.modules, looked.processes(world), text, arrays_of(training), looked.variables(world), looked.environment
    )
    if not isinstance(outcome, RankOutputs):
        raise ValueError(f"no result: {outcome}")
    found = outcome.ranks[0 if strategy.one_process else fault.worker]
    return canonical(next(array for name, array in found.items() if name.startswith("state.captured")), fault.site)
