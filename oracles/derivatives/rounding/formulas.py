"""What a known formula of a derivative may be off by, its operands taken as exact.

Four kinds of operators are known. Those that move, negate or choose elements have slopes of 1, -1 or 0, which no
formula rounds (`linear.py`). Those that are linear in an operand have a slope that is a product of other operands and
constants (`linear.py`). Of elementwise functions (`elementwise.py`, `activations.py`), and of softmax, reductions,
losses and normalisations, whose formulas work on whole adjoints (`adjoints.py`), the formulas that frameworks write
down are evaluated with running error bounds, and the greatest counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded
from generators.graph import TensorType
from generators.ops import OPS
from generators.ops.elementwise.scalars import number
from generators.ops.spec import Call
from oracles.derivatives.complex_pairs import exact
from oracles.derivatives.rounding.activations import ACTIVATIONS
from oracles.derivatives.rounding.adjoints import ADJOINTS
from oracles.derivatives.rounding.elementwise import SLOPES, Formula
from oracles.derivatives.rounding.linear import ADDED_TO, LINEAR, roundings, words
from oracles.derivatives.rounding.running import Number, exactly

Array = np.ndarray

FORMULAS: dict[str, Formula] = {**SLOPES, **ACTIVATIONS}


PIECES = frozenset(
    words(
        """elu hard_sigmoid hard_sigmoid_linear hard_swish hinge_loss l1_loss leaky_relu mean_abs prelu
    prelu_broadcast relu_squared scaled_elu selu"""
    )
)
"""Made of pieces that meet. Those whose slopes are 1, -1 or 0 need not be named."""


def _reach(op: str, x: Bounded, call: Call) -> Array | None:
    """How far from an end of its piece an element still is taken for it: x + 3 is rounded (2.98 + 3 is 6 in bfloat16)
    before it is compared with 6, x / 6 and x / 6 + 1/2 before they are with 1."""
    if op in ("hard_sigmoid", "hard_swish"):
        slope, ends = 1 / 6, (-3.0, 3.0)
    elif op == "hard_sigmoid_linear":
        slope, beta = call.number("alpha"), call.number("beta")
        ends = (-beta / slope, (1 - beta) / slope)
    else:
        return None
    rounded = (2 * np.abs(x.value) + 1 / slope) * PRECISION[x.dtype].unit
    near = np.any([np.abs(x.value - end) <= rounded for end in ends], axis=0)
    return np.where(near, rounded, 0.0)


@dataclass(frozen=True)
class Known:
    """What is known of an operator's slopes.

    error:    of the slopes, by result, absolute
    relative: to the slope, in units of roundoff, the product with the adjoint included
    whole:    is each slope 1, -1 or 0?
    pieces:   is the operator made of such, at whose ends a slope may be anything between those of both sides?
    linear:   are the slopes the same wherever the operand is?
    added:    is operand 0 another one, which is only added?
    size:     what the formulas say in float64, without sign, where differences may see less (softsign at 1e14)
    reach:    by element of the operand, how far it may be off where pieces meet
    adjoint:  from the result's adjoint, flat, what the formulas make of it for the operand, and what that may be off
              by, in place of error and relative"""

    error: Array
    relative: float
    whole: bool = False
    pieces: bool = False
    linear: bool = False
    added: bool = False
    size: Array | None = None
    reach: Array | None = None
    adjoint: Callable[[Array], tuple[Array, Array]] | None = None


def known(op: str, operands: Sequence[Bounded], position: int, result: Bounded, call: Call) -> Known | None:
    """None where no formula is known: `first_derivatives.py` says what is then allowed for."""
    x = operands[position]
    if x.complex or result.complex:
        return None
    nothing = np.zeros(result.value.size)
    narrowed = float(PRECISION[x.dtype].unit > PRECISION[result.dtype].unit)  # rounded once more on its way back
    count, added = _factors(x, result, call), op in ADDED_TO and position > 0
    if (relative := roundings(op, position, call, count)) is not None:
        reach = _reach(op, x, call)
        return Known(nothing, relative + narrowed, relative == 0, op in PIECES, op in LINEAR, added, reach=reach)
    op, operands, position, call = _of_tensors(op, operands, position, call)
    if op in ADJOINTS:
        return _by_adjoints(op, operands, position, result, call)
    if op not in FORMULAS:
        return None
    with np.errstate(all="ignore"):
        given, y = _exact_operands(op, operands, call)
        slopes = FORMULAS[op](given, y, position, call)
        if slopes is None:
            return None
        shape = result.value.shape
        errors = [np.broadcast_to(slope.value.error, shape).ravel() for slope in slopes]
        sizes = [np.broadcast_to(np.abs(slope.value.value), shape).ravel() for slope in slopes]
        size = np.median(sizes, axis=0)
        # where a step of one of them overflows, it says something else
        error = np.max([off + np.abs(said - size) for off, said in zip(errors, sizes, strict=True)], axis=0)
    return Known(error, 1.0, pieces=op in PIECES, added=added, size=size, reach=_reach(op, x, call))


def _exact_operands(op: str, operands: Sequence[Bounded], call: Call) -> tuple[list[Number], Number]:
    """Without what they are off by, and the operator's result of them."""
    given = [exact(o, o.value) for o in operands]
    return [Number(o) for o in given], Number(OPS[op].reference(given, call))


def _factors(x: Bounded, result: Bounded, call: Call) -> int:
    """So many elements at most are multiplied with each other, if they are."""
    if "axes" in call.attrs:
        return x.value.size // max(result.value.size, 1)
    axis = call.attrs.get("axis", 0)
    return x.value.shape[axis] if isinstance(axis, int) and -x.value.ndim <= axis < x.value.ndim else x.value.size


def _of_tensors(
    op: str, operands: Sequence[Bounded], position: int, call: Call
) -> tuple[str, Sequence[Bounded], int, Call]:
    """An operator with a number of the program, as that of tensors."""
    if "scalar" not in call.attrs:
        return op, operands, position, call
    place = 0 if op.startswith("scalar_") else len(operands)
    base = op.removeprefix("scalar_").removesuffix("_scalar")
    if base not in FORMULAS:
        return op, operands, position, call
    inserted = number(call.attrs["scalar"], operands[0])
    types = (*call.operands[:place], TensorType(operands[0].dtype, ()), *call.operands[place:])
    given = [*operands[:place], inserted, *operands[place:]]
    return base, given, position + (place <= position), replace(call, operands=types)


def _by_adjoints(op: str, operands: Sequence[Bounded], position: int, result: Bounded, call: Call) -> Known | None:
    with np.errstate(all="ignore"):
        given, y = _exact_operands(op, operands, call)
    formula = ADJOINTS[op](given, y, position, call)
    if formula is None:
        return None
    shape, size = result.value.shape, operands[position].value.size

    def adjoint(g: Array) -> tuple[Array, Array]:
        with np.errstate(all="ignore"):
            found = [way.value for way in formula(exactly(g.reshape(shape), result.dtype))]
            assert all(way.value.size == size for way in found)
            value = np.median([way.value.ravel() for way in found], axis=0)
            return value, np.max([way.error.ravel() for way in found], axis=0)

    return Known(np.zeros(result.value.size), 0.0, pieces=op in PIECES, adjoint=adjoint)


NEAR = 2.0**-8
"""So near a whole number a slope that is one shows."""


def taken_as_whole(value: Array, error: Array, moved: Array) -> tuple[Array, Array, Array]:
    """Slopes that are 1, -1 or 0 and look it, exact: value, error and how far they move."""
    near = np.rint(value)
    sure = (np.abs(near) <= 1) & (np.abs(value - near) + error + moved < NEAR)
    return np.where(sure, near, value), np.where(sure, 0.0, error), np.where(sure, 0.0, moved)
