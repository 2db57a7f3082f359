"""Memory as cells: a graph with nodes `write`, run statement by statement. Every value is an array of numpy, a view
shares its cells with what it views, and a write changes what all that share them hold from then on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from generators.bounds.bounded import Bounded, leaf
from generators.graph import Graph, Leaf, Node
from generators.graphs import Case, pruned
from generators.inputs import Arrays
from generators.ops import OPS, call_of
from generators.ops.slots import int_of
from oracles.judge import reference

WRITE = "write"
_RESHAPED = ("reshape", "flatten", "flatten_2d", "unflatten", "squeeze", "unsqueeze")
_MOVED = ("slice", "transpose", "swapaxes", "moveaxis", "broadcast_to", "split", "unstack", "diagonal")
VIEWS = frozenset((*_RESHAPED, *_MOVED, "sliding_windows", "dropout_off"))
"""Operators whose result is a view wherever their operand's strides allow one: PyTorch's dropout that drops nothing
returns its operand."""

Cells = dict[str, Bounded]
Look = Callable[[Node, Cells], None]


@dataclass(frozen=True)
class Layout:
    """Where the values of a graph lie, whatever they hold: arrays that share memory where the values do. views: names
    of nodes that are one; illegal: why the program must not be run, or None."""

    cells: Mapping[str, np.ndarray]
    views: frozenset[str]
    illegal: str | None

    def apart(self, one: str, other: str) -> bool:
        """Do they share no cell?"""
        return not np.shares_memory(self.cells[one], self.cells[other])

    def same(self, one: str, other: str) -> bool:
        """Are they one view of the same cells? Two views with equal strides may differ where a dimension is 1, whose
        stride is free: PyTorch refuses to write from one to the other then."""
        return self.cells[one] is self.cells[other]

    def strides(self, name: str) -> tuple[int, ...]:
        """In elements."""
        array = self.cells[name]
        return tuple(stride // array.itemsize for stride in array.strides)


@lru_cache(maxsize=64)
def layout(graph: Graph) -> Layout:
    """Where the values lie, leaves and results of operators contiguous and apart."""
    cells: Cells = {item.name: _blank(item.type.shape) for item in graph.leaves}
    fixed = [cells[item.name].value for item in graph.leaves if item.domain]
    views, illegal = set(), None
    for index, node in enumerate(graph.nodes):
        if node.op == WRITE:
            illegal = illegal or _illegal(node, cells, fixed)
            cells[node.name] = cells[node.operands[0]]
            continue
        view = viewed(graph, index, cells)
        cells[node.name] = view or _blank(node.type.shape)
        if view:
            views.add(node.name)
    return Layout({name: bounded.value for name, bounded in cells.items()}, frozenset(views), illegal)


def _blank(shape: Sequence[int]) -> Bounded:
    return Bounded(np.zeros(shape), np.zeros(shape), "float64")


def _illegal(node: Node, cells: Cells, fixed: Sequence[np.ndarray]) -> str | None:
    to, what = (cells[name].value for name in node.operands)
    if any(np.shares_memory(to, one) for one in fixed):
        return f"{node.name} writes over indices"
    if not to.flags.writeable:
        return f"{node.name} writes through a view that has several elements in one cell"
    if to is not what and np.shares_memory(to, what):
        return f"{node.name} copies between views that overlap"
    return None


def viewed(graph: Graph, index: int, cells: Cells) -> Bounded | None:
    """The result of node number `index` where it is a view, else None."""
    node = graph.nodes[index]
    if node.op not in VIEWS:
        return None
    of = cells[node.operands[0]]
    by_hand = _BY_HAND.get(node.op)
    result = by_hand(of, node) if by_hand else OPS[node.op].reference([of], call_of(graph, index))
    if not isinstance(result.value, np.ndarray) or not np.shares_memory(result.value, of.value):
        return None
    if node.op == "diagonal" and of.value.flags.writeable:  # numpy makes it read-only, although its cells differ
        result.value.flags.writeable = result.error.flags.writeable = True
    return replace(result, dtype=of.dtype)


def _unstacked(of: Bounded, node: Node) -> Bounded:
    """Its reference takes copies, and numpy has no views of rank 0 but by reshape."""
    axis, pick = int_of(node.attributes, "axis"), int_of(node.attributes, "pick")
    rank = len(of.value.shape)
    places = (*(slice(None),) * (axis % rank), slice(pick, pick + 1) if pick >= 0 else slice(pick, pick + 1 or None))
    return of.map(lambda array: array[places].reshape(node.type.shape))


def _windows(of: Bounded, node: Node) -> Bounded:
    """Its reference takes copies. Windows that overlap have an element in several places, so that nothing is written
    through them."""
    size, step = int_of(node.attributes, "size"), int_of(node.attributes, "step")
    axis = int_of(node.attributes, "axis") % len(of.value.shape)

    def view(array: np.ndarray) -> np.ndarray:
        every = np.lib.stride_tricks.sliding_window_view(array, size, axis, writeable=size <= step)
        return every[(*(slice(None),) * axis, slice(None, None, step))]

    return of.map(view)


_BY_HAND: dict[str, Callable[[Bounded, Node], Bounded]] = {"unstack": _unstacked, "sliding_windows": _windows}


def leaves(graph: Graph, arrays: Arrays) -> Cells:
    """Cells that hold the arrays: copies, since programs write."""
    given = {item.name: leaf(arrays[item.name]) for item in graph.leaves}
    return {name: replace(x, value=np.array(x.value), error=np.array(x.error)) for name, x in given.items()}


def run(graph: Graph, given: Cells, views: bool = True, look: Look = lambda node, cells: None) -> Cells:
    """The cells of all values after one call. given: those of the leaves, which are changed. views: are there any, or
    is what would be one a copy? look: is called before each node that computes."""
    cells = dict(given)
    for index, node in enumerate(graph.nodes):
        if node.op == WRITE:
            to, what = (cells[name] for name in node.operands)
            to.value[...], to.error[...] = what.value, what.error
            cells[node.name] = to
            continue
        view = viewed(graph, index, cells) if views else None
        if view is None:
            look(node, cells)
            fresh = reference.apply(graph, index, cells)
            fresh = reference.as_taken(graph, index, fresh, cells)
            # contiguous, and no view of an operand
            view = replace(fresh, value=np.array(fresh.value, order="C"), error=np.array(fresh.error, order="C"))
        cells[node.name] = view
    return cells


def apart(case: Case, calls: int, views: bool) -> Case:
    """Every node as it runs in each of these calls, on leaves that hold what its operands hold then: a graph without
    writes, by which faults of single operators are known."""
    graph = case.graph
    given, own = leaves(graph, case.arrays), {item.name: item for item in graph.leaves}
    found: list[Leaf] = []
    nodes: list[Node] = []
    arrays: dict[str, np.ndarray] = {}
    for call in range(calls):

        def look(node: Node, cells: Cells, call: int = call) -> None:
            name = f"{node.name}_{call}"
            named = {operand: f"{name}_{operand}" for operand in node.operands}
            for operand, leaf_name in named.items():
                item = own.get(operand) or Leaf(operand, graph.types[operand])
                found.append(replace(item, name=leaf_name))
                with np.errstate(all="ignore"):  # what undetermined elements hold may not fit
                    arrays[leaf_name] = np.array(cells[operand].value.astype(item.type.dtype))
            nodes.append(replace(node, name=name, operands=tuple(named[operand] for operand in node.operands)))

        run(graph, given, views, look)
    return Case(Graph(tuple(found), tuple(nodes), tuple(node.name for node in nodes)), arrays)


def without(case: Case, guilty: Sequence[Node]) -> Case | None:
    """The program without these statements, and without what is computed of those that do not write; None where nothing
    is left to run."""
    named: dict[str, str] = {}
    gone: set[str] = set()
    nodes = []
    for node in case.graph.nodes:
        operands = tuple(named.get(name, name) for name in node.operands)
        writes, lost = node.op == WRITE, [name for name in operands if name in gone]
        if writes and operands[0] not in gone and (node in guilty or lost):
            named[node.name] = operands[0]
        elif node in guilty or lost:
            gone.add(node.name)
        else:
            nodes.append(replace(node, operands=operands))
    outputs = dict.fromkeys(named.get(name, name) for name in case.graph.outputs)
    graph = Graph(case.graph.leaves, tuple(nodes), tuple(name for name in outputs if name not in gone))
    return pruned(graph, case.arrays) if graph.nodes and graph.outputs else None


def frozen(cell: Bounded) -> Bounded:
    """What it holds now. The signs of zeros are not followed through memory."""
    return Bounded(np.array(cell.value), np.array(cell.error), cell.dtype)
