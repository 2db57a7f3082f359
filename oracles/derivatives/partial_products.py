"""Products of many factors, whose derivatives are products of the others and of what is passed on. Formulas multiply
them in orders of their own: PyTorch divides the product by the factor, or takes products from both ends, JAX
differentiates a tree. Where a part of them may overflow or vanish, the order decides what comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded
from generators.ops import OPS
from generators.ops.spec import Call
from oracles.derivatives.complex_pairs import exact
from oracles.derivatives.jacobians.measured import function_of
from oracles.derivatives.jacobians.sparsity import FAR, fed, reach_of

Array = np.ndarray

_OPERATORS = ("prod", "cumprod", "segment_prod", "segment_prod_dropping", "sorted_segment_prod")


def leave_the_range(op: str, operands: Sequence[Bounded], call: Call, passed: Sequence[Array | float]) -> Array:
    """By result (of other operators none): may a product of some of its factors and of what is passed on (adjoints,
    tangents; magnitudes, by result) leave the range of the dtype? All such products lie between that of the factors
    below 1 and that of the factors above 1. A factor of zero makes all products zero that it is in; the others are
    those without it."""
    p = PRECISION[call.result.dtype]
    if op not in _OPERATORS and call.attrs.get("reduction") != "prod":
        return np.zeros(1, bool)

    def product(part: Callable[[Array, float], Array]) -> Array:
        with np.errstate(all="ignore"):
            given = [exact(o, part(np.abs(_without_zeros(o.value)), 1.0)) if o.floating else o for o in operands]
            found = OPS[op].reference(given, call)
            edge = found.error if part is np.maximum else -found.error
            total = (found.value + edge).ravel()
            for factor in passed:
                total = total * part(np.abs(_without_zeros(np.asarray(factor))), 1.0)
        return total

    return np.logical_not((product(np.maximum) <= p.largest) & (product(np.minimum) >= p.tiny))


def _without_zeros(factors: Array) -> Array:
    return np.where(factors == 0, 1.0, factors)


def open_elements(
    op: str, operands: Sequence[Bounded], position: int, call: Call, passed: Sequence[Array | float]
) -> Array:
    """The elements of an operand that are factors of such results."""
    unordered = leave_the_range(op, operands, call, passed)
    if not unordered.any():
        return np.zeros(operands[position].value.size, bool)
    f = function_of(OPS[op], operands, call)
    base = np.where(unordered, np.nan, f([o.value for o in operands]))
    found, _ = fed(f, operands, position, ~unordered, reach_of(f, operands, position, FAR, base))
    return np.asarray(found.any(axis=1))


def ends(tangent: Array) -> tuple[float, float]:
    """The greatest and the least magnitude that is not zero."""
    moving = np.abs(tangent[tangent != 0])
    return float(np.max(moving, initial=1.0)), float(np.min(moving, initial=1.0))
