"""Linear systems: solving, inverses, triangular systems."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, gamma, rounded
from generators.graph import TensorType
from generators.ops.linear.matrices import (
    FORMS,
    LIMIT,
    checked,
    constant,
    form_of,
    formed,
    invertible,
    matrix,
    moved_columns,
    norms,
    or_identity,
    sides,
    tamed,
    turned,
)
from generators.ops.slots import flag, one_of
from generators.ops.spec import Attrs, Call, OpSpec, Spelling, TypeRuleError, Types, Unsupported

Array = np.ndarray

# ---- solving ------------------------------------------------------------------------------------------


def solved(a: Bounded, b: Bounded, symmetric: bool, moved: Array | None = None) -> Bounded:
    """X with A X = B. Each column of a computed X solves (A + D) x' = b + e with |column j of D| <= r_j, hence
    x' - x = A^-1 (e - D x'). With w_i the norm of row i of A^-1: |x' - x|_i <= w_i (|e| + sum r_k |x'_k|), and the sum
    over k of r_k |x'_k| is at most (sum r_k |x_k| + t |e|) / (1 - t), t = sum r_i w_i. An inverse by way of triangular
    inverses, X' A = I + X' D, has the same bound (section 14.3). moved: r, where it is not `moved_columns`."""
    p = PRECISION[a.dtype]
    with np.errstate(all="ignore"):
        ok = invertible(a.value)
        matrices = or_identity(a.value, ok)
        inverse = np.linalg.inv(matrices)
        plain = np.isfinite(b.value) & np.isfinite(b.error)
        right, error = np.where(plain, b.value, 0.0), np.where(plain, b.error, 0.0)
        x = np.linalg.solve(matrices, right)
        w, r = norms(inverse, -1), moved_columns(a, symmetric) if moved is None else moved
        t = np.sum(r * w, axis=-1)[..., None]
        off = np.einsum("...k,...km->...m", r, np.abs(x)) + norms(error, -2)
        # the last power covers the errors of the inverse and of the solution in float64
        bound = w[..., None] * (off / (1 - t) ** 3)[..., None, :]
        # substitutions: what is added up on the way
        peak = 2.0 ** a.value.shape[-1] * (
            np.abs(right).sum(-2) + np.einsum("...k,...km->...m", norms(matrices, -2), np.abs(x))
        )
        bad = ~ok[..., None] | ~(t < 0.25) | ~plain.all(-2) | (peak > p.largest)
        bound = np.where(bad[..., None, :] | np.isnan(bound), np.inf, bound)
    return rounded(x, bound, a.dtype)


def solve_type(operands: Types, attrs: Attrs) -> TensorType:
    form_of(attrs, FORMS)
    checked(operands)
    if not sides().accepts(operands[1], operands):
        raise TypeRuleError(f"{operands[1]} is no right-hand side for {operands[0]}")
    return operands[1]


def _solve(args: Sequence[Bounded], call: Call) -> Bounded:
    form = form_of(call.attrs)
    return solved(formed(args[0], form), args[1], form == "gram")


def _inverse_type(operands: Types, attrs: Attrs) -> TensorType:
    form_of(attrs, FORMS)
    return checked(operands)


def _inverse(args: Sequence[Bounded], call: Call) -> Bounded:
    form = form_of(call.attrs)
    a = formed(args[0], form)
    identity = constant(np.broadcast_to(np.eye(a.value.shape[-1]), a.value.shape), a)
    return solved(a, identity, form == "gram")


def unless_singular(text: str) -> Spelling:
    """TensorFlow raises on singular matrices, so that it gets none that may be."""
    singular = Unsupported("it refuses singular matrices, and one of this form may be")
    return lambda call: singular if call.attrs["form"] == "tamed" else text


def _definite(text: str) -> Spelling:
    """By Cholesky's decomposition, unrolled."""
    why = Unsupported("it has no decompositions, and elimination needs to choose pivots")
    return lambda call: text if call.attrs["form"] == "gram" else why


solve = OpSpec(
    "solve", "linalg", (matrix(), sides()), solve_type, _solve, attrs={"form": one_of(*FORMS)},
    torch="torch.linalg.solve_ex(formed({0}, {form}), {1}).result",
    tensorflow=unless_singular("tf.linalg.solve(formed({0}, {form}), {1})"),
    jax="jnp.linalg.solve(formed({0}, {form}), {1})",
    relax=_definite("solved(bb, formed(bb, {0}, {form}, {shape0}, {name}), {1}, {shape0}, {name})"),
    onnx=_definite("solved(g, formed(g, {0}, {form}, {shape0}, {name}), {1}, {shape0}, {name})"),
)  # fmt: skip

inverse = OpSpec(
    "inverse", "linalg", (matrix(),), _inverse_type, _inverse, attrs={"form": one_of(*FORMS)},
    torch="torch.linalg.inv_ex(formed({0}, {form})).inverse",
    tensorflow=unless_singular("tf.linalg.inv(formed({0}, {form}))"),
    jax="jnp.linalg.inv(formed({0}, {form}))",
    relax=_definite("inverted(bb, formed(bb, {0}, {form}, {shape0}, {name}), {shape0}, {name})"),
    onnx=_definite("inverted(g, formed(g, {0}, {form}, {shape0}, {name}), {shape0}, {name})"),
)  # fmt: skip

# ---- triangular systems -------------------------------------------------------------------------------


def triangle(x: Bounded, call: Call) -> Bounded:
    """The triangle that is read: tamed, with ones on the diagonal, or LIMIT + 1 added there."""
    t, n = tamed(x), x.value.shape[-1]
    eye = np.eye(n, dtype=bool)
    cut = np.tril if call.attrs["lower"] else np.triu
    value, error = cut(t.value), cut(t.error)
    if call.attrs["unit"]:
        value, error = np.where(eye, 1.0, value), np.where(eye, 0.0, error)
    else:
        shifted = rounded(value + LIMIT + 1, error, x.dtype)
        value, error = np.where(eye, shifted.value, value), np.where(eye, shifted.error, error)
    result = Bounded(value, error, x.dtype)
    return turned(result) if call.attrs["transposed"] else result


def _substituted(t: Array, right: Array) -> Array:
    """T^-1 b row by row: a solution with pivoting is off by U |b|, also where an element is 0 by itself."""
    x = np.zeros(np.broadcast_shapes(t.shape[:-2], right.shape[:-2]) + right.shape[-2:])
    rows = range(t.shape[-1])
    for row in reversed(rows) if np.triu(t, 1).any() else rows:
        known = (t[..., row : row + 1, :] @ x)[..., 0, :]
        x[..., row, :] = (right[..., row, :] - known) / t[..., row, row, None]
    return x


def _triangular(args: Sequence[Bounded], call: Call) -> Bounded:
    """Theorem 8.5: (T + D) x' = b with |D| <= gamma_n |T|; by way of inverted blocks, section 14.2: off by
    gamma |T^-1| |T| |T^-1| |b|, which covers both. With M = |T^-1| (gamma |T| + E), (I - M) |x' - x| <= M y + |T^-1| e,
    where y = |T^-1| |b|."""
    t, b = triangle(args[0], call), args[1]
    p, n = PRECISION[t.dtype], t.value.shape[-1]
    with np.errstate(all="ignore"):
        plain = np.isfinite(b.value) & np.isfinite(b.error)
        right, error = np.where(plain, b.value, 0.0), np.where(plain, b.error, 0.0)
        inverse = np.abs(np.linalg.inv(t.value))
        x = _substituted(t.value, right)
        m = inverse @ (gamma(4 * n + 4, p.unit + U64) * np.abs(t.value) + t.error)
        y = inverse @ np.abs(right)
        steps = inverse @ (error + 2 * n * p.tiny * (1 + np.max(np.abs(t.value), (-2, -1), keepdims=True)))
        small = np.max(np.sum(m, axis=-1), axis=-1)[..., None, None] < 0.5
        bound = np.linalg.solve(np.eye(n) - np.where(small, m, 0.0), m @ y + steps)
        peak = np.max((1 + np.abs(t.value)) @ (np.abs(right) + error + y), axis=-2, keepdims=True)
        bad = ~small | ~plain.all(-2, keepdims=True) | (2 * n * peak > p.largest)
        bound = np.where(bad | np.isnan(bound), np.inf, bound)
    return rounded(x, bound, t.dtype)


def _triangular_type(operands: Types, attrs: Attrs) -> TensorType:
    checked(operands)
    if not sides().accepts(operands[1], operands):
        raise TypeRuleError(f"{operands[1]} is no right-hand side for {operands[0]}")
    return operands[1]


triangular_solve = OpSpec(
    "triangular_solve", "linalg", (matrix(), sides()), _triangular_type, _triangular,
    attrs={"lower": flag(), "unit": flag(), "transposed": flag()},
    torch="triangular_solve({0}, {1}, {lower}, {unit}, {transposed})",
    tensorflow="triangular_solve({0}, {1}, {lower}, {unit}, {transposed})",
    jax="triangular_solve({0}, {1}, {lower}, {unit}, {transposed})",
    relax="triangular_solve(bb, {0}, {1}, {lower}, {unit}, {transposed}, {shape0}, {name})",
    onnx="triangular_solve(g, {0}, {1}, {lower}, {unit}, {transposed}, {shape0}, {name})",
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (solve, inverse, triangular_solve)
