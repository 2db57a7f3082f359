"""Operators that have a batch dimension: the simplest case of each in which some axis in front can have any size, and
rows do not depend on each other by the reference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from generators.graph import Graph
from generators.retype import confined
from generators.sweep import sweep
from oracles.judge.reference import evaluate
from oracles.questions.dynamic import Place, groups, resized

DTYPE = "float32"
PROBED = 3
"""Rows by which independence is tried."""
WIDTHS = (67, 35, 19)
"""What other axes are made, the first that they can have (some operators have limits on the elements of an operand):
long enough for blocked and vectorised kernels, and no multiple of any vector."""
SIZES = (1, 2, 3, 4, 8, 16, 32)
"""Rows of a batch; the others are compared with the last."""
MOST = 1 << 17
"""Elements of all values of a widened case together, with as many rows."""
LEAST = (-1.0, 0.5, 1.5)
"""Of floating numbers: the first with which all results are finite."""
TRIED = (12, 48)
"""Cases of an operator's sweep that are looked at; more of them where none of few has a batch dimension."""


@dataclass(frozen=True)
class Batched:
    """An operator's case whose leaves in `places` have a batch axis in front; the result has it there, too. least: of
    the floating numbers without a domain, which are uniform up to 2 more than it."""

    operator: str
    graph: Graph
    places: tuple[Place, ...]
    least: float = -1.0

    def at(self, size: int) -> Graph:
        """The same with so many rows."""
        found = resized(self.graph, self.places, size)
        assert found is not None  # tried before it was made
        return found

    def arrays(self, rows: int, seed: int) -> dict[str, np.ndarray]:
        """Of a batch of so many rows: uniform for floating numbers, within their domain where there is one;
        integers anew, too. One leaf has the same numbers whatever the rows."""
        found, graph = {}, self.at(rows)
        for number, leaf in enumerate(graph.leaves):
            rng = np.random.default_rng((seed, number))
            low, high = leaf.domain or (self.least, self.least + 2)
            if leaf.type.dtype.startswith("float"):
                found[leaf.name] = rng.uniform(low, high, leaf.type.shape).astype(leaf.type.dtype)
            elif leaf.type.dtype.startswith("complex"):
                parts = rng.uniform(-1, 1, (2, *leaf.type.shape))
                found[leaf.name] = (parts[0] + 1j * parts[1]).astype(leaf.type.dtype)
            elif leaf.type.dtype == "bool":
                found[leaf.name] = rng.random(leaf.type.shape) < 0.5
            else:
                low, high = leaf.domain or (0, 1)
                found[leaf.name] = rng.integers(int(low), int(high) + 1, leaf.type.shape).astype(leaf.type.dtype)
        return confined(graph, found)

    def rows(self, arrays: Mapping[str, np.ndarray], chosen: np.ndarray) -> dict[str, np.ndarray]:
        """The arrays of a batch of these rows."""
        own = {name for name, _ in self.places}
        found = {name: array[chosen] if name in own else array for name, array in arrays.items()}
        return confined(self.at(len(chosen)), found)


def batched(operator: str) -> Batched | None:
    """None where no case of its sweep has a batch dimension."""
    cases = (case.graph for most in TRIED for case in islice(sweep(operator, most, (DTYPE,)), most))
    for case in cases:
        for graph, places in _candidates(_separated(case)):
            for least in LEAST:
                found = Batched(operator, graph, places, least)
                if _independent(found):
                    return _widened(found)
    return None


def _separated(graph: Graph) -> Graph:
    """A graph of one node, each operand of which is a leaf of its own: what is drawn may be a sum of a value and
    itself, or a convolution of one with itself, in which rows are no rows."""
    if len(graph.nodes) != 1:
        return graph
    (node,), by_name = graph.nodes, {leaf.name: leaf for leaf in graph.leaves}
    leaves = tuple(replace(by_name[operand], name=f"x{k}") for k, operand in enumerate(node.operands))
    apart = replace(node, operands=tuple(leaf.name for leaf in leaves))
    return Graph(leaves, (apart,), graph.outputs) if node.name not in apart.operands else graph


def _candidates(graph: Graph) -> Iterator[tuple[Graph, tuple[Place, ...]]]:
    """One result of DTYPE; the axis in front of all leaves that have it as long, or of one of them. What works along
    the axis in front works along the last one, too."""
    last = graph.nodes[-1]
    if last.attributes.get("axis") == 0 and last.type.rank > 1:
        attrs = tuple((key, last.type.rank - 1 if key == "axis" else value) for key, value in last.attrs)
        yield from _candidates(replace(graph, nodes=(*graph.nodes[:-1], replace(last, attrs=attrs))))
    result = graph.types[graph.outputs[0]]
    if len(graph.outputs) != 1 or result.dtype != DTYPE or not result.shape:
        return
    fronts = [(leaf.name, 0) for leaf in graph.leaves if leaf.type.shape and leaf.type.shape[0] == result.shape[0]]
    groups = [tuple(fronts), *((place,) for place in fronts)] if len(fronts) > 1 else [tuple(fronts)]
    for places in groups:
        if not places:
            continue
        if _fits(Batched("", graph, places)):
            yield graph, places


def _fits(found: Batched) -> bool:
    """Can it have any number of rows, which are not empty, and is it small enough with all of them?"""
    graphs = {size: resized(found.graph, found.places, size) for size in SIZES}
    for size, graph in graphs.items():
        if graph is None or graph.types[graph.outputs[0]].shape[:1] != (size,):
            return False
        if not graph.types[graph.outputs[0]].size or sum(t.size for t in graph.types.values()) > MOST:
            return False
    return True


def _independent(found: Batched) -> bool:
    """Do rows come out as they do alone, and in any order, by the reference?"""
    arrays = found.arrays(PROBED, 0)
    whole = value_of(found.at(PROBED), arrays)
    if not np.isfinite(whole).all():
        return False
    turned = value_of(found.at(PROBED), found.rows(arrays, np.arange(PROBED)[::-1]))
    alone = [value_of(found.at(1), found.rows(arrays, np.array([row]))) for row in range(PROBED)]
    together = np.concatenate(alone)
    return near(turned[::-1], whole) and near(together, whole)


def near(a: np.ndarray, b: np.ndarray) -> bool:
    """The same but for the rounding of float64: the reference is no more invariant than what it judges."""
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=1e-9, atol=1e-12))


def value_of(graph: Graph, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """The result by the reference, float64."""
    with np.errstate(all="ignore"):
        return np.asarray(evaluate(graph, arrays)[graph.outputs[0]].value, np.float64)


def _widened(found: Batched) -> Batched:
    """With its other axes as long as they may be: all of one size together, or else those that have to change together,
    the most first, so that an axis that is summed over is longer than others."""
    for size in sorted({d for leaf in found.graph.leaves for d in leaf.type.shape}):
        places = tuple(
            (leaf.name, axis)
            for leaf in found.graph.leaves
            for axis, d in enumerate(leaf.type.shape)
            if d == size and (leaf.name, axis) not in found.places
        )
        wide = _longer(found, places)
        for group in sorted(groups(found.graph, size), key=len, reverse=True) if wide is None else ():
            found = found if set(group) & set(found.places) else _longer(found, group) or found
        found = wide or found
    return found


def _longer(found: Batched, places: tuple[Place, ...]) -> Batched | None:
    """With these axes as long as they may be; None where they have to stay as they are."""
    for width in WIDTHS if places else ():
        graph = resized(found.graph, places, width)
        tried = replace(found, graph=graph) if graph else None
        if tried and _fits(tried) and _independent(tried):
            return tried
    return None
