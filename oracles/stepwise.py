"""Operators whose derivatives are derived through their steps: each is rewritten with simpler ones of our own, whose
slopes are measured and whose losses are known one by one, so that what cancels between the steps is carried by the
bounds of the values and adjoints in between. docs/gradients.md says why a correct fused formula keeps these bounds."""

from __future__ import annotations

from collections.abc import Mapping

from generators.graphs import Case
from oracles.decompositions import Rule, rewritten
from oracles.steps_of_layers import LAYERS
from oracles.steps_of_losses import LOSSES
from oracles.steps_of_second import SECOND
from oracles.steps_of_statistics import STATISTICS

RULES: Mapping[str, Rule] = {**LOSSES, **STATISTICS, **LAYERS}

TWICE: Mapping[str, Rule] = {**RULES, **SECOND}
"""Those of second derivatives, for which more operators are rewritten."""


def stepwise(case: Case, rules: Mapping[str, Rule] = RULES) -> Case:
    """The case with every such operator written in steps; its leaves come first, constants of the steps after them."""
    return rewritten(case, rules) or case
