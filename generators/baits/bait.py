"""What a bait is: a pattern that an optimiser rewrites, with the guards of the rewrite, each put inside and outside."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from ml_dtypes import finfo

from generators.graph import FLOATS, Graph, Leaf, Node, TensorType
from generators.inputs import Recipe, fill
from generators.ops import OPS, check


@dataclass(frozen=True)
class Guard:
    """What a rewrite asks for. inside: choices with which it may be done, the usual one first; outside: the nearest
    with which it may not, or for which it has to do something else."""

    inside: tuple[Any, ...]
    outside: tuple[Any, ...] = ()

    @property
    def choices(self) -> tuple[Any, ...]:
        return self.inside + self.outside


FLOATING = Guard(("float32", "float64"), ("float16", "bfloat16"))
SIGNED = Guard(("int32", "int64"), ("int8", "int16"))
WHOLE = Guard(("int32", "int64"), ("int8", "uint8", "int16", "uint16", "uint32", "uint64"))
NUMBERS = Guard(("float32", "int32", "float64", "int64"), ("float16", "bfloat16", "int8", "uint8"))
BOOLEAN = Guard(("bool",))
USES = Guard(("once",), ("first out", "last out", "first twice", "last twice"))
"""A value on the way that is also an output, or that something else takes, has to be kept."""
CONSTANTS = Guard(("parameters",), ("inputs",))
"""What the pattern calls constants: inside the compiled function, or its arguments."""
DTYPE, USED, CONSTANT = "dtype", "uses", "constants"


@dataclass(frozen=True)
class Bait:
    """name:     of the record, with hyphens: never that of an operator
    rewrites: who has it, as OPTIMISER/RULE
    build:    draws the pattern with a `Pattern` and a choice of each guard, and returns the outputs' names
    guards:   by the name of the parameter of `build`
    dtypes:   of the pattern's floating values or whatever it calls its own; all baits have this guard, and those of
              which a value is used again, and constants given from outside"""

    name: str
    rewrites: tuple[str, ...]
    build: Callable[..., str | tuple[str, ...]]
    guards: Mapping[str, Guard] = field(default_factory=dict)
    dtypes: Guard = FLOATING

    @property
    def every(self) -> dict[str, Guard]:
        """All guards by name. Raises ValueError where one of its own is called as one that all have."""
        if taken := {DTYPE, USED, CONSTANT} & set(self.guards):
            raise ValueError(f"{self.name}: {', '.join(sorted(taken))} is a guard that all baits have")
        return {DTYPE: self.dtypes, **self.guards, USED: USES, CONSTANT: CONSTANTS}


@dataclass(frozen=True)
class Drawn:
    """A pattern as a graph. fixed: the values of leaves that are not to be filled."""

    graph: Graph
    fixed: Mapping[str, np.ndarray]


class Pattern:
    """A graph in the making. A method that is none of its own applies the operator of that name."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.leaves: list[Leaf] = []
        self.nodes: list[Node] = []
        self.types: dict[str, TensorType] = {}
        self.fixed: dict[str, np.ndarray] = {}

    def input(self, *shape: int, dtype: str = "", domain: tuple[int, int] | None = None) -> str:
        """A value that comes from outside."""
        return self._leaf("x", "input", TensorType(dtype or self.dtype, shape), domain)

    def weight(self, *shape: int, dtype: str = "", domain: tuple[int, int] | None = None) -> str:
        """A parameter with drawn elements."""
        return self._leaf("w", "parameter", TensorType(dtype or self.dtype, shape), domain)

    def constant(self, value: Any, *shape: int, dtype: str = "", domain: tuple[int, int] | None = None) -> str:
        """A parameter with these elements: a number for all, an array, or `max`, `min`, `tiny` of the dtype. An integer
        beyond the dtype wraps."""
        dtype = dtype or self.dtype
        if isinstance(value, str):
            value = limit(dtype, value)
        with np.errstate(over="ignore", invalid="ignore"):
            array = np.array(np.broadcast_to(np.asarray(value), shape or np.shape(value))).astype(dtype)
        name = self._leaf("w", "parameter", TensorType(dtype, array.shape), domain)
        self.fixed[name] = array
        return name

    def shape(self, name: str) -> tuple[int, ...]:
        return self.types[name].shape

    def apply(self, operator: str, *operands: str, **attributes: Any) -> str:
        """Append a node; raises TypeRuleError where the operator does not take these."""
        result = OPS[operator].result(tuple(self.types[name] for name in operands), attributes)
        attrs = tuple((key, attributes[key]) for key in OPS[operator].attrs)
        node = Node(f"v{len(self.nodes)}", operator, operands, attrs, result)
        self.nodes.append(node)
        self.types[node.name] = result
        return node.name

    def __getattr__(self, operator: str) -> Callable[..., str]:
        if operator not in OPS:
            raise AttributeError(operator)
        return partial(self.apply, operator)

    def _leaf(self, prefix: str, role: Any, type_: TensorType, domain: tuple[int, int] | None) -> str:
        name = f"{prefix}{len(self.leaves)}"
        self.leaves.append(Leaf(name, type_, role, domain))
        self.types[name] = type_
        return name


def limit(dtype: str, which: str) -> float | int:
    """`max`, `min` or `tiny` of a dtype; the tiniest positive integer is 1."""
    if dtype in FLOATS:
        info = finfo(dtype)
        return float({"max": info.max, "min": info.min, "tiny": info.tiny}[which])
    whole = np.iinfo(dtype)
    return {"max": int(whole.max), "min": int(whole.min), "tiny": 1}[which]


def drawn(bait: Bait, choices: Mapping[str, Any]) -> Drawn:
    """The pattern with these choices; what is not chosen is as usual. Raises GraphError and TypeRuleError for a pattern
    that no operators take."""
    chosen = {name: guard.inside[0] for name, guard in bait.every.items()} | dict(choices)
    pattern = Pattern(chosen[DTYPE])
    given = {name: chosen[name] for name in bait.guards}
    outputs = bait.build(pattern, **given)
    outputs = (outputs,) if isinstance(outputs, str) else outputs
    outputs = _used_again(pattern, outputs, chosen[USED])
    leaves = tuple(replace(leaf, role="input") if chosen[CONSTANT] == "inputs" else leaf for leaf in pattern.leaves)
    graph = Graph(leaves, tuple(pattern.nodes), outputs).pruned()
    kept = {leaf.name for leaf in graph.leaves}
    return Drawn(check(graph), {name: array for name, array in pattern.fixed.items() if name in kept})


def _used_again(pattern: Pattern, outputs: tuple[str, ...], uses: str) -> tuple[str, ...]:
    """With the first or the last value on the way as an output, or taken by one more node."""
    if uses == "once":
        return outputs
    taken = {name for node in pattern.nodes for name in node.operands}
    between = [node for node in pattern.nodes if node.name in taken and node.name not in outputs]
    if not between:
        return outputs
    node = between[0 if uses.startswith("first") else -1]
    if uses.endswith("out"):
        return (*outputs, node.name)
    operator = "logical_not" if node.type.dtype == "bool" else "square"
    return (*outputs, pattern.apply(operator, node.name))


def places_of(bait: Bait) -> list[dict[str, Any]]:
    """All choices that are gone through: for each dtype as usual, then with one guard moved; for the usual dtype also
    with two moved, to the first outside. Each distinct graph once."""
    moved: list[dict[str, Any]] = [{}]
    others = {name: guard for name, guard in bait.every.items() if name != DTYPE}
    moved += [{name: one} for name, guard in others.items() for one in guard.choices[1:]]
    found = [{DTYPE: dtype, **move} for move in moved for dtype in bait.dtypes.choices]
    names = list(others)
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            ends = [(others[name].outside or others[name].inside)[-1:] for name in (first, second)]
            found += [{DTYPE: bait.dtypes.inside[0], first: a, second: b} for a in ends[0] for b in ends[1]]
    distinct: dict[str, dict[str, Any]] = {}
    for choices in found:
        one = drawn(bait, choices)
        key = repr((one.graph, [(name, array.tobytes()) for name, array in one.fixed.items()]))
        distinct.setdefault(key, choices)
    return list(distinct.values())


def filled(one: Drawn, number: int, distribution: Callable[[str, int], str]) -> dict[str, np.ndarray]:
    """Arrays of all leaves: constants as they are, others from the distribution that is named for a dtype and a
    leaf's number."""
    arrays = {}
    for i, leaf in enumerate(one.graph.leaves):
        fixed = one.fixed.get(leaf.name)
        recipe = Recipe(distribution(leaf.type.dtype, i), number + i)
        arrays[leaf.name] = fill(leaf, recipe) if fixed is None else fixed
    return arrays


def chosen_at_random(bait: Bait, rng: random.Random, dtypes: tuple[str, ...]) -> dict[str, Any] | None:
    """Choices, most of them as usual; None where the bait has none of the dtypes."""
    fitting = [dtype for dtype in bait.dtypes.choices if dtype in dtypes]
    if not fitting:
        return None
    found = {DTYPE: rng.choice(fitting)}
    for name, guard in bait.every.items():
        if name != DTYPE and rng.random() < 0.25:
            found[name] = rng.choice(guard.choices)
    return found
