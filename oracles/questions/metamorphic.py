"""Relations: what must hold between a graph and an edit of it. Both stand side by side in one program, so that
compilers meet them together, and each is judged against its own float64 reference, whose bounds say how far the two
may differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from zlib import crc32

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import Graph
from generators.graphs import Case, pruned
from generators.inputs import Arrays
from generators.ops import valid
from oracles.decompositions import composite
from oracles.questions import dynamic, forward

NAME = "metamorphic"

Relation = Callable[[Case], Case | None]
"""The case beside its edit; None where it does not apply."""


def beside(case: Case, other: Case, tag: str) -> Case:
    """Both in one graph. Leaves of the same name are shared; nodes of `other` get the tag."""
    graph, mine = case.graph, {leaf.name for leaf in case.graph.leaves}
    name = {node.name: f"{node.name}_{tag}" for node in other.graph.nodes}
    nodes = tuple(
        replace(n, name=name[n.name], operands=tuple(name.get(o, o) for o in n.operands)) for n in other.graph.nodes
    )
    leaves = (*graph.leaves, *(leaf for leaf in other.graph.leaves if leaf.name not in mine))
    outputs = (*graph.outputs, *(name.get(o, o) for o in other.graph.outputs))
    return Case(Graph(leaves, (*graph.nodes, *nodes), outputs), {**other.arrays, **case.arrays})


def _renamed(case: Case, names: set[str], tag: str) -> Case:
    """The case with the tag on the names of these leaves."""
    new = {name: f"{name}_{tag}" for name in names}
    leaves = tuple(replace(i, name=new.get(i.name, i.name)) for i in case.graph.leaves)
    nodes = tuple(replace(n, operands=tuple(new.get(o, o) for o in n.operands)) for n in case.graph.nodes)
    arrays = {new.get(name, name): array for name, array in case.arrays.items()}
    return Case(Graph(leaves, nodes, case.graph.outputs), arrays)


def rows(case: Case, places: tuple[dynamic.Place, ...], chosen: np.ndarray) -> Case | None:
    """The case with only the chosen rows of these places."""
    graph = dynamic.resized(case.graph, places, len(chosen))
    if graph is None or any(a.domain != b.domain for a, b in zip(graph.leaves, case.graph.leaves, strict=True)):
        return None
    arrays = dict(case.arrays)
    for name, axis in places:
        arrays[name] = np.take(arrays[name], chosen, axis)
    return Case(graph, arrays)


def batch(case: Case) -> Case | None:
    """Rows on which all operators act one by one: the whole beside its first row, the rest, and all in another
    order."""
    plan = dynamic.plan(case.graph)
    if plan is None:
        return None
    size, grown = plan.sizes[0], plan.graphs[plan.sizes[1]]
    order = np.arange(size)
    pieces = {"first": order[:1], "rest": order[1:], "turned": np.roll(order[::-1], 1)}
    found = {tag: rows(case, plan.places, chosen) for tag, chosen in pieces.items()}
    cases = {tag: piece for tag, piece in found.items() if piece}
    if len(cases) < len(pieces):
        return None
    kept = _row_by_row(plan.first, grown, {tag: (pieces[tag], piece) for tag, piece in cases.items()}, case.arrays)
    if not kept:
        return None
    changed = {name for name, _ in plan.places}
    result = Case(plan.first.pruned(kept), case.arrays)
    for tag, piece in cases.items():
        part = Case(piece.graph.pruned(kept), piece.arrays)
        result = beside(result, _renamed(part, changed, tag), tag)
    return result


def _row_by_row(graph: Graph, grown: Graph, pieces: Mapping[str, tuple[np.ndarray, Case]], arrays: Arrays) -> list[str]:
    """Outputs of which, according to the references, every piece is those rows of the whole. grown: the graph with
    one row more, which tells the axis of the rows."""
    whole = forward.plan(Case(graph, arrays))
    parts = [(chosen, forward.plan(piece)) for chosen, piece in pieces.values()]
    kept = []
    for name in graph.outputs:
        shapes = graph.types[name].shape, grown.types[name].shape
        axes = [axis for axis, (a, b) in enumerate(zip(*shapes, strict=True)) if a + 1 == b]
        if shapes[0] == shapes[1] or len(axes) != 1:
            continue
        take = partial(_take, axis=axes[0])
        if all(agree(whole[name].map(partial(take, chosen)), part[name]) for chosen, part in parts):
            kept.append(name)
    return kept


def _take(chosen: np.ndarray, array: np.ndarray, axis: int) -> np.ndarray:
    return np.take(array, chosen[chosen < array.shape[axis]], axis)


def split(case: Case) -> Case | None:
    """Matrix products beside products of the halves of the weight."""
    other = composite.rewritten(case, composite.SPLITS)
    return _equal(case, other, "split")


def decomposed(case: Case) -> Case | None:
    """Composite operators beside simpler ones."""
    other = composite.rewritten(case, composite.COMPOSITES)
    return _equal(case, other, "parts")


def _equal(case: Case, other: Case | None, tag: str) -> Case | None:
    """The case beside another that means the same, as far as its references agree: infinities may be lost."""
    if other is None:
        return None
    first, second = forward.expect(case).values, forward.expect(other).values
    return beside(case, other, tag) if all(map(agree, first, second)) else None


def sharing(case: Case) -> Case | None:
    """One leaf in two places, outputs that are inputs, and one output twice."""
    graph = case.graph
    pairs = ((a, b) for i, a in enumerate(graph.leaves) for b in graph.leaves[i + 1 :])
    alike = next(((a, b) for a, b in pairs if (a.type, a.domain) == (b.type, b.domain)), None)
    result = case
    if alike:
        kept, gone = alike
        nodes = tuple(
            replace(n, operands=tuple(kept.name if o == gone.name else o for o in n.operands)) for n in graph.nodes
        )
        leaves = tuple(leaf for leaf in graph.leaves if leaf is not gone)
        result = beside(case, Case(Graph(leaves, nodes, graph.outputs), case.arrays), "shared")
    same = tuple(leaf.name for leaf in graph.leaves[:2])
    return replace(result, graph=replace(result.graph, outputs=(*result.graph.outputs, *same, graph.outputs[0])))


RELATIONS: Mapping[str, Relation] = {"batch": batch, "split": split, "decomposed": decomposed, "sharing": sharing}


def prepare(case: Case) -> Case:
    """One of the relations that apply to a case, by chance but always the same one."""
    names = sorted(RELATIONS, key=lambda name: crc32(f"{name} {case.graph}".encode()))
    for name in names:
        related = RELATIONS[name](case)
        # an operand with a domain may have become a computed value, which has none
        if related is not None and valid(related.graph):
            return pruned(related.graph, related.arrays)
    return case


def agree(a: Bounded, b: Bounded) -> bool:
    """Do two references say the same, as far as both are determined?"""
    if a.value.shape != b.value.shape:
        return False
    determined = ~(a.undetermined | b.undetermined)
    if not a.floating:
        return bool((~determined | (a.value == b.value)).all())
    with np.errstate(all="ignore"):
        near = np.abs(a.value - b.value) <= a.error + b.error
    same = (a.value == b.value) | (np.isnan(a.value) & np.isnan(b.value))
    return bool((~determined | near | same).all())
