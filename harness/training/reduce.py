"""Smaller training runs that still fail: fewer layers, steps, samples, ranks and options. Works on any predicate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations, islice

from generators.training.networks import Layer
from generators.training.runs import Training, alone, fitted, pruned, valid, without
from generators.training.settings import OPTIMIZERS, Settings, SettingsError
from harness.search.reduce import Budget

Fails = Callable[[Training, int], bool]
PLAIN = {name: tuple((key, values[0]) for key, values in options.items()) for name, options in OPTIMIZERS.items()}
"""Each optimiser with the first value of each of its options."""


def reduce_training(
    training: Training, world: int, worlds: tuple[int, ...], fails: Fails, budget: Budget
) -> tuple[Training, int]:
    """The smallest run and number of ranks found, never larger than what is given. Ranks come first, steps and most of
    the layers next: every other attempt costs less then. worlds: the numbers of ranks that there may be."""
    for fewer in sorted(w for w in worlds if 1 < w < world):
        if budget.spend() and fails(training, fewer):
            world = fewer
            break
    tried = {training}

    def still(candidate: Training) -> bool:
        if candidate in tried or not budget.spend():
            return False
        tried.add(candidate)
        return fails(candidate, world)

    before = None
    while training != before and budget.left:
        before = training
        for edits in EDITS:
            training = _exhaust(training, edits, still, budget)
    return training, world


def _exhaust(
    training: Training,
    edits: Callable[[Training], Iterator[Training]],
    still: Callable[[Training], bool],
    budget: Budget,
) -> Training:
    """One kind of edit, each once: after one that holds, those of the smaller run from the same place on."""
    place, left = 0, edits(training)
    while budget.left and (candidate := next(left, None)) is not None:
        if still(candidate):
            training, left = candidate, islice(edits(candidate), place, None)
        else:
            place += 1
    return training


def candidates(training: Training) -> Iterator[Training]:
    """Runs one edit simpler; all of them valid."""
    for edits in EDITS:
        yield from edits(training)


def _one_step(training: Training) -> Iterator[Training]:
    if training.settings.steps > 1:
        yield replace(training, settings=replace(training.settings, steps=1))


def _of_one_layer(training: Training) -> Iterator[Training]:
    """Runs of one layer with parameters, on data of its own, and of one and the last; where there are more."""
    layers = training.network.parameterised
    if len(layers) > 2:
        for layer in reversed(layers):
            yield from filter(None, (alone(training, layer.name, last) for last in (False, True)))


def _halves(training: Training) -> Iterator[Training]:
    """Runs without half of the layers, or a quarter, one behind the other."""
    names = [layer.name for layer in training.network.layers[:-1]]
    for size in (len(names) // 2, len(names) // 4):
        if size > 1:
            for end in range(len(names), 0, -size):
                yield from _without(training, names[max(0, end - size) : end])


def _layers(training: Training) -> Iterator[Training]:
    """Runs without one layer."""
    for layer in reversed(training.network.layers[:-1]):
        yield from _without(training, [layer.name])


def _pairs(training: Training) -> Iterator[Training]:
    """Runs without two layers of few: what one of them changes in shape the other one changes back."""
    names = [layer.name for layer in training.network.layers[:-1]]
    if len(names) <= 8:
        for one, other in combinations(reversed(names), 2):
            yield from _without(training, [one, other])


def _without(training: Training, names: list[str]) -> Iterator[Training]:
    smaller = without(training, *names)
    if smaller:
        yield smaller


def _details(training: Training) -> Iterator[Training]:
    """Runs whose layers have fewer inputs, or simpler attributes."""
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


def _settings(training: Training) -> Iterator[Training]:
    for change in _simpler_settings(training.settings):
        smaller = valid(replace(training, settings=change))
        if smaller:
            yield smaller


EDITS = (_one_step, _of_one_layer, _halves, _layers, _settings, _details, _pairs)
"""Those that save most first."""


def _simpler_settings(s: Settings) -> Iterator[Settings]:
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
    changes += [{"penalty": 0.0}] if s.penalty else []
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
