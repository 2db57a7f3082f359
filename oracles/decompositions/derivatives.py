"""Operators whose derivatives are derived through their steps: each is rewritten with simpler ones of our own, whose
slopes are measured and whose losses are known one by one, so that what cancels between the steps is carried by the
bounds of the values and adjoints in between. docs/gradients.md says why a correct fused formula keeps these bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from generators.graph import FLOATS, Node, TensorType
from generators.graphs import Case
from generators.ops import OPS, SAID_OTHERWISE
from generators.ops.reduce.of_scalars import OF_SCALAR
from oracles.decompositions.composite import GraphBuilder, Rule, rewritten
from oracles.decompositions.layers import LAYERS
from oracles.decompositions.losses import LOSSES
from oracles.decompositions.second_derivatives import SECOND
from oracles.decompositions.statistics import STATISTICS
from oracles.decompositions.systems import SYSTEMS


def _of_itself(s: GraphBuilder, node: Node) -> str | None:
    """The greater of x and x is x, whatever of both is taken: its gradient is exact."""
    first, second = node.operands
    return s.add("identity", first) if first == second else None


def _promoted(s: GraphBuilder, node: Node) -> str | None:
    """Operands that are cast first, but for conditions; then the operator of one dtype."""
    to, base = node.type.dtype, OPS[OPS[node.op].base]
    if to not in FLOATS:
        return None
    operands = []
    for i, name in enumerate(node.operands):
        given = s.types[name]
        condition = i == 0 and not base.slot(0).accepts(TensorType(to, given.shape), ())
        operands.append(name if condition or given.dtype == to else s.add("cast", name, to=to))
    return s.add(base.name, *operands, **{key: value for key, value in node.attributes.items() if key in base.attrs})


def _of_scalar(s: GraphBuilder, node: Node) -> str:
    """The operator of one element."""
    lifted = [s.add("reshape", name, shape=(1,)) for name in node.operands]
    return s.add("reshape", s.add(OPS[node.op].base, *lifted, **node.attributes), shape=())


def _said_otherwise(rules: Mapping[str, Rule]) -> dict[str, Rule]:
    """Operators that are said in other functions are those that they say."""

    def rule(s: GraphBuilder, node: Node) -> str | None:
        base = OPS[node.op].base
        attrs = {key: value for key, value in node.attributes.items() if key in OPS[base].attrs}
        same = replace(node, op=base, attrs=tuple(attrs.items()))
        steps = rules[base](s, same) if base in rules else None
        return steps if steps is not None else s.add(base, *node.operands, **attrs)

    return dict.fromkeys(SAID_OTHERWISE, rule)


_PLAIN: Mapping[str, Rule] = {
    **LOSSES,
    **STATISTICS,
    **LAYERS,
    **SYSTEMS,
    **dict.fromkeys(("maximum", "minimum", "fmax", "fmin"), _of_itself),
    **dict.fromkeys(
        (name for name, spec in OPS.items() if spec.promotes and spec.base and name not in SAID_OTHERWISE), _promoted
    ),
    **dict.fromkeys((name for name in OPS if name.endswith(OF_SCALAR)), _of_scalar),
}
_SECOND: Mapping[str, Rule] = {**_PLAIN, **SECOND}

RULES: Mapping[str, Rule] = {**_PLAIN, **_said_otherwise(_PLAIN)}

SECOND_ORDER_RULES: Mapping[str, Rule] = {**_SECOND, **_said_otherwise(_SECOND)}
"""Those of second derivatives, for which more operators are rewritten."""


def decompose(case: Case, rules: Mapping[str, Rule] = RULES) -> Case:
    """The case with every such operator written in steps; its leaves come first, constants of the steps after them."""
    return rewritten(case, rules) or case
