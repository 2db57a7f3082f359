"""What describes samples: variances, quantiles, covariances, histograms, counts."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, divide, exact, gamma, monotone, rounded
from generators.bounds.sums import root, variance_of
from generators.graph import FLOATS, TensorType
from generators.ops.composed import compute, undetermined
from generators.ops.reduce.records import axes_in, of_something, reduction
from generators.ops.reduce.sorting import ordered
from generators.ops.slots import (
    CLASSES,
    MAX_ELEMENTS,
    axis_in,
    axis_of,
    draw_dim,
    draw_dtype,
    floating,
    index_slot,
    int_of,
    one_of,
)
from generators.ops.spec import Attrs, Call, OpSpec, Slot, TypeRuleError, Types

# ---- quantiles ----------------------------------------------------------------------------------------

METHODS = ("linear", "lower", "higher", "midpoint")


def _quantile_type(operands: Types, attrs: Attrs) -> TensorType:
    x = operands[0]
    axis, q = axis_in(attrs, x.rank), attrs["q"]
    if x.size == 0 or attrs["method"] not in METHODS or not isinstance(q, float) or not 0 <= q <= 1:
        raise TypeRuleError(f"no quantile {q!r} of {x} by {attrs['method']!r}")
    return TensorType(x.dtype, (*x.shape[:axis], *x.shape[axis + 1 :]))


def _quantile(args: Sequence[Bounded], call: Call) -> Bounded:
    """Between two elements in order; q is a multiple of 1/8, so that its place is exact. a + w (b - a), or the like:
    three roundings of numbers up to |a| + |b|. Neighbours that are infinite may make NaN: undetermined."""
    axis, method = axis_in(call.attrs, args[0].value.ndim), call.attrs["method"]
    x = ordered(args[0], axis, descending=False)
    place = call.number("q") * (x.value.shape[axis] - 1)
    a, b = (x.map(lambda array, i=i: np.take(array, i, axis)) for i in (floor(place), ceil(place)))
    if method in ("lower", "higher"):
        return a if method == "lower" else b
    w = 0.5 if method == "midpoint" and place % 1 else place % 1
    p = PRECISION[x.dtype]
    with np.errstate(all="ignore"):
        size = np.abs(a.value) + np.abs(b.value) + a.error + b.error
        error = (1 - w) * a.error + w * b.error + 4 * (p.unit + U64) * size * (w > 0)
        bad = ~np.isfinite(size) | (2 * size > p.largest)
        value = np.where(bad, 0.0, (1 - w) * a.value + w * b.value)
    return rounded(value, np.where(bad, np.inf, error), x.dtype)


quantile = OpSpec(
    "quantile", "statistics", (floating(1, nonempty=True),), _quantile_type, _quantile,
    attrs={"axis": axis_of(0), "q": one_of(0.5, 0.0, 1.0, 0.25, 0.875), "method": one_of(*METHODS)},
    torch="torch.quantile({0}, {q}, dim={axis}, interpolation={method})",
    tensorflow="quantile({0}, {q}, {axis}, {method})", jax="jnp.quantile({0}, {q}, axis={axis}, method={method})",
    relax="quantile(bb, {0}, {q}, {axis}, {method}, {shape0}, {name})",
    onnx="quantile(g, {0}, {q}, {axis}, {method}, {shape0}, {name})",
)  # fmt: skip

# ---- covariances --------------------------------------------------------------------------------------


def _cov_type(operands: Types, attrs: Attrs) -> TensorType:
    x, correction = operands[0], int_of(attrs, "correction")
    if x.rank != 2 or x.size == 0 or not 0 <= correction < x.shape[1] or x.shape[0] ** 2 > MAX_ELEMENTS:
        raise TypeRuleError(f"no covariances of {x}, corrected by {correction}")
    return TensorType(x.dtype, (x.shape[0], x.shape[0]))


def _cov(args: Sequence[Bounded], call: Call) -> Bounded:
    """Deviations from the mean are off by what the elements and the mean are, gamma_n mean |x|, and a rounding; then a
    sum of n products, divided (2.5 ulp)."""
    x, p = args[0], PRECISION[args[0].dtype]
    n, unit = x.value.shape[1], p.unit + U64
    with np.errstate(all="ignore"):
        plain = np.isfinite(x.value) & np.isfinite(x.error)
        values, error = np.where(plain, x.value, 0.0), np.where(plain, x.error, 0.0)
        size = np.mean(np.abs(values) + error, axis=1, keepdims=True)
        d = values - np.mean(values, axis=1, keepdims=True)
        off = error + np.mean(error, axis=1, keepdims=True) + gamma(n + 4, unit) * size
        off += 2 * unit * (np.abs(d) + off) + n * p.tiny
        off *= size > 0
        rest = n - int_of(call.attrs, "correction")
        reach = (np.abs(d) + off) @ (np.abs(d) + off).T / rest
        bound = (
            reach
            - np.abs(d) @ np.abs(d).T / rest
            + (gamma(n + 8, unit) + 8 * n * U64) * reach
            + n * p.tiny * (reach > 0)
        )
        lost = np.asarray(~np.all(plain, axis=1) | (4 * n * size > p.largest)[:, 0])
        whole = lost[:, None] | lost | (4 * n * reach > p.largest)
        value = d @ d.T / rest
    return rounded(value, np.where(whole | np.isnan(bound), np.inf, np.maximum(bound, 0.0)), x.dtype)


cov = OpSpec(
    "cov", "statistics",
    (Slot(lambda t, e: floating(2, 2, nonempty=True).accepts(t, e) and t.shape[0] <= 9,
          lambda d, e: TensorType(floating().fresh(d, e).dtype,
                                  (draw_dim(d, 9, zero=False), draw_dim(d, 33, zero=False)))),),
    _cov_type, _cov, attrs={"correction": lambda d, operands, attrs: d.integer(0, min(1, operands[0].shape[1] - 1))},
    torch="torch.cov({0}, correction={correction}).reshape({shape})", tensorflow="cov({0}, {correction})",
    jax="jnp.cov({0}, ddof={correction}).reshape({shape})",
    relax="cov(bb, {0}, {correction}, {shape0}, {name})", onnx="cov(g, {0}, {correction}, {shape0}, {name})",
)  # fmt: skip

# ---- counting -----------------------------------------------------------------------------------------


def _bincount_type(operands: Types, attrs: Attrs) -> TensorType:
    size = int_of(attrs, "size")
    if size < CLASSES:
        raise TypeRuleError(f"numbers below {CLASSES} need as many counts, not {size}")
    return TensorType("int64", (size,))


def _bincount(args: Sequence[Bounded], call: Call) -> Bounded:
    return exact(np.bincount(args[0].value, minlength=int_of(call.attrs, "size")), "int64")


bincount = OpSpec(
    "bincount", "statistics", (index_slot(1, 1, lambda earlier: (0, CLASSES - 1)),), _bincount_type, _bincount,
    attrs={"size": lambda d, operands, attrs: d.choice((CLASSES, 5, 9))},
    torch="torch.bincount({0}, minlength={size})",
    tensorflow="tf.math.bincount(tf.cast({0}, tf.int32), minlength={size}, maxlength={size}, dtype=tf.int64)",
    jax="jnp.bincount({0}, length={size}).astype(jnp.int64)", relax="bincount({0}, {size}, {name0})",
    onnx="bincount(g, {0}, {size}, {name0})",
)  # fmt: skip

# ---- correlations and histograms ----------------------------------------------------------------------


def _corrcoef_type(operands: Types, attrs: Attrs) -> TensorType:
    x = operands[0]
    if x.rank != 2 or x.size == 0 or x.shape[0] > 9 or x.shape[1] < 2:
        raise TypeRuleError(f"no correlations of the rows of {x}")
    return TensorType(x.dtype, (x.shape[0], x.shape[0]))


def _corrcoef(args: Sequence[Bounded], call: Call) -> Bounded:
    """Covariances by standard deviations, which may be clipped to [-1, 1]; the sums need not be divided first."""
    c = compute(cov, args[0], correction=0)
    with np.errstate(all="ignore"):
        deviation = monotone(np.sqrt, c.map(lambda array: np.diagonal(array).copy()), 3)
        by_rows = divide(c, deviation.map(lambda array: np.broadcast_to(array[:, None], c.value.shape)))
        found = divide(by_rows, deviation.map(lambda array: np.broadcast_to(array, c.value.shape)))
    # a variance that may be zero may be NaN by 0 / 0
    return undetermined(found, ~np.isfinite(found.value) & (found.error > 0))


corrcoef = OpSpec(
    "corrcoef", "statistics",
    (Slot(lambda t, e: floating(2, 2, nonempty=True).accepts(t, e) and t.shape[0] <= 9 and t.shape[1] >= 2,
          lambda d, e: TensorType(floating().fresh(d, e).dtype,
                                  (draw_dim(d, 9, zero=False), max(2, draw_dim(d, 33, zero=False))))),),
    _corrcoef_type, _corrcoef,
    torch="torch.corrcoef({0}).reshape({shape})", tensorflow="corrcoef({0})",
    jax="jnp.corrcoef({0}).reshape({shape})", relax="corrcoef(bb, {0})", onnx="corrcoef(g, {0})",
)  # fmt: skip

LIMITS = (-2.0, 2.0)


def _histogram_type(operands: Types, attrs: Attrs) -> TensorType:
    bins = int_of(attrs, "bins")
    if operands[0].rank != 1 or bins not in (1, 2, 4, 8):
        raise TypeRuleError(f"no histogram of {operands[0]} in {bins} bins")
    return TensorType("int64", (bins,))


def _histogram(args: Sequence[Bounded], call: Call) -> Bounded:
    """Bins of equal width from -2 to 2, each without its upper edge but the last; what is outside counts nowhere. A
    place is (x + 2) bins / 4 or the like, three roundings of numbers up to |x| + 2 which are exact on an edge: a bin is
    undetermined where an element is that close to an edge and not on it, and all are where there is a NaN."""
    x, bins = args[0], int_of(call.attrs, "bins")
    edges = np.linspace(*LIMITS, bins + 1)
    with np.errstate(all="ignore"):
        distance = np.abs(x.value[:, None] - edges)
        room = x.error[:, None] + 8 * PRECISION[x.dtype].unit * (np.abs(x.value[:, None]) + 2)
        close = (distance <= room) & ~((distance == 0) & (x.error[:, None] == 0)) & np.isfinite(distance)
        counts = np.histogram(x.value[np.isfinite(x.value)], bins, LIMITS)[0]
        unsure = np.any(close[:, :-1] | close[:, 1:], axis=0) | np.isnan(x.value).any() | x.undetermined.any()
    return exact(counts, "int64", unsure)


_SAMPLES = Slot(
    lambda t, e: floating(1, 1).accepts(t, e),
    lambda d, e: TensorType(draw_dtype(d, FLOATS), (d.choice((17, 9, 33, 2, 1, 0)),)),
)

histogram = OpSpec(
    "histogram", "statistics", (_SAMPLES,), _histogram_type, _histogram, attrs={"bins": one_of(4, 1, 2, 8)},
    torch="torch.histc({0}, bins={bins}, min=-2.0, max=2.0).to(torch.int64)", tensorflow="histogram({0}, {bins})",
    jax="jnp.histogram({0}, bins={bins}, range=(-2.0, 2.0))[0].astype(jnp.int64)",
    relax="histogram({0}, {bins}, {name0})", onnx="histogram(g, {0}, {bins}, {name0})",
)  # fmt: skip


def _variance(args: Sequence[Bounded], call: Call) -> Bounded:
    return variance_of(args[0], axes_in(call), bool(call.attrs["keepdims"]))


def _std(args: Sequence[Bounded], call: Call) -> Bounded:
    return root(_variance(args, call))


_SAME = "axis={axes}, keepdims={keepdims}"

OPERATORS: tuple[OpSpec, ...] = (
    reduction(
        "variance", floating(), _variance,
        torch="torch.var({0}, dim={axes}, correction=0, keepdim={keepdims})",
        tensorflow=f"tf.math.reduce_variance({{0}}, {_SAME})", jax=f"jnp.var({{0}}, {_SAME})",
        onnx=of_something("variance(g, {0}, {axes}, {keepdims})"),
    ),
    reduction(
        "std", floating(), _std,
        torch="torch.std({0}, dim={axes}, correction=0, keepdim={keepdims})",
        tensorflow=f"tf.math.reduce_std({{0}}, {_SAME})", jax=f"jnp.std({{0}}, {_SAME})",
        onnx=of_something('g.op("Sqrt", variance(g, {0}, {axes}, {keepdims}))'),
    ),
    quantile,
    cov,
    corrcoef,
    histogram,
    bincount,
)  # fmt: skip
