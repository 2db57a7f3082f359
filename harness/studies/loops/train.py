"""Runs loops on the workers of a pool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from harness.execute.pool import Job, Pool
from harness.studies.loops.loop import CURVES, TESTED, Loop
from harness.studies.loops.programs import MODULES, program
from oracles.judge.outcome import Outcome, Value

Arrays = Mapping[str, np.ndarray]


class LoopError(RuntimeError):
    """A loop that did not return; the message says which framework, and how it ended."""


@dataclass(frozen=True)
class Part:
    """What is done next in a run. x, y: samples in the order in which batches are cut from them; rates: a learning rate
    a step; test_x, test_y: tested after the last step, if there are any; given: what the loop's probe takes."""

    x: np.ndarray
    y: np.ndarray
    rates: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    given: Arrays = field(default_factory=dict)


@dataclass(frozen=True)
class Trained:
    """state: after the part; found: CURVES, TESTED and what the loop has more, by name; cpu: processor seconds."""

    state: Arrays
    found: Arrays
    cpu: float


def job(loop: Loop, state: Arrays, part: Part) -> Job:
    """The program of the loop and its arrays: a worker that has run it before has its step compiled."""
    data = {"x": part.x, "y": part.y, "rates": part.rates, "test_x": part.test_x, "test_y": part.test_y}
    return Job(loop.framework, MODULES[loop.framework], program(loop), {**state, **data, **part.given})


def trained(loop: Loop, outcome: Outcome) -> Trained:
    """What a job of this loop returned. Raises LoopError."""
    if not isinstance(outcome, Value):
        raise LoopError(f"{loop.framework}: {outcome}")
    named = dict(zip((*loop.state, *CURVES, *TESTED, *loop.more), outcome.outputs, strict=True))
    found = {name: named.pop(name) for name in (*CURVES, *TESTED, *loop.more)}
    return Trained(named, found, outcome.cpu)


def train(pool: Pool, loop: Loop, state: Arrays, part: Part) -> Trained:
    """Go on from a state. Raises LoopError, and what a pool raises."""
    return trained(loop, pool.run([job(loop, state, part)])[0])
