"""What describes samples: quantiles, differences, trapezoids, covariances, distances, counts, places in a sequence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, floor

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, add, exact, gamma, monotone, multiply, rounded
from generators.bounds.products import bilinear
from generators.bounds.sums import summed
from generators.graph import FLOATS, TensorType
from generators.ops.index.gather import CLASSES, index_slot
from generators.ops.reduce.sorting import ordered
from generators.ops.shape.reshape import Attrs, axis_in, int_of
from generators.ops.slots import MAX_ELEMENTS, axis_of, draw_dim, flag, floating, numeric, one_of
from generators.ops.spec import Call, Draw, OpSpec, Slot, TypeRuleError, Types

Array = np.ndarray

# ---- along an axis ------------------------------------------------------------------------------------

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


def _diff_type(operands: Types, attrs: Attrs) -> TensorType:
    axis, n, shape = axis_in(attrs, operands[0].rank), int_of(attrs, "n"), list(operands[0].shape)
    if not 1 <= n <= shape[axis]:
        raise TypeRuleError(f"no {n} differences along a dimension of {shape[axis]}")
    shape[axis] -= n
    return TensorType(operands[0].dtype, tuple(shape))


def _diff(args: Sequence[Bounded], call: Call) -> Bounded:
    x, axis = args[0], axis_in(call.attrs, args[0].value.ndim)
    for _ in range(int_of(call.attrs, "n")):
        places = range(x.value.shape[axis])
        earlier, later = (x.map(lambda a, p=p: np.take(a, p, axis)) for p in (places[:-1], places[1:]))
        if x.floating:
            x = add(later, earlier, -1.0)
        else:
            x = exact(later.value - earlier.value, x.dtype, later.undetermined | earlier.undetermined)
    return x


diff = OpSpec(
    "diff", "statistics", (numeric(1, nonempty=True),), _diff_type, _diff,
    attrs={"axis": axis_of(0), "n": lambda d, operands, attrs: min(
        d.choice((1, 2)), operands[0].shape[axis_in(attrs, operands[0].rank)])},
    torch="torch.diff({0}, n={n}, dim={axis})", tensorflow="diff({0}, {n}, {axis})",
    jax="jnp.diff({0}, n={n}, axis={axis})", relax="diff(bb, {0}, {n}, {axis}, {shape0})",
    onnx="diff(g, {0}, {n}, {axis}, {shape0})",
)  # fmt: skip


def _trapezoid_type(operands: Types, attrs: Attrs) -> TensorType:
    shape, axis = operands[0].shape, axis_in(attrs, operands[0].rank)
    if shape[axis] < 2 or not isinstance(attrs["dx"], float) or not 0.25 <= attrs["dx"] <= 4:
        raise TypeRuleError(f"no trapezoids along axis {axis} of {operands[0]} by {attrs['dx']!r}")
    return TensorType(operands[0].dtype, (*shape[:axis], *shape[axis + 1 :]))


def _trapezoid(args: Sequence[Bounded], call: Call) -> Bounded:
    """n terms, each weighted by dx, the outermost by dx / 2: three roundings more than a sum. PyTorch takes half of the
    outermost off the whole sum, which triples their magnitudes, hence 3 (n + 3). Where the sum is formed before it is
    scaled, it may overflow. JAX does likewise: an infinity there less half of itself is NaN: undetermined."""
    x, axis = args[0], axis_in(call.attrs, args[0].value.ndim)
    last, n = x.map(lambda array: np.moveaxis(array, axis, -1)), x.value.shape[axis]
    weights = np.full(n, call.number("dx"))
    weights[[0, -1]] /= 2
    result = bilinear(np.matmul, last, Bounded(weights, np.zeros(n), x.dtype), 3 * (n + 3))
    with np.errstate(all="ignore"):
        size = 4 * np.sum(np.where(np.isfinite(last.value), np.abs(last.value) + last.error, 0.0), axis=-1)
    reach = (size > PRECISION[x.dtype].largest) | np.isinf(last.value[..., [0, -1]]).any(-1)
    reach &= ~np.isnan(result.value)
    return Bounded(result.value, np.where(reach, np.inf, result.error), x.dtype)


_LONG = Slot(
    lambda t, earlier: t.dtype in FLOATS and t.rank >= 1 and t.size > 0 and min(t.shape) >= 2,
    lambda d, earlier: TensorType(
        floating().fresh(d, earlier).dtype,
        tuple(max(2, draw_dim(d, 9, zero=False)) for _ in range(d.choice((1, 2, 3)))),
    ),
)

trapezoid = OpSpec(
    "trapezoid", "statistics", (_LONG,), _trapezoid_type, _trapezoid,
    attrs={"axis": axis_of(0), "dx": one_of(1.0, 0.5, 2.0)},
    torch="torch.trapezoid({0}, dx={dx}, dim={axis})", tensorflow="trapezoid({0}, {dx}, {axis})",
    jax="jnp.trapezoid({0}, dx={dx}, axis={axis})", relax="trapezoid(bb, {0}, {dx}, {axis}, {shape0}, {name})",
    onnx="trapezoid(g, {0}, {dx}, {axis}, {shape0}, {name})",
)  # fmt: skip

# ---- of rows ------------------------------------------------------------------------------------------


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
        lost = np.asarray(~np.all(plain, axis=1))
        whole = lost[:, None] | lost | (4 * n * reach > p.largest) | (4 * n * size > p.largest)[:, 0]
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


def _rows(d: Draw, earlier: Types) -> TensorType:
    x = earlier[0]
    return TensorType(x.dtype, (*x.shape[:-2], draw_dim(d, 9), x.shape[-1]))


def _cdist_type(operands: Types, attrs: Attrs) -> TensorType:
    x, y = operands
    if (
        x.dtype != y.dtype
        or x.rank != y.rank
        or x.rank < 2
        or (x.shape[:-2], x.shape[-1]) != (y.shape[:-2], y.shape[-1])
    ):
        raise TypeRuleError(f"no distances between rows of {x} and {y}")
    if attrs["p"] not in (1.0, 2.0):
        raise TypeRuleError(f"no distances of order {attrs['p']!r}")
    return TensorType(x.dtype, (*x.shape[:-1], y.shape[-2]))


def _fits_rows(t: TensorType, earlier: Types) -> bool:
    x = earlier[0]
    same = t.dtype == x.dtype and t.rank == x.rank and t.shape[:-2] == x.shape[:-2] and t.shape[-1] == x.shape[-1]
    return same and x.size * t.shape[-2] <= 8 * MAX_ELEMENTS


def _cdist(args: Sequence[Bounded], call: Call) -> Bounded:
    """The norm of every difference of two rows; scaled or not, so that an overflow is undetermined."""
    x, y = args[0].map(lambda a: a[..., :, None, :]), args[1].map(lambda a: a[..., None, :, :])
    d, n = add(x, y, -1.0), x.value.shape[-1]
    d = Bounded(np.abs(d.value), d.error, d.dtype)

    def collect(array: Array) -> Array:
        return np.sum(array, axis=-1)

    if call.attrs["p"] == 1.0:
        return summed(d, collect, n, overflows=False)
    total = summed(multiply(d, d), collect, n, overflows=False)
    root = monotone(lambda v: np.sqrt(np.maximum(v, 0.0)), total, 3)
    with np.errstate(all="ignore"):
        over = np.isinf(root.value) & ~np.any(np.isinf(d.value), axis=-1)
    return Bounded(root.value, np.where(over, np.inf, root.error), root.dtype)


cdist = OpSpec(
    "cdist", "statistics",
    (Slot(lambda t, e: floating(2, 3).accepts(t, e) and t.size <= 512 and t.shape[-1] > 0,
          lambda d, e: TensorType(floating().fresh(d, e).dtype, (
              *[draw_dim(d, 3)] * d.integer(0, 1), draw_dim(d, 9), draw_dim(d, 9, zero=False)))),
     Slot(_fits_rows, _rows)),
    _cdist_type, _cdist, attrs={"p": one_of(2.0, 1.0)},
    torch='torch.cdist({0}, {1}, p={p}, compute_mode="donot_use_mm_for_euclid_dist")',
    tensorflow="cdist({0}, {1}, {p})", jax="cdist({0}, {1}, {p})", relax="cdist(bb, {0}, {1}, {p})",
    onnx="cdist(g, {0}, {1}, {p})",
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


def _fresh_sequence(d: Draw, earlier: Types) -> TensorType:
    return TensorType(numeric().fresh(d, earlier).dtype, (draw_dim(d, 33, zero=False),))


def _fits_values(t: TensorType, earlier: Types) -> bool:
    return t.dtype == earlier[0].dtype and t.size * earlier[0].size <= 16 * MAX_ELEMENTS


def _fresh_values(d: Draw, earlier: Types) -> TensorType:
    return TensorType(earlier[0].dtype, tuple(draw_dim(d, 5) for _ in range(d.choice((1, 2, 0, 3)))))


def _searchsorted_type(operands: Types, attrs: Attrs) -> TensorType:
    sequence, values = operands
    if sequence.rank != 1 or sequence.size == 0 or not _fits_values(values, operands):
        raise TypeRuleError(f"no places of {values} in {sequence}")
    return TensorType("int64", values.shape)


def _flat(x: Bounded) -> Callable[[Array], Array]:
    """Subnormals may be read as zero."""
    if not x.floating:
        return lambda array: array
    return lambda array: np.where(np.abs(array) < PRECISION[x.dtype].tiny, 0.0, array)


def _searchsorted(args: Sequence[Bounded], call: Call) -> Bounded:
    """How many elements of the sequence, sorted first, are below a value, or equal to it if `right`: certain where
    every comparison is, flushed or not. NaN is undetermined on either side."""
    sequence, values = args
    a, b = sequence.value, values.value[..., None]
    compare = np.less_equal if call.attrs["right"] else np.less
    with np.errstate(invalid="ignore"):
        below = compare(a, b)
        unsure = compare(_flat(sequence)(a), _flat(values)(b)) != below
        if sequence.floating:
            room = sequence.error + values.error[..., None]
            unsure |= (room > 0) & ~(np.abs(a - b) > room)
            unsure |= np.isnan(a) | np.isnan(b)
        unsure |= sequence.undetermined | values.undetermined[..., None]
    return exact(np.asarray(np.sum(below, axis=-1, dtype=np.int64)), "int64", np.any(unsure, axis=-1))


searchsorted = OpSpec(
    "searchsorted", "statistics",
    (Slot(lambda t, e: numeric(1, 1, nonempty=True).accepts(t, e), _fresh_sequence), Slot(_fits_values, _fresh_values)),
    _searchsorted_type, _searchsorted, attrs={"right": flag()},
    torch="torch.searchsorted(torch.sort({0}).values, {1}, right={right})",
    tensorflow="searchsorted({0}, {1}, {right})",
    jax='jnp.searchsorted(jnp.sort({0}), {1}, side="right" if {right} else "left").astype(jnp.int64)',
    relax="relax.op.bucketize({1}, relax.op.sort({0}, 0, False), right={right})",
    onnx="searchsorted(g, {0}, {1}, {rank1}, {right})",
)  # fmt: skip

STATISTICS: tuple[OpSpec, ...] = (quantile, diff, trapezoid, cov, cdist, bincount, searchsorted)
