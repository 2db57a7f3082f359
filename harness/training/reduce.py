"""Smaller training runs that still fail: fewer layers, steps, samples, ranks and options. Works on any predicate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from generators.networks import Layer
from generators.settings import OPTIMIZERS, Settings, SettingsError
from generators.training import Training, fitted, pruned, valid, without
from harness.reduce import Budget

Fails = Callable[[Training, int], bool]
PLAIN = {name: tuple((key, values[0]) for key, values in options.items()) for name, options in OPTIMIZERS.items()}
"""Each optimiser with the first value of each of its options."""


def reduce_training(
    training: Training, world: int, worlds: tuple[int, ...], fails: Fails, budget: Budget
) -> tuple[Training, int]:
    """The smallest run and number of ranks found, never larger than what is given. Ranks come first: every other
    attempt costs less then. worlds: the numbers of ranks that there may be."""
    for fewer in sorted(w for w in worlds if 1 < w < world):
        if budget.spend() and fails(training, fewer):
            world = fewer
            break
    improved = True
    while improved:
        improved = False
        for candidate in candidates(training):
            if not budget.spend():
                return training, world
            if fails(candidate, world):
                training, improved = candidate, True
                break
    return training, world


def candidates(training: Training) -> Iterator[Training]:
    """Runs one step simpler, those that save most first; all of them valid."""
    yield from (t for change in _settings(training.settings) if (t := valid(replace(training, settings=change))))
    for layer in reversed(training.network.layers[:-1]):
        smaller = without(training, layer.name)
        if smaller:
            yield smaller
    for number, layer in enumerate(training.network.layers):
        before, after = training.network.layers[:number], training.network.layers[number + 1 :]
        for fewer in _fewer(layer):
            smaller = pruned(training, (*before, fewer, *after))
            if smaller:
                yield smaller
        for simpler in _simpler(layer):
            smaller = fitted(training, (*before, simpler, *after))
            if smaller:
                yield smaller


def _settings(s: Settings) -> Iterator[Settings]:
    """Settings one step simpler."""
    changes: list[dict] = []
    if s.steps > 1:
        changes += [{"steps": 1}, {"steps": s.steps // 2}, {"steps": s.steps - 1}]
    if s.samples > s.batch:
        changes += [{"samples": s.batch}]
        changes += [{"samples": s.samples - 1}]
    for batch in (1, 2, s.batch // 2, s.batch - 1):
        if 1 <= batch < s.batch:
            changes.append({"batch": batch, "samples": max(batch, s.samples - s.batch + batch)})
            changes.append({"batch": batch, "samples": batch})
    changes += [{"accumulate": 1}] if s.accumulate > 1 else []
    changes += [{"clip": 0.0}] if s.clip else []
    changes += [{"decay": 1.0}] if s.decay != 1 else []
    changes += [{"weighted": False}] if s.weighted else []
    changes += [{"reduction": "mean"}] if s.reduction != "mean" else []
    changes += [{"loss": "mse"}] if s.loss != "mse" else []
    changes += [{"dtype": "float32"}] if s.dtype != "float32" else []
    if s.optimizer != "sgd":
        changes += [{"optimizer": "sgd", "options": PLAIN["sgd"]}]
    for place, (key, value) in enumerate(s.options):
        if value != PLAIN[s.optimizer][place][1]:
            options = (*s.options[:place], (key, PLAIN[s.optimizer][place][1]), *s.options[place + 1 :])
            changes.append({"options": options})
    for change in changes:
        try:
            yield replace(s, **change)
        except SettingsError:  # Nesterov's method loses its momentum first
            continue


def _fewer(layer: Layer) -> Iterator[Layer]:
    """The layer with one input less, where it takes several of a kind."""
    if layer.kind == "interaction" and len(layer.inputs) > 2:
        for number in range(len(layer.inputs)):
            yield replace(layer, inputs=(*layer.inputs[:number], *layer.inputs[number + 1 :]))


def _simpler(layer: Layer) -> Iterator[Layer]:
    if layer.frozen:
        yield replace(layer, frozen=())
    if layer.tied:
        yield replace(layer, tied="")
    for key, least in LEAST.items():
        if layer.numbers.get(key, least) > least:
            yield replace(layer, attrs=tuple((k, least if k == key else v) for k, v in layer.attrs))


LEAST = {"features": 2, "channels": 1, "kernel": 1, "count": 1, "heads": 1, "mean": 0, "ragged": 0, "times": 1}
"""The simplest value of each attribute that can be made simpler."""
