"""Does a target push tangents forward? Derivatives of all floating outputs along drawn tangents of the leaves, judged
against forward accumulation over slopes that are measured on our own references (`jacobians`), with a running error
bound.

docs/gradients.md derives value and bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from generators.bounds.bounded import PRECISION, SMALLEST, U64, Bounded
from generators.graph import Graph
from generators.graphs import Case
from generators.inputs import Arrays
from generators.ops import OPS, call_of
from generators.ops.spec import Call
from generators.union import numbered
from oracles.decompositions.derivatives import decompose
from oracles.derivatives.accumulation import Estimate, add, products, zeros
from oracles.derivatives.complex_pairs import bounded, wild
from oracles.derivatives.gradient import (
    differentiable_leaves,
    entries,
    evaluated,
    names_of,
    numbers,
    reached,
    seeded,
    unsure,
)
from oracles.derivatives.jacobians.finite_differences import Function, along, steps_of
from oracles.derivatives.jacobians.jacobian import Jacobian
from oracles.derivatives.jacobians.measured import function_of
from oracles.derivatives.node_jacobians import NodeJacobians, node_jacobians
from oracles.derivatives.partial_products import ends, leave_the_range
from oracles.derivatives.rounding import first_derivatives
from oracles.judge.compare import Expected

NAME = "jvp"
Array = np.ndarray


def tangent_name(leaf: str) -> str:
    """The name under which a program gets the tangent of a leaf."""
    return f"tangent_{leaf}"


def tangents(graph: Graph) -> dict[str, Array]:
    """What each differentiable leaf moves by, by its name: +-k/64 with k from 32 to 96."""
    leaves = differentiable_leaves(graph)
    counted = zip(numbered(leaf.name for leaf in leaves), leaves, strict=True)
    return {leaf.name: numbers(number, leaf.type) for number, leaf in counted}


def program_inputs(case: Case) -> Arrays:
    """What a program is given: the leaves' arrays and their tangents."""
    return {**case.arrays, **{tangent_name(name): array for name, array in tangents(case.graph).items()}}


def moved(graph: Graph) -> tuple[int, ...]:
    """Numbers of the floating outputs that depend on a leaf with a tangent through floating values."""
    found = reached(graph, names_of(differentiable_leaves(graph)))
    return tuple(i for i, name in enumerate(graph.outputs) if name in found)


def expect(case: Case) -> Expected:
    """The tangents of all outputs that move; nothing where there are none, which no target is asked for."""
    graph = case.graph
    places = moved(graph)
    wanted = [graph.outputs[i] for i in places]
    if not wanted:
        return Expected((), (), ())
    steps = decompose(case)
    exact = evaluated(steps)
    found = accumulate(steps.graph, exact, tangents(graph), node_jacobians(steps.graph, exact))
    types = tuple(graph.types[name] for name in wanted)
    values = []
    for i, type_ in zip(places, types, strict=True):
        tangent, p = found[steps.graph.outputs[i]], PRECISION[type_.dtype]
        with np.errstate(all="ignore"):
            loose = ~np.isfinite(tangent.value) | ~(np.abs(tangent.value) + tangent.error <= p.largest / 4)
            error = np.where(loose, np.inf, np.maximum(tangent.error, SMALLEST))
        values.append(bounded(np.where(loose, 0.0, tangent.value), error, type_))
    return Expected(tuple(f"t_{name}" for name in wanted), types, tuple(values))


def accumulate(
    graph: Graph, values: Mapping[str, Bounded], seeds: Mapping[str, Array], local: NodeJacobians
) -> dict[str, Estimate]:
    """Estimates of all values that move, from the leaves to the outputs."""
    found = {name: Estimate(seeded(seed), np.zeros(seeded(seed).size)) for name, seed in seeds.items()}
    moving = reached(graph, frozenset(seeds))
    with np.errstate(all="ignore"):
        for index, node in enumerate(graph.nodes):
            if node.name not in moving:
                continue
            operands, result, call = [values[name] for name in node.operands], values[node.name], call_of(graph, index)
            total = zeros(result.value.size)
            if node.type.size:
                f = function_of(OPS[node.op], operands, call)
                for position, name in enumerate(node.operands):
                    if name in found:
                        share = _share(local(index, position), found[name], operands, position, result, node.op, call)
                        share.error[_contradicted(f, operands, position, found[name], share)] = np.inf
                        add(total, share, PRECISION[node.type.dtype].unit)
                total.error[_lost(operands, result, node.op)] = np.inf
            found[node.name] = total
    return found


def _lost(operands: Sequence[Bounded], result: Bounded, op: str) -> Array:
    """Results whose tangent is not determined: where a choice is open, a number is not finite, or one that is not
    meets zero on its way, which may be anywhere."""
    lost = result.undetermined | wild(result)
    return lost.ravel() | (unsure(operands, op) or any(o.floating and wild(o).any() for o in operands))


def _contradicted(f: Function, operands: Sequence[Bounded], position: int, tangent: Estimate, share: Estimate) -> Array:
    """Where moving the whole operand along its tangent tells another slope than its elements do one by one, or shows
    a kink: of three equal numbers that are sorted, none moves the one in the middle alone."""
    x = operands[position]
    size = np.abs(tangent.value)
    lengths = [h.ravel()[size > 0] / size[size > 0] for h in steps_of(x)]
    if not size.any():
        return np.zeros(share.error.shape, bool)
    step = float(np.min(np.concatenate(lengths)))
    values = [o.value for o in operands]
    seen = along(f, values, position, step * tangent.value.reshape(x.value.shape), f(values))
    gap = np.abs(seen.value / step - share.value)
    return ~(gap <= 1e-6 * np.abs(share.value) + share.error + 4 * seen.error / step) | np.isinf(seen.error)


def _share(
    local: Jacobian, tangent: Estimate, operands: Sequence[Bounded], position: int, result: Bounded, op: str, call: Call
) -> Estimate:
    """What one operand contributes: the slopes times its tangent."""
    p = PRECISION[result.dtype]
    unit = max(p.unit, PRECISION[operands[position].dtype].unit) + U64
    given = Estimate(tangent.value[local.columns], tangent.error[local.columns])
    doubt, lost = entries(local, operands, position, result, op, call)
    found = products(local.value, doubt, lost, given, local.rows, result.value.size, unit, p.tiny)
    bound = found.bound
    bound += first_derivatives.tangent_noise(op, operands, position, result, call, np.abs(tangent.value)) * unit
    bound += first_derivatives.any_number(op, operands, position, result, call)
    bound = np.where(np.isnan(bound) | (found.total > p.largest / 4), np.inf, bound)
    breaks = first_derivatives.at_a_break(op, operands, position, call)
    if breaks.size == bound.size:  # elementwise, as all operators that have such ends
        bound = np.where(breaks, np.inf, bound)
    bound += np.sum(np.where(local.floor > 0, local.floor * (np.abs(tangent.value) + tangent.error), 0.0))
    open_ = local.open | leave_the_range(op, operands, call, ends(tangent.value))
    return Estimate(found.value, np.where(open_, np.inf, bound))
