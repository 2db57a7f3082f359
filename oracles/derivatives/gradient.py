"""Does a target differentiate what it computes? Gradients of a drawn linear functional of all floating outputs, judged
against reverse accumulation over slopes that are measured on our own references (`jacobians`), with a running error
bound.

docs/gradients.md derives value and bound."""

from __future__ import annotations

import zlib
from collections.abc import Container, Mapping, Sequence

import numpy as np

from generators.bounds.bounded import PRECISION, SMALLEST, U64, Bounded
from generators.bounds.complex_values import PRODUCT, QUOTIENT
from generators.graph import COMPONENT, CONTINUOUS, Graph, Leaf, TensorType
from generators.graphs import Case
from generators.inputs import Arrays
from generators.ops import call_of
from generators.ops.spec import Call
from generators.union import numbered
from oracles.decompositions.derivatives import decompose
from oracles.derivatives.accumulation import Estimate, add, products, zeros
from oracles.derivatives.complex_pairs import bounded, numbers_of, paired, parts_of, sizes, wild
from oracles.derivatives.jacobians.finite_differences import steps_of
from oracles.derivatives.jacobians.jacobian import Jacobian
from oracles.derivatives.node_jacobians import NodeJacobians, node_jacobians
from oracles.derivatives.partial_products import open_elements
from oracles.derivatives.rounding import first_derivatives
from oracles.derivatives.rounding.matrix_first_derivatives import far_out
from oracles.judge import reference
from oracles.judge.compare import Expected

NAME = "gradient"
Array = np.ndarray

FORMULA = 8
"""Roundings that the formula of a derivative may have beside those of the operator itself."""
FORMULA_OF_COMPLEX = 2 * QUOTIENT + 2 * PRODUCT
"""That of complex numbers: -g conj(x / y / y), of a quotient by the divisor, in units of the modulus."""
OWN = 64
"""At most so many u of an operator's own relative bound count as the accuracy of its derivative: beyond that the bound
tells of cancellation in the result, which a derivative does not have."""


def weight_name(output: str) -> str:
    """The name under which a program gets the weights of an output."""
    return f"weight_{output}"


def weights(graph: Graph) -> dict[str, np.ndarray]:
    """What each floating output's elements are weighted with, by its name: +-k/64 with k from 32 to 96, exact in every
    dtype, the same for the same type of output, and for a case that is alone and beside others (`generators.union`)."""
    found = {}
    for number, name in zip(numbered(graph.outputs), graph.outputs, strict=True):
        type_ = graph.types[name]
        if type_.dtype in CONTINUOUS:
            found[name] = numbers(number, type_)
    return found


def numbers(seed: int, type_: TensorType) -> Array:
    """+-k/64 with k from 32 to 96, exact in every dtype, the same for the same seed and shape; of complex numbers each
    part."""
    rng = np.random.default_rng(zlib.crc32(f"{seed} {type_.shape}".encode()))
    shape = (*type_.shape, 2) if type_.dtype in COMPONENT else type_.shape
    drawn = rng.integers(32, 97, shape) * rng.choice([-1, 1], shape) / 64
    return (numbers_of(drawn) if type_.dtype in COMPONENT else drawn).astype(type_.dtype)


def program_inputs(case: Case) -> Arrays:
    """What a program is given: the leaves' arrays and the weights."""
    return {**case.arrays, **{weight_name(name): array for name, array in weights(case.graph).items()}}


def differentiable_leaves(graph: Graph) -> tuple[Leaf, ...]:
    """The floating leaves that reach a floating output through floating values only."""
    live = live_values(graph, first_derivatives.BUFFERS)
    return tuple(leaf for leaf in graph.leaves if leaf.name in live and leaf.type.dtype in CONTINUOUS)


def live_values(graph: Graph, but: Container[tuple[str, int]] = ()) -> set[str]:
    """Values that a floating output depends on through floating values, but not through these (operator, position)."""
    live = {name for name in graph.outputs if graph.types[name].dtype in CONTINUOUS}
    for node in reversed(graph.nodes):
        if node.name in live:
            counted = [name for i, name in enumerate(node.operands) if (node.op, i) not in but]
            live |= {name for name in counted if graph.types[name].dtype in CONTINUOUS}
    return live


def reached(graph: Graph, leaves: frozenset[str]) -> set[str]:
    """Floating values that depend on these leaves through floating values, and the leaves."""
    found = set(leaves)
    for node in graph.nodes:
        if node.type.dtype in CONTINUOUS and not found.isdisjoint(node.operands):
            found.add(node.name)
    return found


def expect(case: Case) -> Expected:
    """The gradients by all leaves that are sought; nothing where there are none, which no target is asked for."""
    graph = case.graph
    leaves = differentiable_leaves(graph)
    if not leaves:
        return Expected((), (), ())
    steps = decompose(case)
    exact = evaluated(steps)
    local = node_jacobians(steps.graph, exact, backwards=True)
    found = accumulate(steps.graph, exact, weights(steps.graph), local, names_of(leaves))
    values = tuple(final(found.get(leaf.name), leaf) for leaf in leaves)
    return Expected(tuple(f"d_{leaf.name}" for leaf in leaves), tuple(leaf.type for leaf in leaves), values)


def evaluated(case: Case) -> dict[str, Bounded]:
    """The reference's values of all leaves and nodes, complex ones as pairs."""
    return {name: paired(value) for name, value in reference.evaluate(case.graph, case.arrays).items()}


def seeded(seed: Array) -> Array:
    """Weights or tangents, flat, of complex numbers both parts."""
    return parts_of(seed).astype(np.float64).ravel()


def final(adjoint: Estimate | None, leaf: Leaf) -> Bounded:
    """What may overflow is undetermined. The last rounding is that of the last share. A zero has no sign to demand.
    None: an operand that the operator's steps leave out (statistics that training does not use), of slope 0."""
    p = PRECISION[leaf.type.dtype]
    adjoint = adjoint or zeros(seeded(np.zeros(leaf.type.shape, leaf.type.dtype)).size)
    with np.errstate(all="ignore"):
        error = adjoint.error + np.where(adjoint.error > 0, U64 * np.abs(adjoint.value), 0.0)
        loose = ~np.isfinite(adjoint.value) | np.isnan(error) | (np.abs(adjoint.value) + error > p.largest / 4)
        value = np.where(loose, 0.0, adjoint.value)
        error = np.where(loose, np.inf, np.maximum(error, SMALLEST))
    return bounded(value, error, leaf.type)


def names_of(leaves: Sequence[Leaf]) -> frozenset[str]:
    """The names of leaves."""
    return frozenset(leaf.name for leaf in leaves)


def accumulate(
    graph: Graph,
    values: Mapping[str, Bounded],
    seeds: Mapping[str, Array],
    local: NodeJacobians,
    leaves: frozenset[str],
) -> dict[str, Estimate]:
    """Estimates of all values that count, from the outputs back to these leaves."""
    live = live_values(graph) & reached(graph, leaves)
    adjoints = {name: zeros(values[name].value.size) for name in live}
    for name, seed in seeds.items():
        if name in live:
            adjoints[name].value += seeded(seed)
    with np.errstate(all="ignore"):
        for index in reversed(range(len(graph.nodes))):
            node = graph.nodes[index]
            if node.name not in live or node.type.size == 0:
                continue
            operands, call = [values[name] for name in node.operands], call_of(graph, index)
            loose = unsure(operands, node.op)
            for position, name in enumerate(node.operands):
                if name not in live:
                    continue
                measure = local(index, position)
                share = vjp(measure, adjoints[node.name], operands, position, values[node.name], node.op, call)
                if loose:
                    share.error[:] = np.inf
                add(adjoints[name], share, PRECISION[operands[position].dtype].unit)
    return adjoints


def _flushed(x: Bounded) -> bool:
    """Does it hold subnormal numbers?"""
    if not x.floating:
        return False
    size = np.abs(x.value)
    return bool(((size > 0) & (size < PRECISION[x.dtype].tiny)).any())


def entries(
    local: Jacobian, operands: Sequence[Bounded], position: int, result: Bounded, op: str, call: Call
) -> tuple[Array, Array]:
    """By slope: what a correct formula may be off by (how it was measured, how far it moves with the operands, the
    formula's own roundings, what cancels inside it), and whether it is not determined."""
    x = operands[position]
    p = PRECISION[result.dtype]
    unit = max(p.unit, PRECISION[x.dtype].unit) + U64
    rows, columns, slope = local.rows, local.columns, local.size
    formula = FORMULA if local.block == 1 else FORMULA_OF_COMPLEX
    doubt = local.error + local.moved
    if local.known is not None:
        doubt += local.known.error[rows] + local.known.relative * unit * slope
        if local.known.size is not None:
            said = local.known.size[rows]
            missed = np.maximum(np.abs(said - slope) - local.error, 0.0)
            doubt += np.where(missed > slope / 2, said + slope, missed)  # what was missed may have either sign
    else:
        own = first_derivatives.formula_error(op, operands, result, call, OWN * unit)
        doubt += (own[rows] + formula * unit) * slope + np.where(slope > 0, p.tiny, 0.0)
        doubt += first_derivatives.slope_noise(op, operands, result, call, rows, slope) * unit
    if rows.size and not (local.known and (local.known.whole or local.known.linear)):
        doubt += first_derivatives.own_error(op, operands, call).ravel()[rows] * _reference_rounding(x)[columns]
    lost = np.isinf(local.error) | ~np.isfinite(doubt)
    lost |= (
        first_derivatives.at_a_break(op, operands, position, call)[columns]
        | first_derivatives.singular(op, operands, position, result)[rows]
    )
    lost |= beside_infinity(operands, position, result)[rows]
    return doubt, local.together(lost | _out_of_range(local, x, result, p.largest))


_BILINEAR = (
    *("adjoint", "complex", "complex_add", "complex_cast", "complex_inner", "complex_matmul", "complex_mean"),
    *("complex_mul", "complex_neg", "complex_sub", "complex_sum", "conj", "imaginary_part", "real_part", "to_complex"),
    *("add", "linear", "matmul", "mean", "mul", "repeat", "reshape", "slice", "stack", "sub", "sum", "swapaxes"),
    "unsqueeze",
)


def unsure(operands: Sequence[Bounded], op: str) -> bool:
    """Is a choice among the operands undetermined, or do they hold subnormal numbers? A back end may take these for
    zeros, and so for ties of zeros; sums and products have none, and what is flushed stands in the bounds."""
    lost = any(not o.floating and o.undetermined.any() for o in operands)
    return lost or far_out(op, operands) or (op not in _BILINEAR and any(map(_flushed, operands)))


def vjp(
    local: Jacobian, above: Estimate, operands: Sequence[Bounded], position: int, result: Bounded, op: str, call: Call
) -> Estimate:
    """What one use of an operand contributes: the transposed slopes times the adjoint of the result."""
    x = operands[position]
    p = PRECISION[result.dtype]
    unit = max(p.unit, PRECISION[x.dtype].unit) + U64
    rows, columns = local.rows, local.columns
    given = Estimate(above.value[rows], above.error[rows])
    doubt, lost = entries(local, operands, position, result, op, call)
    least = max(p.tiny, PRECISION[x.dtype].tiny)  # of the two, the operand may have the narrower dtype
    tiny, more = np.full(rows.shape, least), 0
    if local.known is not None:  # n products, their roundings counted already, take n - 1 sums; none vanishes
        size = np.abs(local.value * given.value)
        # of terms whose last bits are below the least normal number a sum on the way may be, too
        cancelling = (size < least / unit) & (np.bincount(columns, minlength=x.value.size)[columns] > 1)
        tiny, more = np.where((size < 2 * least) | (local.size < 2 * least) | cancelling, least, 0.0), -2
        if local.known.adjoint is not None:  # whose sums are those of the formula
            more = -rows.size - 1
    found = products(local.value, doubt, lost, given, columns, x.value.size, unit, tiny, more)
    bound = found.bound
    if local.known is not None and local.known.adjoint is not None:
        said, lost_inside = local.known.adjoint(np.where(np.isfinite(above.value), above.value, 0.0))
        measured = np.bincount(columns, local.error * np.abs(given.value), x.value.size)
        bound += lost_inside + np.maximum(np.abs(said - found.value) - measured, 0.0)
    else:
        bound += first_derivatives.adjoint_noise(op, operands, position, result, call, np.abs(above.value)) * unit
    bound = np.where(np.isnan(bound) | (found.total > p.largest / 4), np.inf, bound)
    bound += local.floor * np.sum(np.abs(above.value)) + first_derivatives.any_number(
        op, operands, position, result, call
    )
    if np.isinf(above.error).any():
        bound = np.where(local.floor > 0, np.inf, bound)
        # where no slope was seen there may be a zero (of prelu's slope, that of x = 0), which meets infinity on the way
        # back; what is only moved is not multiplied
        unseen = np.delete(above.error, rows)
        if np.isinf(unseen).any() and not np.all(local.value == 1):
            bound[:] = np.inf
    if local.open.any() or beside_infinity(operands, position, result).all():
        bound[:] = np.inf
    bound[open_elements(op, operands, position, call, [above.value])] = np.inf
    bound[first_derivatives.overflowing_gates(op, x, call, above.value)] = np.inf
    bound = np.where(~wild(x).ravel() & ~first_derivatives.at_a_break(op, operands, position, call), bound, np.inf)
    return Estimate(found.value, bound)


def _reference_rounding(x: Bounded) -> Array:
    """By element: what turns the operator's own bound into the rounding of the differences, where the reference itself
    cancels (tanhshrink near 0). In float64 it errs by U / u of the bound; sixteen such over the longest step."""
    longest = np.max([h.ravel() for h in steps_of(x)], axis=0)
    return 16 * U64 / PRECISION[x.dtype].unit / longest


def beside_infinity(operands: Sequence[Bounded], position: int, result: Bounded) -> Array:
    """Results that another operand makes depend on a number that is not finite: 0 * inf on the way back, in a branch
    that was not taken, say. All of them, where it cannot be told which."""
    lost = np.zeros(result.value.shape, bool)
    for number, other in enumerate(operands):
        if number != position and other.floating:
            open_ = wild(other)
            lost |= open_ if open_.shape in (lost.shape, ()) else open_.any()
    return lost.ravel()


def _out_of_range(local: Jacobian, x: Bounded, result: Bounded, largest: float) -> Array:
    """Formulas of derivatives multiply two of operand, result and slope (1 / x is -y * y): where such a product may
    overflow or vanish, and the slope is not a constant, anything may come."""
    far = np.sqrt(largest) / 16
    curved = bool((local.moved > 2 * local.error).any())
    wild = np.zeros(local.rows.shape, bool)
    for size in (sizes(x).ravel()[local.columns], sizes(result).ravel()[local.rows], local.size):
        wild |= (size > far) | ((size < 1 / far) & (size > 0))
    return wild if curved else np.zeros(local.rows.shape, bool)
