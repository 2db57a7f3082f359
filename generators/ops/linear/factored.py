"""Systems that are solved by way of factors which the program has computed, and matrices that are put together again
from their factors: what decompositions return beside values and triangles is not unique, their product is."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, add, divide, rounded
from generators.graph import TensorType
from generators.ops.composed import compute
from generators.ops.linear.decompositions import iterated, singular_values
from generators.ops.linear.matrices import (
    DOMINATED,
    REGULAR,
    SIDE,
    checked,
    constant,
    form_of,
    formed,
    matrix,
    moved_columns,
    norms,
    sides,
    tamed,
    turned,
)
from generators.ops.linear.solve import solve_type, solved, unless_singular
from generators.ops.slots import flag, one_of
from generators.ops.spec import Attrs, Call, OpSpec, Reference, Spelling, TypeRuleError, Types, unsupported

Array = np.ndarray

_NONE = unsupported("it has no such decomposition")

# ---- systems ------------------------------------------------------------------------------------------


def _regular(
    rule: Callable[[Types, Attrs], TensorType], forms: tuple[str, ...] = DOMINATED
) -> Callable[[Types, Attrs], TensorType]:
    def checked_form(operands: Types, attrs: Attrs) -> TensorType:
        if attrs["form"] not in forms:
            raise TypeRuleError(f"not of matrices of form {attrs['form']!r}")
        return rule(operands, attrs)

    return checked_form


def _lu_solve(args: Sequence[Bounded], call: Call) -> Bounded:
    """Transposed, D has rows that are bounded by those of A as columns: all of them by their norm."""
    a = formed(args[0], form_of(call.attrs))
    if not call.attrs["transposed"]:
        return solved(a, args[1], symmetric=False)
    moved = moved_columns(a)
    return solved(turned(a), args[1], False, np.broadcast_to(norms(moved, -1)[..., None], moved.shape))


lu_solve = OpSpec(
    "lu_solve", "linalg", (matrix(), sides()), _regular(solve_type), _lu_solve,
    attrs={"form": one_of(*DOMINATED), "transposed": flag()},
    torch="torch.linalg.lu_solve(*torch.linalg.lu_factor(formed({0}, {form})), {1}, adjoint={transposed})",
    tensorflow=lambda call: unsupported("its lu_solve takes no transposed systems") if call.attrs["transposed"]
    else "tf.linalg.lu_solve(*tf.linalg.lu(formed({0}, {form})), {1})",
    jax="jax.scipy.linalg.lu_solve(jax.scipy.linalg.lu_factor(formed({0}, {form})), {1}, trans=int({transposed}))",
    relax=_NONE, onnx=_NONE,
)  # fmt: skip


def _cholesky_solve(args: Sequence[Bounded], call: Call) -> Bounded:
    return solved(formed(args[0], "gram"), args[1], symmetric=True)


def _plain_type(operands: Types, attrs: Attrs) -> TensorType:
    return solve_type(operands, {**attrs, "form": "gram"})


_FACTOR = 'torch.linalg.cholesky(formed({0}, "gram"), upper={upper}), upper={upper})'
_JAX_FACTOR = '(jnp.linalg.cholesky(formed({0}, "gram"), upper={upper}), not {upper})'
_TF_FACTOR = 'tf.linalg.cholesky(formed({0}, "gram"))'

cholesky_solve = OpSpec(
    "cholesky_solve", "linalg", (matrix(), sides()), _plain_type, _cholesky_solve, attrs={"upper": flag()},
    torch=f"torch.cholesky_solve({{1}}, {_FACTOR}", tensorflow=f"tf.linalg.cholesky_solve({_TF_FACTOR}, {{1}})",
    jax=f"jax.scipy.linalg.cho_solve({_JAX_FACTOR}, {{1}})", relax=_NONE, onnx=_NONE,
)  # fmt: skip


def _cholesky_inverse(args: Sequence[Bounded], call: Call) -> Bounded:
    a = formed(args[0], "gram")
    return solved(a, constant(np.broadcast_to(np.eye(a.value.shape[-1]), a.value.shape), a), symmetric=True)


def _matrices(operands: Types, attrs: Attrs) -> TensorType:
    return checked(operands)


cholesky_inverse = OpSpec(
    "cholesky_inverse", "linalg", (matrix(),), _matrices, _cholesky_inverse, attrs={"upper": flag()},
    torch=f"torch.cholesky_inverse({_FACTOR}",
    tensorflow=f"tf.linalg.cholesky_solve({_TF_FACTOR}, tf.linalg.eye({{shape0}}[-1], "
    "batch_shape={shape0}[:-2], dtype={dtype0}))",
    jax=f"jax.scipy.linalg.cho_solve({_JAX_FACTOR}, jnp.broadcast_to(jnp.eye({{shape0}}[-1], dtype={{dtype0}}), "
    "{shape0}))",
    relax=_NONE, onnx=_NONE,
)  # fmt: skip


def _ldl_solve(args: Sequence[Bounded], call: Call) -> Bounded:
    """Of A + A^T, the diagonal of which dominates: the pivots of Bunch and Kaufman stay in place, so that L D L^T are
    the factors of Gaussian elimination."""
    a = formed(args[0], "shifted")
    return solved(add(a, turned(a)), args[1], symmetric=False)


ldl_solve = OpSpec(
    "ldl_solve", "linalg", (matrix(), sides()), _plain_type, _ldl_solve,
    torch='torch.linalg.ldl_solve(*torch.linalg.ldl_factor(twofold({0})), {1})',
    tensorflow=_NONE, jax=_NONE, relax=_NONE, onnx=_NONE,
)  # fmt: skip

# ---- put together again -------------------------------------------------------------------------------


def _rebuilt(bound: Callable[[Bounded], Array], symmetric: bool = False) -> Reference:
    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        a = formed(args[0], form_of(call.attrs))
        a = add(a, turned(a)) if symmetric else a
        return rounded(a.value, np.broadcast_to(bound(a), a.value.shape), a.dtype)

    return reference


def _by_columns(a: Bounded) -> Array:
    """LU: gamma_n |L| |U| for the factors and as much for the product. QR: A + D, |D| <= r (theorem 19.4); Q R by
    reflections, or by a Q that is off by sqrt(n) gamma_{6mn} (19.13), and by a product, gamma_n |Q| |R|."""
    return 4 * moved_columns(a)[..., None, :]


def _by_norms(a: Bounded) -> Array:
    """Singular values and eigenvalues: A + D, |D| <= c u |A|; both orthogonal factors off by as much, and a product."""
    return 4 * iterated(a)[..., None, None]


def _any_type(operands: Types, attrs: Attrs) -> TensorType:
    form_of(attrs)
    return checked(operands, square=False)


def _square_type(operands: Types, attrs: Attrs) -> TensorType:
    form_of(attrs)
    return checked(operands)


def _product(name: str, reference: Reference, square: bool, tensorflow: Spelling, jax: Spelling) -> OpSpec:
    forms = (*REGULAR, "tamed") + (("gram",) if square else ())
    return OpSpec(
        f"{name}_product", "linalg", (matrix(square),), _square_type if square else _any_type, reference,
        attrs={"form": one_of(*forms)},
        torch=f"{name}_product(formed({{0}}, {{form}}))", tensorflow=tensorflow, jax=jax, relax=_NONE, onnx=_NONE,
    )  # fmt: skip


def _composed(name: str) -> str:
    return f"{name}_product(formed({{0}}, {{form}}))"


# ---- other functions of matrices ----------------------------------------------------------------------


def _exponential(args: Sequence[Bounded], call: Call) -> Bounded:
    """Scaling and squaring, 2^s >= |A|, of a polynomial or a quotient of degree 18 at most (Higham, Functions of
    Matrices, section 10.3): each of 8 products of sides n has gamma_n, each squaring doubles what was lost before, so
    that 2^s (8 n + 18) roundings of exp |A| remain, in the 1-norm, and as many for the denominator. Errors E move it by
    exp(|A| + E) - exp |A| at most, term by term of the series."""
    a = tamed(args[0])
    p, n = PRECISION[a.dtype], a.value.shape[-1]

    def series(m: Array) -> Array:
        scaled, total, term = m / 64, np.broadcast_to(np.eye(n), m.shape), np.broadcast_to(np.eye(n), m.shape)
        for k in range(1, 20):
            term = term @ scaled / k
            total = total + term
        for _ in range(6):
            total = total @ total
        return total

    with np.errstate(all="ignore"):
        value, size = series(a.value), series(np.abs(a.value))
        norm = np.max(np.sum(np.abs(a.value), axis=-2), axis=-1)[..., None, None]
        steps = 4 * (1 + norm) * (8 * n + 18) * (p.unit + 64 * U64) * np.max(np.sum(size, -2), -1)[..., None, None]
        bound = np.where(np.any(a.error > 0, (-2, -1), keepdims=True), series(np.abs(a.value) + a.error) - size, 0.0)
        bound = bound + steps
        peak = n * np.max(size + bound, axis=(-2, -1), keepdims=True)
        bound = np.where(peak > p.largest / 4, np.inf, bound)
    return rounded(value, bound, a.dtype)


matrix_exp = OpSpec(
    "matrix_exp", "linalg", (matrix(),), _matrices, _exponential,
    torch='torch.linalg.matrix_exp(formed({0}, "tamed"))', tensorflow='tf.linalg.expm(formed({0}, "tamed"))',
    jax='jax.scipy.linalg.expm(formed({0}, "tamed"))', relax=_NONE, onnx=_NONE,
)  # fmt: skip


def _cond_type(operands: Types, attrs: Attrs) -> TensorType:
    return TensorType(operands[0].dtype, _any_type(operands, attrs).shape[:-2])


def _cond(args: Sequence[Bounded], call: Call) -> Bounded:
    values = compute(singular_values, args[0], form=form_of(call.attrs))
    return divide(values.map(lambda v: v[..., 0]), values.map(lambda v: v[..., -1]))


condition_number = OpSpec(
    "condition_number", "linalg", (matrix(square=False),), _regular(_cond_type, REGULAR), _cond,
    attrs={"form": one_of(*REGULAR)},
    torch="torch.linalg.cond(formed({0}, {form}))", tensorflow=_NONE, jax="jnp.linalg.cond(formed({0}, {form}))",
    relax=_NONE, onnx=_NONE,
)  # fmt: skip


def _least_type(operands: Types, attrs: Attrs) -> TensorType:
    a, b = operands
    checked(operands, square=False)
    if a.shape[:-1] != b.shape[:-1] or a.dtype != b.dtype:
        raise TypeRuleError(f"{b} is no right-hand side for {a}")
    return TensorType(a.dtype, (*a.shape[:-2], a.shape[-1], b.shape[-1]))


def _least_squares(args: Sequence[Bounded], call: Call) -> Bounded:
    """The x' of least |(A + D) x' - (b + e)|, |D| = c u |A| (theorem 20.3; of singular values: `iterated`): Wedin's
    bound with s the least singular value, |x' - x| <= (|D| |x| + |e| + |D| |b - A x| / s) / (s - |D|). LAPACK scales
    all right-hand sides by the greatest element: an infinity in one of them leaves the others open, too."""
    a, b = formed(args[0], form_of(call.attrs)), args[1]
    p = PRECISION[a.dtype]
    with np.errstate(all="ignore"):
        plain = np.isfinite(b.value) & np.isfinite(b.error)
        right = np.where(plain, b.value, 0.0)
        x = np.linalg.pinv(a.value) @ right
        least = np.linalg.svd(a.value, compute_uv=False)[..., -1]
        moved = 2 * iterated(a)
        relative = moved / np.maximum(norms(a.value, (-2, -1)), 1)
        size = norms(right, -2)
        e = norms(np.where(plain, b.error, 0.0), -2) + relative[..., None] * size + 64 * p.tiny
        rest = norms(right - a.value @ x, -2)
        off = (moved[..., None] * norms(x, -2) + e + (moved / least)[..., None] * rest) / (least - moved)[..., None]
        near = np.asarray(~(moved < least / 4))
        bad = (
            near[..., None]
            | ~np.all(plain, axis=(-2, -1), keepdims=True)[..., 0]
            | (SIDE * SIDE * 64 * size > p.largest)
        )
        off = np.where(bad | np.isnan(off), np.inf, off)
    return rounded(x, np.broadcast_to(off[..., None, :], x.shape), a.dtype)


_ONE_SYSTEM = unsupported("its lstsq takes no stacks of matrices")
least_squares = OpSpec(
    "least_squares", "linalg", (matrix(square=False), sides()), _regular(_least_type), _least_squares,
    attrs={"form": one_of(*DOMINATED)},
    torch="torch.linalg.lstsq(formed({0}, {form}), {1}).solution",
    tensorflow="tf.linalg.lstsq(formed({0}, {form}), {1}, fast=False)",
    jax=lambda call: _ONE_SYSTEM if call.operands[0].rank > 2 else "jnp.linalg.lstsq(formed({0}, {form}), {1})[0]",
    relax=_NONE, onnx=_NONE,
)  # fmt: skip


_LU = unless_singular("tf.linalg.lu_reconstruct(*tf.linalg.lu(formed({0}, {form})))")
_COLUMNS, _NORMS = _rebuilt(_by_columns), _rebuilt(_by_norms)

OPERATORS: tuple[OpSpec, ...] = (
    lu_solve,
    cholesky_solve,
    cholesky_inverse,
    ldl_solve,
    _product("lu", _COLUMNS, True, _LU, _composed("lu")),
    _product("lu_unpacked", _COLUMNS, True, _NONE, _NONE),
    _product("qr", _COLUMNS, False, _composed("qr"), _composed("qr")),
    _product("householder", _COLUMNS, False, _NONE, _NONE),
    _product("ormqr", _COLUMNS, False, _NONE, _NONE),
    _product("svd", _NORMS, False, _composed("svd"), _composed("svd")),
    _product("eigh", _rebuilt(_by_norms, symmetric=True), True, _composed("eigh"), _composed("eigh")),
    matrix_exp,
    condition_number,
    least_squares,
)
