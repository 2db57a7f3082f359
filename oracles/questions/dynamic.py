"""Is a program that was compiled once, with a symbolic dimension, right at every size? Each run against the float64
reference at its size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from generators.graph import Graph, GraphError, TensorType
from generators.graphs import Case
from generators.inputs import Arrays
from generators.ops import check
from generators.retype import confined, retyped_graph
from oracles.judge.compare import Expected
from oracles.questions import forward

NAME = "dynamic"

Place = tuple[str, int]
"""An axis of a leaf."""


@dataclass(frozen=True)
class Plan:
    """places: what changes together; graphs: the same nodes by size, the first of which is compiled for. Leaves that
    change, or may have to, are inputs in all of them."""

    places: tuple[Place, ...]
    graphs: dict[int, Graph]

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(self.graphs)

    @property
    def first(self) -> Graph:
        """The graph at the size that is compiled for."""
        return next(iter(self.graphs.values()))


@lru_cache(maxsize=256)
def plan(graph: Graph) -> Plan | None:
    """The dimension on which most nodes depend, in the smallest group of places that has to change together; None
    where there is none of at least 2 (frameworks compile 0 and 1 specially, as they document) that may grow by 1."""
    best: tuple[int, Plan] | None = None
    seen: set[tuple[Place, ...]] = set()
    for size in sorted({d for leaf in graph.leaves for d in leaf.type.shape if d > 1}, reverse=True):
        for group in groups(graph, size):
            if group in seen:
                continue
            seen.add(group)
            base, grown = resized(graph, group, size), resized(graph, group, size + 1)
            if base is None or grown is None:
                continue
            depending = sum(a.type != b.type and b.type.size > 0 for a, b in zip(base.nodes, grown.nodes, strict=True))
            if best is None or depending > best[0]:
                others = {n: resized(graph, group, n) for n in (2 * size, 1, 0)}
                sizes = {n: other for n, other in others.items() if other is not None}
                best = depending, Plan(group, {size: base, size + 1: grown, **sizes})
    return best[1] if best else None


def groups(graph: Graph, size: int) -> Iterator[tuple[Place, ...]]:
    """For each place of this size, a smallest group with it that may change together."""
    places = tuple((i.name, axis) for i in graph.leaves for axis, d in enumerate(i.type.shape) if d == size)
    for place in places:
        if resized(graph, (place,), size + 1):
            yield (place,)
        elif len(places) > 1 and resized(graph, places, size + 1):
            group = places
            for other in places:
                fewer = tuple(p for p in group if p != other)
                if other != place and resized(graph, fewer, size + 1):
                    group = fewer
            yield group


def resized(graph: Graph, places: tuple[Place, ...], size: int) -> Graph | None:
    """The graph with these places of that size, types inferred anew; None where that is not valid or changes a rank."""
    leaves = []
    for leaf in graph.leaves:
        shape = tuple(size if (leaf.name, axis) in places else d for axis, d in enumerate(leaf.type.shape))
        # indices are confined to the size, so that they change with it, too
        changes = leaf.domain is not None or any(name == leaf.name for name, _ in places)
        role = "input" if changes else leaf.role
        leaves.append(replace(leaf, type=TensorType(leaf.type.dtype, shape), role=role))
    new = retyped_graph(Graph(tuple(leaves), graph.nodes, graph.outputs))
    if new is None or any(a.type.rank != b.type.rank for a, b in zip(new.nodes, graph.nodes, strict=True)):
        return None  # coordinates with more places pick smaller pieces
    try:
        return check(new)
    except GraphError:
        return None


def at_size(arrays: Arrays, found: Plan, size: int) -> dict[str, np.ndarray]:
    """The arrays cut or repeated along the places, each size beginning at another row."""
    result = dict(arrays)
    for name, axis in found.places:
        array = result[name]
        result[name] = np.take(array, (np.arange(size) + size) % array.shape[axis], axis)
    return confined(found.graphs[size], result)


def cases(case: Case) -> dict[int, Case]:
    """The case at each size of its plan."""
    found = plan(case.graph)
    if found is None:
        raise ValueError("no dimension of this graph can change")
    return {size: Case(graph, at_size(case.arrays, found, size)) for size, graph in found.graphs.items()}


def part(case: Case, place: int) -> Case:
    """The case that this output is a result of."""
    return case if plan(case.graph) is None else list(cases(case).values())[place // len(case.graph.outputs)]


def arrays(case: Case) -> dict[str, np.ndarray]:
    """Parameters, and inputs at each size under names of their own."""
    result: dict[str, np.ndarray] = {}
    for size, one in cases(case).items():
        result |= {leaf.name: one.arrays[leaf.name] for leaf in one.graph.parameters}
        result |= {at(leaf.name, size): one.arrays[leaf.name] for leaf in one.graph.inputs}
    return result


def taken(graph: Graph) -> dict[str, TensorType]:
    """What a program takes of a graph at one size."""
    return {leaf.name: leaf.type for leaf in graph.inputs}


def arguments(
    found: Plan, given: Callable[[Graph], Mapping[str, TensorType]]
) -> dict[str, tuple[str, tuple[int | str, ...]]]:
    """dtype and shape of what a program is given at one size. A dimension that changes is a text: n, a multiple of it
    and a constant, or ? where it is none."""
    types = [given(graph) for graph in found.graphs.values()]
    return {
        name: (first.dtype, tuple(_dim(found.sizes, dims) for dims in _dims(name, types)))
        for name, first in types[0].items()
    }


def _dims(name: str, types: Sequence[Mapping[str, TensorType]]) -> Iterator[tuple[int, ...]]:
    """Each dimension at all sizes."""
    return zip(*(one[name].shape for one in types), strict=True)


def _dim(sizes: tuple[int, ...], dims: tuple[int, ...]) -> int | str:
    if len(set(dims)) == 1:
        return dims[0]
    factor = (dims[1] - dims[0]) // (sizes[1] - sizes[0])
    more = dims[0] - factor * sizes[0]
    if any(dim != factor * size + more for size, dim in zip(sizes, dims, strict=True)):
        return "?"
    multiple = "n" if factor == 1 else f"{factor}*n"
    return f"{multiple}{more:+}" if more else multiple


def at(name: str, size: int) -> str:
    """The name of a value at a size."""
    return f"{name}_at_{size}"


def expect(case: Case) -> Expected:
    """The outputs at the first size, then those at the second, and so on. Where nothing can change, nothing is run,
    and what is expected is the forward question's answer."""
    if plan(case.graph) is None:
        return forward.expect(case)
    return joined({size: forward.expect(one) for size, one in cases(case).items()})


def joined(runs: Mapping[int, Expected]) -> Expected:
    """What is expected of runs at several sizes, in order."""
    return Expected(
        tuple(at(name, size) for size, run in runs.items() for name in run.names),
        tuple(type_ for run in runs.values() for type_ in run.types),
        tuple(value for run in runs.values() for value in run.values),
    )


def changing(case: Case, accepts: Callable[[Graph], bool]) -> Case:
    """The case cut down to those outputs, from the first on, with which the graph is acceptable: something in it can
    change. As it is where there are none."""
    kept: tuple[str, ...] = ()
    for name in case.graph.outputs:
        if accepts(case.graph.pruned((*kept, name))):
            kept = (*kept, name)
    if not kept:
        return case
    graph = case.graph.pruned(kept)
    return Case(graph, {leaf.name: case.arrays[leaf.name] for leaf in graph.leaves})
