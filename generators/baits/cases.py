"""Cases of baits: all places of one in order, as the plan of a hunt goes through them, and baits put into drawn
graphs."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import zip_longest

import numpy as np

from generators.baits import BAITS
from generators.baits.bait import Drawn, chosen_at_random, drawn, filled, places_of
from generators.baits.behind import behind
from generators.baits.moved import moved
from generators.baits.spelled import spelled
from generators.graph import COMPLEX, FLOATS, Graph, GraphError, Leaf, Node, TensorType
from generators.graphs import Case
from generators.inputs import FLOATING, INTEGER, Recipe, fill
from generators.ops import OPS, TypeRuleError, check
from generators.ops.slots import size_of
from generators.union import Filled, prefixed

SHARE = 1 / 8
"""Of the drawn cases of a hunt that get a bait."""
ATTEMPTS = 16
"""Baits that are drawn before a case is left without one, since its operators or dtypes leave it none."""
ODD = ("specials", "infinities", "with_zeros", "extreme")
"""What a rewrite forgets: `not (x < y)` of NaN, the square root of a negative infinity or zero. Arrays of baits have
few elements, and eight sets of them have all four."""
MOVED = "moved"
"""Among the choices of a place: the number of a graph of which an attribute or a shape is moved, a value stands behind
an operator that does nothing, or a node is said otherwise; all else is as usual."""
OFTEN_MOVED = 0.25
"""Share of the baits in drawn graphs of which it is."""
PREFIX = "b"
"""Of the names of a bait's values in a drawn graph."""


@cache
def places(name: str) -> tuple[Mapping[str, object], ...]:
    """The choices of each place of a bait: what is usual first, for every dtype, then one with an attribute moved and
    one of all others in turn, these in an order that is drawn, and always the same. Raises KeyError."""
    bait = BAITS[name]
    found = places_of(bait)
    usual, others = found[: len(bait.dtypes.choices)], found[len(bait.dtypes.choices) :]
    rng = random.Random(name)
    others = rng.sample(others, len(others))
    attributes = rng.sample([{MOVED: number} for number in range(len(_moved(name)))], len(_moved(name)))
    mixed = (place for pair in zip_longest(attributes, others) for place in pair if place is not None)
    return (*usual, *mixed)


@cache
def _moved(name: str) -> list[Drawn]:
    usual = drawn(BAITS[name], {})
    return [*moved(usual), *behind(usual), *spelled(usual)]


def _drawn(name: str, choices: Mapping[str, object]) -> Drawn:
    number = choices.get(MOVED)
    return drawn(BAITS[name], choices) if number is None else _moved(name)[int(str(number))]


@cache
def operators_of(name: str) -> frozenset[str]:
    """The operators of a bait as it usually is."""
    return frozenset(node.op for node in drawn(BAITS[name], {}).graph.nodes)


def baited(name: str, turn: int, fills: int) -> Filled:
    """Place number `turn` of a bait, with so many sets of arrays. Parameters are the same in all of them."""
    one = _drawn(name, places(name)[turn])
    first = filled(one, turn, lambda dtype, leaf: _named(dtype, 0))
    constant = {leaf.name: _weights(one, leaf, turn) for leaf in one.graph.parameters}
    others = [filled(one, turn + k, lambda dtype, leaf, k=k: _other(dtype, turn, k)) for k in range(1, fills)]
    return Filled(one.graph, tuple({**arrays, **constant} for arrays in (first, *others)))


def with_bait(seed: int, index: int, case: Case, operators: Collection[str], dtypes: Sequence[str]) -> Case:
    """The drawn case number `index` of a hunt, in one of eight cases with a bait beside it, behind one of its values or
    in front of one of its inputs: the same on every machine. operators, dtypes: what may be drawn."""
    rng = random.Random(f"{seed}/{index}/bait")
    if rng.random() >= SHARE:
        return case
    allowed, names = set(operators), list(BAITS)
    for _ in range(ATTEMPTS):
        name = rng.choice(names)
        choices = chosen_at_random(BAITS[name], rng, tuple(dtypes)) if operators_of(name) <= allowed else None
        if choices is None:
            continue
        if rng.random() < OFTEN_MOVED and BAITS[name].dtypes.inside[0] in dtypes and _moved(name):
            choices = {MOVED: rng.randrange(len(_moved(name)))}
        try:
            one = _drawn(name, choices)
        except (GraphError, TypeRuleError):  # several guards at once, which do not fit each other
            continue
        if {node.op for node in one.graph.nodes} <= allowed:
            arrays = filled(one, rng.randrange(2**32), lambda dtype, leaf: _named(dtype, rng.randrange(12)))
            return _joined(rng, case, _renamed(Case(one.graph, arrays)), set(one.fixed), allowed)
    return case


def _named(dtype: str, number: int) -> str:
    names = tuple(FLOATING if dtype in (*FLOATS, *COMPLEX) else INTEGER)
    return names[number % len(names)]


def _other(dtype: str, turn: int, k: int) -> str:
    """The distribution of set `k` of a place's arrays: of every second one that where rewrites are wrong most."""
    if dtype in (*FLOATS, *COMPLEX) and k % 2:
        return ODD[(turn + k // 2) % len(ODD)]
    return _named(dtype, turn + k)


def _weights(one: Drawn, leaf: Leaf, turn: int) -> np.ndarray:
    """A constant, or elements of the first four distributions in turn, none of which has special values."""
    fixed = one.fixed.get(leaf.name)
    return fill(leaf, Recipe(_named(leaf.type.dtype, turn % 4), turn)) if fixed is None else fixed


def _renamed(case: Case) -> Case:
    """With other names than drawn graphs have."""
    return Case(prefixed(case.graph, PREFIX), {PREFIX + name: array for name, array in case.arrays.items()})


def _joined(rng: random.Random, case: Case, bait: Case, fixed: Collection[str], allowed: Collection[str]) -> Case:
    """Both as one: where an input of the second can be made of a value of the first, it is."""
    first, second = (case, bait) if rng.random() < 0.7 else (bait, case)
    kept = {PREFIX + name for name in fixed}
    inputs = [leaf for leaf in second.graph.inputs if leaf.domain is None and leaf.name not in kept]
    values = [node for node in first.graph.nodes if node.type.size]
    pairs = [(leaf, node) for leaf in inputs for node in values if node.type.dtype == leaf.type.dtype]
    rng.shuffle(pairs)
    pairs.sort(key=lambda pair: pair[0].type != pair[1].type)
    between: tuple[Node, ...] = ()
    renamed: dict[str, str] = {}
    for leaf, node in pairs:
        found = _adapted(node, leaf.type)
        if found is not None and {one.op for one in found} <= set(allowed):
            between, renamed = found, {leaf.name: found[-1].name if found else node.name}
            break
    behind = tuple(
        replace(node, operands=tuple(renamed.get(name, name) for name in node.operands)) for node in second.graph.nodes
    )
    leaves = (*first.graph.leaves, *(leaf for leaf in second.graph.leaves if leaf.name not in renamed))
    outputs = dict.fromkeys((*first.graph.outputs, *(renamed.get(name, name) for name in second.graph.outputs)))
    graph = check(Graph(leaves, (*first.graph.nodes, *between, *behind), tuple(outputs)).pruned())
    arrays = {**case.arrays, **bait.arrays}
    return Case(graph, {leaf.name: arrays[leaf.name] for leaf in graph.leaves})


def _adapted(node: Node, wanted: TensorType) -> tuple[Node, ...] | None:
    """Nodes that make a value one of this shape: its first elements. None where it has too few."""
    size = wanted.size
    if node.type == wanted:
        return ()
    if node.type.size < size:
        return None
    steps: list[tuple[str, dict]] = []
    if node.type.size > size:
        steps.append(("reshape", {"shape": (size_of(node.type.shape),)}))
        steps.append(("slice", {"starts": (0,), "stops": (size,), "steps": (1,)}))
    steps.append(("reshape", {"shape": wanted.shape}))
    found: list[Node] = []
    for number, (operator, attributes) in enumerate(steps):
        before = found[-1] if found else node
        result = OPS[operator].result((before.type,), attributes)
        found.append(Node(f"{PREFIX}a{number}", operator, (before.name,), tuple(attributes.items()), result))
    return tuple(found)
