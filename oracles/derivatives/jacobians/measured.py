"""Local derivatives of one node, by central differences of the float64 value of its own reference.

Steps of h, h/2 and h/4 are extrapolated to zero twice (Richardson); the last correction, with what the rounding of the
differences may add, bounds what is left. An entry is *undetermined* where the two sides disagree however short the step
is (a kink, a tie, a jump), where the extrapolation does not settle, or where the result is not finite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded
from generators.ops.spec import Call, OpSpec
from oracles.derivatives.complex_pairs import exact, numbers_of, paired
from oracles.derivatives.jacobians.choices import between
from oracles.derivatives.jacobians.dense import dense
from oracles.derivatives.jacobians.finite_differences import Function
from oracles.derivatives.jacobians.jacobian import Array, Jacobian, no_slopes
from oracles.derivatives.jacobians.movement import INSIDE
from oracles.derivatives.jacobians.single import single
from oracles.derivatives.jacobians.sparsity import lost_to_others
from oracles.derivatives.rounding.formulas import Known, taken_as_whole

ROUNDED = 16.0
"""So many u of a slope at a kink are beyond what a formula of a piece loses."""
ORDINARY = 2.0
"""Slopes by an operand that a function is linear in are measured no farther from zero."""


def function_of(spec: OpSpec, operands: Sequence[Bounded], call: Call) -> Function:
    """The node as a function of the values of its operands; complex ones as pairs (`complex_pairs.py`)."""
    fixed = [exact(o, o.value) for o in operands]

    def f(values: Sequence[Array]) -> Array:
        given = [
            Bounded(numbers_of(v) if x.complex else v, x.error, x.dtype) if x.floating else x
            for x, v in zip(fixed, values, strict=True)
        ]
        with np.errstate(all="ignore"):
            result = paired(spec.reference(given, call))
            return np.where(result.undetermined, np.nan, result.value).astype(np.float64).ravel()

    return f


def jacobian(
    f: Function,
    operands: Sequence[Bounded],
    position: int,
    result: Bounded,
    shift: Array | float = 0.0,
    known: Known | None = None,
) -> Jacobian:
    """The derivative of f by the operand at `position`. shift: how far operand 0 is moved beside what it is off by;
    known: what the formula loses, which then counts in place of what moving the operands by their roundings shows."""
    if known is not None and known.linear:  # the same slopes everywhere: nothing great need stand beside them
        x = operands[position]
        near = np.clip(np.where(np.isfinite(x.value), x.value, 0.0), -ORDINARY, ORDINARY)
        operands = [*operands[:position], Bounded(near, np.zeros(near.shape), x.dtype), *operands[position + 1 :]]
    if known is not None and known.added:  # beside it differences of the rest may show nothing
        nothing = np.zeros(operands[0].value.shape)
        operands = [Bounded(nothing, nothing, operands[0].dtype), *operands[1:]]
    if known is not None and known.reach is not None:
        reached = replace(operands[position], error=np.maximum(operands[position].error, known.reach))
        operands = [*operands[:position], reached, *operands[position + 1 :]]
    values = [o.value for o in operands]
    base = f(values)
    if not operands[position].value.size:
        empty, none = np.zeros(0), np.zeros(0, int)
        return Jacobian(none, none, empty, empty, empty, empty, np.zeros(base.size, bool), no_slopes)
    with np.errstate(all="ignore"):
        inside = INSIDE if known is None else 0.0
        others = lost_to_others(operands, position, result)
        found = single(f, operands, position, result, base, shift, inside, others)
        if found is None:
            found = dense(f, operands, position, base, shift, inside, others)
        lost = result.undetermined.ravel() | ~np.isfinite(result.value.ravel())
        found = replace(found, error=np.where(lost[found.rows], np.inf, found.error), known=known)
        if known is None or not (known.whole or known.pieces):
            return found
        value, error, moved = found.value, found.error, found.moved
        if known.whole:
            value, error, moved = taken_as_whole(value, error, moved)
        unknown = np.isinf(error) & ~lost[found.rows]
        low, high = between(f, operands, position, found.rows, found.columns, base, unknown, known.whole)
        told, half = np.isfinite(low), (high - low) / 2
        # the formula's roundings count by the middle, and the greatest slope has those of the rest, too
        half *= 1.0 if known.whole else 1 + ROUNDED * PRECISION[result.dtype].unit
        value = np.where(told, (low + high) / 2, value)
        error, moved = np.where(told, half, error), np.where(told, 0.0, moved)
        return replace(found, value=value, error=error, moved=moved)
