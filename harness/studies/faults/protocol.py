"""The study of faults: optimisers train the same network from the same initial parameters on the same batches; the same
faults strike each of them at the same step, and what becomes of training is classified.

A fault-free run of each optimiser is stored at some steps, the points. An experiment starts from there, so that it
costs the steps after the fault only. This run and fault-free ones with other seeds are the band that outcomes are
judged by."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from generators.faults.bits import HALVES
from generators.faults.fault import Fault, Site, seeded_fault, sites_of
from generators.faults.models import MODELS
from generators.training.architectures.named import architecture
from generators.training.networks import Network
from harness.execute.pool import Pool
from harness.execute.processes.worker import versions_of
from harness.studies.datasets import load
from harness.studies.datasets.dataset import DataSet
from harness.studies.faults.injection import FRAMEWORKS, GUARDED, Watched, watched
from harness.studies.loops.loop import OPTIMIZERS, Loop
from harness.studies.loops.train import Arrays, Part
from oracles.outcomes import Band, Curves, band_of

RATES: Mapping[str, float] = {"sgd": 0.1, "momentum": 0.02, "adam": 1e-3, "rmsprop": 1e-3, "adagrad": 1e-2}
"""Learning rates that train the digits alike: after five epochs of batches of 64 more than 95 % of the test samples."""
PRECISIONS = ("float32", "float64", *HALVES)
"""With 16 bits, layers compute in them, with mixed precision (`Loop.compute`)."""
WITHOUT = ("add", "mean")
"""Kinds of layers in which no fault strikes: in PyTorch they are expressions of the program."""
POINTS = 3
"""Steps at which the fault-free run is stored."""


class PlanError(ValueError):
    """A study that cannot be run; the message says why."""


@dataclass(frozen=True)
class Plan:
    """What results depend on. after: steps after the fault, its own among them; warm: epochs before the first point;
    band: fault-free runs with other seeds; models: names of fault models; guarded: is each experiment repeated under
    the guard? train, test: samples of each (0: all); side: of pictures; rate: the learning rate (0: RATES)."""

    network: str = "smallcnn"
    dataset: str = "digits"
    framework: str = "torch"
    precision: str = "float32"
    optimizers: tuple[str, ...] = ("adam",)
    models: tuple[str, ...] = ()
    batch: int = 64
    width: int = 0
    warm: int = 3
    after: int = 200
    band: int = 20
    seed: int = 0
    guarded: bool = True
    train: int = 0
    test: int = 0
    side: int = 0
    rate: float = 0.0

    def __post_init__(self) -> None:
        for value, known, what in (
            *((name, tuple(OPTIMIZERS), "optimiser") for name in self.optimizers),
            *((name, tuple(MODELS), "fault model") for name in self.models),
            (self.framework, FRAMEWORKS, "framework whose loops take faults"),
            (self.precision, PRECISIONS, "precision"),
        ):
            if value not in known:
                raise PlanError(f"no {what} is called {value!r}; there are {', '.join(known)}")
        if len(set(self.optimizers)) != len(self.optimizers):
            raise PlanError("an optimiser is named twice")
        if min(self.batch, self.after, self.warm) < 1 or self.band < 3:
            raise PlanError("batch, steps and epochs are positive, and a band is of three runs at least")


@dataclass(frozen=True, eq=False)
class Start:
    """A point of the fault-free run of an optimiser: the state there, the bounds of a guard by then, and the band of
    the steps after it. state, bounds: by name; alarmed: numbers of fault-free runs, the band's from 1 and this one 0,
    in which the guard took a step for faulty until the last of these steps; again: how many steps of all these runs it
    had run again in vain, since they came out the same, of so many `steps`."""

    state: Arrays
    bounds: Arrays
    band: Band
    alarmed: tuple[int, ...] = ()
    again: int = 0
    steps: int = 0


@dataclass(frozen=True)
class Seen:
    """What a guard did in a part of a run: steps that it had run again, those of them that came out the same, and all
    steps."""

    alarms: int
    again: int
    steps: int


class Study:
    """A plan with its data."""

    def __init__(self, plan: Plan, folder: Path | None = None, at: tuple[int, int] | None = None) -> None:
        """folder: of the data set, where it has one; at: epoch and step of the only point. Raises PlanError, FileError
        and NetworkError."""
        self.plan, self._at = plan, at
        self.data: DataSet = load(plan.dataset, folder, plan.side, plan.train, plan.test)
        self.network: Network = architecture(plan.network, self.data.shape, len(self.data.classes), plan.width)
        if len(self.data.train) < plan.batch:
            raise PlanError(f"batches of {plan.batch} of {len(self.data.train)} samples")

    @property
    def about(self) -> dict[str, str]:
        """What results depend on, as text. Which optimisers there are besides decides only what is common to them."""
        plain = {name: str(value) for name, value in asdict(self.plan).items() if name != "optimizers"}
        return (
            plain
            | {"sites": f"{zlib.crc32(repr(self.sites).encode()):08x}"}
            | versions_of(["numpy", self.plan.framework])
        )

    def loop(self, optimizer: str) -> Loop:
        """The training program of an optimiser."""
        precision = self.plan.precision
        dtype, compute = ("float32", precision) if precision in HALVES else (precision, "")
        return Loop(self.plan.framework, self.network, optimizer, batch=self.plan.batch, dtype=dtype, compute=compute)

    @property
    def guarded(self) -> bool:
        """Can the guard go back in its loops?"""
        return self.plan.framework in GUARDED

    @property
    def epoch(self) -> int:
        """Steps of an epoch. Batches are whole: what is left over waits for the next epoch's order."""
        return len(self.data.train) // self.plan.batch

    @cached_property
    def points(self) -> tuple[int, ...]:
        """Steps from the beginning at which faults may strike, drawn from the seed."""
        if self._at:
            epoch, step = self._at
            if not 0 <= step < self.epoch:
                raise PlanError(f"an epoch has steps 0 to {self.epoch - 1}, and no step {step}")
            return (epoch * self.epoch + step,)
        rng = np.random.default_rng([self.plan.seed, 1])
        first = self.plan.warm * self.epoch
        return tuple(int(first + number * self.epoch + rng.integers(self.epoch)) for number in range(POINTS))

    @property
    def sites(self) -> tuple[Site, ...]:
        """What faults may strike in the runs of all optimisers."""
        loops = [self.loop(name) for name in self.plan.optimizers]
        common = [slot for slot in loops[0].slots if all(slot in loop.slots for loop in loops)]
        kinds = {layer.name: layer.kind for layer in self.network.layers}
        statistics = tuple(dict.fromkeys(name.partition(".")[2] for name in loops[0].statistics))
        found = sites_of(self.network, common, statistics)
        return tuple(site for site in found if not (site.computed and kinds[site.layer] in WITHOUT))

    def fault(self, number: int) -> Fault:
        """The fault with this number: the same for every optimiser."""
        models = [MODELS[name] for name in self.plan.models]
        options = {"models": models} if models else {}
        drawn = seeded_fault(self.plan.seed, number, self.sites, range(len(self.points)), 1, **options)
        epoch, step = divmod(self.points[drawn.epoch], self.epoch)
        half = self.plan.precision if self.plan.precision in HALVES else drawn.half
        return replace(drawn, epoch=epoch, step=step, half=half)

    def parameters(self, seed: int) -> dict[str, np.ndarray]:
        """Initial ones: weights normal with variance 2 / fan-in (K. He et al., Delving Deep into Rectifiers, 2015),
        biases 0, scales 1."""
        found = {}
        for name, shape in self.network.parameters.items():
            rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
            if len(shape) == 1:
                found[name] = np.full(shape, float(name.endswith("weight")))
            else:
                found[name] = rng.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))
        return found

    def part(self, optimizer: str, seed: int, first: int, last: int, tested: bool) -> Part:
        """Steps of the run with this seed, from `first` to before `last`; every epoch has an order of its own."""
        rows = []
        for epoch in range(first // self.epoch, -(-last // self.epoch)):
            order = np.random.default_rng([seed, 2, epoch]).permutation(len(self.data.train))
            rows.append(order[: self.epoch * self.plan.batch])
        begin = first // self.epoch * self.epoch
        chosen = np.concatenate(rows)[(first - begin) * self.plan.batch : (last - begin) * self.plan.batch]
        few = slice(None) if tested else slice(0)
        rates = np.full(last - first, self.plan.rate or RATES[optimizer])
        x, y = self.data.train[chosen], self.data.train_labels[chosen]
        return Part(x, y, rates, self.data.test[few], self.data.test_labels[few])

    def curves(self, runs: Sequence[Watched]) -> Curves:
        """What outcomes are judged by, of parts one behind the other, the last of which was tested: a run that broke
        off goes on as not finite."""
        series = {
            name: np.concatenate([{**run.trained.found, **run.shown}[name] for run in runs])
            for name in ("loss", "accuracy", "history", "variance", "finite")
        }
        missing = self.plan.after - len(series["loss"])
        lost = {name: np.full(missing, 0.0 if name == "finite" else np.nan) for name in series}
        loss, accuracy, history, variance, finite = (np.concatenate([series[name], lost[name]]) for name in series)
        right = float(np.mean(runs[-1].trained.found["predictions"] == self.data.test_labels))
        tested = len(self.data.test_labels)
        return Curves(loss, accuracy, finite > 0, right, history, variance, self.plan.batch, tested)

    def starts(self, pool: Pool, optimizer: str) -> list[Start]:
        """The points of an optimiser, with their bands. Raises LoopError."""
        seeds = [self.plan.seed, *(self.plan.seed + 1000 + number for number in range(self.plan.band))]
        runs = [self._points(pool, optimizer, seed) for seed in seeds]
        found = []
        for point, (state, bounds, _, _) in enumerate(runs[0]):
            seen = [run[point][3] for run in runs]
            alarmed = tuple(number for number, one in enumerate(seen) if one.alarms > one.again)
            band = band_of([run[point][2] for run in runs])
            found.append(Start(state, bounds, band, alarmed, sum(s.again for s in seen), sum(s.steps for s in seen)))
        return found

    def _points(self, pool: Pool, optimizer: str, seed: int) -> list[tuple[Arrays, Arrays, Curves, Seen]]:
        """Of a fault-free run, guarded: the state at each point, the bounds, the curves after it, and what the guard
        did until then."""
        loop, ends = self.loop(optimizer), [point + self.plan.after for point in self.points]
        state: Arrays = loop.begin(self.parameters(seed))
        bounds: Arrays | None = None
        at: dict[int, tuple[Watched, Arrays]] = {}
        stops = sorted({*self.points, *ends})
        for first, last in zip((0, *stops), stops, strict=False):
            run = watched(
                pool, loop, state, self.part(optimizer, seed, first, last, last in ends), self.guarded, bounds
            )
            state, bounds = run.trained.state, {"bounds": run.shown.get("bounds", np.zeros(0))}
            at[last] = run, bounds
        found = []
        for point, end in zip(self.points, ends, strict=True):
            runs = [run for stop, (run, _) in at.items() if point < stop <= end]
            before = [run for stop, (run, _) in at.items() if stop <= end]
            alarms, again = (sum(len(run.shown[name]) for run in before) for name in ("alarms", "repeated"))
            seen = Seen(alarms, again, sum(len(run.trained.found["loss"]) for run in before))
            found.append((at[point][0].trained.state, at[point][1], self.curves(runs), seen))
        return found

    def state_at(self, pool: Pool, optimizer: str, point: int) -> Arrays:
        """The state of the fault-free run at a point. Raises LoopError."""
        loop, step = self.loop(optimizer), 0
        state: Arrays = loop.begin(self.parameters(self.plan.seed))
        for later in self.points[: point + 1]:
            state = watched(pool, loop, state, self.part(optimizer, self.plan.seed, step, later, False)).trained.state
            step = later
        return state

    def point_of(self, fault: Fault) -> int:
        """Which of the points a fault strikes at. Raises PlanError."""
        step = fault.epoch * self.epoch + fault.step
        if step not in self.points:
            raise PlanError(f"the fault-free run is not stored at step {fault.step} of epoch {fault.epoch}")
        return self.points.index(step)


def experiments(plan: Plan, count: int) -> Iterator[tuple[int, str]]:
    """Numbers of faults and optimisers, a fault at a time."""
    for number in range(count):
        for optimizer in plan.optimizers:
            yield number, optimizer


def operators_of(network: Network) -> dict[str, str]:
    """Kinds of layers by name."""
    return {layer.name: layer.kind for layer in network.layers}


def depth_of(network: Network, layer: str) -> float:
    """Where a layer stands, from 0 (the first) to 1 (the last)."""
    names: Sequence[str] = [la.name for la in network.layers]
    return names.index(layer) / max(1, len(names) - 1)
