"""Jacobians of nodes that take or return complex numbers: blocks of parts by parts.

A part of the operand is moved at a time, so that functions of single numbers move each part of a result with one
element only, as real ones do. All slopes of a number by a number stand together then (`Jacobian.block`): what a formula
loses is known by the modulus, not by the part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import COMPONENT
from oracles.derivatives.jacobians.finite_differences import Function
from oracles.derivatives.jacobians.jacobian import Jacobian
from oracles.derivatives.jacobians.measured import jacobian

Array = np.ndarray


def jacobian_of_parts(f: Function, operands: Sequence[Bounded], position: int, result: Bounded) -> Jacobian:
    """The derivative of f by the operand at `position`, where this or the result is complex (as pairs)."""
    x = operands[position]
    wide, high = 1 + x.complex, 1 + result.complex
    found = [_of_part(f, operands, position, part, result) for part in range(wide)]
    rows = np.concatenate([one.rows for one in found])
    columns = np.concatenate([one.columns * wide + part for part, one in enumerate(found)])
    across = max(x.value.size // wide, 1)
    keys, inverse = np.unique(rows // high * across + columns // wide, return_inverse=True)
    block = wide * high
    places = inverse * block + rows % high * wide + columns % wide

    def filled(parts: Sequence[Array]) -> Array:
        """By place in all blocks."""
        return np.bincount(places, np.concatenate(parts), keys.size * block) if keys.size else np.zeros(0)

    def at(values: Sequence[Array], steps: Array) -> Array:
        moved = [_without(values, position, part, x, result) for part in range(wide)]
        return filled([one.at(v, _part(steps, x, part, result)) for part, (one, v) in enumerate(zip(found, moved))])  # noqa: B905

    inside = np.arange(block)
    return Jacobian(
        rows=(keys[:, None] // across * high + inside // wide).ravel(),
        columns=(keys[:, None] % across * wide + inside % wide).ravel(),
        value=filled([one.value for one in found]),
        error=filled([one.error for one in found]),
        moved=filled([one.moved for one in found]),
        floor=np.stack([one.floor for one in found], axis=-1).ravel(),
        open=np.any([one.open for one in found], axis=0),
        at=at,
        block=block,
    )


def _part(array: Array, x: Bounded, part: int, result: Bounded) -> Array:
    """One part of an array of the operand's shape; with an axis for the parts of the result, as which it broadcasts."""
    array = array[..., part] if x.complex else array
    return array[..., None] if result.complex else array


def _without(values: Sequence[Array], position: int, part: int, x: Bounded, result: Bounded) -> list[Array]:
    """All values, with one part in the operand's place and the other one at the end."""
    moved, whole = list(values), values[position]
    moved[position] = _part(whole, x, part, result)
    return [*moved, _part(whole, x, 1 - part, result)] if x.complex else moved


def _of_part(f: Function, operands: Sequence[Bounded], position: int, part: int, result: Bounded) -> Jacobian:
    """The slopes by one part; the other one is an operand like the others."""
    x = operands[position]

    def g(values: Sequence[Array]) -> Array:
        whole = values[position].reshape(x.value.shape[: x.value.ndim - x.complex])
        if x.complex:
            pair = [whole, values[-1].reshape(whole.shape)]
            whole = np.stack(pair[::-1] if part else pair, axis=-1)
        given = list(values[: len(operands)])
        given[position] = whole
        return f(given)

    dtype = COMPONENT.get(x.dtype, x.dtype)
    values = _without([o.value for o in operands], position, part, x, result)
    errors = _without([o.error for o in operands], position, part, x, result)
    dtypes = [*(dtype if i == position else o.dtype for i, o in enumerate(operands)), dtype]
    parts = [Bounded(v, e, d) for v, e, d in zip(values, errors, dtypes)]  # noqa: B905
    return jacobian(g, parts, position, result)
