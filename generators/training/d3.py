"""The models and data of D3's protocol (J. Deng et al., Differential Testing of Distributed Deep Learning with Model
Generation): quarters of models, inputs that are uniform in [0, 1), one step with a learning rate of 10."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from generators.graphs import SeededDraw
from generators.ops.spec import Draw
from generators.training.blocks import Layers
from generators.training.networks import INPUT, Network, checked, columns_of, parameters_of
from generators.training.runs import Training, arrays_of
from generators.training.settings import Settings

QUARTERS = ("dlrm", "dlrm-frozen", "generated", "generated-frozen")
"""What the models are, in turn. dlrm is a recommendation model (Naumov et al., 2019): a dense tower on numbers, tables
with a bag of rows of each, the products of all pairs of these vectors as interaction, a dense tower on top."""
FREEZES = ("layer", "parameter")
"""What of a frozen model is not trained: all of one layer (TensorFlow), or one weight or bias (PyTorch)."""
INPUTS = 1000
"""A training's seed is its model's times this, and the number of its input."""
RATE = 10.0
"""It amplifies differences."""
CLASSES = 10


@dataclass(frozen=True)
class Protocol:
    """What models and inputs are drawn by. batch: samples of the one step; image: side of images of three channels;
    freeze: one of FREEZES."""

    seed: int
    batch: int
    image: int
    freeze: str


def quarter_of(number: int) -> str:
    """The quarter that the model with this number belongs to."""
    return QUARTERS[number % len(QUARTERS)]


def study_training(protocol: Protocol, model: int, data: int) -> Training:
    """The training of the model with this number on the input with that number, which is below INPUTS."""
    if not 0 <= data < INPUTS:
        raise ValueError(f"input {data} is not below {INPUTS}")
    d = SeededDraw(f"d3/{protocol.seed}/{model}")
    family, *frozen = quarter_of(model).split("-")
    network = _dlrm(d) if family == "dlrm" else _generated(d, protocol.image)
    if frozen:
        network = _frozen(d, network, protocol.freeze)
    return Training(checked(network), _settings(protocol.batch), d.integer(0, 2**20) * INPUTS + data)


def study_arrays(training: Training) -> dict[str, np.ndarray]:
    """What every run of it is given, as `arrays_of`: initial parameters by the model alone, labels and inputs by both.
    Inputs are uniform in [0, 1); columns that bags take are integers, uniform below the vocabulary."""
    initial = arrays_of(replace(training, seed=training.seed // INPUTS))
    given = {name: array for name, array in initial.items() if name.startswith("initial.")}
    rng = np.random.default_rng([training.seed, zlib.crc32(b"uniform")])
    uniform = rng.random((training.settings.samples, *training.network.shape), np.float32)
    x = uniform.astype(training.settings.dtype)
    for bag in training.network.bags:
        first, last = columns_of(bag, training.network.shapes)
        x[:, first:last] = np.floor(uniform[:, first:last].astype(np.float64) * bag.numbers["vocabulary"])
    return {**arrays_of(training), **given, "x": x}


def _settings(batch: int) -> Settings:
    options: Mapping[str, float] = {"lr": RATE, "momentum": 0.0, "weight_decay": 0.0, "nesterov": 0.0}
    return Settings(
        loss="cross_entropy", reduction="mean", weighted=False, samples=batch, batch=batch, steps=1, accumulate=1,
        clip=0.0, decay=1.0, optimizer="sgd", options=tuple(options.items()), dtype="float32",
    )  # fmt: skip


class _Layers(Layers):
    """With towers."""

    def tower(self, value: str, sizes: list[int], activation: str) -> str:
        """Dense layers, each with an activation behind it."""
        for size in sizes:
            value = self.add(activation, self.add("linear", value, features=size, bias=1))
        return value


def _dlrm(d: Draw) -> Network:
    width, size = d.choice((4, 8)), d.choice((4, 8))
    counts = [d.choice((2, 3, 1)) for _ in range(d.integer(2, 4))]
    made = _Layers((width + sum(counts),))
    numbers = made.add("columns", INPUT, first=0, width=width)
    vectors = [made.tower(numbers, [d.choice((8, 16))] * d.integer(0, 1) + [size], "relu")]
    for count in counts:
        vocabulary, mean = d.choice((11, 23, 50)), int(d.boolean())
        bag = made.add(
            "embedding_bag", INPUT, first=width, features=size, count=count, vocabulary=vocabulary, mean=mean
        )
        vectors.append(bag)
        width += count
    value = made.add("interaction", *vectors)
    top = made.tower(value, [d.choice((16, 8, 12)) for _ in range(d.integer(1, 2))], d.choice(("relu", "sigmoid")))
    made.add("linear", top, features=CLASSES, bias=1)
    return Network(made.shapes[INPUT], 0, tuple(made.layers))


def _generated(d: Draw, image: int) -> Network:
    """A chain, or a graph in which values that were there before are added again."""
    made, joins = _Layers((3, image, image)), d.boolean()
    value = made.add("conv2d", INPUT, channels=d.choice((4, 8)), kernel=3)
    for _ in range(d.integer(1, 4)):
        kind = d.choice(("conv2d", "batch_norm", "layer_norm", "relu", "tanh", "sigmoid", "gelu"))
        channels = made.shapes[value][0]
        if kind == "conv2d":
            size = channels if joins else d.choice((4, 8))
            value = made.add("conv2d", value, channels=size, kernel=d.choice((3, 1)))
        else:
            value = made.add(kind, value)
        before = [layer.name for layer in made.layers[:-1] if layer.shape == made.shapes[value]]
        if joins and before and d.boolean():
            value = made.add("add", value, d.choice(before))
    value = made.tower(made.add("flatten", value), [d.choice((16, 8))] * d.integer(0, 1), "relu")
    made.add("linear", value, features=CLASSES, bias=1)
    return Network((3, image, image), 0, tuple(made.layers))


def _frozen(d: Draw, network: Network, freeze: str) -> Network:
    """The network with one layer, or one of its parameters, that is not trained; the last layer always is."""
    shapes = network.shapes
    own = {la.name: tuple(parameters_of(la, shapes[la.inputs[0]])) for la in network.layers[:-1]}
    name = d.choice([layer for layer, names in own.items() if names])
    frozen = own[name] if freeze == "layer" else (d.choice(own[name]),)
    layers = (replace(la, frozen=frozen) if la.name == name else la for la in network.layers)
    return replace(network, layers=tuple(layers))
