"""Graphs that are valid by construction, and cases (a graph with its arrays): as Hypothesis strategies, and by
seed and number."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from hypothesis import strategies as st

from generators.graph import COMPLEX, FLOATS, RARE, Graph, Leaf, Node, TensorType
from generators.inputs import (
    FLOAT_CHOICES,
    INTEGER_CHOICES,
    MIXED_CHOICES,
    NONFINITE_CHOICES,
    SMOOTH_CHOICES,
    Arrays,
    Recipe,
    fill_all,
)
from generators.ops import DRAWN, DRAWN_SELDOM, OPS
from generators.ops.slots import MAX_ELEMENTS
from generators.ops.spec import Draw, OpSpec, Value

T = TypeVar("T")

FAVOURED = (*("float32", "float32", "float32", "float64", "int64", "int64", "int32") * 6, *RARE)
"""What `Draw.dtype` is drawn from: about one graph in six favours a rare dtype."""
MIXTURE = (FLOAT_CHOICES, FLOAT_CHOICES, FLOAT_CHOICES, MIXED_CHOICES, NONFINITE_CHOICES, NONFINITE_CHOICES)
"""Distributions of floating leaves: one of these for a graph, one of its entries for a leaf. Special values come to a
graph, not to a leaf: most graphs have none, so that errors which they would hide show."""
MAX_NODES = 10
"""Of a drawn graph. `tests/meta/planted/sensitivity.py` measures how many planted faults are found within 300 cases."""


@dataclass(frozen=True)
class Style:
    """What a question's cases are made of. favoured: dtypes, one of them for a graph; mixture: distributions; apart: is
    an operand of its own the simplest one? Else it is a value that is there already."""

    favoured: tuple[str, ...] = FAVOURED
    mixture: tuple[tuple[str, ...], ...] = MIXTURE
    apart: bool = False


PLAIN = Style()
WIDE = Style(tuple(dtype for dtype in FAVOURED if dtype not in RARE))
"""Without the rare dtypes."""
SMOOTH = Style(("float32",) * 4 + ("float64",), (SMOOTH_CHOICES,) * 5 + (MIXED_CHOICES, NONFINITE_CHOICES))
"""For derivatives: floating dtypes, few ties and zeros, and few special values, around which there is no derivative."""


@dataclass(frozen=True)
class Case:
    """A graph and the arrays of all its leaves."""

    graph: Graph
    arrays: Arrays

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What Hypothesis prints: the graph alone. It warns of long arrays where it should tell what failed."""
        printer.text(f"Case({self.graph})")


def pruned(graph: Graph, arrays: Arrays) -> Case:
    """The graph without what reaches no output, with the arrays of the leaves that are left."""
    graph = graph.pruned()
    return Case(graph, {leaf.name: arrays[leaf.name] for leaf in graph.leaves})


class HypothesisDraw:
    """`Draw` on top of a Hypothesis draw function: what pytest campaigns use, since it shrinks. `choice` shrinks
    to the first option."""

    def __init__(self, draw: Callable) -> None:
        self._draw = draw
        self.dtype = FAVOURED[0]

    def integer(self, low: int, high: int) -> int:
        return low if low == high else self._draw(st.integers(low, high))

    def choice(self, options: Sequence[T]) -> T:
        return options[self.integer(0, len(options) - 1)]

    def boolean(self) -> bool:
        return self._draw(st.booleans())

    def attributes(self) -> HypothesisDraw:
        return self


class SeededDraw:
    """`Draw` on top of a seeded generator: what hunts use. Hypothesis repeats and mutates earlier examples (a
    third of 300 were duplicates, measured), which helps shrinking and costs a hunt variety."""

    def __init__(self, seed: str) -> None:
        self._rng = random.Random(seed)
        self.dtype = FAVOURED[0]

    def integer(self, low: int, high: int) -> int:
        return self._rng.randint(low, high)

    def choice(self, options: Sequence[T]) -> T:
        return options[self._rng.randrange(len(options))]

    def boolean(self) -> bool:
        return self._rng.random() < 0.5

    def attributes(self) -> SeededDraw:
        return self


class _Builder:
    """A graph in the making: `values` in order of creation."""

    def __init__(self, d: Draw, apart: bool = False) -> None:
        self.d, self.apart = d, apart
        self.leaves: list[Leaf] = []
        self.nodes: list[Node] = []
        self.values: list[tuple[str, Value]] = []
        self.used: set[str] = set()

    def operand(
        self, spec: OpSpec, position: int, earlier: tuple[TensorType, ...], wanted: str | None
    ) -> tuple[str, TensorType]:
        """The value `wanted` where it fits, else an existing value that fits, counted back from the newest, or a new
        leaf."""
        slot = spec.slot(position)
        accepts, within = slot.accepts, slot.domain(earlier)
        fitting = [
            (name, value.type)
            for name, value in reversed(self.values)
            if (within is None or value.within(within))
            and value.type.rank <= slot.usual
            and accepts(value.type, earlier)
        ]
        for name, type_ in fitting:
            if name == wanted:
                return name, type_
        favoured = [(name, type_) for name, type_ in fitting if type_.dtype == self.d.dtype]
        if favoured and self.d.integer(0, 3) < 3:
            fitting = favoured
        # one more than there are: the last stands for a new leaf
        back = self.d.integer(0, min(len(fitting), 4)) if fitting else 0
        if self.apart:
            back = back - 1 if back else len(fitting)
        if back < len(fitting):
            return fitting[back]
        role = "parameter" if self.d.boolean() else "input"
        type_ = slot.fresh(self.d, earlier)
        prefix = "w" if role == "parameter" else "x"
        span = None if slot.span is None or self.d.boolean() else slot.span
        leaf = Leaf(f"{prefix}{len(self.leaves)}", type_, role, within or span)
        self.leaves.append(leaf)
        self.values.append((leaf.name, Value(type_, leaf.domain)))
        return leaf.name, type_

    def add(self, spec: OpSpec, wanted: str | None = None) -> None:
        """Append one application of `spec`, to the value `wanted` where that fits as an operand."""
        count = len(spec.operands) + (self.d.integer(0, spec.variadic - 1) if spec.variadic > 1 else 0)
        names: list[str] = []
        types: tuple[TensorType, ...] = ()
        for position in range(count):
            name, type_ = self.operand(spec, position, types, wanted)
            names.append(name)
            types = (*types, type_)
        if spec.variadic > 1 and sum(type_.size for type_ in types) > MAX_ELEMENTS:
            return  # joined they are too many; its operands stay behind and are pruned
        attrs, d = {}, self.d.attributes()
        for key, rule in spec.attrs.items():
            attrs[key] = rule(d, types, attrs)
        result = spec.result(types, attrs)
        if result.size > MAX_ELEMENTS:
            return
        self.used.update(names)
        node = Node(f"v{len(self.nodes)}", spec.name, tuple(names), tuple(attrs.items()), result)
        self.nodes.append(node)
        self.values.append((node.name, Value(result)))


def build_graph(
    d: Draw,
    max_nodes: int = MAX_NODES,
    operators: Sequence[str] | None = None,
    min_nodes: int = 1,
    swarm: bool = True,
    style: Style = PLAIN,
) -> Graph:
    """A valid graph of at most `max_nodes` nodes (before pruning, at least `min_nodes`).

    operators: names to draw from (default: `DRAWN`)
    favoured:  dtypes of which one is what most leaves are
    swarm:     draw a random subset of the operators first, so that rare pairs meet
    """
    names = tuple(operators or DRAWN)
    if swarm and len(names) > 8:
        seed = d.integer(0, 2**16 - 1)
        if seed:  # 0, the simplest: all of them
            rng = random.Random(seed)
            names = _thinned(names, rng)
            names = tuple(rng.sample(names, min(len(names), rng.choice((4, 6, 10, 16, 32, 64)))))
    d.dtype = d.choice(style.favoured)
    builder = _Builder(d, style.apart)
    attempts = 0
    while len(builder.nodes) < max_nodes and attempts < 4 * max_nodes:
        if len(builder.nodes) >= min_nodes and d.integer(0, 8 * max_nodes) == 0:
            break
        attempts += 1
        builder.add(OPS[d.choice(names)])
    if not builder.nodes:
        builder.add(OPS["neg"])
    sinks = [node.name for node in builder.nodes if node.name not in builder.used]
    outputs = sinks[::-1]
    outputs += [node.name for node in builder.nodes if node.name in builder.used and d.integer(0, 15) == 15]
    return Graph(tuple(builder.leaves), tuple(builder.nodes), tuple(outputs)).pruned()


def _thinned(names: tuple[str, ...], rng: random.Random) -> list[str]:
    """Beside operators that are drawn much, a twenty-fourth as many of those that are drawn seldom."""
    often, seldom = _by_frequency(names)
    return often + rng.sample(seldom, min(len(seldom), -(-len(often) // 24))) if often else seldom


@cache
def _by_frequency(names: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Those that are drawn much, and those that are drawn seldom."""
    often = [name for name in names if name not in DRAWN_SELDOM]
    return often, [name for name in names if name in DRAWN_SELDOM]


def build_pair(d: Draw, first: str, second: str, style: Style = PLAIN) -> Graph | None:
    """A graph in which the operator `second` takes the result of `first`; None where this draw has none."""
    d.dtype = d.choice(style.favoured)
    builder = _Builder(d)
    builder.add(OPS[first])
    if not builder.nodes:
        return None
    result = builder.nodes[0].name
    builder.add(OPS[second], result)
    if len(builder.nodes) < 2 or result not in builder.nodes[1].operands:
        return None
    return Graph(tuple(builder.leaves), tuple(builder.nodes), (builder.nodes[1].name,)).pruned()


def draw_recipes(d: Draw, graph: Graph, style: Style = PLAIN) -> dict[str, Recipe]:
    """A distribution for each leaf and one seed for all."""
    seed = d.integer(0, 2**32 - 1)
    floats = d.choice(style.mixture)
    chosen = {}
    for i, leaf in enumerate(graph.leaves):
        names = floats if leaf.type.dtype in (*FLOATS, *COMPLEX) else INTEGER_CHOICES
        chosen[leaf.name] = Recipe(d.choice(names), seed + i)
    return chosen


def build_case(
    d: Draw, max_nodes: int = MAX_NODES, operators: Sequence[str] | None = None, style: Style = PLAIN
) -> Case:
    """A graph and its arrays."""
    graph = build_graph(d, max_nodes, operators, style=style)
    return Case(graph, fill_all(graph, draw_recipes(d, graph, style)))


def seeded_case(
    seed: int, index: int, max_nodes: int = MAX_NODES, operators: Sequence[str] | None = None, style: Style = PLAIN
) -> Case:
    """Case number `index` of a hunt with this seed: the same on every machine."""
    return build_case(SeededDraw(f"{seed}/{index}"), max_nodes, operators, style)


@st.composite
def graphs(
    draw: Callable, max_nodes: int = MAX_NODES, operators: Sequence[str] | None = None, swarm: bool = True
) -> Graph:
    """`build_graph` as a Hypothesis strategy."""
    return build_graph(HypothesisDraw(draw), max_nodes, operators, swarm=swarm)


@st.composite
def recipes(draw: Callable, graph: Graph) -> dict[str, Recipe]:
    """`draw_recipes` as a Hypothesis strategy."""
    return draw_recipes(HypothesisDraw(draw), graph)


@st.composite
def cases(
    draw: Callable, max_nodes: int = MAX_NODES, operators: Sequence[str] | None = None, style: Style = PLAIN
) -> Case:
    """`build_case` as a Hypothesis strategy."""
    return build_case(HypothesisDraw(draw), max_nodes, operators, style)
