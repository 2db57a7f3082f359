"""Programs that draw with the framework's own random numbers: the first parameters of a network by its default
initialisers, and the order of the samples of an epoch by its shuffle."""

from __future__ import annotations

import numpy as np

from harness.execute.pool import Job, Pool
from harness.execute.templates import render
from harness.strategies.torch.program import definition
from harness.studies.loops.loop import Loop
from harness.studies.loops.programs import MODULES
from harness.studies.loops.train import LoopError
from oracles.judge.outcome import Value

STRIDE = 1_000_003
"""Seeds of the epochs of a run are as far apart as no two runs of a study are."""


def program(loop: Loop) -> str:
    """INPUTS: `seed`, and `samples`: how many there are to be put in order, or 0 for parameters."""
    return render(
        f"studies/loops/{loop.framework}_draws.py.j2",
        definition=definition(loop.network),
        shapes=loop.network.parameters,
        layers={layer.name: layer.kind for layer in loop.network.layers},
    )


def initial(pool: Pool, loop: Loop, seed: int) -> dict[str, np.ndarray]:
    """Parameters before the first step, by name, float32. Raises LoopError, and what a pool raises."""
    return dict(zip(loop.network.parameters, _drawn(pool, loop, seed, 0), strict=True))


def order(pool: Pool, loop: Loop, seed: int, epoch: int, samples: int) -> np.ndarray:
    """A permutation, int64, (samples,). Raises LoopError, and what a pool raises."""
    (found,) = _drawn(pool, loop, seed * STRIDE + epoch, samples)
    if not np.array_equal(np.sort(found), np.arange(samples)):
        raise LoopError(f"{loop.framework}: its shuffle of {samples} samples is no permutation")
    return found


def _drawn(pool: Pool, loop: Loop, seed: int, samples: int) -> tuple[np.ndarray, ...]:
    arrays = {"seed": np.array(seed, np.int64), "samples": np.array(samples, np.int64)}
    outcome = pool.run([Job(loop.framework, MODULES[loop.framework], program(loop), arrays)])[0]
    if not isinstance(outcome, Value):
        raise LoopError(f"{loop.framework}: {outcome}")
    return outcome.outputs
