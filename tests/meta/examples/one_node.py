"""Cases of one node, of given arrays and drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import SMOOTH, Case, SeededDraw, build_case
from generators.ops import OPS, check


def applied(op: str, *arrays: np.ndarray, same: bool = False, **attrs: Any) -> Case:
    """One operator applied to these arrays. same: the first operand stands in the second place, too."""
    domains = (None, (0, 1), (0, 4)) if op == "bce_pos_weight" else (None,) * len(arrays)
    leaves = tuple(
        Leaf(f"x{i}", TensorType(str(a.dtype), a.shape), domain=domain)
        for i, (a, domain) in enumerate(zip(arrays, domains, strict=True))
    )
    names = [leaf.name for leaf in leaves]
    operands = (names[0], *names) if same else tuple(names)
    types = {leaf.name: leaf.type for leaf in leaves}
    result = OPS[op].result(tuple(types[name] for name in operands), attrs)
    node = Node("v0", op, tuple(operands), tuple(attrs.items()), result)
    return Case(check(Graph(leaves, (node,), ("v0",))), dict(zip(names, arrays, strict=True)))


def drawn(operator: str, number: int) -> Case:
    return build_case(SeededDraw(f"steps/{operator}/{number}"), 1, (operator,), SMOOTH)
