"""Models that can be trained: layers with parameters, each fed by earlier ones, typed by sample (the batch comes
first everywhere and is not written down).

A sample is one array. Where a model takes more than one thing of it (numbers, integers for the tables of embeddings,
masks of dropout), these are columns of the sample, and layers say which ones they take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

Shape = tuple[int, ...]
Attrs = tuple[tuple[str, int], ...]

ACTIVATIONS = ("tanh", "gelu", "sigmoid", "silu", "relu")
TABLES = ("embedding", "embedding_bag")
"""Layers whose weight has a row for each of some integers."""
RECURRENT = {"gru": 3, "lstm": 4}
"""Recurrent layers, and how many blocks of rows their weights have (PyTorch's order: r z n, and i f g o)."""
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
    def parameterised(self) -> tuple[Layer, ...]:
        """The layers that have parameters."""
        shapes = self.shapes
        return tuple(layer for layer in self.layers if parameters_of(layer, shapes[layer.inputs[0]]))

    @property
    def bags(self) -> tuple[Layer, ...]:
        """The layers that take integers below their vocabulary out of the columns of a sample."""
        return tuple(layer for layer in self.layers if layer.kind == "embedding_bag")

    @property
    def masks(self) -> tuple[Layer, ...]:
        """The layers that take a mask out of the columns of a sample."""
        return tuple(layer for layer in self.layers if layer.kind == "dropout")

    @property
    def frozen(self) -> tuple[str, ...]:
        """Names of the parameters that are not trained."""
        return tuple(f"{layer.name}.{name}" for layer in self.layers for name in layer.frozen)

    @property
    def trained(self) -> tuple[str, ...]:
        """Names of the parameters that training moves; the weight of an idle layer where another one shares it."""
        moved = {
            f"{layer.tied if name == 'weight' and layer.tied else layer.name}.{name}"
            for layer in self.layers
            if layer.name not in self.idle
            for name in parameters_of(layer, self.shapes[layer.inputs[0]])
        }
        return tuple(name for name in self.parameters if name in moved and name not in self.frozen)

    @property
    def kinds(self) -> tuple[str, ...]:
        """What the layers are, each kind once, in order."""
        return tuple(dict.fromkeys(layer.kind for layer in self.layers))

    @property
    def cuts(self) -> tuple[str, ...]:
        """Layers with parameters, but for the first one, before which one value is all that goes on."""
        used = [layer for layer in self.layers if layer.name not in self.idle]
        found, own = [], self.parameterised
        for number, layer in enumerate(used):
            if layer in own:
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
            weight = {"weight": (n["channels"], given[0] // n.get("groups", 1), *window(layer))}
            return weight | ({"bias": (n["channels"],)} if n.get("bias", 1) else {})
        case "layer_norm":
            return {"weight": given[-1:], "bias": given[-1:]}
        case "batch_norm":
            return {"weight": given[:1], "bias": given[:1]}
        case kind if kind in TABLES:
            return {"weight": (n["vocabulary"], n["features"])}
        case "attention":
            size = given[-1]
            weights = {"in_proj_weight": (3 * size, size), "out_proj.weight": (size, size)}
            return weights | ({"in_proj_bias": (3 * size,), "out_proj.bias": (size,)} if n["bias"] else {})
        case kind if kind in RECURRENT:
            rows = RECURRENT[kind] * n["features"]
            weights = {"weight_ih_l0": (rows, given[-1]), "weight_hh_l0": (rows, n["features"])}
            return weights | {"bias_ih_l0": (rows,), "bias_hh_l0": (rows,)}
        case _:
            return {}


def columns_of(layer: Layer, shapes: Mapping[str, Shape]) -> tuple[int, int]:
    """The columns of a sample that a layer takes (`columns`, `embedding_bag`, `dropout`): the first, and the one after
    the last. shapes: of what comes before, a sample."""
    n = layer.numbers
    match layer.kind:
        case "columns":
            count = prod(dimensions(layer))
        case "embedding_bag":
            count = n["count"] + ragged(layer)
        case _:
            count = prod(shapes[layer.inputs[0]])
    return n["first"], n["first"] + count


def ragged(layer: Layer) -> int:
    """1 for bags of different lengths, which a column behind the integers says; 0 where all have `count`."""
    return layer.numbers.get("ragged", 0)


def dimensions(layer: Layer) -> Shape:
    """The shape that a layer of columns gives them."""
    return tuple(value for key, value in layer.attrs if key != "first")


def result_of(layer: Layer, shapes: Mapping[str, Shape]) -> Shape:
    """The shape of a layer's result, a sample. Raises NetworkError."""
    given = [shapes[name] for name in layer.inputs]
    first, n = given[0], layer.numbers
    match layer.kind:
        case "linear" if first:
            return (*first[:-1], n["features"])
        case "conv2d" if len(first) == 3 and min(strided(layer, first)) > 0 and _grouped(layer, first):
            return (n["channels"], *strided(layer, first))
        case "max_pool" if len(first) == 3 and min(strided(layer, first)) > 0:
            return (first[0], *strided(layer, first))
        case "avg_pool" if (
            len(first) == 3 and min(strided(layer, first)) > 0 and (padding(layer) == (0, 0) or same(layer))
        ):
            return (first[0], *strided(layer, first))
        case "concat" if {len(shape) for shape in given} == {3} and len({shape[1:] for shape in given}) == 1:
            return (sum(shape[0] for shape in given), *first[1:])
        case "scale" if len(first) == 3 and given[1:] == [first[:1]]:
            return first
        case "mean" if len(first) == 3 and min(first[1:]) > 0:
            return first[:1]
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
        case "columns" if _within(layer, shapes):
            return dimensions(layer)
        case "embedding_bag" if _within(layer, shapes):
            return (n["features"],)
        case "dropout" if layer.inputs[1:] == (INPUT,) and _within(layer, shapes):
            return first
        case "interaction" if len(given) > 1 and len(first) == 1 and set(given) == {first}:
            return (first[0] + len(given) * (len(given) - 1) // 2,)
        case "attention" if len(first) == 2 and first[-1] % n["heads"] == 0:
            return first
        case kind if kind in RECURRENT and len(first) == 2:
            return (first[0], n["features"])
        case kind if kind in ACTIVATIONS and len(given) == 1:
            return first
    raise NetworkError(f"{layer.name}: {layer.kind} does not take {given}")


def window(layer: Layer) -> tuple[int, int]:
    """Rows and columns of what goes over a sample (`conv2d`, `max_pool`, `avg_pool`); `across`: columns, where they are
    not as many."""
    n = layer.numbers
    return n["kernel"], n.get("across", n["kernel"])


def padding(layer: Layer) -> tuple[int, int]:
    """Rows and columns that are added on each side: as many as keep the size where the step is 1 and the window odd, or
    none (`pad` of 0). An even window of a convolution makes a row and a column more, one of a pool a row and a column
    less. An average does not count them."""
    kept, less = layer.numbers.get("pad", 1), 0 if layer.kind == "conv2d" else 1
    rows, columns = window(layer)
    return kept * ((rows - less) // 2), kept * ((columns - less) // 2)


def same(layer: Layer) -> bool:
    """Does a window keep the size of a sample? What frameworks call `SAME` is this padding then."""
    return (
        layer.numbers.get("stride", 1) == 1
        and all(size % 2 for size in window(layer))
        and layer.numbers.get("pad", 1) == 1
    )


def strided(layer: Layer, given: Shape) -> Shape:
    """Rows and columns after a window has gone over a sample, in steps of `stride` (1)."""
    step, sizes = layer.numbers.get("stride", 1), zip(given[1:], window(layer), padding(layer), strict=True)
    return tuple((size + 2 * pad - width) // step + 1 if size > 0 else 0 for size, width, pad in sizes)


def _grouped(layer: Layer, given: Shape) -> bool:
    """Is it one convolution of all channels, or one of each by itself, which every framework has on a CPU?"""
    groups = layer.numbers.get("groups", 1)
    return groups == 1 or (groups == given[0] and layer.numbers["channels"] % groups == 0)


def _within(layer: Layer, shapes: Mapping[str, Shape]) -> bool:
    """Are the columns that it takes there?"""
    sample = shapes[INPUT]
    return INPUT in layer.inputs and len(sample) == 1 and columns_of(layer, shapes)[1] <= sample[0]


def checked(network: Network) -> Network:
    """The network, if every layer fits. Raises NetworkError."""
    shapes: dict[str, Shape] = {INPUT: network.shape}
    for layer in network.layers:
        missing = [name for name in layer.inputs if name not in shapes]
        if missing or layer.name in shapes:
            raise NetworkError(f"{layer.name}: {', '.join(missing) or 'its name'} is not what comes before")
        if (layer.kind == "embedding") != (layer.inputs == (INPUT,) and network.vocabulary > 0):
            raise NetworkError(f"{layer.name}: only embeddings take integers")
        if layer.kind == "dropout" and network.vocabulary:
            raise NetworkError(f"{layer.name}: a mask is no integers")
        if result_of(layer, shapes) != layer.shape:
            raise NetworkError(f"{layer.name}: the result is {result_of(layer, shapes)}, not {layer.shape}")
        shapes[layer.name] = layer.shape
    return network
