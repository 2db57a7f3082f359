"""What a target's mode of arithmetic allows beyond the ordinary: fast math, TF32. The reference evaluated under it,
with bounds derived from what the mode documents, or from a figure measured once and stated with how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded, leaf
from generators.graph import COMPONENT, Graph
from generators.graphs import Case
from generators.inputs import Arrays
from generators.ops import OPS
from oracles.arithmetic import reassociation
from oracles.judge import reference
from oracles.judge.compare import Expected

_KEEP_NAN = frozenset(["unary", "comparison", "layout", "indexing", "sorting"])
"""Families that neither add nor multiply operands. In all others x - x is 0 for real numbers, a NaN or an infinity
notwithstanding."""
_EXPONENTIALS = frozenset(["sigmoid", "silu", "log_sigmoid", "softplus", "mish"])
"""Elementwise operators that are composed of the exponential of their operand or of its negative."""
_DIVISORS: Mapping[str, Callable[[Bounded], Bounded]] = {
    **dict.fromkeys(("div", "reciprocal", "sinc"), lambda x: x),
    "softsign": lambda x: replace(x, value=1 + np.abs(x.value)),
}
"""What operators divide by, from their last operand; sinc by pi times it."""


_WITHOUT_FUNCTIONS = frozenset(["layout", "indexing", "comparison", "sorting", "conv", "kept"])
"""Families of which neither a value nor a derivative takes a function or a quotient."""
_SUMS_AND_PRODUCTS = frozenset(
    [
        *(
            "abs",
            "add",
            "add_n",
            "addmm",
            "baddbmm",
            "batch_matmul",
            "cumsum",
            "dot",
            "einsum",
            "einsum_single",
            "linear",
        ),
        *("matmul", "max_pool1d", "max_pool2d", "max_pool3d", "mul", "neg", "outer", "relu", "square", "sub", "sum"),
        *("sum_of_squares", "tril", "triu", "vecdot"),
    ]
)


@dataclass(frozen=True)
class Approximation:
    """What an approximated function owes beside its ordinary budget, by dtype of its operand. relative: to its value;
    growing: to its value, for each unit of the operand's magnitude; absolute: where it underflows; up_to, down_to: for
    operands that are no greater, no less, beyond them anything; nan, subnormals: are operands kept that are one?"""

    relative: float
    absolute: float = 0.0
    up_to: float = np.inf
    nan: bool = True
    growing: float = 0.0
    down_to: float = -np.inf
    subnormals: bool = True


@dataclass(frozen=True)
class Arithmetic:
    """name:          for people
    nans, infinities, signed_zeros: is IEEE 754 kept with them? What holds one that is not is undetermined
    invalid:       is a function of a number outside of its domain NaN (sqrt(-1)), or may it be taken for inside?
    reassociates:  sums and products may be computed by any formula that is equal for real numbers (`chains`)
    reciprocals:   x / y may be computed as x * (1 / y)
    estimates:     the quotient q by an estimate of 1 / y may be corrected by the rest, x - y q, which may underflow
    operand_unit:  unit roundoff of the format that float32 operands of `products` are rounded to (0: they are not)
    products:      the operators that this concerns
    accumulators:  how many times the unit roundoff of float32 one addition of them may lose
    functions:     (operator, dtype of operand 0) -> what it owes
    casts:         the case that is computed in place of one, from arrays of its leaves, as far as there are any: nodes
                   and leaves keep their names, outputs their dtypes. Or why that cannot be told"""

    name: str
    nans: bool = True
    infinities: bool = True
    signed_zeros: bool = True
    invalid: bool = True
    reassociates: bool = False
    reciprocals: bool = False
    estimates: bool = False
    operand_unit: float = 0.0
    products: frozenset[str] = frozenset()
    accumulators: float = 1.0
    functions: Mapping[tuple[str, str], Approximation] = field(default_factory=dict)
    casts: Callable[[Graph, Arrays], Case | str] | None = None

    @property
    def of_functions(self) -> bool:
        """Do its rules concern functions and quotients alone, and leave sums and products as they are?"""
        kept = self.nans and self.infinities and self.signed_zeros and self.invalid and not self.reassociates
        return kept and not self.operand_unit and self.casts is None

    def concerns(self, graph: Graph) -> bool:
        """May its rules touch values of the graph, or of its derivatives? Not where they are of functions alone, and
        the graph moves, compares and chooses values only, or adds and multiplies them."""
        return not self.of_functions or any(
            OPS[node.op].family not in _WITHOUT_FUNCTIONS and node.op not in _SUMS_AND_PRODUCTS for node in graph.nodes
        )

    def computes_low(self, graph: Graph, name: str) -> bool:
        """Is this node of float32 computed, or kept, in float16?"""
        after = self.casts(graph, {}) if self.casts else ""
        if isinstance(after, str):
            return False
        (node,) = (node for node in after.graph.nodes if node.name == name)
        return "float16" in {after.graph.types[value].dtype for value in (name, *node.operands)}


def expect(case: Case, rules: Arithmetic) -> Expected:
    """What a run of the graph under these rules is judged against; under none of its casts where they cannot be told,
    which no target is asked for."""
    names = case.graph.outputs
    after = rules.casts(case.graph, case.arrays) if rules.casts else case
    after = case if isinstance(after, str) else after
    values = evaluate(after.graph, after.arrays, replace(rules, casts=None))
    types = tuple(case.graph.types[name] for name in names)
    return Expected(names, types, tuple(values[name] for name in after.graph.outputs))


def evaluate(graph: Graph, arrays: Arrays, rules: Arithmetic) -> dict[str, Bounded]:
    """Bounded values of all leaves and nodes by name, as `reference.evaluate` gives them."""
    values = {item.name: kept(leaf(arrays[item.name]), rules) for item in graph.leaves}
    taken = dict(values)
    terms: dict[str, reassociation.Chain] = {}
    for index, node in enumerate(graph.nodes):
        result = apply(graph, index, taken, rules)
        if rules.reassociates:
            result = reassociation.widened(graph, index, taken, terms, result)
        values[node.name] = result
        taken[node.name] = reference.as_taken(graph, index, result, taken)
    return values


def apply(graph: Graph, index: int, values: Mapping[str, Bounded], rules: Arithmetic) -> Bounded:
    """The result of node number `index` from the bounded values of its operands."""
    if rules.casts:
        return _cast(graph, index, values, rules.casts)
    node = graph.nodes[index]
    given = {name: kept(values[name], rules) for name in node.operands}
    first = given[node.operands[0]]
    named = {node.op, OPS[node.op].base} & rules.products
    product = rules.operand_unit > 0 and bool(named) and first.dtype == "float32"
    if product:
        given = {name: _rounded_to(x, rules.operand_unit) for name, x in given.items()}
    result = reference.apply(graph, index, given)
    if product:
        result = _added(result, (rules.accumulators - 1) * _accumulated(graph, index, values))
    function = rules.functions.get((node.op, first.dtype))
    if function:
        result = _approximated(result, first, function)
    if rules.reassociates and OPS[node.op].family not in _KEEP_NAN and result.floating:
        result = replace(result, error=np.where(np.isnan(result.value), np.inf, result.error))
    if not rules.invalid and OPS[node.op].family == "unary" and result.floating:
        result = replace(result, error=np.where(np.isnan(result.value) & ~np.isnan(first.value), np.inf, result.error))
    if not rules.infinities and node.op in _EXPONENTIALS:
        result = _overflown(result, first)
    divisor = _DIVISORS[node.op](values[node.operands[-1]]) if node.op in _DIVISORS else None
    if rules.reciprocals and divisor:
        result = _inverted(result, divisor)
    if rules.estimates:
        result = _uncorrected(result, divisor)
    return kept(result, rules)


def _cast(
    graph: Graph, index: int, values: Mapping[str, Bounded], casts: Callable[[Graph, Arrays], Case | str]
) -> Bounded:
    """The same where casts are made, of values that the other nodes have in the graph's own dtypes."""
    name = graph.nodes[index].name
    after = casts(graph, {leaf.name: values[leaf.name].value for leaf in graph.leaves})
    assert not isinstance(after, str)  # it has run
    known = {**values, **{key: leaf(array) for key, array in after.arrays.items() if key not in values}}
    for place, node in enumerate(after.graph.nodes):
        if node.name in values and node.name != name:
            known[node.name] = replace(values[node.name], dtype=node.type.dtype)
        elif all(operand in known for operand in node.operands):
            known[node.name] = reference.apply(after.graph, place, known)
    return replace(known[name], dtype=graph.types[name].dtype)


def kept(x: Bounded, rules: Arithmetic) -> Bounded:
    """What the rules leave determined of a value."""
    if not x.floating:
        return x
    lost = np.zeros(x.value.shape, bool)
    lost |= np.isnan(x.value) if not rules.nans else False
    lost |= np.isinf(x.value) if not rules.infinities else False
    return replace(x, error=np.where(lost, np.inf, x.error), zero_sign=x.zero_sign and rules.signed_zeros)


def _added(x: Bounded, further: np.ndarray) -> Bounded:
    """The value with a greater bound, where it is a number; undetermined where it may then overflow."""
    with np.errstate(all="ignore"):
        error = np.where(np.isfinite(x.value), x.error + further, x.error)
        over = np.isfinite(x.value) & (np.abs(x.value) + error > PRECISION[x.dtype].largest)
    return replace(x, error=np.where(over, np.inf, error))


def _rounded_to(x: Bounded, unit: float) -> Bounded:
    """An operand once it is rounded to a format with this unit roundoff and the exponents of float32."""
    if x.dtype != "float32":
        return x
    return _added(x, unit * (np.abs(x.value) + x.error))


def _accumulated(graph: Graph, index: int, values: Mapping[str, Bounded]) -> np.ndarray:
    """The bound that the reference puts on the roundings of a sum of products, for exact operands: that of the sum of
    magnitudes. c gamma_m(u) covers gamma_n(c u) where m > n: of the m factors one is that of the rounded products,
    which are exact in TF32 (22 bits), and gamma is linear to c n u / 2 < 1 / n for the at most 2,048 terms here."""
    node = graph.nodes[index]
    with np.errstate(all="ignore"):
        sizes = {
            name: Bounded(np.abs(x.value) + x.error, np.zeros(x.value.shape), x.dtype) if x.floating else x
            for name, x in ((name, values[name]) for name in node.operands)
        }
    return reference.apply(graph, index, {**values, **sizes}).error


def _approximated(x: Bounded, operand: Bounded, function: Approximation) -> Bounded:
    with np.errstate(all="ignore"):
        relative = function.relative
        if function.growing:
            relative += np.nan_to_num(function.growing * (np.abs(operand.value) + operand.error))
        result = _added(x, relative * (np.abs(x.value) + x.error) + function.absolute)
        if operand.value.shape != x.value.shape:
            return result
        beyond = operand.value + operand.error > function.up_to
        beyond |= operand.value - operand.error < function.down_to
        if not function.subnormals:
            beyond |= (operand.value != 0) & (np.abs(operand.value) - operand.error < PRECISION[operand.dtype].tiny)
        beyond |= np.isnan(operand.value) & (not function.nan)
    return replace(result, error=np.where(beyond, np.inf, result.error))


def _overflown(x: Bounded, operand: Bounded) -> Bounded:
    """What comes of an exponential that overflows on the way comes of an infinity."""
    with np.errstate(all="ignore"):
        over = np.abs(operand.value) + operand.error >= np.log(PRECISION[operand.dtype].largest)
    return replace(x, error=np.where(over, np.inf, x.error))


def _inverted(x: Bounded, divisor: Bounded) -> Bounded:
    """1 / y overflows or underflows for divisors whose quotients do not; else it and the product are two roundings,
    which the budget of a division covers (2.5 ulp)."""
    if divisor.dtype in COMPONENT or not x.floating:
        return x
    p = PRECISION[divisor.dtype]
    with np.errstate(all="ignore"):
        least, most = np.abs(divisor.value) - divisor.error, np.abs(divisor.value) + divisor.error
        loose = (least < 1 / p.largest) | (most > 0.5 / p.tiny)
    return replace(x, error=np.where(np.broadcast_to(loose, x.value.shape), np.inf, x.error))


def _uncorrected(x: Bounded, divisor: Bounded | None) -> Bounded:
    """A rest below the least normal number may be lost: its quotient by the divisor. Composed operators divide by ones
    of ordinary size, or scale the quotient back by what they divided by (hypot): as by 1. What is exact has no rest.
    Estimates are of float32 alone, in which narrower dtypes are computed; float16 is far from its least numbers."""
    if x.dtype not in ("float32", "bfloat16"):
        return x
    with np.errstate(all="ignore"):
        size = np.ones(()) if divisor is None else np.abs(divisor.value) - divisor.error
        rest = np.where(size > 0, PRECISION[x.dtype].tiny / np.abs(size), np.inf)
    return _added(x, np.where(x.error > 0, rest, 0.0))
