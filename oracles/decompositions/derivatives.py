"""Operators whose derivatives are derived through their steps: each is rewritten with simpler ones of our own, whose
slopes are measured and whose losses are known one by one, so that what cancels between the steps is carried by the
bounds of the values and adjoints in between. docs/gradients.md says why a correct fused formula keeps these bounds."""

from __future__ import annotations

from collections.abc import Mapping

from generators.graph import Node
from generators.graphs import Case
from oracles.decompositions.composite import GraphBuilder, Rule, rewritten
from oracles.decompositions.layers import LAYERS
from oracles.decompositions.losses import LOSSES
from oracles.decompositions.second_derivatives import SECOND
from oracles.decompositions.statistics import STATISTICS


def _of_itself(s: GraphBuilder, node: Node) -> str | None:
    """The greater of x and x is x, whatever of both is taken: its gradient is exact."""
    first, second = node.operands
    return s.add("identity", first) if first == second else None


RULES: Mapping[str, Rule] = {
    **LOSSES,
    **STATISTICS,
    **LAYERS,
    **dict.fromkeys(("maximum", "minimum", "fmax", "fmin"), _of_itself),
}

SECOND_ORDER_RULES: Mapping[str, Rule] = {**RULES, **SECOND}
"""Those of second derivatives, for which more operators are rewritten."""


def decompose(case: Case, rules: Mapping[str, Rule] = RULES) -> Case:
    """The case with every such operator written in steps; its leaves come first, constants of the steps after them."""
    return rewritten(case, rules) or case
