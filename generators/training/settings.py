"""How a network is trained: loss, data, batches, optimiser, precision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from generators.ops.spec import Draw

LOSSES = ("mse", "smooth_l1", "cross_entropy")
REDUCTIONS = ("mean", "sum")
FLOATS = ("float32", "float64")
DTYPES = (*FLOATS, "mixed")
"""mixed: parameters, optimiser and loss in float32, layers in bfloat16 where a strategy's policy has it so."""
OPTIMIZERS: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "sgd": {"lr": (0.125, 0.5, 2.0), "momentum": (0.0, 0.875), "weight_decay": (0.0, 0.0625), "nesterov": (0.0, 1.0)},
    "adam": {"lr": (0.03125, 0.125), "eps": (1e-3, 1e-8), "weight_decay": (0.0, 0.0625), "amsgrad": (0.0, 1.0)},
    "adamw": {"lr": (0.03125, 0.125), "eps": (1e-3, 1e-8), "weight_decay": (0.0625, 0.0)},
    "rmsprop": {"lr": (0.03125, 0.125), "eps": (1e-3, 1e-6), "momentum": (0.0, 0.5)},
    "adagrad": {"lr": (0.03125, 0.25), "eps": (1e-3, 1e-10), "initial_accumulator_value": (0.0, 0.25)},
    "adamax": {"lr": (0.03125, 0.125), "eps": (1e-3, 1e-8), "weight_decay": (0.0, 0.0625)},
    "nadam": {"lr": (0.03125, 0.125), "eps": (1e-3, 1e-8), "weight_decay": (0.0, 0.0625)},
    "lamb": {"lr": (0.03125, 0.125), "eps": (1e-3, 1e-6), "weight_decay": (0.0, 0.0625)},
}
"""What each optimiser takes, and from which values it is drawn, the simplest first. Powers of two are the same number
in every dtype."""
RARE = ("lamb",)
"""Optimisers that not every framework has."""


class SettingsError(ValueError):
    """Settings that contradict each other."""


@dataclass(frozen=True)
class Settings:
    """samples:    in the data; an epoch goes through all of them in order, the next one begins again
    batch:      samples of a step over all ranks; the last batch of an epoch has what is left
    accumulate: parts that a batch comes in, whose gradients are added before the optimiser's step
    clip:       greatest norm of all gradients together (0: not clipped)
    decay:      factor of the learning rate after each step
    options:    the optimiser's, by name
    penalty:    times the sum of the squares of all that is trained, which is added to the loss (0: nothing)"""

    loss: str
    reduction: str
    weighted: bool
    samples: int
    batch: int
    steps: int
    accumulate: int
    clip: float
    decay: float
    optimizer: str
    options: tuple[tuple[str, float], ...]
    dtype: str
    penalty: float = 0.0

    def __post_init__(self) -> None:
        for value, known, what in (
            (self.loss, LOSSES, "loss"),
            (self.reduction, REDUCTIONS, "reduction"),
            (self.dtype, DTYPES, "dtype"),
            (self.optimizer, tuple(OPTIMIZERS), "optimizer"),
        ):
            if value not in known:
                raise SettingsError(f"unknown {what} {value!r}; there are {', '.join(known)}")
        if min(self.samples, self.batch, self.steps, self.accumulate) < 1 or self.batch > self.samples:
            raise SettingsError(
                "samples, batch, steps and parts are positive, and a batch is not more than the samples"
            )
        options = dict(self.options)
        if set(options) != set(OPTIMIZERS[self.optimizer]):
            raise SettingsError(f"{self.optimizer} takes {', '.join(OPTIMIZERS[self.optimizer])}")
        if options.get("nesterov") and not options["momentum"]:
            raise SettingsError("Nesterov's method needs momentum")

    def __str__(self) -> str:
        options = ", ".join(f"{key}={value:g}" for key, value in self.options)
        extra = [f"clipped to {self.clip:g}"] if self.clip else []
        extra += [f"{self.penalty:g} times the squares"] if self.penalty else []
        extra += [f"rate times {self.decay:g} a step"] if self.decay != 1 else []
        extra += [f"in {self.accumulate} parts"] if self.accumulate > 1 else []
        return ", ".join(
            [
                f"{self.reduction} of {'weighted ' if self.weighted else ''}{self.loss} in {self.dtype}",
                f"{self.steps} steps of {self.batch} of {self.samples} samples",
                f"{self.optimizer}({options})",
                *extra,
            ]
        )

    @property
    def stored(self) -> str:
        """The dtype of data, parameters, optimiser and loss."""
        return "float32" if self.dtype == "mixed" else self.dtype

    @property
    def batches_of_an_epoch(self) -> tuple[tuple[int, int], ...]:
        """First sample and the one after the last, of each batch."""
        return tuple((i, min(i + self.batch, self.samples)) for i in range(0, self.samples, self.batch))

    @property
    def batches(self) -> tuple[tuple[int, int], ...]:
        """The batch of each step."""
        epoch = self.batches_of_an_epoch
        return tuple(epoch[step % len(epoch)] for step in range(self.steps))

    @property
    def part_sizes(self) -> frozenset[int]:
        """Samples in the parts of batches, whose gradients are added up: as even as there is."""
        sizes = {last - first for first, last in self.batches}
        return frozenset(
            n // self.accumulate + (i < n % self.accumulate) for n in sizes for i in range(self.accumulate)
        )


def draw_settings(d: Draw) -> Settings:
    """Settings of 1 to 20 steps; batches that the ranks divide evenly, unevenly, or that are smaller than the world."""
    batch = d.choice((4, 8, 6, 5, 3, 2, 1))
    samples = batch * d.choice((1, 2)) + (d.integer(1, batch) if d.integer(0, 2) == 2 else 0)
    name = d.choice(tuple(OPTIMIZERS))
    options = {key: d.choice(values) for key, values in OPTIMIZERS[name].items()}
    if options.get("nesterov") and not options["momentum"]:
        options["nesterov"] = 0.0
    return Settings(
        loss=d.choice(LOSSES),
        reduction=d.choice(REDUCTIONS),
        weighted=d.boolean(),
        samples=samples,
        batch=batch,
        steps=d.choice((1, 2, 3, 5, 1, 2, 3, 20)),
        accumulate=d.choice((1, 1, 1, 2, 3)),
        clip=d.choice((0.0, 0.0, 0.0, 0.5)),
        decay=d.choice((1.0, 1.0, 0.5)),
        optimizer=name,
        options=tuple(options.items()),
        dtype=d.choice(("float32", "float32", "float32", "float64", "mixed")),
    )
