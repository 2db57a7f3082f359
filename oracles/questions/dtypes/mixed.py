"""Operands of different dtypes: casts that the framework's own promotion makes superfluous are left out of the program.
What is expected is what the graph says with its casts."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from zlib import crc32

from generators.graph import FLOATS, Graph, Node, TensorType
from generators.graphs import Case

NAME = "mixed"

_BYTES = ("int8", "uint8", "bool")
NARROWER: Mapping[str, tuple[str, ...]] = {
    "float64": ("float32", "int64", "bool", "float16", "bfloat16", "int32", "uint8"),
    "float32": ("int64", "bool", "float16", "bfloat16", "int32", "int8", "uint8"),
    "float16": ("bool", "int64", "int32", *_BYTES[:2]),
    "bfloat16": ("bool", "int64", "int32", *_BYTES[:2]),
    "int64": ("int32", "bool", "uint8", "int8", "int16"),
    "int32": ("bool", "uint8", "int8", "int16"),
    "int16": _BYTES,
    "int8": ("bool",),
    "uint8": ("bool",),
}
"""dtype -> those that give it when both meet: by PyTorch's categories (docs, *Tensor Attributes*) and by JAX's lattice
(docs, *Type promotion semantics*), which agree on these."""
WIDER: Mapping[str, tuple[str, ...]] = {
    "float32": ("float64",),
    "float16": ("float32", "float64"),
    "bfloat16": ("float32", "float64"),
    "int32": ("int64",),
    "int16": ("int64", "int32"),
    "int8": ("int64", "int32"),
}
"""dtype of a tensor with dimensions -> those of one without dimensions that PyTorch brings to it."""

_BOTH, _ALL = (0, 1), (0, 1, 2)
_ELEMENTWISE = """
add sub mul pow atan2 maximum minimum fmax fmin hypot copysign equal not_equal less less_equal greater greater_equal
bitwise_and bitwise_or bitwise_xor div floor_divide remainder fmod logaddexp logaddexp2 xlogy xlog1py squared_difference
nextafter igamma igammac zeta clip_min clip_max mse_loss smooth_l1_loss hinge_loss outer kron add_n searchsorted concat
stack
"""
_PRODUCTS = (
    *("matmul", "linear", "dot", "vecdot", "cross", "addmm", "baddbmm", "addmv", "einsum", "tensordot", "batch_matmul"),
    *("matrix_vector", "vector_matrix"),
)
_SHARED: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(_ELEMENTWISE.split(), _BOTH),
    **dict.fromkeys(("addcmul", "addcdiv", "clip_tensors", "addr", "lerp"), _ALL),
    "where": (1, 2),
}
PLACES: Mapping[str, Mapping[str, tuple[int, ...]]] = {
    "torch": {**_SHARED, "float_power": _BOTH},
    "jax": {**_SHARED, **dict.fromkeys((*_PRODUCTS, "heaviside", "isclose", "l1_loss", "isin", "prelu"), _ALL)},
}
"""By dialect: operators whose operands at these places are promoted to one dtype, all of those that take what it is
asked for without a word, where eager."""


def concerns(operator: str) -> bool:
    """Does some dialect promote its operands?"""
    return any(operator in places for places in PLACES.values())


def left_out(graph: Graph, dialect: str) -> tuple[str, ...]:
    """The casts that the dialect's programs do without."""
    found: list[str] = []
    for node in graph.nodes:
        if node.op == "cast" and node.name not in graph.outputs and _superfluous(graph, dialect, node, found):
            found.append(node.name)
    return tuple(found)


def _superfluous(graph: Graph, dialect: str, cast: Node, others: list[str]) -> bool:
    """Does promotion do the same wherever it is used? `others`: the casts that are left out already."""
    given, to = graph.types[cast.operands[0]], cast.type
    uses = [(node, i) for node in graph.nodes for i, name in enumerate(node.operands) if name == cast.name]
    if not uses:
        return False
    for node, place in uses:
        places = PLACES[dialect].get(node.op, ())
        beside = [node.operands[i] for i in places if i < len(node.operands) and i != place]
        kept = [graph.types[name] for name in beside if name not in others and name != cast.name]
        if place not in places or not any(_promotes(dialect, given, other, to) for other in kept):
            return False
    return True


def _promotes(dialect: str, given: TensorType, other: TensorType, to: TensorType) -> bool:
    """Does a value of type `given` become the dtype of `to` beside `other`, which has it? In PyTorch one without
    dimensions decides only where it is of a higher category."""
    if other.dtype != to.dtype:
        return False
    if given.dtype in NARROWER.get(to.dtype, ()):
        return dialect == "jax" or _category(given) < _category(to) or bool(other.rank) or not given.rank
    return dialect == "torch" and given.dtype in WIDER.get(to.dtype, ()) and not given.rank and bool(other.rank)


def _category(type_: TensorType) -> int:
    return 0 if type_.dtype == "bool" else 2 if type_.dtype in FLOATS else 1


def stripped(graph: Graph, dialect: str) -> Graph:
    """The graph that is printed: without the casts that promotion makes superfluous."""
    out = set(left_out(graph, dialect))
    source = {node.name: node.operands[0] for node in graph.nodes if node.name in out}
    nodes = tuple(
        replace(node, operands=tuple(source.get(name, name) for name in node.operands))
        for node in graph.nodes
        if node.name not in out
    )
    return Graph(graph.leaves, nodes, graph.outputs)


def prepare(case: Case) -> Case:
    """The graph in which operands of each operator that promotes go through a narrower dtype (one without dimensions
    perhaps through a wider one) and back, all but one or one alone: by chance, but always the same ones."""
    graph = case.graph
    rng = random.Random(crc32(str(graph).encode()))
    taken = {value.name for value in (*graph.leaves, *graph.nodes)}
    free = (name for name in map("m{}".format, count()) if name not in taken)
    nodes: list[Node] = []
    for node in graph.nodes:
        operands = list(node.operands)
        for place, by in _chosen(graph, node, rng):
            type_ = graph.types[operands[place]]
            there, back = next(free), next(free)
            for new, of, dtype in ((there, operands[place], by), (back, there, type_.dtype)):
                nodes.append(Node(new, "cast", (of,), (("to", dtype),), TensorType(dtype, type_.shape)))
            operands[place] = back
        nodes.append(replace(node, operands=tuple(operands)))
    return Case(Graph(graph.leaves, tuple(nodes), graph.outputs), case.arrays)


def _chosen(graph: Graph, node: Node, rng: random.Random) -> list[tuple[int, str]]:
    """Places of operands that go through other dtypes, with these; one of their dtype is left."""
    places = next((found[node.op] for found in PLACES.values() if node.op in found), ())
    types = {i: graph.types[node.operands[i]] for i in places if i < len(node.operands)}
    dtypes = [type_.dtype for type_ in types.values()]
    fit = [i for i, type_ in types.items() if type_.dtype in NARROWER and dtypes.count(type_.dtype) > 1]
    if not fit:
        return []
    dtype = types[rng.choice(fit)].dtype
    alike = [i for i in fit if types[i].dtype == dtype]
    kept = rng.choice(alike)
    moved = [i for i in alike if i != kept]
    moved = moved if rng.random() < 0.5 else [rng.choice(moved)]
    same, found = rng.choice(NARROWER[dtype]), []
    for i in moved:
        wide = () if types[i].rank or not types[kept].rank else WIDER.get(dtype, ())
        found.append((i, rng.choice(wide) if wide and rng.random() < 0.5 else same))
    return found
