"""Decompositions of small matrices: singular values, eigenvalues, QR, Cholesky's, the pseudo-inverse."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, add, gamma, rounded
from generators.graph import TensorType
from generators.ops.linear.matrices import (
    REGULAR,
    SIDE,
    checked,
    factor_moved,
    form_of,
    formed,
    matrix,
    moved_columns,
    norms,
    turned,
)
from generators.ops.slots import flag, one_of
from generators.ops.spec import Attrs, Call, OpSpec, TypeRuleError, Types, unsupported

Array = np.ndarray

_NONE = unsupported("it has no orthogonal decompositions")


def iterated(a: Bounded) -> Array:
    """How far, in the Frobenius norm, a matrix is from that whose singular values or eigenvalues an iterative method
    returns: its own errors, and c u |A| with c = 6 k (m + n), k the longer side, for the m + n reflections of the
    reduction to two diagonals (lemma 19.3), and as much again for the iteration (two sweeps a value, of rotations of
    6 u each, lemma 19.8; LAPACK Users' Guide, 3rd ed., section 4.9: p(m, n) u |A|, p a modestly growing function)."""
    p = PRECISION[a.dtype]
    rows, columns = a.value.shape[-2:]
    errors, size = norms(a.error, (-2, -1)), norms(a.value, (-2, -1))
    return errors + 12 * max(rows, columns) * (rows + columns) * (p.unit + U64) * (size + errors) + 64 * p.tiny


def _values_type(operands: Types, attrs: Attrs) -> TensorType:
    form_of(attrs)
    *batch, _, columns = checked(operands, square=False).shape
    return TensorType(operands[0].dtype, (*batch, columns))


def _singular(args: Sequence[Bounded], call: Call) -> Bounded:
    """Weyl: no singular value moves by more than the norm of what is added."""
    a = formed(args[0], form_of(call.attrs))
    value = np.linalg.svd(a.value, compute_uv=False)
    return rounded(value, np.broadcast_to(iterated(a)[..., None], value.shape), a.dtype)


singular_values = OpSpec(
    "singular_values", "linalg", (matrix(square=False),), _values_type, _singular,
    attrs={"form": one_of("tamed", *REGULAR)},
    torch="torch.linalg.svdvals(formed({0}, {form}))",
    tensorflow="tf.linalg.svd(formed({0}, {form}), compute_uv=False)",
    jax="jnp.linalg.svd(formed({0}, {form}), compute_uv=False)", relax=_NONE, onnx=_NONE,
)  # fmt: skip


def _eigenvalues_type(operands: Types, attrs: Attrs) -> TensorType:
    form_of(attrs)
    return TensorType(operands[0].dtype, checked(operands).shape[:-1])


def _eigenvalues(args: Sequence[Bounded], call: Call) -> Bounded:
    """Of A + A^T, in rising order: Weyl again."""
    a = formed(args[0], form_of(call.attrs))
    total = add(a, turned(a))
    value = np.linalg.eigvalsh(total.value)
    return rounded(value, np.broadcast_to(iterated(total)[..., None], value.shape), a.dtype)


eigenvalues = OpSpec(
    "eigenvalues", "linalg", (matrix(),), _eigenvalues_type, _eigenvalues,
    attrs={"form": one_of("tamed", *REGULAR, "gram")},
    torch="eigenvalues(formed({0}, {form}))", tensorflow="eigenvalues(formed({0}, {form}))",
    jax="eigenvalues(formed({0}, {form}))", relax=_NONE, onnx=_NONE,
)  # fmt: skip


def _regular_type(operands: Types, attrs: Attrs) -> TensorType:
    type_ = checked(operands, square=False)
    if attrs["form"] not in REGULAR:
        raise TypeRuleError(f"matrices of form {attrs['form']!r} may lack rank")
    return type_


def _triangle_type(operands: Types, attrs: Attrs) -> TensorType:
    *batch, _, columns = _regular_type(operands, attrs).shape
    return TensorType(operands[0].dtype, (*batch, columns, columns))


def _qr(args: Sequence[Bounded], call: Call) -> Bounded:
    """R with a positive diagonal. That of A + D is (I + Y) R, where I + Y is the Cholesky factor of
    (Q + D R^-1)^T (Q + D R^-1) = I + X, |X| <= 2 w + w^2, w the norm of D R^-1: column j is off by |Y| |column j|.
    Theorem 19.4 bounds D (`moved_columns`)."""
    a = formed(args[0], form_of(call.attrs))
    r = np.linalg.qr(a.value, mode="r")
    r = np.triu(r * np.sign(np.diagonal(r, 0, -2, -1))[..., None])
    w = np.sum(moved_columns(a) * norms(np.linalg.inv(r), -1), axis=-1)
    off = factor_moved(2 * w + w * w)[..., None, None] * norms(r, -2)[..., None, :]
    bound = np.where(np.tri(r.shape[-1], dtype=bool).T, np.broadcast_to(off, r.shape), 0.0)
    return rounded(r, bound, a.dtype)


qr_factor = OpSpec(
    "qr_factor", "linalg", (matrix(square=False),), _triangle_type, _qr, attrs={"form": one_of(*REGULAR)},
    torch="qr_factor(formed({0}, {form}))", tensorflow="qr_factor(formed({0}, {form}))",
    jax="qr_factor(formed({0}, {form}))", relax=_NONE, onnx=_NONE,
)  # fmt: skip


def _pinv_type(operands: Types, attrs: Attrs) -> TensorType:
    *batch, rows, columns = _regular_type(operands, attrs).shape
    return TensorType(operands[0].dtype, (*batch, columns, rows))


def _pinv(args: Sequence[Bounded], call: Call) -> Bounded:
    """Wedin: |B^+ - A^+| <= sqrt(2) |A^+| |B^+| |B - A|, and |B^+| <= |A^+| / (1 - |A^+| |B - A|), in Frobenius norms
    but for the 2-norms of the pseudo-inverses (Wedin, BIT 13, 1973; equal ranks). The singular vectors of B are
    orthogonal up to what B is off by, relative to |A|; two products more."""
    a = formed(args[0], form_of(call.attrs))
    p = PRECISION[a.dtype]
    value = np.linalg.pinv(a.value)
    most = 1 / np.linalg.svd(a.value, compute_uv=False)[..., -1]
    moved = iterated(a)
    relative = moved * most
    orthogonal = 2 * moved / norms(a.value, (-2, -1)) + 4 * SIDE * (p.unit + U64)
    with np.errstate(all="ignore"):
        off = most * (2**0.5 * relative + orthogonal) / (1 - relative)
        off = np.where(relative < 0.25, off, np.inf)[..., None, None]
    return rounded(value, np.broadcast_to(off, value.shape), a.dtype)


pseudo_inverse = OpSpec(
    "pseudo_inverse", "linalg", (matrix(square=False),), _pinv_type, _pinv, attrs={"form": one_of(*REGULAR)},
    torch="torch.linalg.pinv(formed({0}, {form}))", tensorflow="tf.linalg.pinv(formed({0}, {form}))",
    jax="jnp.linalg.pinv(formed({0}, {form}))", relax=_NONE, onnx=_NONE,
)  # fmt: skip

# ---- Cholesky -----------------------------------------------------------------------------------------


def _cholesky(args: Sequence[Bounded], call: Call) -> Bounded:
    """Theorem 10.3: the factor of A + D, |d_ij| <= gamma_{n+1} sqrt(a_ii a_jj) / (1 - gamma_{n+1}). It is L (I + Y),
    where I + Y is the factor of I + L^-1 D L^-T (`factor_moved`), so that row i is off by |row i of L| |Y|."""
    a = formed(args[0], "gram")
    p, n = PRECISION[a.dtype], a.value.shape[-1]
    factor = np.linalg.cholesky(a.value)
    inverse = np.abs(np.linalg.inv(factor))
    diagonal = np.sqrt(np.diagonal(a.value + a.error, 0, -2, -1))
    steps = 1.01 * gamma(2 * n + 2, p.unit + U64) * diagonal[..., :, None] * diagonal[..., None, :]
    relative = norms((inverse @ (steps + a.error + 4 * n * p.tiny) @ np.swapaxes(inverse, -1, -2)), (-2, -1))
    off = factor_moved(relative)[..., None, None] * diagonal[..., :, None]
    factor = rounded(factor, np.where(np.tri(n, dtype=bool), off, 0.0), a.dtype)
    return turned(factor) if call.attrs["upper"] else factor


cholesky = OpSpec(
    "cholesky", "linalg", (matrix(),), lambda operands, attrs: checked(operands), _cholesky, attrs={"upper": flag()},
    torch='torch.linalg.cholesky(formed({0}, "gram"), upper={upper})',
    tensorflow=lambda call: (
        'tf.linalg.matrix_transpose(tf.linalg.cholesky(formed({0}, "gram")))' if call.attrs["upper"]
        else 'tf.linalg.cholesky(formed({0}, "gram"))'
    ),
    jax='jnp.linalg.cholesky(formed({0}, "gram"), upper={upper})',
    relax='factor(bb, formed(bb, {0}, "gram", {shape0}, {name}), {upper}, {shape0}, {name})',
    onnx='factor(g, formed(g, {0}, "gram", {shape0}, {name}), {upper}, {shape0}, {name})',
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (singular_values, eigenvalues, qr_factor, cholesky, pseudo_inverse)
