"""Numbers of a matrix: determinants, traces, ranks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import factorial

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, add, exact, gamma, rounded
from generators.bounds.sums import summed
from generators.graph import TensorType
from generators.ops.composed import compute, given, undetermined
from generators.ops.linear.decompositions import iterated, singular_values
from generators.ops.linear.matrices import DOMINATED, FORMS, checked, form_of, matrix, moved_columns, norms, whole
from generators.ops.slots import draw_dtype, floating, one_of
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Slot, Spelling, TypeRuleError, Types, unsupported

Array = np.ndarray

# ---- traces -------------------------------------------------------------------------------------------


def _trace_type(operands: Types, attrs: Attrs) -> TensorType:
    x = operands[0]
    if x.rank < 2 or x.size == 0:
        raise TypeRuleError(f"no trace of {x}")
    return TensorType(x.dtype, x.shape[:-2])


def _trace(args: Sequence[Bounded], call: Call) -> Bounded:
    x = args[0].map(lambda a: np.diagonal(a, 0, -2, -1))
    return summed(x, partial(np.sum, axis=-1), x.value.shape[-1])


def diagonal_places(shape: tuple[int, ...]) -> list[int]:
    """Where the main diagonal lies in a matrix, the last two of these dimensions, that is laid out as a row."""
    rows, columns = shape[-2:]
    return [i * (columns + 1) for i in range(min(rows, columns))]


def _trace_text(text: str) -> Spelling:
    """`text` with the matrices as rows for `%r` and the places of the diagonal for `%p`."""

    def spell(call: Call) -> str:
        shape = call.operands[0].shape
        rows = (*shape[:-2], shape[-2] * shape[-1])
        return text.replace("%r", str(rows)).replace("%p", str(diagonal_places(shape)))

    return spell


trace = OpSpec(
    "trace", "linalg", (floating(2, nonempty=True),), _trace_type, _trace,
    torch=lambda call: "torch.trace({0})" if call.result.rank == 0 else "torch.diagonal({0}, 0, -2, -1).sum(-1)",
    tensorflow="tf.linalg.trace({0})", jax="jnp.trace({0}, axis1=-2, axis2=-1)",
    relax=_trace_text('relax.op.sum(relax.op.take(relax.op.reshape({0}, %r), relax.const(%p, "int64"), axis=-1), '
    "axis=-1)"),
    onnx=_trace_text('g.op("ReduceSum", g.op("Gather", g.op("Reshape", {0}, g.const(%r, "int64")), '
    'g.const(%p, "int64"), axis=-1), g.const([-1], "int64"), keepdims=0)'),
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
    if attrs.get("pick", "sign") not in ("logarithm", "sign"):
        raise TypeRuleError(f"no {attrs['pick']!r} of a determinant")
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

_NONE = unsupported("it has no orthogonal decompositions")

# ---- ranks --------------------------------------------------------------------------------------------


def _rank_type(operands: Types, attrs: Attrs) -> TensorType:
    form_of(attrs, FORMS)
    if attrs["rtol"] not in (0.25, 0.01):
        raise TypeRuleError(f"no rank by {attrs['rtol']!r}")
    return TensorType("int64", checked(operands, square=False).shape[:-2])


def _rank(args: Sequence[Bounded], call: Call) -> Bounded:
    """How many singular values are greater than rtol times the greatest; where one is too close to that to call, any.
    A zero matrix, whose values are zero for certain, has rank 0."""
    s, rtol = compute(singular_values, args[0], form=call.attrs["form"]), call.number("rtol")
    unit = PRECISION[s.dtype].unit + U64
    with np.errstate(all="ignore"):
        limit = rtol * s.value[..., :1]
        off = s.error + rtol * s.error[..., :1] + 2 * unit * limit
        null = np.all(args[0].value == 0, axis=(-2, -1)) & np.all(args[0].error == 0, axis=(-2, -1))
        null &= call.attrs["form"] == "tamed"
        unsure = np.any(~(np.abs(s.value - limit) > off), axis=-1) & ~null
    return exact(np.sum(s.value > limit, axis=-1), "int64", unsure)


matrix_rank = OpSpec(
    "matrix_rank", "norms", (matrix(square=False),), _rank_type, _rank,
    attrs={"rtol": one_of(0.01, 0.25), "form": one_of("tamed", *DOMINATED)},
    torch="torch.linalg.matrix_rank(formed({0}, {form}), rtol={rtol})",
    tensorflow=unsupported("the tolerance of tf.linalg.matrix_rank is absolute"),
    jax="jnp.linalg.matrix_rank(formed({0}, {form}), rtol={rtol}).astype(jnp.int64)", relax=_NONE, onnx=_NONE,
)  # fmt: skip

# ---- eigenvalues of any matrix ------------------------------------------------------------------------

_SOLVED = ("float32", "float64")


def _any_matrix(type_: TensorType, earlier: Types) -> bool:
    return type_.dtype in _SOLVED and matrix().accepts(type_, earlier)


def _fresh_matrix(d: Draw, earlier: Types) -> TensorType:
    return TensorType(draw_dtype(d, _SOLVED), matrix().fresh(d, earlier).shape)


def _sum_type(operands: Types, attrs: Attrs) -> TensorType:
    x = checked(operands)
    if x.dtype not in _SOLVED:
        raise TypeRuleError(f"no eigenvalues of {x}")
    return TensorType(x.dtype, x.shape[:-2])


def _eigenvalue_sum(args: Sequence[Bounded], call: Call) -> Bounded:
    """The trace: in no order, and the imaginary parts cancel. Those of A + E add up to tr A + tr E,
    |tr E| <= sqrt(n) |E|. Of a matrix that is not finite nothing is promised."""
    x, n = args[0], args[0].value.shape[-1]
    total = compute(trace, x) if x.value.size else given(np.zeros(x.value.shape[:-2]), x.dtype)
    with np.errstate(all="ignore"):
        moved = n**0.5 * (1 + gamma(n, PRECISION[x.dtype].unit)) * iterated(x)
        spoilt = ~np.all(np.isfinite(x.value) & np.isfinite(x.error), axis=(-2, -1))
        moved = np.where(spoilt | ~np.isfinite(moved), 0.0, moved)
        spoilt |= ~np.isfinite(total.value)
    return undetermined(add(total, Bounded(np.zeros(moved.shape), moved, x.dtype)), spoilt)


eigenvalue_sum = OpSpec(
    "eigenvalue_sum", "linalg", (Slot(_any_matrix, _fresh_matrix),), _sum_type, _eigenvalue_sum,
    torch="torch.linalg.eigvals({0}).sum(-1).real",
    tensorflow="tf.math.real(tf.reduce_sum(tf.linalg.eigvals({0}), -1))",
    jax="jnp.linalg.eigvals({0}).sum(-1).real", relax=_NONE, onnx=_NONE,
)  # fmt: skip
"""Of matrices as they are, NaN and infinities among them."""

OPERATORS: tuple[OpSpec, ...] = (det, slogdet, trace, matrix_rank, eigenvalue_sum)
