"""Evaluates a model in float64, in several runs at once, node by node: run 0 is the exact one, all others are what a
hook makes of it after each node, in the graphs inside of If, Loop and Scan as well.

Where noise decides a shape, a run goes on with its own, as long as its nodes have results; where they have none, since
sizes no longer fit, the run has lost that value and what follows from it (`LOST`)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from operator import is_
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx

from oracles.onnx.exact import CONTROL_FLOW, sizes_of
from oracles.onnx.expand import expanded
from oracles.onnx.graph import Graph, Node
from oracles.onnx.kinds import FLOATS, floating, rounded, widened
from oracles.onnx.model import read
from oracles.onnx.rule import Call, NoRule, Value
from oracles.onnx.rules import rules

LONGEST = 100_000
"""Iterations of a Loop that has no trip count."""


class EvaluationError(Exception):
    """The evaluation of a node fails; the message names it."""


class _Lost:
    """A value that a run has lost."""


LOST: Any = _Lost()

Values = dict[str, Value]
Results = dict[int, list[Value]]
"""A node's outputs by number of the run."""


class Step(NamedTuple):
    """What a hook sees after a node: its arguments and results by number of the run; it may replace the results."""

    node: Node
    arguments: Mapping[int, Sequence[Value]]
    results: Results


Hook = Callable[[Step], None]


def evaluate(model: onnx.ModelProto, inputs: Sequence[Any] | Mapping[str, Any], folder: str | Path = "") -> list[Value]:
    """The outputs of a model. inputs: arrays in the order of its own, or by name; folder: where external data lies that
    is not loaded. Raises NoRule, naming the node, and EvaluationError."""
    graph = read(model, str(folder))
    return run(graph, inputs)[0]


def run(
    graph: Graph,
    inputs: Sequence[Any] | Mapping[str, Any],
    runs: int = 1,
    hook: Hook | None = None,
    own: Mapping[int, Mapping[str, Value]] | None = None,
) -> list[list[Value]]:
    """The outputs of so many runs. own: inputs that a run has in place of the others', by its number."""
    named = inputs if isinstance(inputs, Mapping) else dict(zip(graph.inputs, inputs, strict=False))
    start: Values = {name: widened(value) for name, value in named.items()}
    missing = [name for name in graph.inputs if name not in start]
    if missing:
        raise ValueError(f"no value for the inputs {', '.join(missing)}")
    states = {number: {**start, **(own or {}).get(number, {})} for number in range(runs)}
    found = walk(graph, states, hook)
    return [found[number] for number in range(runs)]


def walk(graph: Graph, states: dict[int, Values], hook: Hook | None = None) -> Results:
    """The outputs of a graph by run. states: what each run has by name; what nothing uses any more is dropped."""
    for state in states.values():
        state.update(graph.constants)
        state[""] = None
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        # NaN is what the mean of nothing is
        for node in graph.nodes:
            found = evaluated(node, states, hook)
            for number, state in states.items():
                state.update((name, y) for name, y in zip(node.outputs, found[number], strict=False) if name)
                for name in node.last:
                    state.pop(name, None)
    return {number: [state[name] for name in graph.outputs] for number, state in states.items()}


def evaluated(node: Node, states: Mapping[int, Values], hook: Hook | None = None) -> Results:
    """A node's results in each run. Raises NoRule and EvaluationError with its name."""
    first = min(states)
    sizes = set(sizes_of(node))
    arguments = {
        number: tuple(states[first if place in sizes else number][name] for place, name in enumerate(node.inputs))
        for number, state in states.items()
    }
    if has_rule(node):
        results = _ruled(node, arguments)
    else:
        try:
            control = _CONTROL[node.operator] if node.bodies and node.operator in CONTROL_FLOW else None
            results = control(node, arguments, states, hook) if control else _called(node, arguments, hook)
        except (NoRule, EvaluationError):
            raise
        except Exception as error:
            raise EvaluationError(f"{node.title}: {type(error).__name__}: {error}") from error
    for ys in results.values():
        for place, (name, kind) in enumerate(zip(node.outputs, node.made, strict=False)):
            y = ys[place]
            if name in node.exact and kind in FLOATS and floating(y):
                ys[place] = rounded(y, kind)
    if hook is not None and not node.bodies:
        hook(Step(node, arguments, results))
    return results


def _ruled(node: Node, arguments: Mapping[int, Sequence[Value]]) -> Results:
    """What a node's rule returns."""
    rule, first, results = rules()[_key(node)], min(arguments), {}
    for number, given in arguments.items():
        if first in results and all(map(is_, given, arguments[first])):  # noise is not in them
            results[number] = list(results[first])
        elif any(value is LOST for value in given):
            results[number] = _lost(node)
        else:
            apart = number != first and _shapes(given) != _shapes(arguments[first])
            results[number] = _attempted(node, lambda given=given: rule(call_of(node, given)), apart)
    return results


def single(node: Node, inputs: Sequence[Value], scope: Mapping[str, Value]) -> list[Value]:
    """A node's results on these inputs. scope: values that graphs inside may use."""
    return evaluated(node, {0: {**scope, **dict(zip(node.inputs, inputs, strict=True)), "": None}})[0]


def call_of(node: Node, inputs: Sequence[Value]) -> Call:
    """What a rule is given."""
    kind = node.made[0] if node.made else 0
    parts = (node.operator, node.domain, node.version, node.attributes, tuple(inputs), node.outputs)
    return Call(*parts, kind, node.kinds)


def has_rule(node: Node) -> bool:
    """Is it evaluated by a rule, and not by the graphs inside or a function body?"""
    return not node.bodies and _key(node) in rules()


def _key(node: Node) -> str:
    return node.operator if node.domain in ("", "ai.onnx") else f"{node.domain}:{node.operator}"


def _shapes(values: Sequence[Value]) -> list[Any]:
    """Shapes of tensors, lengths of sequences."""
    return [
        value.shape if isinstance(value, np.ndarray) else _shapes(value) if isinstance(value, list) else None
        for value in values
    ]


def _lost(node: Node) -> list[Value]:
    return [LOST] * len(node.outputs)


def _attempted(node: Node, call: Callable[[], Sequence[Value]], apart: bool) -> list[Value]:
    """The results of a node. apart: it has other shapes than those of the exact run, and may fail."""
    try:
        found = list(call())
    except NoRule as error:
        raise NoRule(f"{node.title}: {error}") from None
    except EvaluationError:
        raise
    except Exception as error:
        if apart:
            return _lost(node)
        raise EvaluationError(f"{node.title}: {type(error).__name__}: {error}") from error
    asked = max((place + 1 for place, name in enumerate(node.outputs) if name), default=0)
    if len(found) < asked:
        raise NoRule(f"{node.title}: {asked} outputs are asked for, its rule has {len(found)}")
    tensors: list[Value] = [np.asarray(y) if isinstance(y, np.generic) else y for y in found[: len(node.outputs)]]
    return tensors + [None] * (len(node.outputs) - len(tensors))


def _called(node: Node, arguments: Mapping[int, Sequence[Value]], hook: Hook | None) -> Results:
    """The function body of an operator without a rule."""
    first = min(arguments)
    body = expanded(node, arguments[first])
    if body is None:
        raise NoRule(f"{node.title}: no rule, and no function body in version {node.version}")
    states = {number: dict(zip(body.inputs, given, strict=False)) for number, given in arguments.items()}
    for state in states.values():
        state.update((name, None) for name in body.inputs if name not in state)
    return walk(body, states, hook)


# ---- control flow -------------------------------------------------------------------------------------------


def _inside(
    body: Graph, states: Mapping[int, Values], given: Mapping[int, Sequence[Value]], hook: Hook | None
) -> Results:
    """The outputs of a graph inside, which sees what is around it. given: its inputs."""
    inner = {
        number: {
            **{name: states[number][name] for name in body.captured},
            **dict(zip(body.inputs, values, strict=False)),
        }
        for number, values in given.items()
    }
    return walk(body, inner, hook) if inner else {}


def _truth(node: Node, value: Value) -> bool:
    found = np.asarray(value)
    if found.size != 1:
        raise EvaluationError(f"{node.title}: a condition of {found.size} elements")
    return bool(found.reshape(()))


def _if(
    node: Node, arguments: Mapping[int, Sequence[Value]], states: Mapping[int, Values], hook: Hook | None
) -> Results:
    """Each run takes the branch that it chooses."""
    lost = {number: _lost(node) for number, given in arguments.items() if given[0] is LOST}
    results: Results = dict(lost)
    for name, wanted in (("then_branch", True), ("else_branch", False)):
        chosen = {n: () for n, given in arguments.items() if n not in lost and _truth(node, given[0]) == wanted}
        results.update(_inside(node.bodies[name], states, chosen, hook))
    return results


def _loop(
    node: Node, arguments: Mapping[int, Sequence[Value]], states: Mapping[int, Values], hook: Hook | None
) -> Results:
    """Runs whose condition ends are out. A scan output has its elements along a new first axis."""
    body = node.bodies["body"]
    trips = next(iter(arguments.values()))[0] if node.inputs and node.inputs[0] else None
    if trips is LOST:
        return {number: _lost(node) for number in arguments}
    count = LONGEST if trips is None else int(np.asarray(trips).reshape(()))
    checked = len(node.inputs) > 1 and bool(node.inputs[1])
    carried = {number: list(given[2:]) for number, given in arguments.items()}
    going = {n: not checked or given[1] is LOST or _truth(node, given[1]) for n, given in arguments.items()}
    kept = len(body.outputs) - 1 - (len(node.inputs) - 2)
    scanned: dict[int, list[list[Value]]] = {number: [[] for _ in range(kept)] for number in arguments}
    for trip in range(count):
        given = {n: (np.array(trip, np.int64), np.array(True), *carried[n]) for n in arguments if going[n]}
        if not given:
            break
        if trips is None and trip == LONGEST - 1:
            raise EvaluationError(f"{node.title}: it does not end in {LONGEST} iterations")
        for number, (condition, *values) in _inside(body, states, given, hook).items():
            size = len(carried[number])
            carried[number] = values[:size]
            for items, value in zip(scanned[number], values[size:], strict=True):
                items.append(value)
            stopped = condition is LOST or not _truth(node, condition)
            going[number] = not (stopped and (checked or trips is None))
    made = body.made[1 + len(node.inputs) - 2 :]
    return {
        n: [*carried[n], *(_stacked(items, k) for items, k in zip(scanned[n], made, strict=True))] for n in arguments
    }


def _stacked(items: Sequence[Value], kind: int, axis: int = 0) -> Value:
    """Elements along a new axis; of none, nothing."""
    if any(item is LOST for item in items):
        return LOST
    if not items:
        return np.zeros(0, np.float64 if kind in FLOATS or not kind else onnx.helper.tensor_dtype_to_np_dtype(kind))
    return np.stack([np.asarray(item) for item in items], axis)


def _scan(
    node: Node, arguments: Mapping[int, Sequence[Value]], states: Mapping[int, Values], hook: Hook | None
) -> Results:
    if node.version < 9:
        return _batched_scan(node, arguments, states, hook)
    body, count = node.bodies["body"], node.attributes["num_scan_inputs"]
    held, kept = len(node.inputs) - count, len(body.outputs) - (len(node.inputs) - count)
    backward = node.attributes.get("scan_input_directions", [0] * count)
    prepended = node.attributes.get("scan_output_directions", [0] * kept)
    axes, out = node.attributes.get("scan_input_axes", [0] * count), node.attributes.get("scan_output_axes", [0] * kept)
    lost = {number: _lost(node) for number, given in arguments.items() if any(value is LOST for value in given)}
    carried = {n: list(given[:held]) for n, given in arguments.items() if n not in lost}
    taken = {
        n: [
            np.moveaxis(np.asarray(x), axis, 0)[:: -1 if back else 1]
            for x, axis, back in zip(given[held:], axes, backward, strict=True)
        ]
        for n, given in arguments.items()
        if n not in lost
    }
    scanned: dict[int, list[list[Value]]] = {number: [[] for _ in range(kept)] for number in carried}
    for place in range(max((len(parts[0]) for parts in taken.values()), default=0)):
        given = {
            n: (*carried[n], *(part[place] for part in parts)) for n, parts in taken.items() if place < len(parts[0])
        }
        for number, values in _inside(body, states, given, hook).items():
            carried[number] = values[:held]
            for items, value, before in zip(scanned[number], values[held:], prepended, strict=True):
                items.insert(0 if before else len(items), value)
    made = body.made[held:]
    found = {
        n: [*carried[n], *(_stacked(items, k, axis) for items, k, axis in zip(scanned[n], made, out, strict=True))]
        for n in carried
    }
    return {**found, **lost}


def _batched_scan(
    node: Node, arguments: Mapping[int, Sequence[Value]], states: Mapping[int, Values], hook: Hook | None
) -> Results:
    """Of version 8: along axis 1 of each sample, as far as its length; what is behind that is 0, since the
    specification leaves it open."""
    body, count = node.bodies["body"], node.attributes["num_scan_inputs"]
    held, kept = len(node.inputs) - 1 - count, len(body.outputs) - (len(node.inputs) - 1 - count)
    backward = node.attributes.get("directions", [0] * count)
    results: Results = {}
    for number, (lengths, *values) in arguments.items():
        given = [np.asarray(value) for value in values]
        longest, samples = given[held].shape[1], []
        for sample in range(given[held].shape[0]):
            steps = longest if lengths is None else int(np.asarray(lengths)[sample])
            carried: list[Value] = [value[sample] for value in given[:held]]
            parts = [x[sample, :steps][:: -1 if back else 1] for x, back in zip(given[held:], backward, strict=True)]
            scanned: list[list[Value]] = [[] for _ in range(kept)]
            for step in range(steps):
                made = _inside(body, states, {number: (*carried, *(part[step] for part in parts))}, hook)[number]
                carried = made[:held]
                for items, value in zip(scanned, made[held:], strict=True):
                    items.append(value)
            rows = [np.stack([np.asarray(item) for item in items]) for items in scanned]
            rows = [np.pad(row, [(0, longest - steps), *[(0, 0)] * (row.ndim - 1)]) for row in rows]
            samples.append([*carried, *rows])
        results[number] = [np.stack([np.asarray(part) for part in parts]) for parts in zip(*samples, strict=True)]
    return results


_CONTROL = {"If": _if, "Loop": _loop, "Scan": _scan}
