"""Variants are run: once on each set of inputs for what they return, then in interleaved rounds for how long it takes.

A worker keeps the models that it has opened, so that a round measures calls only: one that is not timed, since other
variants have run since, and one that is."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from harness.conversions.model_file import Signature, opening, plain
from harness.conversions.route import ORDERED
from harness.execute.pool import HarnessError, Job, Pool
from harness.models.given.decoding import Course
from harness.models.given.inputs import Sets
from harness.models.variants import Variant
from oracles.judge.outcome import Crash, Outcome, Rejected, Unsupported, Value

CONTAINERS = (Path(__file__).parent / "helpers" / "containers.py").read_text(encoding="utf-8")
_LOAD = """
def load(parameters):
    import time

    inputs, outputs, call = opened_model()
    taken = ordered(inputs, list(INPUTS))
    # too few or too many are told as such
    given = ordered(outputs, RETURNED) if len(outputs) == len(RETURNED) else None

    def run(*inputs):
        arrays = [dict(zip(INPUTS, inputs))[name] for name in taken]
        for _ in range(WARM_UP):
            call(*arrays)
        started = time.perf_counter()
        results = call(*arrays)
        seconds = np.array(time.perf_counter() - started)
        if given and len(results) == len(outputs):  # else it is told as such, too
            results = [results[given.index(name)] for name in RETURNED]
        return [seconds, *(array for result in results for _, array in spread("", result))]

    return run
"""


@dataclass
class Run:
    """What came of a variant. outcomes: for each set of inputs; seconds: of each round, on the first set; repeats: what
    each round returned; stopped: what came instead of a value in a round (None: nothing); course: of sets that follow
    from others (None: none do); fed: what the variant was given where its own outputs are a part of it, by set."""

    variant: Variant
    outcomes: list[Outcome] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    repeats: list[tuple[np.ndarray, ...]] = field(default_factory=list)
    stopped: Outcome | None = None
    course: Course | None = None
    fed: dict[int, tuple[np.ndarray, ...]] = field(default_factory=dict)

    @property
    def single(self) -> list[Outcome]:
        """What came of the sets that follow from no other."""
        return self.outcomes if self.course is None else self.outcomes[: self.course.start]

    def given(self, sets: Sets, number: int) -> tuple[np.ndarray, ...]:
        """The inputs that it had in a set."""
        return self.fed.get(number, sets[number])

    @property
    def complete(self) -> bool:
        """Did it return something for every set?"""
        return all(isinstance(outcome, Value) for outcome in self.outcomes)


def job_of(
    variant: Variant, ports: Signature, arrays: Sequence[np.ndarray], warm_up: int, trust: bool, turn: str = ""
) -> Job:
    """One call of a variant. ports: of the model as it was given, in whose order arrays are and results come back; the
    first array that comes back is the time that it took; turn: which of several calls it is, so that none stands for
    another."""
    runner, path = variant.runner, variant.file.path
    names, outputs = ([port.name for port in side] for side in (ports.inputs, ports.outputs))
    settings = f"RETURNED = {outputs!r}\nWARM_UP = {warm_up}\n"
    text = f"{opening(runner, path, names, trust)}\n{settings}TURN = {turn!r}\n{ORDERED}\n{CONTAINERS}\n{_LOAD}"
    return Job(runner.framework, runner.modules, text, dict(zip(names, arrays, strict=True)), reads=(path,))


def _told(variant: Variant, outcome: Outcome) -> Outcome:
    """Without the time; an exception by which the runner says what it documents not to have is no fault."""
    if isinstance(outcome, Value):
        return Value(outcome.outputs[1:], outcome.cpu)
    if isinstance(outcome, Rejected):
        for pattern, why in variant.runner.refuses:
            match = re.search(pattern, f"{outcome.kind}: {outcome.message}")
            if match:
                return Unsupported(why.format(*match.groups()))
    return outcome


def called(
    pool: Pool, variant: Variant, ports: Signature, arrays: Sequence[np.ndarray], trust: bool = False
) -> Outcome:
    """What comes of one set of inputs. Where Dissent's own text is wrong, or what is installed is not to be had after
    all, that is no result of the variant, and no end of the others."""
    try:
        (outcome,) = pool.run([job_of(variant, ports, arrays, 0, trust)])
    except HarnessError as error:
        return Unsupported(f"a fault of Dissent: {plain(str(error).splitlines()[0])}")
    return _told(variant, outcome)


def once(
    pool: Pool,
    variants: Sequence[Variant],
    ports: Signature,
    sets: Sets,
    trust: bool = False,
    progress: Callable[[str], None] = lambda name: None,
    course: Course | None = None,
) -> Iterator[Run]:
    """Each variant as soon as it has run once on each set. course: of those that follow from others, whose outputs each
    variant is given back; where these are missing, what came in their place stands for what follows."""
    for number, variant in enumerate(variants):
        progress(f"{number + 1} of {len(variants)} variants: {variant.name}")
        run = Run(variant, course=course)
        for place, arrays in enumerate(sets):
            before = course.before(place) if course else None
            if course and before is not None:
                last = run.outcomes[before]
                if not isinstance(last, Value):
                    run.outcomes.append(last)
                    continue
                try:
                    arrays = run.fed[place] = course.cache.fed(arrays, last.outputs)
                except IndexError:
                    run.outcomes.append(Rejected("IndexError", "the cache is missing in what the call before returned"))
                    continue
            run.outcomes.append(called(pool, variant, ports, arrays, trust))
        yield run


def time(
    pool: Pool,
    runs: Sequence[Run],
    ports: Signature,
    sets: Sets,
    rounds: int,
    seed: int,
    warm_up: int = 1,
    trust: bool = False,
    progress: Callable[[str], None] = lambda name: None,
) -> Iterator[int]:
    """Rounds, one after the other, of all variants that returned something for every set; in each the order is drawn
    anew. A round that is not ended leaves nothing."""
    draw = random.Random(seed)
    among = hashlib.sha256("\n".join(run.variant.name for run in runs if run.complete).encode()).hexdigest()[:16]
    for number in range(rounds):
        timed = [run for run in runs if run.complete and run.stopped is None]
        order, found = draw.sample(timed, len(timed)), []
        progress(f"round {number + 1} of {rounds}: {len(order)} variants")
        for run in order:
            turn = f"round {number} of {seed} of {among}"  # timed beside others a variant is another one
            try:
                found += pool.run([job_of(run.variant, ports, sets[0], warm_up, trust, turn)])
            except HarnessError as error:
                found.append(Crash("a fault of Dissent", plain(str(error).splitlines()[0])))
        for run, outcome in zip(order, found, strict=True):
            if isinstance(outcome, Value):
                run.seconds.append(float(outcome.outputs[0]))
                run.repeats.append(outcome.outputs[1:])
            else:
                run.stopped = outcome
        yield number + 1
