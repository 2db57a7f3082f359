"""A quantised model that was run with all its values shown, judged operator by operator *given its observed operands*:
an error of one quantum stays where it arises."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from generators.bounds.bounded import Bounded, leaf
from generators.graph import TensorType
from oracles.judge.compare import Expected, compare
from oracles.judge.discrepancy import Discrepancy
from oracles.judge.verdict import Verdict
from oracles.quantised.integers import Levels, known

Array = np.ndarray
Values = Mapping[str, Array]
Real = Bounded | Levels


class NotRecomputed(Exception):
    """What a node computes is not among what the oracle recomputes. The message is the operator, with what of it."""


@dataclass(frozen=True)
class Operation:
    """A node of a model in its format's own words; an operand that is left out is called ''."""

    op: str
    domain: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    attrs: Mapping[str, Any]


@dataclass(frozen=True)
class RecordedModel:
    """What a quantising program returned. groups: arrays by name (the values of one run); nodes: of the models that
    ran; header: the rest of what it says; places: of each array among the program's outputs."""

    groups: Mapping[str, Values]
    nodes: Mapping[str, tuple[Operation, ...]]
    header: Mapping[str, Any]
    places: Mapping[tuple[str, str], int]


def read(outputs: Sequence[Array]) -> RecordedModel:
    """What the helper function `recorded` wrote."""
    header = json.loads(np.asarray(outputs[0], np.uint8).tobytes())
    groups: dict[str, dict[str, Array]] = {}
    places = {}
    for place, (group, name) in enumerate(header.pop("arrays"), 1):
        groups.setdefault(group, {})[name] = outputs[place]
        places[group, name] = place
    nodes = {
        group: tuple(Operation(op, domain, tuple(a), tuple(b), attrs) for op, domain, a, b, attrs in listed)
        for group, listed in header.pop("nodes").items()
    }
    return RecordedModel(groups, nodes, header, places)


@dataclass
class Judgement:
    """What was found of one run.

    judged:  tensors, of which
    exact:   have one right level everywhere,
    near:    have elements that may be either of two levels,
    real:    are real numbers, within their bound
    checked: scales, zero points and weights of the quantiser
    skipped: tensors by the operator that is not recomputed
    wrong:   messages, the first discrepancy first
    allowed: what the outputs that are wrong should have been, by place
    loss:    of accuracy, which is measured and not judged"""

    judged: int = 0
    exact: int = 0
    near: int = 0
    real: int = 0
    checked: int = 0
    elements: int = 0
    undetermined: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    allowed: dict[int, Bounded] = field(default_factory=dict)
    loss: Mapping[str, float | None] | None = None

    def fault(self, message: str, place: int | None = None, right: Array | None = None) -> None:
        """Something is wrong; right: what should stand at this place among the outputs."""
        self.wrong.append(message)
        if place is not None and right is not None and place not in self.allowed:
            value = np.asarray(right)
            real = value.astype(np.float64) if value.dtype.kind == "f" else value
            self.allowed[place] = Bounded(real, 1e-6 * np.abs(real) * (value.dtype.kind == "f"), str(value.dtype))


Compute = Callable[[Operation, Sequence[Real | None], int, Values], Real]
"""What a node returns as its result of this number, given its operands and, for what depends on its other results, all
that was observed. Raises NotRecomputed."""


def evaluator(nodes: Sequence[Operation], taken: Values, seen: Values, compute: Compute) -> Callable[[str], Real]:
    """The value of a name by the nodes: an operand that is `taken` is taken as it is, any other is worked out from
    those before it. seen: all that was observed, for nodes whose results depend on each other."""
    makers = {name: (node, i) for node in nodes for i, name in enumerate(node.results) if name}
    cache: dict[str, Real] = {}

    def operand(name: str) -> Real | None:
        if not name:
            return None
        return observed(taken[name]) if name in taken else value(name)

    def value(name: str) -> Real:
        if name not in cache:
            if name not in makers:
                raise NotRecomputed(f"{name}, which nothing makes")
            node, index = makers[name]
            cache[name] = compute(node, [operand(o) for o in node.operands], index, seen)
        return cache[name]

    return value


def observed(array: Array) -> Real:
    """An observed array as an operand."""
    return leaf(array) if array.dtype.kind == "f" else known(array)


def follow(judgement: Judgement, record: RecordedModel, group: str, compute: Compute) -> set[str]:
    """Judge each value of a group that its own nodes make, given the observed operands. Returns the names that were
    judged."""
    seen = record.groups[group]
    names = [name for node in record.nodes[group] for name in node.results if name in seen]
    return _judge_names(judgement, record, group, names, evaluator(record.nodes[group], seen, seen, compute), group)


def beside(judgement: Judgement, record: RecordedModel, group: str, source: str, compute: Compute) -> set[str]:
    """Judge each value of a group, given operands as another group, that of the model, has them."""
    nodes, taken = record.nodes[source], record.groups[source]
    names = [name for node in nodes for name in node.results if name in record.groups.get(group, {})]
    return _judge_names(judgement, record, group, names, evaluator(nodes, taken, taken, compute), group, taken)


def rewritten(
    judgement: Judgement, record: RecordedModel, group: str, source: str, compute: Compute, given: Iterable[str]
) -> set[str]:
    """Judge the levels of a group by the nodes of the model that it was rewritten from, where they have the same name,
    and its outputs. Operands are levels that were observed, and what is `given` (inputs, constants); real numbers
    between them are worked out, since rewriting may move quantisation past what keeps the order of numbers."""
    seen = record.groups[group]
    nodes = record.nodes[source]
    made = {name for node in nodes for name in node.results}
    levels = {name for name in made if name in seen and seen[name].dtype.kind in "iu"}
    taken = {name: seen[name] for name in levels} | {name: record.groups[source][name] for name in given}
    names = [n for node in nodes for n in node.results if n in levels or (n in seen and n in record.header["outputs"])]
    value = evaluator(nodes, taken, seen, compute)
    return _judge_names(judgement, record, group, names, value, f"{group} as {source}")


def _judge_names(
    judgement: Judgement,
    record: RecordedModel,
    group: str,
    names: Iterable[str],
    value: Callable[[str], Real],
    told: str,
    operands: Values | None = None,
) -> set[str]:
    """operands: where their shapes are, if not in the group."""
    done: set[str] = set()
    shapes = record.groups[group] if operands is None else operands
    makers = {
        name: node for nodes in (*record.nodes.values(), record.nodes[group]) for node in nodes for name in node.results
    }
    for name in names:
        try:
            right = value(name)
        except NotRecomputed:
            continue
        done.add(name)
        got, place = record.groups[group][name], record.places[group, name]
        judge_tensor(judgement, got, right, f"{told}: {_told(makers[name], shapes)} -> {name}", place)
    return done


def _told(node: Operation, seen: Values) -> str:
    """A node for people, and for `message` of known issues: with the shapes of operands that were observed and its
    attributes."""
    shapes = [str(seen[name].shape) for name in node.operands if name in seen]
    attrs = " ".join(f"{key}={value}" for key, value in node.attrs.items())
    return f"{node.op}{' of ' if shapes else ''}{', '.join(shapes)}{' with ' if attrs else ''}{attrs}"


def skipped(judgement: Judgement, nodes: Iterable[Operation], seen: Values, done: set[str]) -> None:
    """Count what was observed and not judged, by operator."""
    for node in nodes:
        judgement.skipped.update(node.op for name in node.results if name in seen and name not in done)


def check_called(judgement: Judgement, record: RecordedModel, group: str) -> Values:
    """A plain call of the model (the group "called") returns what its nodes did one by one: these results, by place."""
    last = {str(i): record.groups[group][name] for i, name in enumerate(record.header["outputs"])}
    for name, array in record.groups["called"].items():
        if array.dtype != last[name].dtype or not np.array_equal(array, last[name], equal_nan=array.dtype.kind == "f"):
            judgement.fault(f"a call returns another output {name} than its nodes one by one")
    return last


def judge_tensor(judgement: Judgement, got: Array, right: Real, told: str, place: int | None = None) -> None:
    """One tensor against what is allowed: counted, and a fault where it is outside."""
    judgement.judged += 1
    judgement.elements += got.size
    if isinstance(right, Bounded):
        judgement.real += 1
        judgement.undetermined += int(right.undetermined.sum())
        found = compare(got, TensorType(right.dtype, right.value.shape), right)
        if found:
            judgement.fault(f"{told}: {found.message}")
            if place is not None:
                judgement.allowed.setdefault(place, right)
        return
    if got.shape != right.low.shape or str(got.dtype) != right.dtype:
        judgement.fault(f"{told}: {got.dtype}{got.shape} instead of {right.dtype}{right.low.shape}")
        if place is not None:
            free = np.full(right.low.shape, np.inf)
            judgement.allowed.setdefault(place, Bounded(right.low.astype(right.dtype), free, right.dtype))
        return
    level = got.astype(np.float64)
    outside = (level < right.low) | (level > right.high)
    if outside.any():
        at = tuple(int(i) for i in np.unravel_index(np.flatnonzero(outside)[0], outside.shape))
        few = f"{right.low[at]:.0f}" + (f" or {right.high[at]:.0f}" if right.high[at] != right.low[at] else "")
        share = f"{int(outside.sum())} of {outside.size} levels wrong"
        most = float(np.abs(level - np.clip(level, right.low, right.high)).max())
        judgement.fault(f"{told}: {share}, by up to {most:.0f}; at {at}: {few} expected, got {level[at]:.0f}")
        if place is not None:
            nearest = np.clip(level, right.low, right.high)
            free = np.where(outside | (right.low == right.high), 0.0, np.inf)
            judgement.allowed.setdefault(place, Bounded(nearest.astype(got.dtype), free, str(got.dtype)))
    elif (right.low == right.high).all():
        judgement.exact += 1
    else:
        judgement.near += 1


def verdict(judgement: Judgement) -> Verdict:
    """The judgement as a verdict. Nothing judged is no agreement."""
    if judgement.wrong:
        found = Discrepancy("value", "\n".join(judgement.wrong[:3]))
        return Verdict("mismatch", found, judgement.elements, judgement.undetermined)
    return Verdict("agree" if judgement.judged else "undetermined", None, judgement.elements, judgement.undetermined)


def expected(judgement: Judgement, outputs: Sequence[Array]) -> Expected:
    """What the outputs should have been: those that are wrong with what is allowed, the rest anything."""
    values, types = [], []
    for place, array in enumerate(outputs):
        free = Bounded(array.astype(np.float64) if array.dtype.kind == "f" else array, np.full(array.shape, np.inf),
                       str(array.dtype))  # fmt: skip
        values.append(judgement.allowed.get(place, free))
        types.append(TensorType(values[-1].dtype, values[-1].value.shape))
    return Expected(tuple(f"output {i}" for i in range(len(outputs))), tuple(types), tuple(values))


def loss(exact: Values, found: Values) -> dict[str, float | None]:
    """How far the quantised model is from the float one, over all its real outputs: greatest and mean error, signal
    to quantisation noise in dB (10 log10 of the sum of squares over that of the differences), and how often both
    have their greatest element at the same place of the last axis (None: no output has such an axis)."""
    signal = noise = total = 0.0
    worst, count, same, rows = 0.0, 0, 0, 0
    for name, reference in exact.items():
        if reference.dtype.kind != "f" or name not in found or not np.isfinite(reference).all():
            continue
        a, b = reference.astype(np.float64), found[name].astype(np.float64)
        signal, noise = signal + float((a * a).sum()), noise + float(((a - b) ** 2).sum())
        worst, total, count = (
            max(worst, float(np.abs(a - b).max(initial=0.0))),
            total + np.abs(a - b).sum(),
            count + a.size,
        )
        if a.ndim > 1 and a.shape[-1] > 1 and a.size:
            same += int((a.argmax(-1) == b.argmax(-1)).sum())
            rows += a.argmax(-1).size
    ratio = 10 * np.log10(signal / noise) if signal and noise else None
    return {
        "max_error": worst if count else None,
        "mean_error": float(total / count) if count else None,
        "sqnr_db": None if ratio is None or not np.isfinite(ratio) else float(ratio),
        "top1": same / rows if rows else None,
    }
