"""Times training steps of named networks with the deterministic mode on and off, in turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from generators.training.architectures import architecture
from generators.training.blocks import Layers
from generators.training.networks import INPUT, Network, checked
from harness.execute.pool import Limits, Pool
from harness.studies.loops import draws
from harness.studies.loops.loop import Loop
from harness.studies.loops.train import Part, Trained, train

KERNELS = range(1, 8)
"""Sizes of the windows of convolutions that are timed by themselves, as the paper does."""


def kernel_network(kernel: int, shape: tuple[int, ...], classes: int, channels: int = 64) -> Network:
    """Three convolutions with windows of one size, and a dense layer: what a kernel costs is most of it. Windows of
    even size lose a row and a column."""
    made, value = Layers(shape), INPUT
    for _ in range(3):
        value = made.add("conv2d", value, channels=channels, kernel=kernel, stride=1, bias=1)
        value = made.add("relu", value)
    made.add("linear", made.add("mean", value), features=classes, bias=1)
    return checked(Network(shape, 0, tuple(made.layers)))


def networks(names: tuple[str, ...], kernels: tuple[int, ...], side: int, width: int) -> dict[str, Network]:
    """By name, for pictures of 3 x side x side and ten classes. Raises NetworkError."""
    shape = (3, side, side)
    found = {name: architecture(name, shape, 10, width) for name in names}
    return found | {f"kernel {size}x{size}": kernel_network(size, shape, 10, width or 64) for size in kernels}


@dataclass(frozen=True)
class Timed:
    """Seconds of processor time of each round of steps, by turns without and with determinism."""

    framework: str
    network: str
    steps: int
    batch: int
    default: tuple[float, ...]
    deterministic: tuple[float, ...]

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
    with Pool(limits) as one, Pool(limits) as two:
        pools = (one, two)
        state = loops[0].begin(draws.initial(one, loops[0], 0))

        def run(mode: int, count: int) -> Trained:
            part = Part(np.tile(x, (count, 1, 1, 1)), np.tile(y, count), np.full(count, 1e-3), *empty)
            return train(pools[mode], loops[mode], state, part)

        for mode in (0, 1):
            run(mode, 1)  # compiles
        for number in range(rounds):
            for mode in (0, 1) if number % 2 == 0 else (1, 0):
                seconds[mode].append(run(mode, steps).cpu)
            told()
    return Timed(framework, name, steps, batch, tuple(seconds[0]), tuple(seconds[1]))
