"""How far a fault reaches: who shows it, with which dtypes and operators, and how usual that is which triggers it.

What triggers it is measured on the smallest case that is stored of it (`trigger_of`): what such a case still has after
it was cut down, it may be taken to need. That is an upper bound of what is needed, not a proof of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np

from generators.graphs import Case
from generators.ops import OPS
from harness.execute.globs import any_of
from harness.findings.triage.instance import Instance
from harness.questions.forward import FORWARD

TRIGGERS = (
    *("ordinary numbers", "extreme numbers", "NaN or infinity", "empty tensors"),
    *("a training run", "a model", "a program"),
)
"""What a stored case holds; the rarest counts. The last two: of kinds whose cases are not arrays."""
USUAL = ("float32", "int64", "int32")
LARGE = 2.0**20
"""Numbers are extreme whose size is above this, or not 0 and below one over it. Chosen, not measured: a million and a
millionth, next to which 1 has four bits of float32 left."""
LEVELS = ("wide", "medium", "narrow")


@dataclass(frozen=True)
class Reach:
    """subjects: so many of `asked` targets or strategies show it; dtypes: none stand for any; operators: how many it
    concerns (0: it is not about operators); trigger: one of TRIGGERS; conditions: what else is needed; level: how far
    that is in all."""

    subjects: int
    asked: int
    dtypes: tuple[str, ...]
    operators: int
    trigger: str
    conditions: tuple[str, ...]
    level: str


@cache
def _count(globs: tuple[str, ...]) -> int:
    """Of the operators that they name."""
    return sum(any_of(globs).match(name) is not None for name in OPS)


def reach_of(instance: Instance) -> Reach:
    """The reach of one instance. Its level counts what narrows it: 0 wide, 1 medium, more narrow. A trigger counts 1
    where numbers are extreme, NaN or infinite, 2 where tensors are empty; each condition counts 1, and so do a question
    other than the plain one and dtypes none of which is usual."""
    trigger = trigger_of(instance)
    rare = {"extreme numbers": 1, "NaN or infinity": 1, "empty tensors": 2}.get(trigger, 0)
    rare += len(instance.conditions) + (instance.question not in ("", FORWARD.name))
    rare += bool(instance.dtypes) and set(instance.dtypes).isdisjoint(USUAL)
    return Reach(
        instance.reach, instance.asked, instance.dtypes, _count(instance.operators), trigger, instance.conditions,
        LEVELS[min(rare, 2)],
    )  # fmt: skip


def trigger_of(instance: Instance) -> str:
    """One of TRIGGERS, of the case that is stored."""
    if instance.case is None:
        return {"model": "a model", "program": "a program"}.get(instance.kind, "a training run")
    if instance.empty or _empty(instance.case):
        return "empty tensors"
    arrays = [array for array in instance.case.arrays.values() if array.size]
    floats = [np.asarray(array).astype(np.complex128) for array in arrays if array.dtype.kind not in "iub"]
    if any(not np.isfinite(array).all() for array in floats):
        return "NaN or infinity"
    return "extreme numbers" if _extreme(arrays) else "ordinary numbers"


def _empty(case: Case) -> bool:
    graph = case.graph
    return any(value.type.size == 0 for value in (*graph.leaves, *graph.nodes))


def _extreme(arrays: Iterable[np.ndarray]) -> bool:
    for array in arrays:
        if array.dtype.kind == "b":
            continue
        size = np.abs(array.astype(np.complex128))
        if (size > LARGE).any() or ((size > 0) & (size < 1 / LARGE)).any():
            return True
    return False
