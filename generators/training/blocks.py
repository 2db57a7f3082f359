"""Networks, drawn: blocks of layers one behind the other, in the styles that models have."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from generators.ops.spec import Draw
from generators.training.networks import ACTIVATIONS, INPUT, Layer, Network, Shape, checked, parameters_of, result_of

KEPT = (50, 80)
"""What per cent of the elements a mask keeps; 2 and 1.25, by which it multiplies them, are the same in every dtype."""


class Layers:
    """A network in the making."""

    def __init__(self, shape: Shape) -> None:
        self.shapes: dict[str, Shape] = {INPUT: shape}
        self.layers: list[Layer] = []

    def add(self, kind: str, *inputs: str, tied: str = "", **numbers: int) -> str:
        """Append one layer; returns its name."""
        layer = Layer(f"l{len(self.layers)}", kind, inputs, (), tuple(numbers.items()), tied)
        self.layers.append(replace(layer, shape=result_of(layer, self.shapes)))
        self.shapes[layer.name] = self.layers[-1].shape
        return layer.name


class _Builder(Layers):
    """One that is drawn."""

    def __init__(self, d: Draw, shape: Shape, columns: bool = False) -> None:
        super().__init__(shape)
        self.d = d
        self.columns = columns  # of numbers, which layers take: masks can be added

    def add(self, kind: str, *inputs: str, tied: str = "", **numbers: int) -> str:
        """Append one layer, sometimes frozen; returns its name."""
        name = super().add(kind, *inputs, tied=tied, **numbers)
        own = tuple(parameters_of(self.layers[-1], self.shapes[inputs[0]]))
        frozen = own if own and self.d.integer(0, 9) == 9 else ()
        if frozen and self.d.boolean():  # one parameter only, as D3 does for PyTorch
            frozen = (self.d.choice(own),)
        self.layers[-1] = replace(self.layers[-1], frozen=frozen)
        return name

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
        """One layer with parameters, or a residual branch of several, and an activation or a mask behind it."""
        d, shape = self.d, self.shapes[source]
        options = ["linear"] if len(shape) < 3 else ["conv2d"]
        options += ["layer_norm", "residual"]
        options += ["batch_norm"] if len(shape) in (1, 3) else []
        options += ["attention", "gru", "lstm"] if len(shape) == 2 else []
        kind = d.choice(options)
        if kind == "residual":
            inner = d.choice((options[0], "attention")) if len(shape) == 2 else options[0]
            inside = self.block_of(inner, source, shape[0 if len(shape) == 3 else -1])
            return self.add("add", source, self.add(d.choice(ACTIVATIONS), inside))
        made = self.block_of(kind, source, d.choice((4, 8, 3)))
        made = self.add(d.choice(ACTIVATIONS), made) if d.boolean() else made
        return self.mask(made) if d.integer(0, 7) == 7 else made

    def block_of(self, kind: str, source: str, size: int) -> str:
        """One layer of this kind."""
        match kind:
            case "linear":
                return self.linear(source, size)
            case "conv2d":
                return self.add("conv2d", source, channels=size, kernel=self.d.choice((3, 1)))
            case "attention":
                even = self.shapes[source][-1] % 2 == 0
                heads = self.d.choice((1, 2)) if even else 1
                return self.add("attention", source, heads=heads, bias=int(self.d.integer(0, 3) == 3))
            case "gru" | "lstm":
                return self.add(kind, source, features=size)
            case _:
                return self.add(kind, source)

    def mask(self, source: str) -> str:
        """Dropout, with a mask in columns of its own, where samples have columns."""
        sample = self.shapes[INPUT]
        if not self.columns:
            return source
        count = prod(self.shapes[source])
        self.shapes[INPUT] = (sample[0] + count,)
        return self.add("dropout", source, INPUT, first=sample[0], keep=self.d.choice(KEPT))


def draw_network(d: Draw, most: int) -> Network:
    """A network of at most `most` blocks before its last layer, which has two to five outputs."""
    style = d.choice(("dense", "dense", "image", "sequence", "series", "tables"))
    vocabulary = 0
    match style:
        case "dense":
            builder = _Builder(d, (d.choice((4, 3, 6)),), columns=True)
            value = builder.add("columns", INPUT, first=0, width=builder.shapes[INPUT][0])
        case "image":
            builder, value = _Builder(d, (d.choice((1, 2)), *d.choice(((4, 4), (3, 5))))), INPUT
        case "series":
            times, width = d.choice((3, 4, 2)), d.choice((4, 2, 3))
            builder = _Builder(d, (times * width,), columns=True)
            value = builder.add("columns", INPUT, first=0, times=times, width=width)
        case "sequence":
            builder, vocabulary = _Builder(d, (d.choice((3, 4)),)), d.choice((7, 11))
            value = builder.add("embedding", INPUT, vocabulary=vocabulary, features=d.choice((4, 3)))
        case _:
            builder, value = _tables(d)
    for _ in range(d.integer(0, most)):
        value = builder.block(value)
    if d.integer(0, 7) == 7:
        builder.linear(value, d.choice((2, 3)))  # nothing uses it
    if len(builder.shapes[value]) > 1:
        value = builder.add("flatten", value)
    builder.linear(value, d.choice((3, 2, 5)))
    network = Network(builder.shapes[INPUT], vocabulary, _without_whole(builder))
    return checked(network if network.trained else thawed(network))


def thawed(network: Network) -> Network:
    """The network with nothing frozen."""
    return replace(network, layers=tuple(replace(layer, frozen=()) for layer in network.layers))


def _without_whole(builder: _Builder) -> tuple[Layer, ...]:
    """The layers, but for one that takes all columns of a sample as they are."""
    first, *others = builder.layers
    if first.kind != "columns" or first.shape != builder.shapes[INPUT]:
        return tuple(builder.layers)
    renamed = {first.name: INPUT}
    return tuple(replace(layer, inputs=tuple(renamed.get(name, name) for name in layer.inputs)) for layer in others)


def _tables(d: Draw) -> tuple[_Builder, str]:
    """The lower half of a recommendation model (Naumov et al., Deep Learning Recommendation Model, 2019): numbers
    through a dense layer, a bag of rows of each table, and products of all pairs of them."""
    width, features = d.choice((3, 4)), d.choice((4, 3))
    counts = [d.choice((2, 3, 1)) for _ in range(d.choice((2, 3, 1)))]
    builder = _Builder(d, (width + sum(counts),), columns=True)
    dense = builder.linear(builder.add("columns", INPUT, first=0, width=width), features)
    found = [builder.add(d.choice(ACTIVATIONS), dense) if d.boolean() else dense]
    for count in counts:
        vocabulary, mean, ragged = d.choice((5, 7)), int(d.boolean()), int(d.boolean())
        builder.shapes[INPUT] = (builder.shapes[INPUT][0] + ragged,)  # a column for the lengths
        found.append(
            builder.add(
                "embedding_bag", INPUT, first=width, features=features, count=count, vocabulary=vocabulary, mean=mean,
                ragged=ragged,
            )
        )  # fmt: skip
        width += count + ragged
    return builder, builder.add("interaction", *found)
