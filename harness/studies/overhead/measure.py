"""Times training steps of named networks with the deterministic mode on and off, in turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from generators.training.architectures.named import architecture
from generators.training.architectures.plain import mediumcnn
from generators.training.networks import Network, NetworkError
from harness.execute.pool import Limits, Pool
from harness.studies.loops import draws
from harness.studies.loops.loop import Loop
from harness.studies.loops.train import Part, Trained, train
from harness.studies.overhead.kernels import profiled, read

KERNELS = range(1, 8)
"""Sizes of the windows of convolutions that are timed by themselves, as the paper does."""


PROFILED = 5
"""Most steps of a round under a profiler."""
Kernel = tuple[str, int, int]
"""Its name, and its nanoseconds without the deterministic mode and with it, of all profiled steps."""


def networks(
    names: tuple[str, ...], kernels: tuple[int, ...], side: int, width: int
) -> tuple[dict[str, Network], dict[str, str]]:
    """By name, for pictures of 3 x side x side and ten classes, `kernel 3x3` for mediumcnn with such windows; and why
    others cannot be had."""
    shape, found, refused = (3, side, side), {}, {}
    for name in names:
        try:
            found[name] = architecture(name, shape, 10, width)
        except NetworkError as error:
            refused[name] = str(error)
    return found | {f"kernel {size}x{size}": mediumcnn(shape, 10, width, size) for size in kernels}, refused


@dataclass(frozen=True)
class Timed:
    """Seconds of processor time of each round of steps, by turns without and with determinism. kernels: of one more
    round of each, of `profiled` steps, under the framework's profiler."""

    framework: str
    network: str
    steps: int
    batch: int
    default: tuple[float, ...]
    deterministic: tuple[float, ...]
    profiled: int = 0
    kernels: tuple[Kernel, ...] = ()

    @property
    def ratio(self) -> float:
        """Of the medians, with determinism over without."""
        return float(np.median(self.deterministic) / np.median(self.default))

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the greatest ratio of two rounds that ran one after the other."""
        each = np.array(self.deterministic) / np.array(self.default)
        return float(each.min()), float(each.max())


def time_one(
    framework: str, name: str, network: Network, *, steps: int, rounds: int, batch: int, timeout: float, device: str,
    told: Callable[[], None] = lambda: None,
) -> Timed:  # fmt: skip
    """Rounds of so many steps, one without and one with the deterministic mode in turn, each in a process of its own
    that has compiled its step before."""
    rng = np.random.default_rng(0)
    x = rng.random((batch, *network.shape), dtype=np.float32)
    y = rng.integers(0, network.output[0], batch)
    loops = [Loop(framework, network, "sgd", batch=batch, deterministic=mode, device=device) for mode in (False, True)]
    empty = np.zeros((0, *network.shape), np.float32), y[:0]
    limits = Limits(seconds=timeout, memory=0, recycle=0)
    seconds: tuple[list[float], list[float]] = [], []
    with Pool(limits, shared=False) as one, Pool(limits, shared=False) as two:
        pools = (one, two)
        state = loops[0].begin(draws.initial(one, loops[0], 0))

        def run(mode: int, count: int, of: Callable[[Loop], Loop] = lambda loop: loop) -> Trained:
            part = Part(np.tile(x, (count, 1, 1, 1)), np.tile(y, count), np.full(count, 1e-3), *empty)
            return train(pools[mode], of(loops[mode]), state, part)

        for mode in (0, 1):
            run(mode, 1)  # compiles
        for number in range(rounds):
            for mode in (0, 1) if number % 2 == 0 else (1, 0):
                seconds[mode].append(run(mode, steps).cpu)
            told()
        count = min(steps, PROFILED)
        shown = [read(run(mode, count, profiled)) for mode in (0, 1)]
    return Timed(framework, name, steps, batch, tuple(seconds[0]), tuple(seconds[1]), count, by_kernel(*shown))


def by_kernel(default: Mapping[str, int], deterministic: Mapping[str, int]) -> tuple[Kernel, ...]:
    """Both beside each other, 0 for what did not run, those that take longest in one of them first."""
    rows = [(name, default.get(name, 0), deterministic.get(name, 0)) for name in {**default, **deterministic}]
    return tuple(sorted(rows, key=lambda row: (-max(row[1:]), row[0])))
