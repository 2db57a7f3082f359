"""The greatest error that a target makes at given points, by sign and exponent of the first operand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded
from generators.graph import COMPONENT, Graph, Leaf, TensorType
from generators.ops import OPS
from generators.ops.slots import broadcast_shape
from generators.retype import retyped_graph
from generators.sweep import sweep
from generators.union import Filled
from harness.backends import Target
from harness.search.hunting.runs import run
from harness.search.laboratory import Laboratory
from harness.studies.errors.points import LAYOUTS, around, bits_of, block, numbers, stratified
from oracles.judge.compare import wide, wrong_elements
from oracles.judge.outcome import Crash, Outcome, Rejected, Timeout, Unsupported, Value
from oracles.judge.reference import evaluate

LENGTH = 1 << 16
"""Elements of a run: long enough that what comes after the last whole vector does not count."""
RUNS = 16
"""Of one program, which is compiled once."""
PROBED = 64
"""Elements by which it is tried whether an operator is elementwise."""
WORST = 32
"""Points in as many strata, around which is searched."""


@dataclass(frozen=True)
class Stratum:
    """number: its sign and exponent, as bits; elements: compared there; undetermined: excused; wrong: outside of what
    is allowed; first: the point of one of these; ulps: the greatest error where operands and result are normal numbers
    (others may be flushed), in units in the result's last place (of an integer: in ones); place: its point; share: the
    greatest part of what is allowed that was taken there; taken: its point. A point is the bits of its operands; empty:
    there is none."""

    number: int
    elements: int
    undetermined: int
    wrong: int = 0
    first: tuple[int, ...] = ()
    ulps: float = 0.0
    place: tuple[int, ...] = ()
    share: float = 0.0
    taken: tuple[int, ...] = ()

    def merged(self, other: Stratum) -> Stratum:
        """Both together."""
        ulps = max(self, other, key=lambda s: s.ulps)
        share = max(self, other, key=lambda s: s.share)
        return Stratum(
            self.number,
            self.elements + other.elements,
            self.undetermined + other.undetermined,
            self.wrong + other.wrong,
            self.first or other.first,
            ulps.ulps,
            ulps.place or self.place or other.place,
            share.share,
            share.taken or self.taken or other.taken,
        )


@dataclass(frozen=True)
class Cell:
    """What a target was measured at. part: the number of the stratum, where all numbers of each are gone through one
    stratum after the other, else -1; version: of the target's framework; why: there is no result, or not of all."""

    operator: str
    dtype: str
    target: str
    version: str
    part: int
    strata: tuple[Stratum, ...] = ()
    why: str = ""


def elementwise(operator: str, dtype: str, length: int = LENGTH) -> Graph | None:
    """The operator with the simplest of its attributes, on inputs of this dtype and length: a graph of one node whose
    result has an element for each element of its one or two operands, by the reference. None where it is another kind
    of operator, or one whose operands have to lie in a domain."""
    case = next(iter(sweep(operator, most=2, dtypes=(dtype,))), None)
    if case is None or len(case.graph.nodes) != 1:
        return None
    node, types = case.graph.nodes[0], [case.graph.types[name] for name in case.graph.nodes[0].operands]
    if len(types) not in (1, 2) or any(type_.dtype != dtype for type_ in types):
        return None
    confined = any(leaf.domain for leaf in case.graph.leaves)
    if confined or node.type.dtype in COMPONENT or node.type.shape != broadcast_shape([t.shape for t in types]):
        return None
    names = [f"x{number}" for number in range(len(types))]

    def of(size: int) -> Graph | None:
        leaves = tuple(Leaf(name, TensorType(dtype, (size,))) for name in names)
        flat = Graph(leaves, (replace(node, operands=tuple(names)),), (node.name,))
        found = retyped_graph(flat)
        return found if found and found.nodes[0].type.shape == (size,) else None

    whole, part = of(PROBED), of(PROBED // 2)
    if not whole or not part or not _independent(whole, part, dtype):
        return None
    return of(length)


def _independent(whole: Graph, part: Graph, dtype: str) -> bool:
    """Is each element's result its own, by the reference: in company of others, and in another order?"""
    rng = np.random.default_rng(0)
    arrays = {leaf.name: rng.uniform(0.1, 0.9, PROBED).astype(LAYOUTS[dtype].numbers) for leaf in whole.inputs}
    output, half = whole.outputs[0], PROBED // 2

    def value(graph: Graph, order: slice) -> np.ndarray:
        given = {name: np.ascontiguousarray(array[order]) for name, array in arrays.items()}
        return evaluate(graph, given)[output].value

    all_of_them, first = value(whole, slice(None)), value(part, slice(half))
    turned = value(whole, slice(None, None, -1))
    same = np.array_equal(all_of_them[:half], first, equal_nan=True)
    return same and np.array_equal(all_of_them, turned[::-1], equal_nan=True)


def searched(lab: Laboratory, target: Target, graph: Graph, seed: int, count: int, rounds: int) -> Cell:
    """All numbers where there are no more than one run takes; else about `count` points, and as many runs as `rounds`
    around those that are worst."""
    operator, dtype, operands = _said(graph)
    rng = np.random.default_rng((seed, len(operator), *operator.encode(), *dtype.encode()))
    layout = LAYOUTS[dtype]
    whole = operands == 1 and layout.count <= LENGTH
    near = around(_thresholds(operator, dtype, operands), dtype, LENGTH, rng)
    points = block(dtype, 0, layout.count) if whole else np.hstack([stratified(dtype, operands, count, rng), near])
    cell = at(lab, target, graph, points)
    for _ in range(0 if whole else rounds):
        worst = _worst(cell.strata)
        if cell.why or not worst:
            break
        centres = np.array(worst, layout.bits).T
        more = at(lab, target, graph, around(centres, dtype, LENGTH, rng))
        cell = replace(cell, strata=merged((*cell.strata, *more.strata)), why=more.why)
    return cell


def _thresholds(operator: str, dtype: str, operands: int) -> np.ndarray:
    """Points where formulas may change: powers of two, and what the operator's record names."""
    values = [2.0**power for power in range(-8, 9)] + list(OPS[operator].thresholds)
    bits = bits_of([sign * value for value in values for sign in (1, -1)], dtype)
    return np.stack([np.roll(bits, number * 3) for number in range(operands)])


def _worst(strata: Sequence[Stratum]) -> list[tuple[int, ...]]:
    """Points of the greatest errors and shares, of different strata."""
    by_ulps = sorted((s for s in strata if s.place), key=lambda s: -s.ulps)[:WORST]
    by_share = sorted((s for s in strata if s.taken), key=lambda s: -s.share)[:WORST]
    return list(dict.fromkeys([*(s.place for s in by_ulps), *(s.taken for s in by_share)]))


def all_of(lab: Laboratory, target: Target, graph: Graph, part: int) -> Cell:
    """All numbers of a stratum; of operators of one operand."""
    dtype = graph.inputs[0].type.dtype
    size = 1 << LAYOUTS[dtype].mantissa
    return replace(at(lab, target, graph, block(dtype, part * size, size)), part=part)


def at(lab: Laboratory, target: Target, graph: Graph, points: np.ndarray) -> Cell:
    """The target at these points; the last run is filled up with the last of them."""
    operator, dtype, _ = _said(graph)
    found: list[Stratum] = []
    cell = Cell(operator, dtype, target.name, "", -1)
    short = -points.shape[1] % LENGTH
    filled = np.pad(points, ((0, 0), (0, short)), mode="edge")
    runs = [filled[:, first : first + LENGTH] for first in range(0, filled.shape[1], LENGTH)]
    for first in range(0, len(runs), RUNS):
        batch = runs[first : first + RUNS]
        arrays = [
            {leaf.name: numbers(bits, dtype) for leaf, bits in zip(graph.inputs, one, strict=True)} for one in batch
        ]
        outcome = run(lab, target, Filled(graph, tuple(arrays)))
        if not isinstance(outcome, Value):
            return replace(cell, strata=merged(found), why=_why(outcome))
        for bits, given, output in zip(batch, arrays, outcome.outputs, strict=True):
            with lab.clock("reference"), np.errstate(all="ignore"):
                expected = lab.question.expected(target, Filled(graph, (given,)).case(0)).values[0]
            if output.dtype != np.dtype(graph.nodes[0].type.dtype) or output.shape != (LENGTH,):
                return replace(cell, why=f"{output.dtype}{list(output.shape)} instead of {graph.nodes[0].type}")
            found += strata_of(bits, dtype, output, expected)
    return replace(cell, strata=merged(found))


def _said(graph: Graph) -> tuple[str, str, int]:
    return graph.nodes[0].op, graph.inputs[0].type.dtype, len(graph.inputs)


def _why(outcome: Outcome) -> str:
    match outcome:
        case Unsupported(why):
            return why
        case Rejected(kind, message):
            return f"{kind}: {message.splitlines()[0] if message else ''}"
        case Crash(how):
            return f"the process died ({how})"
        case Timeout(seconds):
            return f"no result after {seconds:g} s"
    raise ValueError(outcome)


def merged(strata: Sequence[Stratum]) -> tuple[Stratum, ...]:
    """One of each number, in rising order."""
    found: dict[int, Stratum] = {}
    for one in strata:
        found[one.number] = found[one.number].merged(one) if one.number in found else one
    return tuple(found[number] for number in sorted(found))


def strata_of(bits: np.ndarray, dtype: str, output: np.ndarray, expected: Bounded) -> Iterator[Stratum]:
    """A run's results against what is expected, by stratum of the first operand. bits: of shape (operands, points)."""
    wrong = np.zeros(output.shape, bool)
    for _, mask in wrong_elements(output, expected):
        wrong |= mask
    determined = ~expected.undetermined
    value, got = np.asarray(expected.value, np.float64), np.asarray(wide(output, expected), np.float64)
    finite = determined & np.isfinite(value) & np.isfinite(got)
    operands = np.abs(numbers(bits, dtype).astype(np.float64))
    finite &= _normal(operands, dtype).all(axis=0)  # those that back ends may flush tell nothing of a formula
    finite &= _normal(np.abs(value), expected.dtype)
    with np.errstate(all="ignore"):
        distance = np.where(finite, np.abs(got - value), 0.0)
        share = np.where(distance > 0, distance / expected.error, 0.0)
        ulps = np.where(finite, distance / _unit(value, expected.dtype), 0.0)
    order = np.argsort(bits[0] >> LAYOUTS[dtype].mantissa, kind="stable")
    key = (bits[0] >> LAYOUTS[dtype].mantissa)[order]
    starts = np.flatnonzero(np.r_[True, key[1:] != key[:-1]])
    for first, last in zip(starts, [*starts[1:], len(key)], strict=True):
        own = order[first:last]

        def point(index: int) -> tuple[int, ...]:
            return tuple(int(b) for b in bits[:, index])

        far, most = own[np.argmax(ulps[own])], own[np.argmax(share[own])]
        bad = own[wrong[own]]
        yield Stratum(
            int(key[first]),
            int(determined[own].sum()),
            int((~determined[own]).sum()),
            len(bad),
            point(bad[0]) if len(bad) else (),
            float(ulps[far]),
            point(far) if ulps[far] > 0 else (),
            float(share[most]),
            point(most) if share[most] > 0 else (),
        )


def _normal(magnitude: np.ndarray, dtype: str) -> np.ndarray:
    """Zeros, too; integers all."""
    return (magnitude == 0) | (magnitude >= PRECISION[dtype].tiny) if dtype in PRECISION else magnitude >= 0


def _unit(value: np.ndarray, dtype: str) -> np.ndarray:
    """A unit in the last place of each value; of zero that of the least normal number."""
    if dtype not in PRECISION:
        return np.ones(value.shape)
    precision = PRECISION[dtype]
    exponent = np.frexp(np.maximum(np.abs(value), precision.tiny))[1] - 1  # 2**exponent <= |value| < twice that
    return np.ldexp(2 * precision.unit, exponent)
