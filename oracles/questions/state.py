"""State that a step updates: leaves that are written, whole or in part, over several steps. Nothing is a view."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from zlib import crc32

from generators.graph import Graph, Node, TensorType
from generators.graphs import Case
from generators.ops import valid
from oracles.judge.compare import Expected
from oracles.questions import cells
from oracles.questions.memory import Writer

NAME = "state"

STEPS = 3
"""Each starts with the state that the one before left."""


def written(graph: Graph) -> tuple[str, ...]:
    """Names of the leaves that are written, in their order: the state."""
    to = {node.operands[0] for node in graph.nodes if node.op == cells.WRITE}
    return tuple(item.name for item in graph.leaves if item.name in to)


def illegal(graph: Graph) -> str | None:
    """Why the program is not one that updates a state, or None."""
    inputs = {item.name for item in graph.inputs if not item.domain}
    for node in graph.nodes:
        if node.op == cells.WRITE and node.operands[0] not in inputs:
            return f"{node.name} does not write to the state"
    return None


def types(graph: Graph) -> tuple[TensorType, ...]:
    """What a program returns: outputs and state after each step."""
    return tuple(graph.types[name] for name in (*graph.outputs, *written(graph))) * STEPS


def expect(case: Case) -> Expected:
    """What is returned of these types."""
    graph = case.graph
    given = cells.leaves(graph, case.arrays)
    looked_at, names, values = (*graph.outputs, *written(graph)), [], []
    for step in range(STEPS):
        now = cells.run(graph, given, views=False)
        names += [f"{name} after step {step + 1}" for name in looked_at]
        values += [cells.frozen(now[name]) for name in looked_at]
    return Expected(tuple(names), types(graph), tuple(values))


def settled(graph: Graph) -> Graph:
    """The same program, in which what was written is known by the name of the leaf, and outputs that are state are read
    by a node at the end."""
    named = {node.name: node.operands[0] for node in graph.nodes if node.op == cells.WRITE}
    nodes = _renamed(graph.nodes, named)
    taken = {*graph.types}
    outputs: list[str] = []
    for output in graph.outputs:
        name = named.get(output, output)
        if name in written(graph):
            read = next(f"r{i}" for i in range(len(taken) + 1) if f"r{i}" not in taken)
            taken.add(read)
            nodes += (Node(read, "identity", (name,), (), graph.types[name]),)
            name = read
        outputs.append(name)
    return Graph(graph.leaves, nodes, tuple(outputs))


def _renamed(nodes: tuple[Node, ...], named: Mapping[str, str]) -> tuple[Node, ...]:
    return tuple(replace(node, operands=tuple(named.get(o, o) for o in node.operands)) for node in nodes)


def functional(graph: Graph) -> Graph:
    """The same without writes: a pure graph, which returns the new state after the outputs."""
    graph = settled(graph)
    now: dict[str, str] = {}
    nodes = []
    for node in graph.nodes:
        (read,) = _renamed((node,), now)
        if node.op == cells.WRITE:
            now[node.operands[0]] = node.name
            read = Node(node.name, "identity", read.operands[1:], (), node.type)
        nodes.append(read)
    state = tuple(now[name] for name in written(graph))
    return Graph(graph.leaves, tuple(nodes), (*graph.outputs, *state))


def prepare(case: Case) -> Case:
    """The drawn graph with updates of its leaves between its nodes: by chance, but always the same ones."""
    graph = replace(case.graph, leaves=tuple(replace(item, role="input") for item in case.graph.leaves))
    writer = Updater(graph, random.Random(crc32(str(graph).encode())))
    writer.update()
    for node in graph.nodes:
        writer.add(node)
        if writer.rng.random() < min(0.6, 3 / len(graph.nodes)):
            writer.update()
    outputs = tuple(dict.fromkeys((*graph.outputs, *writer.kept)))
    new = replace(writer.graph, outputs=outputs).pruned()
    if not valid(new) or illegal(new):
        return case
    return Case(new, {item.name: case.arrays[item.name] for item in new.leaves})


class Updater(Writer):
    """A graph in the making, with statements that update its leaves."""

    TURNED = 0.0

    def update(self) -> None:
        """A leaf gets a new value, or a part of it does; perhaps it is read before or after."""
        rng = self.rng
        free = [item.name for item in self.graph.leaves if not item.domain]
        if not free:
            return
        to = rng.choice(free)
        if rng.random() < 0.3:
            self.kept += [read] if (read := self.computed(to)) else []
        what = self._part(to) if rng.random() < 0.5 else None
        what = what or self.computed(to)
        updated = self.apply(cells.WRITE, [to, what], mode="copy") if what and what != to else None
        if updated:
            self.kept.append(updated)
            if rng.random() < 0.4:
                self.kept += [read] if (read := self.computed(to)) else []

    def _part(self, to: str) -> str | None:
        """The leaf with a slice of it computed anew."""
        rng, shape = self.rng, self.graph.types[to].shape
        axes = [axis for axis, dim in enumerate(shape) if dim]
        if not axes or 0 in shape:
            return None
        axis = rng.choice(axes)
        start, step = rng.randrange(shape[axis]), rng.choice((1, 1, 2))
        part = self.part(to, axis, start, shape[axis], step)
        new = self.computed(part) if part else None
        return self.apply("slice_update", [to, new], axis=axis, step=step, start=start) if new else None
