"""Does a target differentiate twice? The gradient of the drawn functional, differentiated along drawn tangents of all
leaves (a product of the Hessian with a vector), judged against slopes and how they change along the tangents, both
measured on our own references and accumulated backwards with a running error bound.

docs/gradients.md derives value and bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded
from generators.graph import Graph
from generators.graphs import Case
from generators.inputs import Arrays
from generators.ops import OPS, call_of
from generators.ops.spec import Call
from oracles.decompositions.derivatives import SECOND_ORDER_RULES, decompose
from oracles.derivatives import gradient, jvp
from oracles.derivatives.accumulation import Estimate, add, products, zeros
from oracles.derivatives.gradient import FORMULA, OWN
from oracles.derivatives.jacobians.finite_differences import STEP, Function, extrapolated, swallowed
from oracles.derivatives.jacobians.measured import function_of, jacobian
from oracles.derivatives.jacobians.movement import ALLOWANCE, SHIFTS, off
from oracles.derivatives.node_jacobians import node_jacobians
from oracles.derivatives.partial_products import ends, open_elements
from oracles.derivatives.rounding import first_derivatives, second_derivatives
from oracles.derivatives.rounding.matrix_first_derivatives import OPERATORS as MATRICES
from oracles.derivatives.rounding.matrix_first_derivatives import shift
from oracles.judge import reference
from oracles.judge.compare import Expected

NAME = "hessian"
NODES = 4
"""So many nodes of a drawn graph are kept: bounds of second derivatives grow faster than those of first ones."""
COLUMNS = 160
"""Operands with more elements, of which several move one result, are left undetermined: each costs many evaluations."""
LONGER = (1.0, 8.0)
"""Steps for matrices, too, of which what the reference itself may be off by is a bound far above what it is."""
SHORTEST = 2.0**-500
"""Of steps: what is divided by two of them overflows."""
Array = np.ndarray


def prepare(case: Case) -> Case:
    """The first nodes of a drawn graph, and as outputs what they leave unused."""
    graph = case.graph
    if len(graph.nodes) <= NODES:
        return case
    nodes = graph.nodes[:NODES]
    used = {name for node in nodes for name in node.operands}
    outputs = tuple(node.name for node in nodes if node.name in graph.outputs or node.name not in used)
    kept = Graph(graph.leaves, nodes, outputs).pruned()
    return Case(kept, {leaf.name: case.arrays[leaf.name] for leaf in kept.leaves})


def program_inputs(case: Case) -> Arrays:
    """What a program is given: the leaves' arrays, the weights of the outputs, the tangents of the leaves."""
    return {**jvp.program_inputs(case), **gradient.program_inputs(case)}


@dataclass(frozen=True)
class JacobianDerivative:
    """How slopes of a node by one operand change along tangents of all operands: d/de J[rows, columns] = value.

    error: of the differences; infinite where undetermined
    moved: how far it moves when operands and tangents move by what they may be off
    floor: by element of the operand, what may be there without having been seen"""

    rows: Array
    columns: Array
    value: Array
    error: Array
    moved: Array
    floor: Array


def expect(case: Case) -> Expected:
    """The derivatives of all gradients; nothing where there are none, which no target is asked for."""
    graph = case.graph
    leaves = gradient.differentiable_leaves(graph)
    if not leaves:
        return Expected((), (), ())
    steps = decompose(case, SECOND_ORDER_RULES)
    exact = reference.evaluate(steps.graph, steps.arrays)
    found = accumulate(steps.graph, exact, gradient.weights(steps.graph), jvp.tangents(graph))
    values = tuple(gradient.final(found.get(leaf.name), leaf) for leaf in leaves)
    return Expected(tuple(f"h_{leaf.name}" for leaf in leaves), tuple(leaf.type for leaf in leaves), values)


def accumulate(
    graph: Graph, values: Mapping[str, Bounded], weights: Mapping[str, Array], seeds: Mapping[str, Array]
) -> dict[str, Estimate]:
    """c_x = sum J' c_y + (d/de J)' g_y over all uses y of x: derivatives along the tangents of all adjoints."""
    local = node_jacobians(graph, values)
    node_tangents = jvp.accumulate(graph, values, seeds, local)
    adjoints = gradient.accumulate(graph, values, weights, local, frozenset(seeds))
    found = {name: zeros(adjoint.value.size) for name, adjoint in adjoints.items()}
    with np.errstate(all="ignore"):
        for index in reversed(range(len(graph.nodes))):
            node = graph.nodes[index]
            if node.name not in adjoints or node.type.size == 0:
                continue
            operands, result, call = [values[name] for name in node.operands], values[node.name], call_of(graph, index)
            f = function_of(OPS[node.op], operands, call)
            tangents = [node_tangents.get(name) for name in node.operands]
            for position, name in enumerate(node.operands):
                if name not in adjoints or not graph.types[name].size:
                    continue
                unit = PRECISION[operands[position].dtype].unit
                use, slope = (operands, position, result, node.op, call), local(index, position)
                add(found[name], gradient.vjp(slope, found[node.name], *use), unit)
                if node.op in second_derivatives.LINEAR or not any(t is not None for t in tangents):
                    pass
                elif node.op in second_derivatives.FACTORS:
                    if position in second_derivatives.FACTORS[node.op]:
                        add(found[name], _through_factors(tangents, adjoints[node.name], *use), unit)
                elif graph.types[name].size > COLUMNS and np.bincount(slope.rows).max(initial=0) > 1:
                    found[name].error[:] = np.inf
                else:
                    add(found[name], _through_jacobian_derivative(f, tangents, adjoints[node.name], *use), unit)
                if gradient.unsure(operands, node.op):
                    found[name].error[:] = np.inf
    return found


def _through_factors(
    tangents: Sequence[Estimate | None],
    above: Estimate,
    operands: Sequence[Bounded],
    position: int,
    result: Bounded,
    op: str,
    call: Call,
) -> Estimate:
    """Of a product: the slope by one factor, at the tangent of the other in place of it."""
    moved = list(operands)
    for k in second_derivatives.FACTORS[op]:
        tangent = tangents[k] or zeros(operands[k].value.size)
        if k != position:
            value, error = (a.reshape(operands[k].value.shape) for a in (tangent.value, tangent.error))
            moved[k] = Bounded(value, error, operands[k].dtype)
    with np.errstate(all="ignore"):
        product = OPS[op].reference(moved, call)
    local = jacobian(function_of(OPS[op], moved, call), moved, position, product)
    return gradient.vjp(local, above, moved, position, product, op, call)


def _through_jacobian_derivative(
    f: Function,
    tangents: Sequence[Estimate | None],
    above: Estimate,
    operands: Sequence[Bounded],
    position: int,
    result: Bounded,
    op: str,
    call: Call,
) -> Estimate:
    """What one use of an operand contributes by the change of its slopes: the transposed of it times the adjoint."""
    x, p = operands[position], PRECISION[result.dtype]
    lost = np.full(x.value.size, np.inf)
    along, loose, unknown = [], [], np.zeros(result.value.shape, bool)
    for operand, t in zip(operands, tangents, strict=True):
        tangent = t or zeros(operand.value.size)
        known = np.isfinite(tangent.error)
        value, error = np.where(known, tangent.value, 0.0), np.where(known, tangent.error, 0.0)
        along.append(value.reshape(operand.value.shape))
        loose.append((error + 2 * PRECISION[operand.dtype].unit * np.abs(value)).reshape(operand.value.shape))
        if op in second_derivatives.ELEMENTWISE:
            unknown |= ~known.reshape(operand.value.shape)
        elif not known.all():
            return Estimate(np.zeros(x.value.size), lost)

    def own_error(points: Sequence[Array]) -> Array:
        moved = [replace(o, value=v) for o, v in zip(operands, points, strict=True)]
        return first_derivatives.own_error(op, moved, call)

    further, reach = shift(op, operands, call), LONGER if op in MATRICES else (1.0,)
    cap = 1.0 if op in second_derivatives.PERIODIC else np.inf
    local = jacobian_derivative(f, operands, position, result, along, loose, own_error, further, reach, cap)
    if local is None:
        return Estimate(np.zeros(x.value.size), lost)
    unit = max(p.unit, PRECISION[x.dtype].unit) + U64
    rows, columns, slope = local.rows, local.columns, np.abs(local.value)
    own = first_derivatives.formula_error(op, operands, result, call, OWN * unit)
    doubt = local.error + local.moved + (own[rows] + FORMULA * unit) * slope + np.where(slope > 0, p.tiny, 0.0)
    doubt = np.where(_out_of_range(local, x, result, p.largest), np.inf, doubt)
    # each term is a sum over the tangents of as many elements, at most
    most = max(t.size for t in along)
    given = Estimate(above.value[rows], above.error[rows])
    found = products(local.value, doubt, np.isinf(doubt), given, columns, x.value.size, unit, p.tiny, most)
    bound = found.bound
    adjoint = np.abs(above.value).reshape(result.value.shape)
    sizes = [np.abs(t) for t in along]
    bound += second_derivatives.noise(op, operands, position, result, call, adjoint, sizes) * unit
    bound = np.where(np.isnan(bound) | (found.total > p.largest / 4), np.inf, bound)
    bound += local.floor * np.sum(np.abs(above.value) + above.error)
    if unknown.any():
        bound = np.where(second_derivatives.reduced(unknown, x.value.shape).ravel() > 0, np.inf, bound)
    passed = [above.value, *(end for t in along for end in ends(t))]
    bound[np.isnan(bound) | open_elements(op, operands, position, call, passed)] = np.inf
    return Estimate(found.value, bound)


def jacobian_derivative(
    f: Function,
    operands: Sequence[Bounded],
    position: int,
    result: Bounded,
    along: Sequence[Array],
    loose: Sequence[Array],
    own: Callable[[Sequence[Array]], Array],
    further: Array | float = 0.0,
    reach: Sequence[float] = (1.0,),
    cap: float = np.inf,
) -> JacobianDerivative | None:
    """Differences, along the tangents, of slopes that are differences themselves; both steps are halved together, so
    that what is left is even in them and is extrapolated. None where it cannot be told what depends on what.

    along: tangents, shaped like the operands; loose: what these may be off by; own: points -> the bound of the operator
    alone; further: how far operand 0 is moved beside what it is off by; reach: of the steps, times the usual one; cap:
    what greater elements count as, for the steps"""
    values, count = [o.value for o in operands], operands[position].value.size
    steps = [step for times in reach for step in _steps(operands, position, along, times, cap)]
    if not steps and any(np.any(off) for off in loose):  # tangents that are zero, but for their roundings
        return None
    if not steps:
        empty, none = np.zeros(0), np.zeros(0, int)
        return JacobianDerivative(none, none, empty, empty, empty, np.zeros(count))
    # moved off the point: what is zero here, and hides that a slope depends on it, is not zero there
    beside = [v + steps[0].along * t for v, t in zip(values, along, strict=True)]
    base, there = f(values), f(beside)
    if (np.isfinite(base) & ~np.isfinite(there)).any():
        return None
    nearby = [Bounded(v, o.error, o.dtype) for v, o in zip(beside, operands, strict=True)]
    local = jacobian(f, nearby, position, Bounded(there.reshape(result.value.shape), result.error, result.dtype))
    if (local.open & np.isfinite(base)).any():
        return None
    rows, columns = local.rows, local.columns
    near = np.abs(values[position].astype(np.float64)).ravel()[columns]

    def ends(step: _Step, points: Sequence[Array], tangents: Sequence[Array], part: float) -> list[list[Array]]:
        return [[v + sign * part * step.along * t for v, t in zip(points, tangents, strict=True)] for sign in (1, -1)]

    def sides(step: _Step, points: Sequence[Array], tangents: Sequence[Array], part: float) -> tuple[Array, Array]:
        ahead, behind = ends(step, points, tangents, part)
        return local.at(ahead, part * step.own), local.at(behind, part * step.own)

    def rounding(step: _Step) -> Array:
        """What the greatest of the results, and an operand whose sum with a step is rounded, may be off by, in units
        of U; as many times more as the reference itself cancels, here or as far away as it is asked."""

        def aside(points: Sequence[Array], own_step: Array) -> list[Array]:
            return [v + own_step if i == position else v for i, v in enumerate(points)]

        ahead, behind = ends(step, values, along, 1.0)
        far = [values, *(aside(points, sign * step.own) for points in (ahead, behind) for sign in (1, -1))]
        lost = np.max([np.nan_to_num(own(points), posinf=0.0) for points in far], axis=0)
        size = np.max([np.abs(base), np.abs(f(ahead)), np.abs(f(behind))], axis=0)
        size = np.maximum(size, lost.ravel() / PRECISION[result.dtype].unit)[rows]
        steep = np.abs(local.at(values, step.own))
        return np.where(np.isfinite(size), size, 0.0) + steep * (near + step.own.ravel()[columns])

    value, error, chosen = np.zeros(rows.size), np.full(rows.size, np.inf), np.zeros(rows.size, int)
    for number, step in enumerate(steps):
        halves, gaps = [], []
        for part in (1.0, 0.5, 0.25):
            up, down = sides(step, values, along, part)
            halves.append((up - down) / (2 * part))
            gaps.append(np.abs(up - 2 * local.at(values, part * step.own) + down) / part)
        # sixteen times the rounding of a result: four slopes of the shortest step, in units of the longest ones
        found = extrapolated(halves, gaps, 16 * rounding(step) / step.own.ravel()[columns])
        lost = [swallowed(v, step.along * np.abs(t)) for v, t in zip(values, along, strict=True)]
        if any(one.any() for one in lost):  # what depends on these looks as if it did not move
            beyond = [np.where(one, np.nan, v) for one, v in zip(lost, values, strict=True)]
            blind = np.isnan(local.at(beyond, step.own)) & np.isfinite(found.value)
            found = replace(found, error=np.where(blind, np.inf, found.error))
        better = found.error / step.along < error
        value, error = (
            np.where(better, new / step.along, old) for new, old in ((found.value, value), (found.error, error))
        )
        chosen = np.where(better, number, chosen)
    value = np.where(np.abs(value) <= error, 0.0, value)

    def plain(points: Sequence[Array], tangents: Sequence[Array]) -> Array:
        found = np.zeros(rows.size)
        for number in np.unique(chosen):
            up, down = sides(steps[number], points, tangents, 0.5)
            found = np.where(chosen == number, (up - down) / steps[number].along, found)
        return found

    moved = _moved(plain, operands, along, loose, further)
    return JacobianDerivative(rows, columns, value, error, moved, local.floor / min(step.along for step in steps))


def _moved(
    plain: Callable[[Sequence[Array], Sequence[Array]], Array],
    operands: Sequence[Bounded],
    along: Sequence[Array],
    loose: Sequence[Array],
    further: Array | float,
) -> Array:
    """How far these change when each operand and its tangent in turn are shifted by what they may be off, with
    random signs; infinite where they are not numbers."""
    values = [o.value for o in operands]
    start = plain(values, along)
    total, rng = np.zeros(start.shape), np.random.default_rng(start.size)
    for k, operand in enumerate(operands):
        if not operand.floating:
            continue
        worst = np.zeros(start.shape)
        for _ in range(SHIFTS):
            points, tangents = list(values), list(along)
            most = off(operand) + (further if k == 0 else 0.0)
            points[k] = values[k] + most * rng.choice([-1.0, 1.0], operand.value.shape)
            tangents[k] = along[k] + loose[k] * rng.choice([-1.0, 1.0], operand.value.shape)
            change = np.abs(plain(points, tangents) - start)
            worst = np.maximum(worst, np.where(np.isnan(change), np.inf, change))
        total += ALLOWANCE * worst
    return total


@dataclass(frozen=True)
class _Step:
    """own: of each element of the operand itself; along: on the tangents, in units of these."""

    own: Array
    along: float


def _steps(operands: Sequence[Bounded], position: int, along: Sequence[Array], times: float, cap: float) -> list[_Step]:
    """How far to go: no element further than so many STEP, if it is not greater than 1, then than that of its own
    size, or of `cap`."""
    x = operands[position].value
    found = []
    for least in (1.0, 0.0):
        lengths = []
        for operand, t in zip(operands, along, strict=True):
            size, tangent = np.abs(operand.value.astype(np.float64)), np.abs(t)
            chosen = (tangent > 0) & np.isfinite(size) & (np.maximum(size, least) > 0)
            lengths.append(np.minimum(np.maximum(size, least), cap)[chosen] / tangent[chosen])
        length = float(np.min(np.concatenate(lengths), initial=np.inf))
        if not 0 < length < np.inf:
            continue
        size = np.where(np.isfinite(x), np.abs(x), 0.0)
        size = np.minimum(np.maximum(size, least), cap)
        own = times * STEP * np.where(size > 0, size, min(float(np.max(size, initial=0.0)), 1.0) or 1.0)
        own = np.maximum(np.exp2(np.ceil(np.log2(own))), SHORTEST)
        step = _Step(own, float(np.exp2(np.floor(np.log2(times * STEP * length)))))
        if step.along > SHORTEST and not any(one.along == step.along and np.array_equal(one.own, own) for one in found):
            found.append(step)
    return found


def _out_of_range(local: JacobianDerivative, x: Bounded, result: Bounded, largest: float) -> Array:
    """Formulas of second derivatives multiply three of operand, result and slope: where such a product may overflow or
    vanish, anything may come."""
    far = np.cbrt(largest) / 16
    wild = np.zeros(local.rows.shape, bool)
    for size in (np.abs(x.value.ravel()[local.columns]), np.abs(result.value.ravel()[local.rows]), np.abs(local.value)):
        wild |= (size > far) | ((size < 1 / far) & (size > 0))
    return wild & (local.value != 0)
