"""What derivatives of linear systems and decompositions lose, by operator, in units of the unit roundoff.

Formulas: Giles, *Collected matrix derivative results for forward and reverse mode algorithmic differentiation* (2008).
Their factors are computed by backward stable algorithms, which give those of a matrix that is off by what
`generators/ops/linear/matrices.py` derives (Higham, ch. 9, 10, 14, 19): `shift`, by which slopes are moved.
What is left are the substitutions and products of the formulas themselves, `backwards` and `forwards`: all terms
without their signs, a substitution with T off by |T^-1| |T| |T^-1| (theorem 8.5), and products of orthogonal factors
by their norms."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from generators.bounds.bounded import Bounded
from generators.ops.linear.decompositions import iterated
from generators.ops.linear.matrices import (
    SCALED,
    SIDE,
    form_of,
    formed,
    invertible,
    moved_columns,
    or_identity,
    scale_of,
)
from generators.ops.linear.solve import triangle
from generators.ops.spec import Call

Array = np.ndarray

_SYSTEMS = ("solve", "inverse", "triangular_solve", "cholesky", "det", "slogdet")
_SPECTRA = ("singular_values", "eigenvalues", "qr_factor", "pseudo_inverse")
OPERATORS = (*_SYSTEMS, *_SPECTRA)


FAR = 256.0
"""Steps follow the greatest element (`finite_differences.py`): of larger ones they lead to where nothing moves."""


def far_out(op: str, operands: Sequence[Bounded]) -> bool:
    """Are there elements, cut off themselves, beside which the slopes of the others are not measured?"""
    return op in OPERATORS and bool(np.any(np.abs(operands[0].value) > FAR))


def matrix_of(op: str, x: Bounded, call: Call) -> Bounded:
    """What is decomposed."""
    if op == "triangular_solve":
        return triangle(x, call)
    if op in ("det", "slogdet"):
        return x
    return formed(x, "gram" if op == "cholesky" else form_of(call.attrs))


def shift(op: str, operands: Sequence[Bounded], call: Call) -> Array | float:
    """How far each element of operand 0 may be moved, beside its own error, in place of a backward stable algorithm's
    errors."""
    if op not in OPERATORS:
        return 0.0
    a = matrix_of(op, operands[0], call)
    rows, columns = a.value.shape[-2:]
    with np.errstate(all="ignore"):
        if op in _SPECTRA:
            off = iterated(a)[..., None, None] / np.sqrt(rows * columns)
        else:
            off = moved_columns(a)[..., None, :] / np.sqrt(rows)
    off = off / scale_of(call.attrs.get("form"), a.dtype)
    return np.where(np.isfinite(off), off, 0.0) * np.ones(a.value.shape)


def transposed(a: Array) -> Array:
    return np.swapaxes(a, -1, -2)


def inverses(a: Array) -> tuple[Array, Array, Array]:
    """|A|, |A^-1|, and that with what a substitution may be off by, |A^-1| + |A^-1| |A| |A^-1|; infinite where the
    matrix is too near a singular one for float64."""
    ok = invertible(a)
    size, inverse = np.abs(or_identity(a, ok)), np.abs(np.linalg.inv(or_identity(a, ok)))
    worn = np.where(ok[..., None, None], inverse + inverse @ size @ inverse, np.inf)
    return size, inverse, worn


def norm(a: Array) -> Array:
    return np.sqrt(np.sum(a * a, axis=(-2, -1), keepdims=True))


def _conditions(op: str, a: Array, call: Call) -> Array:
    """How much the factors of a formula multiply what they are given, over all of a matrix."""
    if call.attrs["form"] in SCALED:
        return np.full((), np.inf)  # products with inverses overflow on the way
    values = np.linalg.svd(a, compute_uv=False)
    condition = (values[..., 0] / values[..., -1])[..., None, None]
    if op == "qr_factor":
        return condition * (1 + condition)
    return (1 + condition) / values[..., -1][..., None, None] ** 2 if op == "pseudo_inverse" else np.ones(())


def from_gram(op: str, call: Call) -> bool:
    """Is the matrix A = X X^T + n I?"""
    return op == "cholesky" or call.attrs.get("form") == "gram"


def oriented(op: str, call: Call, by_matrix: Array) -> Array:
    """By x of what is by the matrix, or the other way round."""
    return transposed(by_matrix) if op == "triangular_solve" and call.attrs["transposed"] else by_matrix


def _by_operand(op: str, call: Call, found: Array, x: Bounded) -> Array:
    """By x, of what is by the matrix."""
    if from_gram(op, call):
        return (found + transposed(found)) @ np.abs(x.value)
    return oriented(op, call, found) * scale_of(call.attrs.get("form"), x.dtype)


def backwards(op: str, operands: Sequence[Bounded], position: int, result: Bounded, call: Call, g: Array) -> Array:
    """What an operand's adjoint may be off by; g: magnitudes of the result's, shaped like it."""
    x = operands[0].value
    a = matrix_of(op, operands[0], call).value
    if op in ("singular_values", "eigenvalues"):
        found = 4 * SIDE * np.sqrt(np.sum(g * g, axis=-1))[..., None, None] * np.ones(x.shape)
    elif op in _SPECTRA:
        found = 4 * SIDE * norm(g) * _conditions(op, a, call) * np.ones(x.shape)
    elif op == "cholesky":
        factor = np.linalg.cholesky(a)
        _, inverse, worn = inverses(factor)
        inner = transposed(np.abs(factor)) @ (transposed(g) if call.attrs["upper"] else g)
        found = transposed(worn) @ inner @ inverse + transposed(inverse) @ inner @ worn
    else:
        _, inverse, worn = inverses(a)
        if op in ("det", "slogdet"):
            found = g[..., None, None] * transposed(worn) * _pivoted(op, result, call)
        elif op == "inverse":
            found = transposed(worn) @ g @ transposed(inverse)
        elif position == 1:
            return transposed(worn) @ g
        else:
            b = np.abs(operands[1].value)
            found = transposed(worn) @ g @ transposed(inverse @ b) + transposed(inverse) @ g @ transposed(worn @ b)
    return _by_operand(op, call, found, operands[0])


def forwards(op: str, operands: Sequence[Bounded], position: int, result: Bounded, call: Call, t: Array) -> Array:
    """What a result's tangent may be off by; t: magnitudes of the operand's, shaped like it."""
    x = operands[0].value
    a = matrix_of(op, operands[0], call).value
    if position == 0:
        t = t @ transposed(np.abs(x)) + np.abs(x) @ transposed(t) if from_gram(op, call) else oriented(op, call, t)
        t = t * scale_of(call.attrs.get("form"), operands[0].dtype)
    shape: Callable[[Array], Array] = lambda v: v * np.ones(result.value.shape)  # noqa: E731
    if op in ("singular_values", "eigenvalues"):
        return shape(4 * SIDE * norm(t)[..., 0])
    if op in _SPECTRA:
        return shape(4 * SIDE * norm(t) * _conditions(op, a, call))
    if op == "cholesky":
        factor = np.linalg.cholesky(a)
        _, inverse, worn = inverses(factor)
        found = np.abs(factor) @ (worn @ t @ transposed(inverse) + inverse @ t @ transposed(worn))
        return transposed(found) if call.attrs["upper"] else found
    _, inverse, worn = inverses(a)
    if op in ("det", "slogdet"):
        return np.sum(transposed(worn) * t, axis=(-2, -1)) * _pivoted(op, result, call)[..., 0, 0]
    if op == "inverse":
        return worn @ t @ inverse
    if position == 1:
        return worn @ t
    b = np.abs(operands[1].value)
    return worn @ t @ inverse @ b + inverse @ t @ worn @ b


def _pivoted(op: str, result: Bounded, call: Call) -> Array:
    """What A^-T is multiplied with: the determinant, or nothing; the sign does not move."""
    if op == "det":
        return np.abs(result.value)[..., None, None]
    return np.full((*result.value.shape, 1, 1), float(call.attrs["pick"] == "logarithm"))
