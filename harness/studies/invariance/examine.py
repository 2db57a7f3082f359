"""Runs the rows of a batch in other company, and judges whether they come out as they did: bit for bit, within what the
operator's error bound allows, or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from generators.graph import Graph
from harness.backends import Target
from harness.execute.pool import Job, Pool
from harness.studies.invariance.batches import SIZES, Batched, near, value_of
from oracles.determinism import same, ulps
from oracles.judge.outcome import Value
from oracles.judge.reference import evaluate

EQUAL, WITHIN, VARIES, BEYOND, NONE = "equal", "within", "varies", "beyond", "no result"
STATES = {
    EQUAL: "bit for bit the same",
    WITHIN: "other bits, both within the bound of the operator's error",
    VARIES: "other bits; of a whole network no bound is derived",
    BEYOND: "farther apart than two correct results may be",
    NONE: "the target does not run it",
}
VARIATIONS = {
    "size": "the same rows in a smaller batch",
    "position": "the same rows, each at another place of the batch",
    "neighbours": "the same rows beside others",
    "padding": "the same rows, the rest of the batch filled with copies of the first",
    "threads": "the same batch on two threads",
}
SEQUENCES = {
    "chunks": "a sequence in parts of eight, each with keys and values of those before it, against the whole",
    "cache": "a sequence one by one, with a cache of keys and values, against the whole",
}
"""Of whole transformers only."""
FARTHEST = 2.0**64
"""Ulps between what cannot be compared: another shape, a NaN and a number."""
TURNED = 5
"""Places by which rows are moved."""
_SEVERAL = """

once = load


def load(parameters):
    compiled = once(parameters)
    return lambda *inputs: [out for k in range(len(inputs[0])) for out in compiled(*[x[k].copy() for x in inputs])]
"""


@dataclass(frozen=True)
class Cell:
    """A variation of an operator on a target. largest: distance in ulps; sizes: batches in which rows are others
    (size); why: it has no result, or where it is farthest off."""

    operator: str
    target: str
    variation: str
    state: str
    largest: float = 0.0
    sizes: tuple[int, ...] = ()
    why: str = ""


def examine(one: Pool, two: Pool, target: Target, found: Batched, seed: int) -> list[Cell]:
    """All variations. one, two: pools whose processes have one thread and two."""
    most = SIZES[-1]
    graph, arrays = found.at(most), found.arrays(most, seed)
    why = target.unsupported(graph)
    if why:
        return [Cell(found.operator, target.name, name, NONE, why=why) for name in VARIATIONS]
    allowed = 2 * bound_of(graph, arrays)
    batches = list(_batches(found, arrays, seed))
    if not _independent(found, arrays, batches):
        why = "rows of these arrays depend on each other by the reference, too"
        return [Cell(found.operator, target.name, name, NONE, why=why) for name in VARIATIONS]
    stacked = {leaf.name: np.stack([b[leaf.name] for _, b, _, _ in batches]) for leaf in graph.inputs}
    stacked |= {leaf.name: arrays[leaf.name] for leaf in graph.parameters}
    text = target.program(graph) + _SEVERAL
    jobs = [Job(target.framework, target.modules, text, stacked, target.environment)]
    for size in SIZES[:-1]:
        less = found.rows(arrays, np.arange(size))
        jobs.append(Job(target.framework, target.modules, target.program(found.at(size)), less, target.environment))
    (whole, *parts), (threads,) = one.run(jobs), two.run(jobs[:1])
    if not isinstance(whole, Value):
        told = str(whole).splitlines()[0]
        return [Cell(found.operator, target.name, name, NONE, why=told) for name in VARIATIONS]
    base, cells = whole.outputs[0], []
    sizes = {}
    for size, part in zip(SIZES[:-1], parts, strict=True):
        if not isinstance(part, Value):
            cells.append(Cell(found.operator, target.name, "size", NONE, sizes=(size,), why=str(part).splitlines()[0]))
        else:
            sizes[size] = _state(base[:size], part.outputs[0], allowed[:size])
    cells += [_worst(found, target, sizes)] if sizes else []
    for (name, _, rows, places), got in zip(batches[1:], whole.outputs[1:], strict=True):
        cells.append(Cell(found.operator, target.name, name, *_state(base[rows], got[places], allowed[rows])))
    if isinstance(threads, Value):
        cells.append(Cell(found.operator, target.name, "threads", *_state(base, threads.outputs[0], allowed)))
    else:
        cells.append(Cell(found.operator, target.name, "threads", NONE, why=str(threads).splitlines()[0]))
    return cells


Batch = tuple[str, Mapping[str, np.ndarray], np.ndarray, np.ndarray]
"""A variation, its arrays, which rows of the first batch it has, and at which places."""


def _batches(found: Batched, arrays: Mapping[str, np.ndarray], seed: int) -> Iterator[Batch]:
    """The first is the one that the others are compared with."""
    every = np.arange(SIZES[-1])
    yield "base", arrays, every, every
    turned = np.roll(every, TURNED)
    yield "position", found.rows(arrays, turned), turned, every
    other = found.arrays(SIZES[-1], seed + 1)
    own = {name for name, _ in found.places}
    even, half = every[::2], every[: SIZES[-1] // 2]
    for name, kept, rest in (("neighbours", even, other), ("padding", half, None)):
        mixed = dict(arrays)
        for leaf in own:
            mixed[leaf] = (
                np.broadcast_to(arrays[leaf][:1], arrays[leaf].shape).copy() if rest is None else rest[leaf].copy()
            )
            mixed[leaf][kept] = arrays[leaf][kept]
        yield name, mixed, kept, kept


def _independent(found: Batched, arrays: Mapping[str, np.ndarray], batches: Sequence[Batch]) -> bool:
    """By the reference, in all of the batches and sizes."""
    graph = found.at(SIZES[-1])
    base = value_of(graph, arrays)
    for _, other, rows, places in batches[1:]:
        if not near(value_of(graph, other)[places], base[rows]):
            return False
    parts = ((size, found.rows(arrays, np.arange(size))) for size in SIZES[:-1])
    return all(near(value_of(found.at(size), part), base[:size]) for size, part in parts)


def bound_of(graph: Graph, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """What a correct result may be off, by element."""
    with np.errstate(all="ignore"):
        return evaluate(graph, arrays)[graph.outputs[0]].error


def _state(base: np.ndarray, other: np.ndarray, allowed: np.ndarray) -> tuple[str, float]:
    """Its name, and the greatest distance in ulps."""
    if same(base, other):
        return EQUAL, 0.0
    if base.shape != other.shape or base.dtype != other.dtype:
        return BEYOND, FARTHEST
    a, b = base.astype(np.float64), other.astype(np.float64)
    with np.errstate(invalid="ignore"):
        near = (np.abs(a - b) <= allowed) | (a == b) | (np.isnan(a) & np.isnan(b))
    return (WITHIN if near.all() else BEYOND), min(FARTHEST, float(ulps(base, other).astype(np.float64).max()))


def _worst(found: Batched, target: Target, sizes: Mapping[int, tuple[str, float]]) -> Cell:
    """Of all sizes the worst; and the sizes at which rows are others than in the largest batch."""
    states = list(STATES)
    worst = max((state for state, _ in sizes.values()), key=states.index)
    other = tuple(size for size, (state, _) in sizes.items() if state != EQUAL)
    return Cell(found.operator, target.name, "size", worst, max(far for _, far in sizes.values()), other)


def table(cells: Sequence[Cell]) -> dict[tuple[str, str], dict[str, Cell]]:
    """By operator and target, then by variation; a result of some sizes stands before the lack of it of others."""
    found: dict[tuple[str, str], dict[str, Cell]] = {}
    for cell in sorted(cells, key=lambda one: one.state != NONE):
        found.setdefault((cell.operator, cell.target), {})[cell.variation] = cell
    return found
