"""Smaller cases that still fail: cut outputs, replace values by leaves, bypass nodes, put plainer operators in their
place, shrink dimensions, simplify attributes and arrays. Works on any predicate, so it serves slow compilers as well as
fast ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from generators.graph import COMPONENT, FLOATS, Attr, Graph, TensorType
from generators.graphs import Case, pruned
from generators.ops import valid
from generators.retype import retyped
from oracles.questions import forward

Fails = Callable[[Case], bool]


@dataclass
class Budget:
    """How much a reduction may cost: number of runs, and seconds of wall-clock time."""

    runs: int = 300
    seconds: float = 90.0

    def __post_init__(self) -> None:
        self._deadline = time.monotonic() + self.seconds

    @property
    def left(self) -> bool:
        """Is there any?"""
        return self.runs > 0 and time.monotonic() < self._deadline

    def spend(self) -> bool:
        """Account for one run; False when nothing is left."""
        self.runs -= 1
        return self.runs >= 0 and time.monotonic() < self._deadline


def within(deadline: float, seconds: float) -> Budget:
    """What one finding may cost before a deadline (`time.monotonic`), at most so many seconds."""
    return Budget(seconds=min(seconds, max(0.0, deadline - time.monotonic())))


def reduce(case: Case, fails: Fails, budget: Budget) -> Case:
    """The smallest case found, never larger than the given one. `fails` decides what still counts; candidates
    that are not valid graphs are not tried."""
    improved = True
    while improved:
        improved = False
        for edits in (_outputs, _leaves_for_nodes, _bypasses, _plainer, _parameters_to_inputs, _dims, _attrs, _arrays):
            case, changed = _exhaust(case, edits, fails, budget)
            improved = improved or changed
            if budget.runs < 0:
                return case
    return case


def _exhaust(case: Case, edits: Callable[[Case], Iterator[Case]], fails: Fails, budget: Budget) -> tuple[Case, bool]:
    """Apply one kind of edit as long as one of its candidates still fails."""
    changed, progress = False, True
    while progress:
        progress = False
        for candidate in edits(case):
            if valid(candidate.graph) and budget.spend() and fails(candidate):
                case, changed, progress = candidate, True, True
                break
            if budget.runs < 0:
                return case, changed
    return case, changed


def size(case: Case) -> tuple[int, int]:
    """Nodes, then elements of all leaves: what reduction makes smaller."""
    return len(case.graph.nodes), sum(leaf.type.size for leaf in case.graph.leaves)


def _outputs(case: Case) -> Iterator[Case]:
    """Each output alone, each node as the only output, each output left out, each in favour of what it is made of."""
    graph = case.graph
    names = [node.name for node in graph.nodes]
    singles = [n for n in dict.fromkeys((*graph.outputs, *names)) if (n,) != graph.outputs]
    for name in singles:
        candidate = pruned(replace(graph, outputs=(name,)), case.arrays)
        if len(candidate.graph.nodes) < len(graph.nodes) or len(graph.outputs) > 1:
            yield candidate
    if len(graph.outputs) > 1:
        for name in graph.outputs:
            yield pruned(replace(graph, outputs=tuple(o for o in graph.outputs if o != name)), case.arrays)
        for node in (node for node in graph.nodes if node.name in graph.outputs):
            made_of = tuple(operand for operand in node.operands if operand in names)
            outputs = dict.fromkeys(n for o in graph.outputs for n in (made_of if o == node.name else (o,)))
            candidate = pruned(replace(graph, outputs=tuple(outputs)), case.arrays)
            if made_of and len(candidate.graph.nodes) < len(graph.nodes):
                yield candidate


def _leaves_for_nodes(case: Case) -> Iterator[Case]:
    """Each node replaced by a leaf that holds its value, the latest that makes the graph smallest first."""
    values = forward.plan(case)
    graph = case.graph
    for node in reversed(graph.nodes):
        if graph.outputs == (node.name,):
            continue
        leaf = replace(graph.leaf_for(node.name), name=f"x_{node.name}")
        cut = _rename(replace(graph, leaves=(*graph.leaves, leaf)), node.name, leaf.name)
        with np.errstate(all="ignore"):
            array = values[node.name].value.astype(node.type.dtype)
        yield pruned(cut, {**case.arrays, leaf.name: array})


def _bypasses(case: Case) -> Iterator[Case]:
    """Each node replaced by an operand of the same type."""
    graph = case.graph
    for node in reversed(graph.nodes):
        for operand in node.operands:
            if graph.types[operand] == node.type and not (graph.outputs == (node.name,) and len(graph.nodes) == 1):
                yield pruned(_rename(graph, node.name, operand), case.arrays)
                break


PLAIN = ("neg", "logical_not")
"""Operators that stand for others, of numbers and of truth values: what takes several nodes together has one cause
whatever the others are. They are exact, and no two operands have the same result, so that nothing is hidden."""


def _plainer(case: Case) -> Iterator[Case]:
    """Where there are several nodes, each in turn replaced by a plain operator of one of its operands."""
    graph = case.graph
    for index, node in enumerate(graph.nodes if len(graph.nodes) > 1 else ()):
        for name in PLAIN if node.op not in PLAIN else ():
            for operand in dict.fromkeys(node.operands):
                plain = replace(node, op=name, operands=(operand,), attrs=())
                nodes = (*graph.nodes[:index], plain, *graph.nodes[index + 1 :])
                if new := retyped(replace(graph, nodes=nodes), case.arrays):
                    yield pruned(new.graph, new.arrays)


def _rename(graph: Graph, old: str, new: str) -> Graph:
    """The graph with `new` in place of every use of the node `old`, which is dropped."""
    nodes = tuple(
        replace(node, operands=tuple(new if o == old else o for o in node.operands))
        for node in graph.nodes
        if node.name != old
    )
    known = {leaf.name for leaf in graph.leaves}
    outputs = tuple(o for o in (new if o == old else o for o in graph.outputs) if o not in known)
    return Graph(graph.leaves, nodes, tuple(dict.fromkeys(outputs)) or graph.outputs)


def _parameters_to_inputs(case: Case) -> Iterator[Case]:
    """All parameters as inputs, then each."""
    graph = case.graph
    if graph.parameters:
        yield pruned(replace(graph, leaves=tuple(replace(i, role="input") for i in graph.leaves)), case.arrays)
    for leaf in graph.parameters if len(graph.parameters) > 1 else ():
        leaves = tuple(replace(i, role="input") if i == leaf else i for i in graph.leaves)
        yield pruned(replace(graph, leaves=leaves), case.arrays)


def _dims(case: Case) -> Iterator[Case]:
    """Dimensions of leaves cut to 1, to half, or by one; equal dimensions of all leaves together, then each."""
    graph = case.graph
    dims = sorted({d for leaf in graph.leaves for d in leaf.type.shape if d > 1}, reverse=True)
    for dim in dims:
        for smaller in dict.fromkeys((1, dim // 2, dim - 1)):
            places = [(i.name, axis) for i in graph.leaves for axis, d in enumerate(i.type.shape) if d == dim]
            groups = [places, *([p] for p in places)] if len(places) > 1 else [places]
            for group in groups:
                candidate = _resized(case, dict.fromkeys(group, smaller))
                if candidate:
                    yield candidate


def _resized(case: Case, sizes: Mapping[tuple[str, int], int]) -> Case | None:
    """The case with leaves cut to `sizes` by (leaf, axis), types inferred anew; None where that is invalid."""
    leaves, arrays = [], dict(case.arrays)
    for leaf in case.graph.leaves:
        shape = tuple(sizes.get((leaf.name, axis), d) for axis, d in enumerate(leaf.type.shape))
        arrays[leaf.name] = arrays[leaf.name][tuple(slice(0, d) for d in shape)].copy()
        leaves.append(replace(leaf, type=TensorType(leaf.type.dtype, shape)))
    return retyped(Graph(tuple(leaves), case.graph.nodes, case.graph.outputs), arrays)


def _attrs(case: Case) -> Iterator[Case]:
    """Attributes replaced by simpler ones."""
    graph = case.graph
    for index, node in enumerate(graph.nodes):
        for key, value in node.attrs:
            for simpler in _simpler(value):
                attrs = tuple((k, simpler if k == key else v) for k, v in node.attrs)
                nodes = (*graph.nodes[:index], replace(node, attrs=attrs), *graph.nodes[index + 1 :])
                candidate = retyped(replace(graph, nodes=nodes), case.arrays)
                if candidate:
                    yield candidate


def _simpler(value: Attr) -> Iterator[Attr]:
    if value is True:
        yield False
    elif isinstance(value, tuple):
        for small in (0, 1):
            for i, item in enumerate(value):
                if item not in (0, small) and item != small:
                    yield (*value[:i], small, *value[i + 1 :])
    elif isinstance(value, int | float) and not isinstance(value, bool) and value not in (0, 1):
        yield from (type(value)(0), type(value)(1))
        if value < 0:
            yield -value


def _arrays(case: Case) -> Iterator[Case]:
    """All elements of a leaf 0 or 1; rounded to integers, to halves; single elements 0 in small arrays."""
    for leaf in case.graph.leaves:
        array = case.arrays[leaf.name]
        for candidate in _simpler_arrays(array, leaf.domain):
            yield Case(case.graph, {**case.arrays, leaf.name: candidate})


def _simpler_arrays(array: np.ndarray, domain: tuple[int, int] | None) -> Iterator[np.ndarray]:
    part = COMPONENT.get(str(array.dtype))
    if part:  # the parts side by side
        for parts in _simpler_arrays(np.ascontiguousarray(array).reshape(-1).view(part), None):
            yield parts.view(array.dtype).reshape(array.shape)
        return
    tried = [np.zeros_like(array), np.ones_like(array)]
    if str(array.dtype) in FLOATS:
        with np.errstate(all="ignore"):
            tried += [np.where(np.isfinite(array), f(array), array) for f in (np.round, lambda a: np.round(a * 4) / 4)]
            tried += [np.where(np.isfinite(array), array, 0)]
    if 1 < array.size <= 16:
        for i in range(array.size):
            for value in (0, 1):
                if array.flat[i] not in (0, 1):
                    single = array.copy()
                    single.flat[i] = value
                    tried.append(single)
    for candidate in tried:
        candidate = candidate.astype(array.dtype)
        if domain and candidate.size and not (domain[0] <= candidate.min() and candidate.max() <= domain[1]):
            continue
        # strictly simpler, so that reduction ends
        if _complexity(candidate) < _complexity(array):
            yield candidate


def _complexity(array: np.ndarray) -> tuple[int, int]:
    """Length of the elements as text, then how many are not zero."""
    if str(array.dtype) in FLOATS:
        return sum(len(f"{x:g}") + (x != np.round(x)) for x in array.ravel().tolist()), int(np.count_nonzero(array))
    return sum(len(str(x)) for x in array.ravel().tolist()), int(np.count_nonzero(array))
