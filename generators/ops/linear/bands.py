"""Systems and products with matrices of few diagonals, least squares and square roots of matrices.

Diagonals come as rows: that above the main one, whose last element does not count, the main one, and that below it,
whose first element does not count. Systems get dominant ones: elements beyond 4 are replaced by 0, and 9 is added to
the main diagonal, which is part of what they compute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, add, gamma, multiply, rounded
from generators.bounds.products import bilinear
from generators.bounds.sums import summed
from generators.graph import TensorType
from generators.ops.composed import stacked
from generators.ops.linear.matrices import (
    DOMINATED,
    SIDE,
    checked,
    constant,
    formed,
    matrix,
    norms,
    sides,
    tamed,
    turned,
)
from generators.ops.linear.solve import solved
from generators.ops.slots import draw_dim, draw_dtype, flag, one_of
from generators.ops.spec import Attrs, Call, Draw, OpSpec, ResultRule, Slot, TypeRuleError, Types, unsupported

Array = np.ndarray

_WHY = unsupported("it has no such operator")
_FLOATS = ("float32", "float64")
SHIFT = 9.0

# ---- three diagonals ----------------------------------------------------------------------------------


def _rows(counts: Sequence[int], most: int) -> Slot:
    """(…, one of so many diagonals, side)."""

    def accepts(type_: TensorType, earlier: Types) -> bool:
        if type_.dtype not in _FLOATS or not 2 <= type_.rank <= 3:
            return False
        return type_.shape[-2] in counts and type_.shape[-2] - 1 <= type_.shape[-1] + 1 and 0 < type_.shape[-1] <= most

    def fresh(d: Draw, earlier: Types) -> TensorType:
        batch = [draw_dim(d, 5, zero=False)] if d.boolean() else []
        side = d.choice((3, 2, most))
        return TensorType(draw_dtype(d, _FLOATS), (*batch, d.choice([c for c in counts if c <= side + 1]), side))

    return Slot(accepts, fresh)


def _accepts_sides(type_: TensorType, earlier: Types) -> bool:
    a = earlier[0]
    fits = type_.dtype == a.dtype and type_.rank == a.rank and type_.shape[:-2] == a.shape[:-2]
    return fits and type_.shape[-2] == a.shape[-1] and 0 < type_.shape[-1] <= 9


def _fresh_sides(d: Draw, earlier: Types) -> TensorType:
    a = earlier[0]
    return TensorType(a.dtype, (*a.shape[:-2], a.shape[-1], draw_dim(d, 5, zero=False)))


_SIDES = Slot(_accepts_sides, _fresh_sides)
_THREE, _LONG, _BANDS = _rows((3,), SIDE), _rows((3,), 9), _rows((2, 1, 3), SIDE)


def _sided(slot: Slot) -> ResultRule:
    def rule(operands: Types, attrs: Attrs) -> TensorType:
        if not slot.accepts(operands[0], ()) or not _accepts_sides(operands[1], operands[:1]):
            raise TypeRuleError(f"{operands[1]} is no right-hand side for {operands[0]}")
        return operands[1]

    return rule


def _product(args: Sequence[Bounded], call: Call) -> Bounded:
    """Three products a row, added in any order; one that overflows need not where it is fused with the sum (FMA), so
    that NaN may be an infinity."""
    a, b = args
    above, main, below = (a.map(lambda x, i=i: x[..., i, :, None]) for i in range(3))
    last = np.arange(b.value.shape[-2])[:, None]

    def shifted(step: int, inside: Array) -> Bounded:
        return b.map(lambda x: np.where(inside, np.roll(x, step, -2), 0.0))

    upper, lower = last < b.value.shape[-2] - 1, last > 0
    factors = [
        (above.map(lambda x: np.where(upper, x, 0.0)), shifted(-1, upper)),
        (main, b),
        (below.map(lambda x: np.where(lower, x, 0.0)), shifted(1, lower)),
    ]
    terms = stacked(*(multiply(x, y) for x, y in factors), axis=0)
    result = summed(terms, lambda x: np.sum(x, axis=0), 3)
    finite = np.stack([np.isfinite(x.value) & np.isfinite(y.value) for x, y in factors])
    loose = np.isnan(result.value) & ~np.isnan(terms.value).any(axis=0) & (np.isinf(terms.value) & finite).any(axis=0)
    return replace(result, error=np.where(loose, np.inf, result.error))


def _dominant(a: Bounded, main: int) -> Bounded:
    """Tamed, the main diagonal shifted."""
    shift = np.zeros(a.value.shape)
    shift[..., main, :] = SHIFT
    return add(tamed(a), constant(shift, a))


def _matrix_of(a: Bounded, offsets: Sequence[int]) -> Bounded:
    """With row i of a as diagonal offsets[i]: above the main one the last elements do not count, below it the first."""
    n = a.value.shape[-1]

    def laid(x: Array) -> Array:
        result = np.zeros((*x.shape[:-2], n, n))
        for i, k in enumerate(offsets):
            if abs(k) < n:
                rows = np.arange(max(0, -k), n - max(0, k))
                result[..., rows, rows + k] = x[..., i, rows]
        return result

    return a.map(laid)


def _tridiagonal(args: Sequence[Bounded], call: Call) -> Bounded:
    return solved(_matrix_of(_dominant(args[0], 1), (1, 0, -1)), args[1], False)


def _banded(args: Sequence[Bounded], call: Call) -> Bounded:
    """The main diagonal is the first row of a lower band, and the last one of an upper band, whose columns count from
    the other end."""
    count, lower = call.operands[0].shape[-2], bool(call.attrs["lower"])
    main = 0 if lower else count - 1
    a = _matrix_of(_dominant(args[0], main), [main - i for i in range(count)])
    if call.attrs["adjoint"]:
        a = turned(a)
    return solved(a, args[1], False)


# ---- least squares ------------------------------------------------------------------------------------


def _squares_type(operands: Types, attrs: Attrs) -> TensorType:
    a = checked(operands, square=False)
    if not sides().accepts(operands[1], operands) or attrs["form"] not in DOMINATED:
        raise TypeRuleError(f"no least squares of {operands[1]} with {a}")
    *batch, _, columns = a.shape
    return TensorType(a.dtype, (*batch, columns, operands[1].shape[-1]))


def _squares(args: Sequence[Bounded], call: Call) -> Bounded:
    """(A^T A + l I)^-1 A^T B by the normal equations and Cholesky's decomposition, step by step; an orthogonal
    decomposition loses less."""
    a = formed(args[0], str(call.attrs["form"]))
    rows, columns = a.value.shape[-2:]
    ridge = call.number("delta") * np.eye(columns)
    gram = add(bilinear(np.matmul, turned(a), a, rows), constant(ridge, a))
    return solved(gram, bilinear(np.matmul, turned(a), args[1], rows), True)


# ---- square roots -------------------------------------------------------------------------------------


def _root(args: Sequence[Bounded], call: Call) -> Bounded:
    """Of A, symmetric and positive definite, by Schur's decomposition (Björck and Hammarling 1983): X is the root of
    A + E with |E| <= 12 n^2 u |A| for the decomposition (as for eigenvalues, Higham, section 24) and gamma_(n+2) |X|^2
    for the recurrence, in the Frobenius norm. E moves a symmetric root by at most |E| / (2 sqrt(l)), l the least
    eigenvalue (X D + D X = E; Higham, Functions of Matrices, section 6.1), of the second order |E|^2 / (8 l^1.5) n."""
    a = formed(args[0], "gram")
    p = PRECISION[a.dtype]
    n = a.value.shape[-1]
    with np.errstate(all="ignore"):
        values, vectors = np.linalg.eigh(np.where(np.isfinite(a.value), a.value, np.eye(n)))
        x = np.matmul(vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :], np.swapaxes(vectors, -1, -2))
        unit = p.unit + U64
        size, least = norms(a.value, (-2, -1)), values[..., 0]
        e = norms(a.error, (-2, -1)) + 12 * n * (n + 2) * unit * size
        e = e + gamma(n + 2, unit) * norms(x, (-2, -1)) ** 2 + 64 * p.tiny
        low = least - e
        off = e / (2 * np.sqrt(low)) + n * e**2 / (8 * low**1.5)
        bad = ~(low > 0) | ~np.isfinite(a.value).all((-2, -1)) | ~np.isfinite(a.error).all((-2, -1))
        bound = np.broadcast_to(np.where(bad | np.isnan(off), np.inf, off)[..., None, None], x.shape)
    return rounded(x, bound, a.dtype)


OPERATORS: tuple[OpSpec, ...] = (
    OpSpec(
        "tridiagonal_matmul", "linalg", (_LONG, _SIDES), _sided(_LONG), _product, torch=_WHY,
        tensorflow='tf.linalg.tridiagonal_matmul({0}, {1}, diagonals_format="compact")', jax=_WHY, relax=_WHY,
        onnx=_WHY,
    ),
    OpSpec(
        "tridiagonal_solve", "linalg", (_THREE, _SIDES), _sided(_THREE), _tridiagonal,
        attrs={"pivots": flag()}, torch=_WHY,
        tensorflow='tf.linalg.tridiagonal_solve(dominant({0}, 1), {1}, diagonals_format="compact", '
        "partial_pivoting={pivots})",
        jax="tridiagonal_solve(dominant({0}, 1), {1})", relax=_WHY, onnx=_WHY,
    ),
    OpSpec(
        "banded_triangular_solve", "linalg", (_BANDS, _SIDES), _sided(_BANDS), _banded,
        attrs={"lower": flag(), "adjoint": flag()}, torch=_WHY,
        tensorflow=lambda call: "tf.linalg.banded_triangular_solve(dominant({0}, %s), {1}, lower={lower}, "
        "adjoint={adjoint})".replace("%s", str(0 if call.attrs["lower"] else call.operands[0].shape[-2] - 1)),
        jax=_WHY, relax=_WHY, onnx=_WHY,
    ),
    OpSpec(
        "least_squares_regularized", "linalg", (matrix(square=False), sides()), _squares_type, _squares,
        attrs={"form": one_of(*DOMINATED), "delta": one_of(0.0, 0.5, 4.0), "fast": flag()}, torch=_WHY,
        tensorflow=lambda call: "tf.linalg.lstsq(formed({0}, {form}), {1}, l2_regularizer={delta}, fast={fast})"
        if call.attrs["fast"] or not call.attrs["delta"]
        else unsupported("its orthogonal decomposition takes no regularisation"),
        jax=_WHY, relax=_WHY, onnx=_WHY,
    ),
    OpSpec(
        "matrix_square_root", "linalg", (matrix(),), lambda operands, attrs: checked(operands), _root, torch=_WHY,
        tensorflow='tf.linalg.sqrtm(formed({0}, "gram"))', jax=_WHY, relax=_WHY, onnx=_WHY,
    ),
)  # fmt: skip
