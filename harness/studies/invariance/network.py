"""Two small transformers of our own as graphs, which every target takes: whole, or the next tokens of a sequence with
keys and values of those before them. They are larger than what is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from generators.graph import Attr, Graph, Leaf, TensorType
from oracles.decompositions.composite import GraphBuilder

STYLES = {
    "gpt": "layer normalisation, GELU, learned positions, attention by its parts",
    "llama": "root mean square normalisation, gated SiLU, rotary positions, fused attention, two heads of keys",
}
NETWORK = "transformer "
"""Before the style, where a network stands among operators."""
LAYERS, SIZE, WORDS, LONGEST = 2, 64, 101, 24
HEADS = 4
KEYS = {"gpt": 4, "llama": 2}
"""Heads of keys and values."""
_FLOAT, _EPSILON = "float32", 2.0**-17
_NEVER = -1e9
"""The score of what comes later: its exponential is 0 beside any other."""


def parameters(style: str, seed: int) -> dict[str, np.ndarray]:
    """float32, by name; matrices are scaled so that results keep their size."""
    rng = np.random.default_rng(seed)

    def drawn(*shape: int) -> np.ndarray:
        return (rng.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32)

    found = {"embedding": rng.normal(size=(WORDS, SIZE)).astype(np.float32), "unembedding": drawn(SIZE, WORDS)}
    if style == "gpt":
        found["positions"] = rng.normal(size=(LONGEST, SIZE)).astype(np.float32)
    else:
        half = SIZE // HEADS // 2
        angles = np.arange(LONGEST)[:, None] * 10000.0 ** (-np.arange(half) / half)
        found |= {"sine": np.sin(angles).astype(np.float32), "cosine": np.cos(angles).astype(np.float32)}
    for name in ["norm", *(f"{name}{layer}" for layer in range(LAYERS) for name in ("norm1_", "norm2_"))]:
        found[f"{name}_weight"] = np.ones(SIZE, np.float32)
        found |= {f"{name}_bias": np.zeros(SIZE, np.float32)} if style == "gpt" else {}
    found["scale"] = np.full(1, (SIZE // HEADS) ** -0.5, np.float32)
    narrow = SIZE * KEYS[style] // HEADS
    for layer in range(LAYERS):
        own = {"query": drawn(SIZE, SIZE), "key": drawn(SIZE, narrow), "value": drawn(SIZE, narrow)}
        own |= {"output": drawn(SIZE, SIZE), "up": drawn(SIZE, 4 * SIZE), "down": drawn(4 * SIZE, SIZE)}
        own |= {"gate": drawn(SIZE, 4 * SIZE)} if style == "llama" else {}
        found |= {f"{name}{layer}": value for name, value in own.items()}
    return found


@dataclass
class _Writer(GraphBuilder):
    """The graph in the making. given: arrays of its parameters."""

    given: Mapping[str, np.ndarray] = field(kw_only=True)
    leaves: list[Leaf] = field(default_factory=list)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    shown: dict[str, str] = field(default_factory=dict)
    """Results on the way, by what they are called, in order."""

    def input(
        self, name: str, shape: tuple[int, ...], dtype: str = _FLOAT, domain: tuple[int, int] | None = None
    ) -> str:
        """A leaf; returns its name."""
        return self._leaf(Leaf(name, TensorType(dtype, shape), "input", domain))

    def parameter(self, name: str, array: np.ndarray | None = None) -> str:
        """One of those given, or this array."""
        if name not in self.types:
            own = self.arrays[name] = self.given[name] if array is None else np.ascontiguousarray(array)
            self._leaf(Leaf(name, TensorType(str(own.dtype), own.shape), "parameter"))
        return name

    def _leaf(self, leaf: Leaf) -> str:
        self.leaves.append(leaf)
        self.types[leaf.name] = leaf.type
        return leaf.name

    def op(self, operator: str, *operands: str, shown: str = "", **attrs: Attr) -> str:
        """One more node, that is shown by this name; returns its own."""
        name = self.add(operator, *operands, **attrs)
        if shown:
            self.shown[shown] = name
        return name

    def heads(self, x: str, count: int) -> str:
        """(batch, times, size) as (batch, heads, times, size of a head)."""
        batch, times, size = self.types[x].shape
        return self.op(
            "transpose", self.op("reshape", x, shape=(batch, times, count, size // count)), perm=(0, 2, 1, 3)
        )


@dataclass(frozen=True)
class Made:
    """outputs of the graph: the logits, then the keys and values of each layer; shown: results on the way, by what they
    are called, in order; arrays: of its parameters."""

    graph: Graph
    shown: Mapping[str, str]
    arrays: Mapping[str, np.ndarray]

    @property
    def whole(self) -> Graph:
        """The graph that returns every result on the way, too, in front of its own outputs."""
        return replace(self.graph, outputs=(*self.shown.values(), *self.graph.outputs))


def past(layer: int) -> tuple[str, str]:
    """What the graph calls keys and values of earlier tokens."""
    return f"past_key{layer}", f"past_value{layer}"


def transformer(style: str, given: Mapping[str, np.ndarray], batch: int, times: int, before: int = 0) -> Made:
    """The graph for so many tokens of so many rows, with keys and values of `before` tokens. given: parameters."""
    w = _Writer("v", {}, given=given)
    tokens = w.input("tokens", (batch, times), "int64", (0, WORDS - 1))
    x = w.op("embedding", w.parameter("embedding"), tokens, shown="" if style == "gpt" else "embedding")
    here = slice(before, before + times)
    if style == "gpt":
        x = w.op("add", x, w.parameter("positions_here", given["positions"][here]), shown="embedding")
    kept = []
    for layer in range(LAYERS):
        h = _norm(w, style, x, f"norm1_{layer}", f"{layer}.norm1")
        made = {name: w.op("matmul", h, w.parameter(f"{name}{layer}"), shown=f"{layer}.{name}") for name in _QKV}
        q = w.heads(made["query"], HEADS)
        k, v = (w.heads(made[name], KEYS[style]) for name in ("key", "value"))
        if style == "llama":
            q, k = _turned(w, q, here), _turned(w, k, here)
        if before:
            shape = (batch, KEYS[style], before, SIZE // HEADS)
            k, v = (
                w.op("concat", w.input(name, shape), new, axis=2) for name, new in zip(past(layer), (k, v), strict=True)
            )
        kept += [k, v]
        mixed = w.op("transpose", _attended(w, style, q, k, v, here), perm=(0, 2, 1, 3))
        mixed = w.op("reshape", mixed, shape=(batch, times, SIZE), shown=f"{layer}.attention")
        x = w.op("add", x, w.op("matmul", mixed, w.parameter(f"output{layer}"), shown=f"{layer}.output"))
        h = _norm(w, style, x, f"norm2_{layer}", f"{layer}.norm2")
        up = w.op("matmul", h, w.parameter(f"up{layer}"), shown=f"{layer}.up")
        if style == "gpt":
            h = w.op("gelu", up, shown=f"{layer}.activation")
        else:
            gate = w.op("silu", w.op("matmul", h, w.parameter(f"gate{layer}")))
            h = w.op("mul", gate, up, shown=f"{layer}.activation")
        x = w.op("add", x, w.op("matmul", h, w.parameter(f"down{layer}"), shown=f"{layer}.down"))
    logits = w.op("matmul", _norm(w, style, x, "norm", "norm"), w.parameter("unembedding"), shown="logits")
    shown = {name: value for name, value in w.shown.items() if name != "logits"}
    return Made(Graph(tuple(w.leaves), tuple(w.nodes), (logits, *kept)).validate(), shown, w.arrays)


_QKV = ("query", "key", "value")


def _norm(w: _Writer, style: str, x: str, name: str, shown: str) -> str:
    weight = w.parameter(f"{name}_weight")
    if style == "gpt":
        return w.op("layer_norm", x, weight, w.parameter(f"{name}_bias"), shown=shown, epsilon=_EPSILON)
    return w.op("rms_norm", x, weight, shown=shown, epsilon=_EPSILON)


def _turned(w: _Writer, x: str, here: slice) -> str:
    """Rotary positions: pairs of numbers are turned by an angle that grows with the place."""
    shape = w.types[x].shape
    half = shape[-1] // 2
    sine, cosine = (w.parameter(f"{name}_here", w.given[name][here]) for name in ("sine", "cosine"))
    first, second = (
        w.op("slice", x, starts=(0, 0, 0, at), stops=(*shape[:3], at + half), steps=(1, 1, 1, 1)) for at in (0, half)
    )
    one = w.op("sub", w.op("mul", first, cosine), w.op("mul", second, sine))
    two = w.op("add", w.op("mul", second, cosine), w.op("mul", first, sine))
    return w.op("concat", one, two, axis=3)


def _attended(w: _Writer, style: str, q: str, k: str, v: str, here: slice) -> str:
    """Means of the values of a token and of those before it."""
    later = np.arange(here.stop)[None, :] > np.arange(here.start, here.stop)[:, None]
    if style == "llama":
        return w.op("attention_masked", q, k, v, w.parameter("there", ~later), scale=None)
    scores = w.op("mul", w.op("matmul", q, w.op("transpose", k, perm=(0, 1, 3, 2))), w.parameter("scale"))
    hidden = w.op("masked_fill", scores, w.parameter("later", later), value=_NEVER)
    return w.op("matmul", w.op("softmax", hidden, axis=3), v)
