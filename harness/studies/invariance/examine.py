"""Runs the rows of a batch in other company, and judges whether they come out as they did: bit for bit, within what the
operator's error bound allows, or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from generators.graph import Graph
from generators.union import Filled, union
from harness.backends import Target
from harness.execute.pool import Job, Pool
from harness.studies.invariance.batches import SIZES, Batched, near, value_of
from harness.studies.invariance.packs import packed
from oracles.determinism import same, ulps
from oracles.judge.outcome import Outcome, Value
from oracles.judge.reference import evaluate

EQUAL, WITHIN, VARIES, BEYOND, NONE = "equal", "within", "varies", "beyond", "no result"
STATES = {
    EQUAL: "bit for bit the same",
    WITHIN: "other bits, both within the bound of the operator's error",
    VARIES: "other bits; of a whole network the bound that is derived operator by operator says nothing",
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
    return lambda *inputs: [out for k in range(len(inputs[0])) for out in compiled(*[np.array(x[k]) for x in inputs])]
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


Batch = tuple[str, Mapping[str, np.ndarray], np.ndarray, np.ndarray]
"""A variation, its arrays, which rows of the first batch it has, and at which places."""


@dataclass(frozen=True)
class Prepared:
    """An operator's batches. allowed: how far two correct results may be apart, by element; independent: do rows not
    depend on each other by the reference, in any of the batches?"""

    found: Batched
    arrays: Mapping[str, np.ndarray]
    batches: tuple[Batch, ...]
    allowed: np.ndarray
    independent: bool

    @property
    def parts(self) -> list[tuple[Graph, dict[str, np.ndarray]]]:
        """The graph at every size, the largest first, and its arrays; inputs have an axis in front, of the batches of
        the largest size, along which smaller ones are repeated."""
        whole, count = self.found.at(SIZES[-1]), len(self.batches)
        stacked = {leaf.name: np.stack([b[leaf.name] for _, b, _, _ in self.batches]) for leaf in whole.inputs}
        stacked |= {leaf.name: self.arrays[leaf.name] for leaf in whole.parameters}
        parts = [(whole, stacked)]
        for size in SIZES[:-1]:
            graph, less = self.found.at(size), self.found.rows(self.arrays, np.arange(size))
            inputs = {leaf.name for leaf in graph.inputs}
            again = {n: np.stack([array] * count) if n in inputs else array for n, array in less.items()}
            parts.append((graph, again))
        return parts


@dataclass(frozen=True)
class Got:
    """What a target returned for an operator: a result of each batch, by size that of the first rows, and that of the
    first batch on two threads; or why there is none."""

    batches: Sequence[np.ndarray] | str
    sizes: Mapping[int, np.ndarray | str]
    threads: np.ndarray | str


@cache
def prepared(found: Batched, seed: int) -> Prepared:
    """Made once for all targets."""
    graph, arrays = found.at(SIZES[-1]), found.arrays(SIZES[-1], seed)
    batches = tuple(_batches(found, arrays, seed))
    return Prepared(found, arrays, batches, 2 * bound_of(graph, arrays), _independent(found, arrays, batches))


def examine(one: Pool, two: Pool, target: Target, found: Sequence[Batched], seed: int) -> Iterator[list[Cell]]:
    """All variations of each operator, in their order but for those that cannot run, which come first. Operators share
    a program; where it does not run, halves of it are tried, and then single operators, size by size. one, two: pools
    whose processes have one thread and two."""
    able = []
    for own in (prepared(each, seed) for each in found):
        why = target.unsupported(own.found.at(SIZES[-1]))
        if not why and not own.independent:
            why = "rows of these arrays depend on each other by the reference, too"
        if why:
            yield [Cell(own.found.operator, target.name, name, NONE, why=why) for name in VARIATIONS]
        else:
            able.append(own)
    for pack in packed(able, lambda own: sum(leaf.type.size for leaf in own.found.at(SIZES[-1]).leaves)):
        for own, got in _together(one, two, target, pack):
            yield cells_from(target, own, got)


def _together(one: Pool, two: Pool, target: Target, pack: Sequence[Prepared]) -> Iterator[tuple[Prepared, Got]]:
    parts = [part for own in pack for part in own.parts]
    whole = union([Filled(graph, (arrays,)) for graph, arrays in parts])
    text = target.program(whole.graph) + _SEVERAL
    job = Job(target.framework, target.modules, text, whole.fills[0], target.environment)
    (found,) = one.run([job])
    (threads,) = two.run([job]) if isinstance(found, Value) or len(pack) == 1 else (found,)
    if isinstance(found, Value) and (isinstance(threads, Value) or len(pack) == 1):
        for k, own in enumerate(pack):
            first = k * len(SIZES)
            batches = [found.outputs[row * len(parts) + first] for row in range(len(own.batches))]
            sizes = {size: found.outputs[first + 1 + n] for n, size in enumerate(SIZES[:-1])}
            yield own, Got(batches, sizes, threads.outputs[first] if isinstance(threads, Value) else told(threads))
    elif len(pack) > 1:
        half = len(pack) // 2
        yield from _together(one, two, target, pack[:half])
        yield from _together(one, two, target, pack[half:])
    else:
        yield pack[0], size_by_size(one, two, target, pack[0])


def size_by_size(one: Pool, two: Pool, target: Target, own: Prepared) -> Got:
    """A program for each size, so that what does not run is known."""
    (graph, arrays), *_ = own.parts
    job = Job(target.framework, target.modules, target.program(graph) + _SEVERAL, arrays, target.environment)
    jobs = [job]
    for size in SIZES[:-1]:
        less = own.found.rows(own.arrays, np.arange(size))
        text = target.program(own.found.at(size))
        jobs.append(Job(target.framework, target.modules, text, less, target.environment))
    (whole, *parts), (threads,) = one.run(jobs), two.run([job])
    sizes = {
        size: part.outputs[0] if isinstance(part, Value) else told(part)
        for size, part in zip(SIZES[:-1], parts, strict=True)
    }
    batches = whole.outputs if isinstance(whole, Value) else told(whole)
    return Got(batches, sizes, threads.outputs[0] if isinstance(threads, Value) else told(threads))


def told(outcome: Outcome) -> str:
    """Why there is no result, in a line."""
    return str(outcome).splitlines()[0]


def cells_from(target: Target, own: Prepared, got: Got) -> list[Cell]:
    operator, allowed = own.found.operator, own.allowed
    if isinstance(got.batches, str):
        return [Cell(operator, target.name, name, NONE, why=got.batches) for name in VARIATIONS]
    base, cells, sizes = got.batches[0], [], {}
    for size, part in got.sizes.items():
        if isinstance(part, str):
            cells.append(Cell(operator, target.name, "size", NONE, sizes=(size,), why=part))
        else:
            sizes[size] = state_of(base[:size], part, allowed[:size])
    cells += [worst(operator, target.name, sizes)] if sizes else []
    for (name, _, rows, places), result in zip(own.batches[1:], got.batches[1:], strict=True):
        cells.append(Cell(operator, target.name, name, *state_of(base[rows], result[places], allowed[rows])))
    if isinstance(got.threads, str):
        cells.append(Cell(operator, target.name, "threads", NONE, why=got.threads))
    else:
        cells.append(Cell(operator, target.name, "threads", *state_of(base, got.threads, allowed)))
    return cells


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


def state_of(base: np.ndarray, other: np.ndarray, allowed: np.ndarray) -> tuple[str, float]:
    """The name of the state of two results, which may be `allowed` apart, and the greatest distance in ulps."""
    if same(base, other):
        return EQUAL, 0.0
    if base.shape != other.shape or base.dtype != other.dtype:
        return BEYOND, FARTHEST
    a, b = base.astype(np.float64), other.astype(np.float64)
    with np.errstate(invalid="ignore"):
        near = (np.abs(a - b) <= allowed) | (a == b) | (np.isnan(a) & np.isnan(b))
    return (WITHIN if near.all() else BEYOND), min(FARTHEST, float(ulps(base, other).astype(np.float64).max()))


def worst(operator: str, target: str, sizes: Mapping[int, tuple[str, float]]) -> Cell:
    """Of all sizes the worst; and the sizes at which rows are others than in the largest batch."""
    states = list(STATES)
    found = max((state for state, _ in sizes.values()), key=states.index)
    other = tuple(size for size, (state, _) in sizes.items() if state != EQUAL)
    return Cell(operator, target, "size", found, max(far for _, far in sizes.values()), other)


def table(cells: Sequence[Cell]) -> dict[tuple[str, str], dict[str, Cell]]:
    """By operator and target, then by variation; a result of some sizes stands before the lack of it of others."""
    found: dict[tuple[str, str], dict[str, Cell]] = {}
    for cell in sorted(cells, key=lambda one: one.state != NONE):
        found.setdefault((cell.operator, cell.target), {})[cell.variation] = cell
    return found
