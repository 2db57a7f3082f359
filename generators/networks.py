"""Models that can be trained: layers with parameters, each fed by earlier ones, typed by sample (the batch comes
first everywhere and is not written down)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from generators.ops.spec import Draw

Shape = tuple[int, ...]
Attrs = tuple[tuple[str, int], ...]

ACTIVATIONS = ("tanh", "gelu", "sigmoid", "silu", "relu")
INPUT = "x"


class NetworkError(ValueError):
    """Layers that do not fit each other; the message names the first one."""


@dataclass(frozen=True)
class Layer:
    """One layer. inputs: names of earlier layers, or `x`; attrs: what its kind needs, in order; tied: the layer whose
    weight this one shares; frozen: names of its parameters that are not trained; shape: of its result, a sample."""

    name: str
    kind: str
    inputs: tuple[str, ...]
    shape: Shape
    attrs: Attrs = ()
    tied: str = ""
    frozen: tuple[str, ...] = ()

    @property
    def numbers(self) -> dict[str, int]:
        """The attributes by name."""
        return dict(self.attrs)


@dataclass(frozen=True)
class Network:
    """shape: of one sample; vocabulary: samples are integers below it (0: floating numbers); layers: the last one's
    result is the model's. `idle` layers are those that nothing uses: their parameters have no gradient."""

    shape: Shape
    vocabulary: int
    layers: tuple[Layer, ...]

    @property
    def shapes(self) -> dict[str, Shape]:
        """Shapes of the input and of all results, a sample."""
        return {INPUT: self.shape} | {layer.name: layer.shape for layer in self.layers}

    @property
    def output(self) -> Shape:
        """The shape of what comes of a sample."""
        return self.layers[-1].shape

    @property
    def parameters(self) -> dict[str, Shape]:
        """Shapes of all parameters by name (`l0.weight`), a shared one under the first layer that has it."""
        found: dict[str, Shape] = {}
        for layer in self.layers:
            own = parameters_of(layer, self.shapes[layer.inputs[0]])
            found |= {f"{layer.name}.{k}": s for k, s in own.items() if not (layer.tied and k == "weight")}
        return found

    @property
    def frozen(self) -> tuple[str, ...]:
        """Names of the parameters that are not trained."""
        return tuple(f"{layer.name}.{name}" for layer in self.layers for name in layer.frozen)

    @property
    def kinds(self) -> tuple[str, ...]:
        """What the layers are, each kind once, in order."""
        return tuple(dict.fromkeys(layer.kind for layer in self.layers))

    @property
    def cuts(self) -> tuple[str, ...]:
        """Layers with parameters, but for the first one, before which one value is all that goes on."""
        used = [layer for layer in self.layers if layer.name not in self.idle]
        found = []
        for number, layer in enumerate(used):
            if parameters_of(layer, self.shapes[layer.inputs[0]]):
                before = {INPUT, *(earlier.name for earlier in used[:number])}
                alive = {name for later in used[number:] for name in later.inputs if name in before}
                found.append(layer.name if len(alive) == 1 else "")
        return tuple(name for name in found[1:] if name)

    @property
    def idle(self) -> tuple[str, ...]:
        """Layers with parameters that do not reach the result."""
        live = {self.layers[-1].name}
        for layer in reversed(self.layers):
            if layer.name in live:
                live |= set(layer.inputs)
        return tuple(layer.name for layer in self.layers if layer.name not in live)


def parameters_of(layer: Layer, given: Shape) -> dict[str, Shape]:
    """The shapes of a layer's parameters, PyTorch's names and layouts. given: the shape of its first input."""
    n = layer.numbers
    match layer.kind:
        case "linear":
            weight = {"weight": (n["features"], given[-1])}
            return weight | ({"bias": (n["features"],)} if n["bias"] else {})
        case "conv2d":
            return {"weight": (n["channels"], given[0], n["kernel"], n["kernel"]), "bias": (n["channels"],)}
        case "layer_norm":
            return {"weight": given[-1:], "bias": given[-1:]}
        case "batch_norm":
            return {"weight": given[:1], "bias": given[:1]}
        case "embedding":
            return {"weight": (n["vocabulary"], n["features"])}
        case _:
            return {}


def result_of(layer: Layer, shapes: Mapping[str, Shape]) -> Shape:
    """The shape of a layer's result, a sample. Raises NetworkError."""
    given = [shapes[name] for name in layer.inputs]
    first, n = given[0], layer.numbers
    match layer.kind:
        case "linear" if first:
            return (*first[:-1], n["features"])
        case "conv2d" if len(first) == 3 and min(first[1:]) > 0:
            return (n["channels"], *first[1:])  # padded to keep the size: kernels are odd
        case "layer_norm" if first:
            return first
        case "batch_norm" if len(first) in (1, 3):
            return first
        case "embedding" if len(first) == 1:
            return (*first, n["features"])
        case "flatten" if len(first) > 1:
            return (prod(first),)
        case "add" if given[0] == given[1]:
            return first
        case kind if kind in ACTIVATIONS and len(given) == 1:
            return first
    raise NetworkError(f"{layer.name}: {layer.kind} does not take {given}")


def checked(network: Network) -> Network:
    """The network, if every layer fits. Raises NetworkError."""
    shapes: dict[str, Shape] = {INPUT: network.shape}
    for layer in network.layers:
        missing = [name for name in layer.inputs if name not in shapes]
        if missing or layer.name in shapes:
            raise NetworkError(f"{layer.name}: {', '.join(missing) or 'its name'} is not what comes before")
        if (layer.kind == "embedding") != (layer.inputs == (INPUT,) and network.vocabulary > 0):
            raise NetworkError(f"{layer.name}: only embeddings take integers")
        if result_of(layer, shapes) != layer.shape:
            raise NetworkError(f"{layer.name}: the result is {result_of(layer, shapes)}, not {layer.shape}")
        shapes[layer.name] = layer.shape
    return network


class _Builder:
    """A network in the making."""

    def __init__(self, d: Draw, shape: Shape) -> None:
        self.d = d
        self.shapes: dict[str, Shape] = {INPUT: shape}
        self.layers: list[Layer] = []

    def add(self, kind: str, *inputs: str, tied: str = "", **numbers: int) -> str:
        """Append one layer; returns its name."""
        layer = Layer(f"l{len(self.layers)}", kind, inputs, (), tuple(numbers.items()), tied)
        shape = result_of(layer, self.shapes)
        own = tuple(parameters_of(layer, self.shapes[inputs[0]]))
        frozen = own if own and self.d.integer(0, 9) == 9 else ()
        if frozen and self.d.boolean():  # one parameter only, as D3 does for PyTorch
            frozen = (self.d.choice(own),)
        self.layers.append(Layer(layer.name, kind, inputs, shape, layer.attrs, tied, frozen))
        self.shapes[layer.name] = shape
        return layer.name

    def linear(self, source: str, features: int) -> str:
        """A dense layer, sometimes with the weight of an earlier one of the same shape."""
        twins = [
            layer.name
            for layer in self.layers
            if layer.kind == "linear"
            and not layer.tied
            and layer.numbers["features"] == features
            and self.shapes[layer.inputs[0]][-1] == self.shapes[source][-1]
        ]
        tied = twins[-1] if twins and self.d.integer(0, 3) == 3 else ""
        return self.add("linear", source, tied=tied, features=features, bias=int(self.d.integer(0, 3) < 3))

    def block(self, source: str) -> str:
        """One layer with parameters, or a residual branch of several, and an activation behind it."""
        d, shape = self.d, self.shapes[source]
        options = ["linear"] if len(shape) < 3 else ["conv2d"]
        options += ["layer_norm", "residual"] + (["batch_norm"] if len(shape) in (1, 3) else [])
        kind = d.choice(options)
        if kind == "residual":
            inside = self.block_of(options[0], source, shape[0 if len(shape) == 3 else -1])
            return self.add("add", source, self.add(d.choice(ACTIVATIONS), inside))
        made = self.block_of(kind, source, d.choice((4, 8, 3)))
        return self.add(d.choice(ACTIVATIONS), made) if d.boolean() else made

    def block_of(self, kind: str, source: str, size: int) -> str:
        """One layer of this kind."""
        if kind == "linear":
            return self.linear(source, size)
        if kind == "conv2d":
            return self.add("conv2d", source, channels=size, kernel=self.d.choice((3, 1)))
        return self.add(kind, source)


def draw_network(d: Draw, most: int) -> Network:
    """A network of at most `most` blocks before its last layer, which has two to five outputs."""
    style = d.choice(("dense", "dense", "image", "sequence"))
    shape, vocabulary = {
        "dense": ((d.choice((4, 3, 6)),), 0),
        "image": ((d.choice((1, 2)), *d.choice(((4, 4), (3, 5)))), 0),
        "sequence": ((d.choice((3, 4)),), d.choice((7, 11))),
    }[style]
    builder = _Builder(d, shape)
    value = INPUT
    if vocabulary:
        value = builder.add("embedding", value, vocabulary=vocabulary, features=d.choice((4, 3)))
    for _ in range(d.integer(0, most)):
        value = builder.block(value)
    if d.integer(0, 7) == 7:
        builder.linear(value, d.choice((2, 3)))  # nothing uses it
    if len(builder.shapes[value]) > 1:
        value = builder.add("flatten", value)
    builder.linear(value, d.choice((3, 2, 5)))
    return checked(Network(shape, vocabulary, tuple(builder.layers)))
