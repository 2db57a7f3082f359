"""Linear systems: solving, inverses, triangular systems, determinants, powers, Cholesky's decomposition."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import factorial

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, exact, gamma, rounded
from generators.graph import TensorType
from generators.ops.linear.matrices import (
    FORMS,
    LIMIT,
    checked,
    constant,
    factor_moved,
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
    whole,
)
from generators.ops.shape.reshape import Attrs, int_of
from generators.ops.slots import flag, one_of
from generators.ops.spec import Call, OpSpec, Spelling, TypeRuleError, Types, Unsupported

Array = np.ndarray

# ---- solving ------------------------------------------------------------------------------------------


def _solved(a: Bounded, b: Bounded, symmetric: bool) -> Bounded:
    """X with A X = B. Each column of a computed X solves (A + D) x' = b + e with |column j of D| <= r_j, hence
    x' - x = A^-1 (e - D x'). With w_i the norm of row i of A^-1: |x' - x|_i <= w_i (|e| + sum r_k |x'_k|), and the sum
    over k of r_k |x'_k| is at most (sum r_k |x_k| + t |e|) / (1 - t), t = sum r_i w_i. An inverse by way of triangular
    inverses, X' A = I + X' D, has the same bound (section 14.3)."""
    p = PRECISION[a.dtype]
    with np.errstate(all="ignore"):
        ok = invertible(a.value)
        matrices = or_identity(a.value, ok)
        inverse = np.linalg.inv(matrices)
        plain = np.isfinite(b.value) & np.isfinite(b.error)
        right, error = np.where(plain, b.value, 0.0), np.where(plain, b.error, 0.0)
        x = np.linalg.solve(matrices, right)
        w, r = norms(inverse, -1), moved_columns(a, symmetric)
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


def _solve_type(operands: Types, attrs: Attrs) -> TensorType:
    form_of(attrs)
    checked(operands)
    if not sides().accepts(operands[1], operands):
        raise TypeRuleError(f"{operands[1]} is no right-hand side for {operands[0]}")
    return operands[1]


def _solve(args: Sequence[Bounded], call: Call) -> Bounded:
    form = form_of(call.attrs)
    return _solved(formed(args[0], form), args[1], form == "gram")


def _inverse_type(operands: Types, attrs: Attrs) -> TensorType:
    form_of(attrs)
    return checked(operands)


def _inverse(args: Sequence[Bounded], call: Call) -> Bounded:
    form = form_of(call.attrs)
    a = formed(args[0], form)
    identity = constant(np.broadcast_to(np.eye(a.value.shape[-1]), a.value.shape), a)
    return _solved(a, identity, form == "gram")


def _regular(text: str) -> Spelling:
    """TensorFlow raises on singular matrices, so that it gets none that may be."""
    singular = Unsupported("it refuses singular matrices, and one of this form may be")
    return lambda call: singular if call.attrs["form"] == "tamed" else text


def _definite(text: str) -> Spelling:
    """By Cholesky's decomposition, unrolled."""
    why = Unsupported("it has no decompositions, and elimination needs to choose pivots")
    return lambda call: text if call.attrs["form"] == "gram" else why


solve = OpSpec(
    "solve", "linalg", (matrix(), sides()), _solve_type, _solve, attrs={"form": one_of(*FORMS)},
    torch="torch.linalg.solve_ex(formed({0}, {form}), {1}).result",
    tensorflow=_regular("tf.linalg.solve(formed({0}, {form}), {1})"),
    jax="jnp.linalg.solve(formed({0}, {form}), {1})",
    relax=_definite("solved(bb, formed(bb, {0}, {form}, {shape0}, {name}), {1}, {shape0}, {name})"),
    onnx=_definite("solved(g, formed(g, {0}, {form}, {shape0}, {name}), {1}, {shape0}, {name})"),
)  # fmt: skip

inverse = OpSpec(
    "inverse", "linalg", (matrix(),), _inverse_type, _inverse, attrs={"form": one_of(*FORMS)},
    torch="torch.linalg.inv_ex(formed({0}, {form})).inverse",
    tensorflow=_regular("tf.linalg.inv(formed({0}, {form}))"),
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

# ---- determinants -------------------------------------------------------------------------------------


def _determinant(a: Bounded) -> tuple[Array, Array, Array]:
    """The determinant, its error, and the sum of magnitudes of the pivots' logarithms.

    Elimination gives the determinant of a matrix whose columns are off by r_j, times (1 + d)^n; by Hadamard's
    inequality that moves it by prod (s_j + r_j) - prod s_j at most, s_j the columns' norms. Leibniz' sum of n!
    products: gamma of the permanent of |A|, which is at most prod |a_j|_1 <= n^(n/2) prod s_j. TensorFlow adds
    logarithms of the pivots: these are at most 2^j s_j, and multiply to |det|, hence their magnitudes sum to
    |log |det|| + 2 sum max(0, log(2^j s_j)) at most."""
    p, n = PRECISION[a.dtype], a.value.shape[-1]
    unit = p.unit + U64
    with np.errstate(all="ignore"):
        ok = whole(np.isfinite(a.value) & np.isfinite(a.error))
        cleaned = Bounded(
            np.where(ok[..., None, None], a.value, 0.0), np.where(ok[..., None, None], a.error, 0.0), a.dtype
        )
        value = np.linalg.det(cleaned.value)
        s, r = norms(cleaned.value, -2), moved_columns(cleaned)
        product, error = np.ones(value.shape), np.zeros(value.shape)
        for j in range(n):
            error = error * (s[..., j] + r[..., j]) + product * r[..., j]
            product = product * s[..., j]
        error += gamma(n + factorial(n), unit) * n ** (n / 2) * (product + error)
        pivots = 2.0 ** np.arange(1, n + 1) * (s + r)
        error += 4.0**n * p.tiny * np.prod(np.maximum(1.0, pivots), axis=-1)
        least = np.maximum(np.abs(value), error)
        logs = np.abs(np.log(least)) + 2 * np.sum(np.maximum(0.0, np.log(pivots)), axis=-1)
        logs = np.where(least > 0, logs, 0.0)
        error += 2 * (n + 4) * unit * logs * least
        error = np.where(np.prod(np.maximum(1.0, 2 * pivots), axis=-1) > p.largest, np.inf, error)
        error = np.where(ok & ~np.isnan(error), error, np.inf)
    return value, error, logs


def _det(args: Sequence[Bounded], call: Call) -> Bounded:
    value, error, _ = _determinant(args[0])
    return rounded(value, error, args[0].dtype)


def _slogdet(args: Sequence[Bounded], call: Call) -> Bounded:
    """The sign where it is certain; the logarithm 3 ulp, and those of the pivots that are added."""
    a, n = args[0], args[0].value.shape[-1]
    value, error, logs = _determinant(a)
    size = np.abs(value)
    unsure = ~(error < size / 2)
    if call.attrs["pick"] == "sign":
        return exact(np.sign(value), a.dtype, unsure)
    with np.errstate(all="ignore"):
        off = -np.log1p(-np.minimum(error / size, 0.5)) + (n + 7) * (PRECISION[a.dtype].unit + U64) * logs
        result = np.where(unsure, 0.0, np.log(size))
    return rounded(result, np.where(unsure, np.inf, off), a.dtype)


def _scalar(operands: Types, attrs: Attrs) -> TensorType:
    return TensorType(operands[0].dtype, checked(operands).shape[:-2])


def _picked(sign: str, logarithm: str) -> Spelling:
    return lambda call: sign if call.attrs["pick"] == "sign" else logarithm


det = OpSpec(
    "det", "linalg", (matrix(),), _scalar, _det,
    torch="torch.linalg.det({0})", tensorflow="tf.linalg.det({0})", jax="jnp.linalg.det({0})",
    relax="determinant(bb, {0}, {shape0}, {name})", onnx='g.op("Det", {0})',
)  # fmt: skip

slogdet = OpSpec(
    "slogdet", "linalg", (matrix(),), _scalar, _slogdet, attrs={"pick": one_of("logarithm", "sign")},
    torch=_picked("torch.linalg.slogdet({0}).sign", "torch.linalg.slogdet({0}).logabsdet"),
    tensorflow=_picked("tf.linalg.slogdet({0})[0]", "tf.linalg.slogdet({0})[1]"),
    jax=_picked("jnp.linalg.slogdet({0})[0]", "jnp.linalg.slogdet({0})[1]"),
    relax=_picked("relax.op.sign(determinant(bb, {0}, {shape0}, {name}))",
                  "relax.op.log(relax.op.abs(determinant(bb, {0}, {shape0}, {name})))"),
    onnx=_picked('g.op("Sign", g.op("Det", {0}))', 'g.op("Log", g.op("Abs", g.op("Det", {0})))'),
)  # fmt: skip

# ---- powers -------------------------------------------------------------------------------------------


def _power_type(operands: Types, attrs: Attrs) -> TensorType:
    if int_of(attrs, "k") < 0:
        raise TypeRuleError(f"power {attrs['k']} needs an inverse")
    return checked(operands)


def _power(args: Sequence[Bounded], call: Call) -> Bounded:
    """k - 1 products in any order, each of n roundings: gamma_{n k} |A|^k (section 18.1), and the errors of A."""
    a, k = args[0], int_of(call.attrs, "k")
    p, n = PRECISION[a.dtype], a.value.shape[-1]
    if k == 0:
        return exact(np.broadcast_to(np.eye(n), a.value.shape).copy(), a.dtype)
    if k == 1:
        return a
    with np.errstate(all="ignore"):
        ok = (np.isfinite(a.value) & np.isfinite(a.error)).all((-2, -1), keepdims=True)
        size, error = np.where(ok, np.abs(a.value), 0.0), np.where(ok, a.error, 0.0)
        value = reduce(np.matmul, [np.where(ok, a.value, 0.0)] * k)
        power, off = size, error
        largest = np.maximum(1.0, np.max(size + error, (-2, -1), keepdims=True))
        for _ in range(k - 1):
            off = off @ (size + error) + power @ error
            power = power @ size
        reach = (n * largest) ** k
        bound = off + gamma(n * k, p.unit + U64) * (power + off) + k * n * p.tiny * reach
        bound = np.where(~ok | (2 * reach > p.largest) | np.isnan(bound), np.inf, bound)
    return rounded(value, bound, a.dtype)


matrix_power = OpSpec(
    "matrix_power", "linalg", (matrix(),), _power_type, _power,
    attrs={"k": lambda d, operands, attrs: d.choice((2, 3, 0, 1, 5))},
    torch="torch.linalg.matrix_power({0}, {k})", tensorflow="matrix_power({0}, {k})",
    jax="jnp.linalg.matrix_power({0}, {k})", relax="matrix_power(bb, {0}, {k}, {shape}, {name})",
    onnx="matrix_power(g, {0}, {k}, {shape}, {name})",
)  # fmt: skip

SYSTEMS: tuple[OpSpec, ...] = (solve, inverse, triangular_solve, cholesky, det, slogdet, matrix_power)
