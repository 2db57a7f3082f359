"""An ONNX model in float64, exactly and with noise: Monte Carlo arithmetic (D. S. Parker, Monte Carlo Arithmetic,
1997). Every floating result of a node is off by a random part, uniform in [-1, 1], of what rounding in the model's own
dtype may do to it (`amplitudes.py`), in graphs inside of nodes as well; exact values (`exact.py`) are not disturbed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from oracles.onnx.amplitudes import amplitudes, unit_of
from oracles.onnx.evaluate import LOST, EvaluationError, Hook, Step, evaluated, has_rule, run, single
from oracles.onnx.graph import Graph, Node
from oracles.onnx.kinds import floating
from oracles.onnx.lost import beside
from oracles.onnx.model import read
from oracles.onnx.rule import Value

INSIDE = 4
"""Runs with noise of a node with graphs inside, to see what they do to its results."""


def disturbing(draws: Mapping[int, np.random.Generator]) -> Hook:
    """A hook that disturbs the results of all runs but the exact one. draws: by number of the run."""

    def disturb(step: Step) -> None:
        node, first = step.node, min(step.results)
        if not has_rule(node):  # its body was disturbed
            return
        base = step.results[first]
        shapes = [y.shape if isinstance(y, np.ndarray) else None for y in base]
        sizes: list[np.ndarray | float] | None = None
        for number, ys in step.results.items():
            if number not in draws:
                continue
            same = [y.shape if isinstance(y, np.ndarray) else None for y in ys] == shapes
            if same and sizes is None:
                sizes = sizes_of_noise(node, step.arguments[first], base, {})
            own = sizes if same and sizes is not None else sizes_of_noise(node, step.arguments[number], ys, {})
            for place, (name, y, size) in enumerate(zip(node.outputs, ys, own, strict=False)):
                if name not in node.exact and floating(y) and np.any(size):
                    ys[place] = disturbed(y, size, draws[number])

    return disturb


def disturbed(y: np.ndarray, size: np.ndarray | float, draw: np.random.Generator) -> np.ndarray:
    """The value with noise; infinities and NaN stay what they are."""
    other = draw.random(y.shape)
    with np.errstate(all="ignore"):
        for step, value in ((np.multiply, 2.0), (np.subtract, 1.0), (np.multiply, size), (np.add, y)):
            step(other, value, out=other)  # no more arrays: networks are large, and there are several runs
    np.copyto(other, y, where=~np.isfinite(other))
    return other


def sizes_of_noise(
    node: Node, inputs: Sequence[Value], outputs: Sequence[Value], scope: Mapping[str, Value], everywhere: bool = False
) -> list[np.ndarray | float]:
    """How far rounding may move each output of a node, given its inputs. scope: values that graphs inside may use;
    everywhere: also of values that are not disturbed, since nothing or only a size is made of them."""
    if any(y is LOST for y in outputs):
        return [0.0] * len(outputs)
    if not has_rule(node):
        return _inside(node, inputs, outputs, scope)
    found = amplitudes(node, inputs, outputs, lambda other: single(node, other, scope))
    units = [unit_of(kind) for kind in node.made] + [unit_of(0)] * len(outputs)
    return [
        0.0 if name in node.exact and not everywhere else unit * size
        for name, unit, size in zip(node.outputs, units, found, strict=False)
    ]


def _inside(
    node: Node, inputs: Sequence[Value], outputs: Sequence[Value], scope: Mapping[str, Value]
) -> list[np.ndarray | float]:
    """Of a node with graphs inside: what noise there does to its results, as much as a uniform part of this."""
    names = list(node.inputs)
    states = {number: {**scope, **dict(zip(names, inputs, strict=True)), "": None} for number in range(INSIDE + 1)}
    hook = disturbing({number: np.random.default_rng([7, number]) for number in range(1, INSIDE + 1)})
    runs = evaluated(node, states, hook)
    found: list[np.ndarray | float] = []
    for place, y in enumerate(outputs):
        others = [runs[number][place] for number in range(1, INSIDE + 1)]
        if not floating(y):
            found.append(0.0)
        elif any(not isinstance(other, np.ndarray) or other.shape != y.shape for other in others):
            found.append(np.full(y.shape, np.inf))
        else:
            found.append(np.sqrt(3 * np.mean([(np.asarray(other) - y) ** 2 for other in others], axis=0)))
    return found


def noisy_runs(
    graph: Graph,
    inputs: Sequence[Any] | Mapping[str, Any],
    runs: int,
    seed: int,
    noisy: Mapping[str, np.ndarray] | None = None,
) -> list[list[Value]]:
    """The outputs of a graph, exactly and in so many runs with noise, which may be `LOST`. noisy: inputs that come with
    noise, by name, runs along a new first axis."""
    draws = {number: np.random.default_rng([seed, number - 1]) for number in range(1, runs + 1)}
    own = {number: {name: array[number - 1] for name, array in (noisy or {}).items()} for number in draws}
    return run(graph, inputs, runs + 1, disturbing(draws), own)


def monte_carlo(model: onnx.ModelProto | Graph, inputs: Sequence[Any], runs: int, seed: int) -> list[np.ndarray]:
    """What each output is exactly, and in so many runs with noise: [exact, noisy, exact, noisy, ...], noisy with an
    axis of runs in front. inputs: arrays in the order of the model's. An output that noise gives another shape, or that
    a run has lost, has NaN or another value than the exact one everywhere in this run."""
    graph = model if isinstance(model, Graph) else read(model)
    exact, *noisy = noisy_runs(graph, inputs, runs, seed)
    results = []
    for place, (name, value) in enumerate(zip(graph.outputs, exact, strict=True)):
        if not isinstance(value, np.ndarray):
            raise EvaluationError(f"the output {name} is no tensor")
        results += [value, np.stack([beside(value, one[place]) for one in noisy])]
    return results
