"""Training runs: a network, its data and how it is trained, drawn and by seed; as JSON and as arrays."""

from __future__ import annotations

import json
import keyword
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import combinations
from math import prod

import numpy as np
from hypothesis import strategies as st

from generators.graphs import HypothesisDraw, SeededDraw
from generators.ops.spec import Draw
from generators.schema import SchemaError, converted, parsed
from generators.training.blocks import draw_network, thawed
from generators.training.networks import (
    INPUT,
    TABLES,
    Layer,
    Network,
    NetworkError,
    checked,
    columns_of,
    parameters_of,
    ragged,
    result_of,
)
from generators.training.settings import OPTIMIZERS, RARE, Settings, draw_settings

Arrays = Mapping[str, np.ndarray]
LARGEST = 2**16
"""Elements of an array, and any number, of a run that is read."""
MOST = 256
"""Layers of such a run."""


class TrainingError(ValueError):
    """A training run that makes no sense, or a file that holds none; the message says where."""


@dataclass(frozen=True)
class Training:
    """A network, how it is trained, and the seed of its initial parameters and of its data."""

    network: Network
    settings: Settings
    seed: int

    @property
    def traits(self) -> frozenset[str]:
        """What it is made of, in words: kinds of layers (`embedding` for bags, too), optimiser, loss, dtype, and
        whether it is frozen in places (`frozen table`: in one), tied, idle in places, clipped, penalised, weighted, in
        parts, some of them empty, and whether bags are means (`mean bag`)."""
        network, settings = self.network, self.settings
        words = {
            "frozen": bool(network.frozen),
            "frozen table": any(bag.frozen for bag in network.bags),
            "mean bag": any(bag.numbers.get("mean", 0) for bag in network.bags),
            "tied": any(layer.tied for layer in network.layers),
            "idle": bool(network.idle),
            "clipped": settings.clip > 0,
            "penalised": settings.penalty > 0,
            "weighted": settings.weighted,
            "parts": settings.accumulate > 1,
            "empty": 0 in settings.part_sizes,
            "embedding": not set(TABLES).isdisjoint(network.kinds),
        }
        named = {*network.kinds, settings.optimizer, settings.loss, settings.dtype}
        return frozenset(named | {word for word, holds in words.items() if holds})

    def __str__(self) -> str:
        layers = "\n".join(
            f"{layer.name}: {layer.kind}({', '.join(layer.inputs)}"
            + "".join(f", {key}={value}" for key, value in layer.attrs)
            + (f", weight of {layer.tied}" if layer.tied else "")
            + (f", frozen {' '.join(layer.frozen)}" if layer.frozen else "")
            + f"): {list(layer.shape)}"
            for layer in self.network.layers
        )
        kind = f"integers below {self.network.vocabulary}" if self.network.vocabulary else "numbers"
        return f"x: {list(self.network.shape)} {kind}\n{layers}\n{self.settings}, seed {self.seed}"


def arrays_of(training: Training) -> dict[str, np.ndarray]:
    """What every run of it is given: `x`, `y` and `coefficient` by sample, `initial.NAME` by parameter.

    Parameters are normal with deviation 1/sqrt(fan-in); scales are near one and biases near zero, so that no two
    samples or units are alike. Data are normal, labels uniform; columns that bags take are integers, the last one their
    lengths where these differ, those that masks take are zero or the inverse of the part that is kept. Each array has a
    generator of its own, so that an array keeps its values when another one goes."""
    network, settings = training.network, training.settings

    def rng(name: str) -> np.random.Generator:
        return np.random.default_rng([training.seed, zlib.crc32(name.encode())])

    n, dtype = settings.samples, settings.stored
    if network.vocabulary:
        x = rng("x").integers(0, network.vocabulary, (n, *network.shape))
    else:
        x = rng("x").standard_normal((n, *network.shape)).astype(dtype)
        for layer in (*network.bags, *network.masks):
            first, last = columns_of(layer, network.shapes)
            own, size = rng(f"x.{layer.name}"), (n, last - first)
            if layer.kind == "embedding_bag":
                x[:, first:last] = own.integers(0, layer.numbers["vocabulary"], size)
                if ragged(layer):
                    x[:, last - 1] = rng(f"x.{layer.name}.length").integers(0, layer.numbers["count"] + 1, n)
            else:
                kept = layer.numbers["keep"] / 100
                x[:, first:last] = (own.random(size) < kept) / kept
    classes = network.output[-1]
    if settings.loss == "cross_entropy":
        y = rng("y").integers(0, classes, n)
    else:
        y = rng("y").standard_normal((n, *network.output)).astype(dtype)
    arrays = {"x": x, "y": y, "coefficient": _coefficients(settings, rng("coefficient")).astype(dtype)}
    for name, shape in network.parameters.items():
        values = rng(name).standard_normal(shape)
        if len(shape) == 1:
            values = values / 8 + (1.0 if name.endswith("weight") else 0.0)
        else:
            values = values / np.sqrt(np.prod(shape[1:]))
        arrays[f"initial.{name}"] = values.astype(dtype)
    return arrays


def _coefficients(settings: Settings, rng: np.random.Generator) -> np.ndarray:
    """What each sample's loss counts: its weight, by the sum of the weights of its batch where the loss is a mean."""
    weights = rng.integers(1, 9, settings.samples) / 4 if settings.weighted else np.ones(settings.samples)
    if settings.reduction == "mean":
        for first, last in settings.batches_of_an_epoch:
            weights[first:last] /= weights[first:last].sum()
    return weights


def draw_training(d: Draw, most: int = 4) -> Training:
    """A run of a network of at most `most` blocks."""
    training = Training(draw_network(d, most), draw_settings(d), d.integer(0, 2**31 - 1))
    penalty = d.choice((0.0, 0.0, 0.0, 0.0, 2.0**-6, 2.0**-3))
    return replace(training, settings=replace(training.settings, penalty=penalty))


@st.composite
def trainings(draw: st.DrawFn, most: int = 4) -> Training:
    """Training runs, as a Hypothesis strategy."""
    return draw_training(HypothesisDraw(draw), most)


def seeded_training(seed: int, number: int, most: int = 4, turn: int = 0) -> Training:
    """The training run with this number of the hunt with this seed; with a turn, another one in its place."""
    return draw_training(SeededDraw(f"training/{seed}/{number}" + f"/{turn}" * bool(turn)), most)


def without(training: Training, *names: str) -> Training | None:
    """The run without these layers, the result of each replaced by its first input, and without what nothing uses any
    more; None where the rest does not fit then, or nothing is left."""
    layers = training.network.layers
    for gone in [layer for layer in layers if layer.name in names]:
        source = next(layer for layer in layers if layer.name == gone.name).inputs[0]
        layers = tuple(
            replace(
                layer,
                inputs=tuple(source if i == gone.name else i for i in layer.inputs),
                tied="" if layer.tied == gone.name else layer.tied,
            )
            for layer in layers
            if layer.name != gone.name
        )
    return pruned(training, layers) if layers else None


def alone(training: Training, name: str, last: bool) -> Training | None:
    """The run of one layer, which is given data of the shape of its first input (or the very columns that it takes),
    its result flattened, and with the last layer behind it if `last` says so; the sum of two layers, where one has the
    weight of the other. None where that makes no run."""
    network = training.network
    layer = next(layer for layer in network.layers if layer.name == name)
    own = layer.kind in TABLES
    shape = network.shape if own else network.shapes[layer.inputs[0]]
    kept = [replace(layer, inputs=(INPUT,))]
    if layer.tied:
        kept.insert(0, replace(next(la for la in network.layers if la.name == layer.tied), inputs=(INPUT,)))
        kept.append(Layer("sum", "add", (layer.tied, name), ()))
    if len(layer.shape) > 1:
        kept.append(Layer("flat", "flatten", (kept[-1].name,), ()))
    if last and network.layers[-1].name not in {layer.name for layer in kept}:
        kept.append(replace(network.layers[-1], inputs=(kept[-1].name,), tied=""))
    base = replace(training, network=replace(network, shape=shape, vocabulary=network.vocabulary if own else 0))
    return fitted(base, tuple(kept))


def pruned(training: Training, layers: tuple[Layer, ...]) -> Training | None:
    """The run with these layers, but for those that nothing uses any more; None where the rest does not fit."""
    smaller = fitted(training, layers)
    gone = set(smaller.network.idle) - set(training.network.idle) if smaller else set()
    if not gone:
        return smaller
    kept = (la for la in layers if la.name not in gone)
    return fitted(training, tuple(replace(la, tied="" if la.tied in gone else la.tied) for la in kept))


def plainer(training: Training, multiple: int) -> Iterator[Training]:
    """The run without one of the things that strategies have reasons to refuse, then without more and more of them,
    then without any two: a penalty, clipped gradients, shared weights, layers that nothing uses, layers of each
    kind in LEFT_OUT, an optimiser that not every framework has, last batches or parts that are not a multiple of so
    many samples, frozen parameters, and all that optimisers do beside a step of plain SGD."""
    without_kinds = (partial(_without_kind, kind) for kind in LEFT_OUT)
    steps = (
        unpenalised,
        _unclipped,
        _used_once,
        *without_kinds,
        with_sgd,
        partial(_even, multiple),
        _thawed,
        _with_plain_sgd,
    )
    for step in steps:
        yield step(training)
    current = training
    for step in steps:
        current = step(current)
        yield current
    for one, other in combinations(steps, 2):
        yield other(one(training))


LEFT_OUT = ("dropout", "batch_norm", "attention", "gru", "lstm", "interaction", "embedding_bag")
"""Kinds of layers that a run goes without where a strategy refuses them."""


def unpenalised(training: Training) -> Training:
    """The run without squares of parameters in its loss."""
    return replace(training, settings=replace(training.settings, penalty=0.0))


def _unclipped(training: Training) -> Training:
    return replace(training, settings=replace(training.settings, clip=0.0))


def _used_once(training: Training) -> Training:
    layers = tuple(replace(la, tied="") for la in training.network.layers if la.name not in training.network.idle)
    return fitted(training, layers) or training


def _without_kind(kind: str, training: Training) -> Training:
    """A dense layer in the place of each, where its result has another shape than what it is given; else nothing."""
    for name in [layer.name for layer in training.network.layers if layer.kind == kind]:
        layer = next((layer for layer in training.network.layers if layer.name == name), None)
        if layer:  # it may be gone with an earlier one
            same = training.network.shapes[layer.inputs[0]] == layer.shape or kind == "embedding_bag"
            # what is left may be frozen
            runs = (training, replace(training, network=thawed(training.network)))
            smaller = [without(run, name) if same else _dense(run, layer) for run in runs]
            training = smaller[0] or smaller[1] or training
    return training


def _dense(training: Training, old: Layer) -> Training | None:
    new = Layer(old.name, "linear", old.inputs[:1], old.shape, (("features", old.shape[-1]), ("bias", 1)))
    return pruned(training, tuple(new if layer.name == old.name else layer for layer in training.network.layers))


def with_sgd(training: Training) -> Training:
    """The run with SGD in the place of an optimiser that not every framework has."""
    settings = training.settings
    if settings.optimizer not in RARE:
        return training
    options = tuple((name, values[0]) for name, values in OPTIMIZERS["sgd"].items())
    return replace(training, settings=replace(settings, optimizer="sgd", options=options))


def _with_plain_sgd(training: Training) -> Training:
    """With SGD without momentum or decay, at one rate, a step for each batch."""
    options = tuple((name, values[0]) for name, values in OPTIMIZERS["sgd"].items())
    settings = replace(training.settings, optimizer="sgd", options=options, accumulate=1, clip=0.0, decay=1.0)
    return replace(training, settings=settings)


def _thawed(training: Training) -> Training:
    return replace(training, network=thawed(training.network))


def _even(multiple: int, training: Training) -> Training:
    batch = -(-training.settings.batch // multiple) * multiple
    return replace(training, settings=replace(training.settings, batch=batch, samples=2 * batch, accumulate=1))


def fitted(training: Training, layers: tuple[Layer, ...]) -> Training | None:
    """The run with these layers, the shapes of their results worked out anew; None where they do not fit."""
    network = replace(training.network, layers=())
    for layer in layers:
        try:
            shaped = replace(layer, shape=result_of(layer, network.shapes))
        except (NetworkError, KeyError):
            return None
        network = replace(network, layers=(*network.layers, shaped))
    return valid(replace(training, network=network))


def valid(training: Training) -> Training | None:
    """The run, if its layers fit each other and share weights of one shape, and something is trained."""
    network = training.network
    try:
        checked(network)
    except NetworkError:
        return None
    shapes = network.shapes
    weights = {la.name: parameters_of(la, shapes[la.inputs[0]]).get("weight") for la in network.layers}
    if any(la.tied and weights.get(la.tied) != weights[la.name] for la in network.layers):
        return None
    return training if network.trained and len(network.output) == 1 else None


def dumps(training: Training) -> str:
    """The run as JSON text."""
    return json.dumps(asdict(training), indent=1) + "\n"


def loads(text: str) -> Training:
    """Read what `dumps` wrote. Raises TrainingError on anything that it does not understand."""
    try:
        training = converted(parsed(text), Training)
        _check_size(training)
        checked(training.network)
        arrays = {**training.network.parameters, "x": (training.settings.samples, *training.network.shape)}
    except (SchemaError, NetworkError, TrainingError) as error:
        raise TrainingError(f"not a training run: {error}") from error
    except (LookupError, ArithmeticError) as error:
        raise TrainingError(f"not a training run: a layer lacks {error}") from error
    for name, shape in arrays.items():
        if prod(shape) > LARGEST:
            raise TrainingError(f"not a training run: {name} has more than {LARGEST} elements")
    return training


def _check_size(training: Training) -> None:
    """Raises TrainingError where a run has a number, or more layers, than any that can be run."""
    network, settings = training.network, training.settings
    if not 0 < len(network.layers) <= MOST or not 0 <= network.vocabulary <= LARGEST:
        raise TrainingError(f"$.network: {len(network.layers)} layers, vocabulary {network.vocabulary}")
    for name, numbers in (
        ("x", network.shape),
        *((la.name, (*la.shape, *la.numbers.values())) for la in network.layers),
    ):
        if any(not 0 <= number <= LARGEST for number in numbers) or len(numbers) > 32 or not name.isidentifier():
            raise TrainingError(f"$.network.layers: {name!r} has a number below 0 or above {LARGEST}, or is no name")
    if keyword.iskeyword(name := next((la.name for la in network.layers if keyword.iskeyword(la.name)), "")):
        raise TrainingError(f"$.network.layers: {name!r} is a keyword of Python")
    if max(settings.samples, settings.steps, settings.accumulate) > LARGEST or not 0 <= training.seed < 2**63:
        raise TrainingError("$.settings: too many samples, steps or parts, or a seed below 0 or above 2**63")
