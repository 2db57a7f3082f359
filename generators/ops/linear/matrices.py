"""Small matrices that are fit to be decomposed, and how far a backward stable algorithm may move what it computes.

Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed. A backward stable algorithm gives the exact result for a
matrix whose column j is off by at most r_j in the 2-norm; what that does to the result follows from the inverse.

Libraries raise on matrices that are singular or not finite, so that operators state a `form`, which is part of what
they compute: elements beyond LIMIT (and NaN) are replaced by 0, then

    tamed    nothing else: the matrix may be singular
    shifted  (4 n + 1) times the identity is added: every column is dominated by its diagonal
    turned   the same on the other diagonal: rows have to change places
    gram     A A^T + n I: symmetric and positive definite
    vast     the shifted one times a power of two (`SCALES`), so that squares of its elements overflow
    minute   divided by it, so that they underflow"""

from __future__ import annotations

from math import sqrt

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, add, rounded
from generators.bounds.products import bilinear
from generators.graph import FLOATS, TensorType
from generators.ops.slots import draw_dim, draw_dtype
from generators.ops.spec import Attrs, Draw, Slot, TypeRuleError, Types

Array = np.ndarray

SIDE = 4
"""No matrix has more rows or columns."""

LIMIT = 4.0
DOMINATED = ("shifted", "turned")
FORMS = (*DOMINATED, "gram", "tamed")
SCALED = ("vast", "minute")
"""Forms of decompositions alone: the products of a system, or of a determinant, overflow on the way."""
REGULAR = (*DOMINATED, *SCALED)
"""Forms of full rank."""

SCALES = {"float16": 9, "bfloat16": 89, "float32": 89, "float64": 716}
"""Exponents of two: 0.7 of what the dtype has, or of float16 what leaves A + A^T, of which 42 is the greatest element,
and its norm finite."""

# ---- operands -----------------------------------------------------------------------------------------


def matrix(square: bool = True) -> Slot:
    """A stack of matrices, which may be empty; otherwise with as many rows as columns or more."""

    def accepts(type_: TensorType, earlier: Types) -> bool:
        if type_.dtype not in FLOATS or not 2 <= type_.rank <= 4:
            return False
        rows, columns = type_.shape[-2:]
        return 1 <= columns <= rows <= SIDE and (rows == columns or not square)

    def fresh(d: Draw, earlier: Types) -> TensorType:
        columns = d.choice((2, 3, 1, SIDE))
        rows = columns if square else d.integer(columns, SIDE)
        batch = [draw_dim(d, 5) for _ in range(d.choice((0, 1, 0, 2)))]
        return TensorType(draw_dtype(d, FLOATS), (*batch, rows, columns))

    return Slot(accepts, fresh)


def sides() -> Slot:
    """The right-hand sides of systems with the matrices of operand 0."""

    def accepts(type_: TensorType, earlier: Types) -> bool:
        a = earlier[0]
        return type_.dtype == a.dtype and type_.rank == a.rank and type_.shape[:-1] == a.shape[:-1]

    def fresh(d: Draw, earlier: Types) -> TensorType:
        a = earlier[0]
        return TensorType(a.dtype, (*a.shape[:-1], draw_dim(d, 5, zero=False)))

    return Slot(accepts, fresh)


def checked(operands: Types, square: bool = True) -> TensorType:
    """Operand 0, if it is a stack of such matrices; raises TypeRuleError."""
    if not matrix(square).accepts(operands[0], ()):
        raise TypeRuleError(f"{operands[0]} holds no {'square ' if square else ''}matrices of side {SIDE} at most")
    return operands[0]


def form_of(attrs: Attrs, forms: tuple[str, ...] = (*FORMS, *SCALED)) -> str:
    form = attrs["form"]
    if form not in forms:
        raise TypeRuleError(f"no matrices of form {form!r}")
    return str(form)


# ---- forms --------------------------------------------------------------------------------------------


def tamed(x: Bounded) -> Bounded:
    """Elements of magnitude LIMIT at most; where it cannot be told, x or 0."""
    inside = np.abs(x.value) <= LIMIT
    value = np.where(inside, x.value, 0.0)
    with np.errstate(invalid="ignore"):
        sure = np.abs(np.abs(x.value) - LIMIT) > x.error
        sure |= (x.error == 0) | np.isnan(x.value)
    error = np.where(sure & ~x.undetermined, np.where(inside, x.error, 0.0), LIMIT + np.abs(value))
    return Bounded(value, error, x.dtype)


def constant(value: Array, x: Bounded) -> Bounded:
    """An array of numbers that the dtype of x represents."""
    return Bounded(value, np.zeros(value.shape), x.dtype)


def formed(x: Bounded, form: str) -> Bounded:
    """Matrices of that form."""
    if form in SCALED:
        x, scale = formed(x, "shifted"), scale_of(form, x.dtype)
        return rounded(x.value * scale, x.error * scale, x.dtype, ulps=0)
    x = tamed(x)
    rows, columns = x.value.shape[-2:]
    if form == "tamed":
        return x
    if form == "gram":
        return add(bilinear(np.matmul, x, turned(x), columns), constant(rows * np.eye(rows), x))
    diagonal = (4 * columns + 1) * np.eye(rows, columns)
    return add(x, constant(diagonal[:, ::-1] if form == "turned" else diagonal, x))


def scale_of(form: object, dtype: str) -> float:
    """What a form, if there is one, multiplies the shifted matrix by."""
    return 2.0 ** (SCALES[dtype] * {"vast": 1, "minute": -1}.get(str(form), 0))


def turned(x: Bounded) -> Bounded:
    return x.map(lambda array: np.swapaxes(array, -1, -2))


# ---- backward errors ----------------------------------------------------------------------------------


def stability(rows: int, columns: int) -> float:
    """How many unit roundoffs, of a column's 2-norm, backward stable algorithms may be off in that column.

    Gaussian elimination with partial pivoting and both substitutions, theorem 9.4: gamma_{3n} |L| |U| with |L| <= 1 and
    row k of U at most 2^(k-1) times the greatest element of its column, hence sqrt(sum (2^i - 1)^2) of that.
    Householder's QR, theorem 19.4: n reflections of gamma_{c m} each, c = 6 (lemma 19.2)."""
    growth = sqrt(sum((2.0**i - 1) ** 2 for i in range(1, rows + 1)))
    return 3 * rows * growth + 6 * rows * columns


def norms(x: Array, axis: int | tuple[int, int]) -> Array:
    """2-norms, of scaled elements: squares of small ones vanish."""
    greatest = np.max(np.abs(x), axis=axis, keepdims=True, initial=0.0)
    scale = np.where((greatest > 0) & np.isfinite(greatest), greatest, 1.0)
    return np.sqrt(np.sum(np.square(x / scale), axis=axis)) * np.squeeze(scale, axis)


def moved_columns(a: Bounded, symmetric: bool = False) -> Array:
    """r_j, the errors of the operand itself among them. symmetric: Cholesky's decomposition may be taken, theorem 10.4:
    gamma_{3n+1} |L| |L|^T, of which element i, j is at most sqrt(a_ii a_jj). Underflow: 4^n operations, each off by
    the smallest normal number."""
    p = PRECISION[a.dtype]
    rows, columns = a.value.shape[-2:]
    errors = norms(a.error, -2)
    size = norms(a.value, -2) + errors
    unit = (p.unit + U64) * (1 + 2.0**-10)
    result = errors + stability(rows, columns) * unit * size + 4.0**rows * p.tiny
    if symmetric:
        diagonal = np.diagonal(a.value + a.error, 0, -2, -1)
        result += (3 * rows + 1) * unit * np.sqrt(diagonal * np.sum(diagonal, axis=-1, keepdims=True))
    return result


def whole(mask: Array) -> Array:
    """Of which matrices the mask holds everywhere."""
    return np.asarray(np.all(mask, axis=(-2, -1)))


def invertible(a: Array) -> Array:
    """Which matrices are finite and regular enough for float64 to invert them."""
    ok = whole(np.isfinite(a))
    values = np.linalg.svd(np.where(ok[..., None, None], a, 0.0), compute_uv=False)
    return ok & (values[..., -1] > 1e-10 * values[..., 0])


def or_identity(a: Array, ok: Array) -> Array:
    """The matrices, an identity in place of those that are not ok."""
    return np.where(ok[..., None, None], a, np.eye(*a.shape[-2:]))


def factor_moved(x: Array) -> Array:
    """How far the Cholesky factor of I + X may be from I in the Frobenius norm, if that of X is x: theorem 10.8 (Sun),
    x / (sqrt 2 (1 - x)); infinite from x = 1/2 on."""
    return np.where(x < 0.5, x / (sqrt(2) * (1 - np.minimum(x, 0.5))), np.inf)
