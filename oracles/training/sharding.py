"""Does training spread over ranks give what training on one device gives?

The reference is one device in float64. How far a correct run in the dtype's own precision may be from it is measured by
Monte Carlo arithmetic (D. S. Parker, Monte Carlo Arithmetic, 1997; C. Denis, P. de Oliveira Castro, E. Petit,
Verificarlo, 2016): the run is repeated with every result, gradient and parameter off by a random part of the unit
roundoff. What each element moved by at most, times FACTOR, is allowed.

Replicas are held against each other, too, without a tolerance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded
from generators.graph import TensorType
from oracles.determinism import same, ulps
from oracles.judge.compare import Expected
from oracles.judge.discrepancy import Discrepancy

NAME = "sharding"
Arrays = Mapping[str, np.ndarray]

RUNS = 6
FACTOR = 24.0
"""Six runs move an element by less than a 24th of what they may with a probability of 24^-6 = 5e-9 (uniform noise in
one place). Beside that it covers functions that err by several ulps, where the noise is one."""
NEIGHBOURS = 4.0
"""Of the greatest move in the same array, allowed beside: elements of small gradients are moved by chance (Adam divides
by the gradient's own size), and which ones those are differs from run to run."""
LOW_PRECISION_RUNS = 20
LOW_PRECISION_FACTOR = 4.0
LOW_PRECISION_NEIGHBOURS = 1.0
"""The same where layers compute in bfloat16, or numbers take levels (fake quantisation), whose noise is much nearer to
what a wrong algorithm does: more runs need less allowed beside them. The greatest of twenty normal moves is below 1.1
deviations with a probability of 2e-3; five times that are 5.5 deviations. Functions of bfloat16 compute in float32 and
round once."""
OWN = 8
"""Roundings of the value itself that are allowed beside."""
CHAOS = 0.25
"""Where the noise alone moves an array by this part of its greatest element, nothing can be told of it."""

REPLICATED = ("gradient", "parameter", "state")
"""What replicas have in common, bit for bit: they "start from the exact same state and see the same gradients", so that
their optimisers bring them to the same state (S. Li et al., PyTorch Distributed, VLDB 2020, section 3)."""


def expect(exact: Arrays, noisy: Sequence[Arrays], single: Arrays, low_precision: bool = False) -> Expected:
    """What a run must give, by name.

    exact: the run in float64; noisy: the same with noise; single: the run on one device in its own dtypes, which gives
    dtypes and shapes, and what rounding did once; low_precision: layers compute in bfloat16,
    or numbers take levels."""
    names = tuple(single)
    types = tuple(TensorType(str(single[name].dtype), single[name].shape) for name in names)
    return Expected(names, types, tuple(_bounded(name, exact, noisy, single, low_precision) for name in names))


def _bounded(name: str, exact: Arrays, noisy: Sequence[Arrays], single: Arrays, low_precision: bool) -> Bounded:
    dtype = str(single[name].dtype)
    if dtype not in PRECISION:
        return Bounded(single[name], np.zeros(single[name].shape), dtype)
    factor, neighbours = (LOW_PRECISION_FACTOR, LOW_PRECISION_NEIGHBOURS) if low_precision else (FACTOR, NEIGHBOURS)
    value, p = exact[name].astype(np.float64), PRECISION[dtype]
    with np.errstate(all="ignore"):
        runs = [run[name].astype(np.float64) for run in (*noisy, single)]
        moved = np.max([np.abs(run - value) for run in runs], axis=0)
        top = np.max(np.abs(value), initial=0.0)
        most = np.max(moved, initial=0.0, where=np.isfinite(moved))  # one that overflows says nothing of its neighbours
        allowed = factor * moved + neighbours * most + OWN * p.unit * np.abs(value) + p.tiny
        lost = ~np.isfinite(moved) | ~np.isfinite(value) | (allowed > CHAOS * top) & (moved > 0)
    return Bounded(np.where(np.isfinite(value), value, 0.0), np.where(lost, np.inf, allowed), dtype)


def missing(expected: Expected, given: Arrays) -> str | None:
    """What a rank did not return, or returned beside; None where the names are right."""
    absent, extra = sorted(set(expected.names) - set(given)), sorted(set(given) - set(expected.names))
    parts = [f"without {', '.join(absent)}"] if absent else []
    parts += [f"with {', '.join(extra)}"] if extra else []
    return "; ".join(parts) or None


def disagreements(ranks: Sequence[Arrays]) -> Iterator[tuple[str, Discrepancy]]:
    """Arrays of REPLICATED that another rank has otherwise than the first, with what is wrong. Every rank has returned
    the same names, dtypes and shapes."""
    for name, own in ranks[0].items():
        if name.partition(".")[0] not in REPLICATED:
            continue
        for rank, other in enumerate(ranks[1:], 1):
            if not same(own, other[name]):
                apart = ulps(own, other[name])
                told = f"{np.count_nonzero(apart)} of {own.size} elements, by at most {apart.max():g} ulps"
                yield name, Discrepancy("value", f"rank {rank} is apart from rank 0: {told}")


@dataclass(frozen=True)
class Margin:
    """How near what is allowed an array comes. ratio: the greatest error as a part of what is allowed; difference: the
    greatest error; allowed: what was allowed where that is."""

    ratio: float = 0.0
    difference: float = 0.0
    allowed: float = 0.0


def margin(bound: Bounded, given: np.ndarray) -> Margin:
    """The errors of an array beside what is allowed; undetermined elements apart."""
    counted = np.isfinite(bound.error) & (bound.error > 0)
    if not counted.any():
        return Margin()
    with np.errstate(all="ignore"):
        error = np.where(counted, np.abs(given.astype(np.float64) - bound.value), 0.0)
        ratio = np.where(counted, error / bound.error, 0.0)
    place = int(np.argmax(error))
    return Margin(float(ratio.max()), float(error.flat[place]), float(bound.error.flat[place]))


def excess(bound: Bounded, given: np.ndarray) -> float:
    """The greatest error of an array as a part of what is allowed; undetermined elements apart."""
    return margin(bound, given).ratio
