"""Graphs of elementwise operators on float32, and how what comes of them is judged under a mode of arithmetic."""

from __future__ import annotations

import numpy as np

from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import Case
from generators.ops import check
from oracles.arithmetic import fast_math
from oracles.judge.outcome import Value
from oracles.judge.verdict import Verdict, judge
from oracles.questions import forward

F = np.float32


def applied(*steps: tuple[str, tuple[str, ...]], **arrays: np.ndarray) -> Case:
    """Nodes v0, v1, … of elementwise operators on float32 leaves of one shape, the last of them the output."""
    types = {name: TensorType("float32", array.shape) for name, array in arrays.items()}
    type_ = next(iter(types.values()))
    nodes = tuple(Node(f"v{i}", op, names, (), type_) for i, (op, names) in enumerate(steps))
    leaves = tuple(Leaf(name, types[name]) for name in arrays)
    return Case(check(Graph(leaves, nodes, (nodes[-1].name,))), {k: a.astype(F) for k, a in arrays.items()})


def under(rules: fast_math.Arithmetic, case: Case, *outputs: np.ndarray) -> Verdict:
    return judge(fast_math.expect(case, rules), Value(tuple(np.asarray(o, F) for o in outputs)))


def ordinarily(case: Case, output: np.ndarray) -> Verdict:
    return judge(forward.expect(case), Value((np.asarray(output, F),)))
