"""Programs that write: what do outputs and leaves hold after each call, how do outputs lie, what shares memory?"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from zlib import crc32

import numpy as np

from generators.bounds.bounded import exact
from generators.graph import FLOATS, INTEGERS, Attr, Graph, Node, TensorType
from generators.graphs import Case
from generators.ops import OPS, valid
from generators.ops.index.write import MODES
from generators.ops.spec import TypeRuleError
from oracles.judge.compare import Expected
from oracles.judge.discrepancy import Discrepancy
from oracles.questions import cells

NAME = "memory"

CALLS = 2
"""The second one starts with what the first one left."""
POKE = 3
"""What is written through an output at the end; every dtype holds it (bool: true)."""


def poked(graph: Graph) -> int | None:
    """The number of the output that is written through at the end: the first that shares memory with another output or
    a leaf, else the first that can be written; None where there is none."""
    found = cells.layout(graph)
    fit = [i for i, name in enumerate(graph.outputs) if found.cells[name].size and found.cells[name].flags.writeable]
    fixed = [item.name for item in graph.leaves if item.domain]
    fit = [i for i in fit if all(found.apart(graph.outputs[i], name) for name in fixed)]
    others = [*graph.outputs, *(item.name for item in graph.leaves)]
    for i in fit:
        if any(not found.apart(graph.outputs[i], other) for n, other in enumerate(others) if n != i):
            return i
    return fit[0] if fit else None


def types(graph: Graph) -> tuple[TensorType, ...]:
    """What a program returns: outputs and leaves after each call, the strides of the last call's outputs in elements,
    and outputs and leaves after something was written through one of them."""
    held = [graph.types[name] for name in _looked_at(graph)]
    strides = [TensorType("int64", (graph.types[name].rank,)) for name in graph.outputs]
    return (*held * CALLS, *strides, *(held if poked(graph) is not None else []))


def _looked_at(graph: Graph) -> tuple[str, ...]:
    return (*graph.outputs, *(item.name for item in (*graph.inputs, *graph.parameters)))


def expect(case: Case) -> Expected:
    """What is returned of these types. The stride of a dimension of one element, or of none, may be anything."""
    graph, poke = case.graph, poked(case.graph)
    found, given = cells.layout(graph), cells.leaves(graph, case.arrays)
    names, values = [], []

    def look(now: cells.Cells, when: str) -> None:
        names.extend(f"{name} an output {when}" for name in graph.outputs)
        names.extend(f"{item.name} a leaf {when}" for item in (*graph.inputs, *graph.parameters))
        values.extend(cells.frozen(now[name]) for name in _looked_at(graph))

    now = given
    for call in range(CALLS):
        now = cells.run(graph, given)
        look(now, f"after call {call + 1}")
    for name in graph.outputs:
        type_ = graph.types[name]
        free = np.array([dim <= 1 or type_.size == 0 for dim in type_.shape], bool)
        names.append(f"strides of {name}")
        values.append(exact(np.array(found.strides(name), "int64"), "int64", free))
    if poke is not None:
        to = now[graph.outputs[poke]]
        to.value[...], to.error[...] = POKE, 0.0
        look(now, "after a write through an output")
    return Expected(tuple(names), types(graph), tuple(values), said)


def said(name: str, elements: np.ndarray, plain: Discrepancy) -> Discrepancy:
    """The discrepancy, with what was looked at in place of the number of an output."""
    what = name.partition(" ")[2] if not name.startswith("strides") else "strides"
    return replace(plain, message=f"{what}: {plain.message}")


# ---- what is known -----------------------------------------------------------------------------------------

FACTS = ("part", "written", "overwritten", "through", "changed", "copied", "overlaps")
"""What `where` of a known issue of these programs may mention: what an operator is given does not say it."""


def facts(graph: Graph, node: Node) -> Mapping[str, bool]:
    """part: the first operand is a part of what shares its memory; overlaps: the last one is a copy of what does.
    Of later statements: written: one writes to the memory of the first operand or of the result (the last write through
    an output counts); copied: before one of these writes, a copy is made of that memory; overwritten: one writes to all
    of the first operand; through: one writes through the result or a view of it; changed: one writes to the memory of
    the last operand."""
    found, later = cells.layout(graph), graph.nodes[graph.nodes.index(node) + 1 :]
    first, last = node.operands[0], node.operands[-1]
    made = next((other for other in graph.nodes if other.name == last), None)

    def mine(name: str) -> bool:
        return not (found.apart(name, node.name) and found.apart(name, first))

    writes = [other for other in later if other.op == cells.WRITE]
    to_mine = [other for other in writes if mine(other.operands[0])]
    poke = poked(graph)
    derived = {node.name}
    for other in later:
        if other.operands[0] in derived and (other.name in found.views or other.op == cells.WRITE):
            derived.add(other.name)
    before = later[: later.index(to_mine[-1])] if to_mine else ()
    size = graph.types[first].size
    return {
        "part": any(cell.size > size and not found.apart(name, first) for name, cell in found.cells.items()),
        "written": bool(to_mine) or (poke is not None and mine(graph.outputs[poke])),
        "overwritten": any(not found.apart(o.operands[0], first) and o.type.size >= size for o in to_mine),
        "through": any(other.operands[0] in derived for other in writes),
        "changed": any(not found.apart(other.operands[0], last) for other in writes),
        "copied": any(other.op == "identity" and mine(other.operands[0]) for other in before),
        "overlaps": made is not None and made.op == "identity" and not found.apart(made.operands[0], first),
    }


# ---- programs ---------------------------------------------------------------------------------------------

_UNARY = {
    "float": ("neg", "abs", "relu", "square", "sigmoid", "tanh", "floor", "sign"),
    "int": ("neg", "abs", "square", "bitwise_not"),
    "bool": ("logical_not",),
}
_BINARY = {
    "float": ("add", "mul", "sub", "div"),
    "int": ("add", "mul", "sub", "bitwise_xor"),
    "bool": ("logical_and", "logical_or"),
}


def kind(dtype: str) -> str:
    """The key of the tables above."""
    return "float" if dtype in FLOATS else "int" if dtype in INTEGERS else dtype


_VIEWS = (
    *("slice", "slice", "transpose", "reshape", "unsqueeze", "diagonal", "unstack", "split", "sliding_windows"),
    "dropout_off",
)


class Writer:
    """A graph in the making, with statements that write between its nodes. TURNED: the share of new values that are
    made of what stands at other places."""

    TURNED = 0.2

    def __init__(self, graph: Graph, rng: random.Random) -> None:
        self.graph = Graph(graph.leaves, (), graph.outputs)
        self.rng = rng
        self.taken = {value.name for value in (*graph.leaves, *graph.nodes)}
        self.kept: list[str] = []

    def add(self, node: Node) -> None:
        self.graph = Graph(self.graph.leaves, (*self.graph.nodes, node), self.graph.outputs)

    def apply(self, op: str, operands: Sequence[str], **attrs: Attr) -> str | None:
        """The name of a new node; None where the operator does not take these operands."""
        types = tuple(self.graph.types[name] for name in operands)
        if not all(OPS[op].slot(i).accepts(type_, types[:i]) for i, type_ in enumerate(types)):
            return None
        try:
            result = OPS[op].result(types, attrs)
        except TypeRuleError:
            return None
        name = next(f"u{i}" for i in range(len(self.taken) + 1) if f"u{i}" not in self.taken)
        before = self.graph
        self.add(Node(name, op, tuple(operands), tuple(attrs.items()), result))
        if op == cells.WRITE and cells.layout(self.graph).illegal:
            self.graph = before
            return None
        self.taken.add(name)
        return name

    def view(self, name: str) -> str | None:
        """Some view of a value."""
        rng, shape = self.rng, self.graph.types[name].shape
        rank = len(shape)
        how = rng.choice(_VIEWS)
        if how == "unsqueeze":
            return self.apply(how, [name], axis=rng.randint(0, rank))
        if how == "dropout_off":
            return self.apply(how, [name], rate=0.5)
        if not rank:
            return None
        axis = rng.randrange(rank)
        if how == "slice":
            starts = tuple(rng.choice((0, 0, min(1, max(0, dim - 1)))) for dim in shape)
            stops = tuple(max(start, dim - rng.choice((0, 0, 1))) for start, dim in zip(starts, shape, strict=True))
            return self.apply(
                how, [name], starts=starts, stops=stops, steps=tuple(rng.choice((1, 1, 2)) for _ in shape)
            )
        if how == "transpose":
            return self.apply(how, [name], perm=tuple(rng.sample(range(rank), rank)))
        if how == "reshape":
            merged = (-1,) if rank == 1 else (*shape[: rank - 2], shape[-2] * shape[-1])
            return self.apply(how, [name], shape=shape if merged == (-1,) else merged)
        if how == "diagonal":
            return self.apply(how, [name], offset=rng.choice((0, 0, 1, -1)))
        if how == "sliding_windows":  # apart, so that it can be written through them
            size = min(rng.choice((1, 2, 2, 3)), shape[axis])
            return self.apply(how, [name], axis=axis, size=size, step=size + rng.choice((0, 1, 1, 2))) if size else None
        if how == "unstack":
            return self.apply(how, [name], axis=axis, pick=rng.randrange(shape[axis])) if shape[axis] else None
        first = shape[axis] // 2
        return self.apply(how, [name], axis=axis, sizes=(first, shape[axis] - first), index=rng.randint(0, 1))

    def computed(self, to: str) -> str | None:
        """A new value of the type of `to`, mostly made of it, at times of what stands at other places of it."""
        rng, type_ = self.rng, self.graph.types[to]
        alike = [name for name, other in self.graph.types.items() if other == type_]
        if self.TURNED and type_.rank and rng.random() < self.TURNED:
            turned = self.apply("flip", [to], axes=(rng.randrange(type_.rank),))
            ops = (*_BINARY.get(kind(type_.dtype), ()), None)
            op = rng.choice(ops) if turned else None
            return self.apply(op, [to, turned]) if op and turned else turned
        if rng.random() < 0.5:
            return self.apply(rng.choice(self.unary(to)), [rng.choice((to, rng.choice(alike)))])
        ops = _BINARY.get(kind(type_.dtype), ())
        return self.apply(rng.choice(ops), [to, rng.choice(alike)]) if ops else None

    def copy(self) -> None:
        """One slice of a value, of all of it at times, is written to the same slice of another, and the first value is
        changed then: what was copied must have been copied before."""
        rng, types = self.rng, self.graph.types
        pairs = [(a, b) for a in types for b in types if a != b and types[a] == types[b] and types[a].rank]
        if not pairs:
            return
        root, source = rng.choice(pairs)
        shape = types[root].shape
        starts = tuple(min(rng.choice((0, 0, 0, 1)), max(0, dim - 1)) for dim in shape)
        attrs: dict[str, Attr] = {"starts": starts, "stops": shape, "steps": (1,) * len(shape)}
        views = [view for view in (self.apply("slice", [name], **attrs) for name in (root, source)) if view]
        copied = self.apply(cells.WRITE, views, mode=rng.choice(MODES)) if len(views) == 2 else None
        what = self.computed(source) if copied else None
        changed = self.apply(cells.WRITE, [source, what], mode="copy") if what else None
        self.kept += [name for name in (copied, changed) if name]

    def shift(self) -> None:
        """A slice of a value is copied to an overlapping slice of it: all of it must have been read before."""
        rng, types = self.rng, self.graph.types
        long = [(name, axis) for name, type_ in types.items() for axis, dim in enumerate(type_.shape) if dim > 1]
        if not long:
            return
        root, axis = rng.choice(long)
        shape = types[root].shape
        by = rng.randint(1, max(1, shape[axis] // 2))
        ends = [(by, shape[axis]), (0, shape[axis] - by)]
        rng.shuffle(ends)
        views = [view for end in ends if (view := self.part(root, axis, *end))]
        ops = ("identity", "identity", *self.unary(root))
        copied = self.apply(rng.choice(ops), [views[1]]) if len(views) == 2 else None
        written = self.apply(cells.WRITE, [views[0], copied], mode=rng.choice(("copy", *MODES))) if copied else None
        self.kept += [written, root] if written else []

    def part(self, name: str, axis: int, start: int, stop: int, step: int = 1) -> str | None:
        """A slice along one axis."""
        shape = self.graph.types[name].shape
        ends = {"starts": [0] * len(shape), "stops": list(shape), "steps": [1] * len(shape)}
        ends["starts"][axis], ends["stops"][axis], ends["steps"][axis] = start, stop, step
        return self.apply("slice", [name], **{key: tuple(numbers) for key, numbers in ends.items()})

    def unary(self, name: str) -> Sequence[str]:
        """Operators that compute something of one value."""
        return _UNARY.get(kind(self.graph.types[name].dtype), ("identity",))

    def changed(self, name: str) -> str | None:
        """A new value that differs from this one in a slice, a row or a diagonal."""
        rng, shape = self.rng, self.graph.types[name].shape
        if not shape or 0 in shape:
            return None
        how, axis = rng.choice(("slice", "unstack", "diagonal")), rng.randrange(len(shape))
        place = rng.randrange(shape[axis])
        if how == "slice":
            step = rng.choice((1, 1, 2))
            part = self.part(name, axis, place, shape[axis], step)
            op, attrs = "slice_update", {"axis": axis, "step": step, "start": place}
        elif how == "unstack":
            part = self.apply(how, [name], axis=axis, pick=place)
            op, attrs = "select_scatter", {"axis": axis, "index": place}
        else:
            part = self.apply(how, [name], offset=0)
            op, attrs = "diagonal_scatter", {"offset": 0}
        new = self.computed(part) if part else None
        return self.apply(op, [name, new], **attrs) if new else None

    def overwrite(self, name: str, updated: str | None) -> None:
        """A new value was made of this one, by changes to a part of it. Then all of the old one is written over, mostly
        by what does not depend on it: the new one must have memory of its own. At times the new one is written there
        first, and copied, and so must the copy have."""
        rng, type_ = self.rng, self.graph.types[name]
        if not updated:
            return
        self.kept.append(updated)
        if rng.random() < 0.4 and self.apply(cells.WRITE, [name, updated], mode="copy"):
            self.kept += [read] if (read := self.apply("identity", [name])) else []
        others = [other for other, its in self.graph.types.items() if its == type_ and other not in (name, updated)]
        ways = ("zeros_like", "other", "other", "computed")
        how = rng.choice(ways if others else ways[::3])
        if how == "other":
            what = rng.choice(others)
        else:
            what = self.computed(name) if how == "computed" else self.apply(how, [name])
        written = self.apply(cells.WRITE, [name, what], mode=rng.choice(("copy", *MODES))) if what else None
        self.kept += [written] if written else []

    def write(self) -> None:
        """A statement that writes, through up to two views, and perhaps a read of what it changed."""
        rng = self.rng
        if rng.random() < 0.3:
            how = rng.randrange(3)
            if how == 2:
                name = rng.choice([*self.graph.types])
                self.overwrite(name, self.changed(name))
            else:
                (self.copy, self.shift)[how]()
            return
        names = [*self.graph.types]
        root = to = rng.choice(names[-6:] if rng.random() < 0.5 else names)
        for _ in range(rng.choice((0, 1, 1, 2))):
            to = self.view(to) or to
        alike = [name for name, type_ in self.graph.types.items() if type_ == self.graph.types[to] and name != to]
        what = rng.choice(alike) if alike and rng.random() < 0.25 else self.computed(to)
        written = self.apply(cells.WRITE, [to, what], mode=rng.choice(("copy", *MODES))) if what else None
        if not written:
            return
        self.kept.append(written)
        if rng.random() < 0.3:
            self.kept.append(root)
        if rng.random() < 0.5:
            read = self.apply(rng.choice((*self.unary(root), "identity", "identity")), [root])
            self.kept += [read] if read else []
            again = self.computed(root) if rng.random() < 0.3 else None
            self.kept += [rest] if again and (rest := self.apply(cells.WRITE, [root, again], mode="copy")) else []


def prepare(case: Case) -> Case:
    """The drawn graph with statements that write between its nodes: by chance, but always the same ones."""
    rng = random.Random(crc32(str(case.graph).encode()))
    writer = Writer(case.graph, rng)
    writer.write()
    for node in case.graph.nodes:
        writer.add(node)
        if (
            OPS[node.op].family == "indexing"
            and node.type == writer.graph.types[node.operands[0]]
            and rng.random() < 0.4
        ):
            writer.overwrite(node.operands[0], node.name)
        if rng.random() < min(0.6, 3 / len(case.graph.nodes)):
            writer.write()
    for _ in range(2):
        if not writer.kept:
            writer.write()
    outputs = tuple(dict.fromkeys((*case.graph.outputs, *writer.kept)))
    graph = replace(writer.graph, outputs=outputs).pruned()
    if not valid(graph) or cells.layout(graph).illegal:
        return case
    return Case(graph, {item.name: case.arrays[item.name] for item in graph.leaves})
