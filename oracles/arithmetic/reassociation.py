"""Sums and products of several operators that a back end may rearrange: what any formula that is equal for real
numbers may be off by.

A chain is an expression of +, -, * over atoms (the results of all other operators) and their rearrangement by moves. A
formula equal to it over the real numbers adds up the same monomials; with k operations in all, its roundoff is at most
gamma(k) times the sum of the monomials' magnitudes (Higham, section 3.1: each monomial meets at most k factors
(1 + d)). `size` is that sum. Parts of a formula may be as great as `reach`, the same expression over max(1, |atom|):
where that overflows, so may a part, and what underflows inside is multiplied by no more. Common factors taken out make
formulas shorter and multiplying out makes them longer: two operations of the formula for one of the graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded, gamma
from generators.graph import Graph
from generators.ops import OPS, call_of
from generators.ops.spec import Call

Array = np.ndarray

LINEAR = frozenset(["add", "sub", "sum", "mean", "neg"])
PRODUCTS = frozenset(["mul", "square", "squared_difference", "addcmul", "matmul", "linear", "dot", "vecdot", "div"])
_LAYOUT = "identity reshape flatten flatten_2d transpose squeeze unsqueeze broadcast_to concat stack split slice flip"
MOVES = frozenset([*_LAYOUT.split(), "roll", "swapaxes", "moveaxis", "unflatten", "tile", "repeat", "diagonal"])
RING = LINEAR | PRODUCTS | MOVES

SHIFTED = frozenset(["log_softmax", "cross_entropy", "cross_entropy_weighted"])
"""Made of (x - m) - log S, m the greatest x, S the sum of all exp(x - m), which may become x - (m + log S): four
operations on numbers up to max |x| + log n."""

INVERSES = {"exp": "log", "log": "exp", "exp2": "log2", "log2": "exp2"}
"""A function and the one that it undoes: LLVM's InstructionSimplify makes x of exp(log(x)) and log(exp(x)) that
have the flag reassoc, whatever stands between (XLA of jaxlib 0.11.2: exp(log(-1)) is -1, log(exp(1000)) is 1000).
GCC's match.pd does, too, under -funsafe-math-optimizations."""


@dataclass(frozen=True)
class Chain:
    """size, reach: of every element, see above; operations: of the expression of one element."""

    size: Array
    reach: Array
    operations: int


def atom(x: Bounded) -> Chain:
    """A value that is taken as it is."""
    with np.errstate(all="ignore"):
        size = np.abs(x.value) + x.error
    return Chain(size, np.maximum(size, 1.0), 0)


def widened(
    graph: Graph, index: int, values: Mapping[str, Bounded], terms: dict[str, Chain], result: Bounded
) -> Bounded:
    """The result of node number `index` where its expression may be rearranged; puts its chain into `terms`."""
    node = graph.nodes[index]
    call = call_of(graph, index)
    if node.op in SHIFTED:
        return _shifted(values[node.operands[0]], result)
    if node.op in INVERSES:
        return _undone(graph, index, values, result)
    if node.op not in RING or result.dtype not in PRECISION or result.complex:
        return result
    parts = [terms.get(name) or atom(values[name]) for name in node.operands]
    chain = _chain(node.op, call, parts, values[node.operands[-1]])
    terms[node.name] = chain
    if node.op in MOVES or not any(name in terms for name in node.operands):
        return result
    p = PRECISION[result.dtype]
    with np.errstate(all="ignore"):
        further = gamma(2 * chain.operations, p.unit) * chain.size + 2 * chain.operations * p.tiny * chain.reach
        loose = ~(chain.reach <= p.largest / 2) | ~np.isfinite(result.value)
        error = np.where(loose, np.inf, result.error + further)
    return replace(result, error=error)


def _undone(graph: Graph, index: int, values: Mapping[str, Bounded], result: Bounded) -> Bounded:
    """The result of exp where log is NaN (log(0) and log(inf) come back), and of log where exp overflows or underflows.
    What only moves elements may stand between them."""
    node = graph.nodes[index]
    made = {one.name: one for one in graph.nodes}
    before = made.get(node.operands[0])
    while before and before.op in MOVES:
        before = made.get(before.operands[0])
    if before is None or before.op != INVERSES[node.op] or not result.floating:
        return result
    between = values[node.operands[0]].value
    with np.errstate(all="ignore"):
        beyond = ~np.isfinite(between) | (np.abs(between) < PRECISION[result.dtype].tiny)
        loose = np.isnan(between) if node.op.startswith("exp") else beyond
    return replace(result, error=np.where(loose, np.inf, result.error))


def _shifted(x: Bounded, result: Bounded) -> Bounded:
    """The result where the shift does not come first: for every row that is added up, the loss of four operations."""
    if not x.value.size or not result.floating:
        return result
    with np.errstate(all="ignore"):
        greatest = np.max(np.where(np.isfinite(x.value), np.abs(x.value) + x.error, 0.0)) + np.log(x.value.size)
        rows = max(1, x.value.size // max(result.value.size, 1))
        further = rows * gamma(4, PRECISION[result.dtype].unit) * greatest
    return replace(result, error=np.where(np.isfinite(result.value), result.error + further, result.error))


def _chain(op: str, call: Call, parts: list[Chain], last: Bounded) -> Chain:
    """The chain of one node: its own reference over magnitudes, a difference taken for a sum."""
    operations = sum(part.operations for part in parts)
    if op == "div":
        with np.errstate(all="ignore"):
            least = np.maximum(np.abs(last.value) - last.error, 0.0)
            size, reach = parts[0].size / least, parts[0].reach * np.maximum(1 / least, 1.0)
        return Chain(size, reach, operations + 1)
    if op == "neg":
        return parts[0]
    size, reach = (_value(op, call, [getattr(part, name) for part in parts]) for name in ("size", "reach"))
    own = 0 if op in MOVES else 3 * max(1, max((part.size.size for part in parts), default=1) // max(size.size, 1))
    if op in ("matmul", "linear", "dot", "vecdot"):
        own = 2 * call.operands[0].shape[-1] + 1 if call.operands[0].shape else 2
        operations *= max(1, call.operands[0].shape[-1] if call.operands[0].shape else 1)
    if op in ("sum", "mean"):
        operations *= max(1, parts[0].size.size // max(size.size, 1))
    return Chain(size, np.maximum(reach, size), operations + own)


def _value(op: str, call: Call, magnitudes: list[Array]) -> Array:
    """The operator over exact float64 magnitudes, subtraction as addition, factors by magnitude."""
    if op == "squared_difference":
        total = magnitudes[0] + magnitudes[1]
        return total * total
    name = "add" if op == "sub" else op
    operands = [Bounded(m, np.zeros(m.shape), "float64") for m in magnitudes]
    types = tuple(replace(type_, dtype="float64") for type_ in call.operands)
    attrs = {key: abs(value) if isinstance(value, float) else value for key, value in call.attrs.items()}
    wide = Call(types, attrs, replace(call.result, dtype="float64"))
    return OPS[name].reference(operands, wide).value
