"""What array libraries have beside the rest: Vandermonde matrices, tensor products, correlations, histograms, medians
that leave NaN out, sums into places that several tensors of indices name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded, divide, exact, monotone, multiply, rounded
from generators.bounds.products import bilinear
from generators.bounds.sums import summed
from generators.graph import FLOATS, TensorType
from generators.ops.composed import compute, given, stacked, undetermined
from generators.ops.index.gather import INDEX_DTYPES
from generators.ops.reduce.sorting import ordered
from generators.ops.reduce.statistics import cov
from generators.ops.shape.reshape import Attrs, axis_in, int_of
from generators.ops.slots import (
    MAX_ELEMENTS,
    axis_of,
    computed,
    draw_dim,
    draw_dtype,
    flag,
    floating,
    one_of,
    tensor,
)
from generators.ops.spec import Call, Draw, OpSpec, Slot, TypeRuleError, Types

Array = np.ndarray

# ---- powers of one vector -----------------------------------------------------------------------------


def _vander_type(operands: Types, attrs: Attrs) -> TensorType:
    columns = int_of(attrs, "columns")
    if operands[0].rank != 1 or not 1 <= columns <= 6:
        raise TypeRuleError(f"no {columns} powers of {operands[0]}")
    return TensorType(operands[0].dtype, (operands[0].shape[0], columns))


def _vander(args: Sequence[Bounded], call: Call) -> Bounded:
    """Products, one after the other, or pow, of 16 ulp; the power 0 is 1 of NaN, too."""
    x, powers = args[0], [given(np.ones(args[0].value.shape), args[0].dtype), args[0]]
    for k in range(2, int_of(call.attrs, "columns")):
        power = multiply(powers[-1], x)
        with np.errstate(all="ignore"):
            value = np.where(np.isinf(power.value), power.value, x.value**k)
        powers.append(rounded(value, power.error, x.dtype, 16))
    powers = powers[: int_of(call.attrs, "columns")]
    return stacked(*(powers if call.attrs["increasing"] else powers[::-1]), axis=1)


vander = OpSpec(
    "vander", "linalg", (floating(1, 1),), _vander_type, _vander,
    attrs={"columns": lambda d, operands, attrs: d.integer(1, 5), "increasing": flag()},
    torch="torch.vander({0}, {columns}, {increasing})",
    tensorflow="tf.experimental.numpy.vander({0}, {columns}, {increasing})",
    jax="jnp.vander({0}, {columns}, increasing={increasing})",
    relax="vander(bb, {0}, {columns}, {increasing}, {name})", onnx="vander(g, {0}, {columns}, {increasing}, {name})",
)  # fmt: skip

# ---- products -----------------------------------------------------------------------------------------


def _accepts_factor(type_: TensorType, earlier: Types) -> bool:
    if type_.dtype not in FLOATS or not 2 <= type_.rank <= 3 or type_.size == 0:
        return False
    if not earlier:
        return type_.size <= 256
    return type_.dtype == earlier[0].dtype and type_.shape[:2] == earlier[0].shape[-2:] and type_.size <= 256


def _fresh_factor(d: Draw, earlier: Types) -> TensorType:
    """Its first two axes are the last two of the other one, so that one (where they are alike) or both contract."""
    if not earlier:
        side = draw_dim(d, 6, zero=False)
        rest = [draw_dim(d, 4, zero=False) for _ in range(d.integer(0, 1))]
        return TensorType(draw_dtype(d, FLOATS), (*rest, side, draw_dim(d, 6, zero=False, like=side)))
    shape = earlier[0].shape[-2:]
    rest = [min(draw_dim(d, 4, zero=False), 256 // prod(shape)) for _ in range(d.integer(0, 1))]
    return TensorType(earlier[0].dtype, (*shape, *rest))


def _tensordot_type(operands: Types, attrs: Attrs) -> TensorType:
    x, y, axes = *operands, int_of(attrs, "axes")
    if axes not in (1, 2) or not _accepts_factor(y, operands[:1]) or x.shape[x.rank - axes :] != y.shape[:axes]:
        raise TypeRuleError(f"{x} and {y} do not contract over {axes} axes")
    shape = (*x.shape[: x.rank - axes], *y.shape[axes:])
    if prod(shape) > MAX_ELEMENTS:
        raise TypeRuleError(f"a product of shape {shape} is too large")
    return TensorType(x.dtype, shape)


def _tensordot(args: Sequence[Bounded], call: Call) -> Bounded:
    axes = int_of(call.attrs, "axes")
    terms = prod(call.operands[1].shape[:axes])
    return bilinear(partial(np.tensordot, axes=axes), args[0], args[1], terms)


def _contracted_axes(d: Draw, operands: Types, attrs: Attrs) -> int:
    rows, columns = operands[0].shape[-2:]
    return d.choice((2, 1)) if rows == columns else 2


tensordot = OpSpec(
    "tensordot", "linalg", (Slot(_accepts_factor, _fresh_factor), Slot(_accepts_factor, _fresh_factor)),
    _tensordot_type, _tensordot, attrs={"axes": _contracted_axes},
    torch="torch.tensordot({0}, {1}, dims={axes})", tensorflow="tf.tensordot({0}, {1}, {axes})",
    jax="jnp.tensordot({0}, {1}, axes={axes})",
    relax="tensordot({0}, {1}, {axes}, {shape0}, {shape1}, {shape})",
    onnx="tensordot(g, {0}, {1}, {axes}, {shape0}, {shape1}, {shape})",
)  # fmt: skip

# ---- statistics ---------------------------------------------------------------------------------------


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


def _nanmedian_type(operands: Types, attrs: Attrs) -> TensorType:
    x = operands[0]
    axis = axis_in(attrs, x.rank)
    if x.size == 0:
        raise TypeRuleError(f"no medians of {x}")
    return TensorType(x.dtype, (*x.shape[:axis], *x.shape[axis + 1 :]))


def _nanmedian(args: Sequence[Bounded], call: Call) -> Bounded:
    """Of those that are numbers, the lower one of two in the middle; NaN where there is none."""
    x, axis = args[0], axis_in(call.attrs, args[0].value.ndim)
    missing = np.isnan(x.value) & (x.error == 0)
    there = ordered(Bounded(np.where(missing, np.inf, x.value), x.error, x.dtype), axis, descending=False)
    count = np.sum(~missing, axis=axis, keepdims=True)
    place = np.maximum((count - 1) // 2, 0)
    found = there.map(lambda array: np.take_along_axis(array, place, axis).squeeze(axis))
    none = count.squeeze(axis) == 0
    return Bounded(np.where(none, np.nan, found.value), np.where(none, 0.0, found.error), x.dtype)


nanmedian = OpSpec(
    "nanmedian", "statistics", (floating(1, nonempty=True),), _nanmedian_type, _nanmedian, attrs={"axis": axis_of(0)},
    torch="torch.nanmedian({0}, dim={axis}).values", tensorflow="nanmedian({0}, {axis})",
    jax='jnp.nanquantile({0}, 0.5, axis={axis}, method="lower")', relax="nanmedian(bb, {0}, {axis}, {name})",
    onnx="nanmedian(g, {0}, {axis}, {shape0}, {name})",
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

# ---- sums into places ---------------------------------------------------------------------------------


def _least_side(earlier: Types) -> tuple[int, int]:
    return 0, min(earlier[0].shape[:2]) - 1


def _places(rank: int) -> Slot:
    """Indices of the first two axes; those of rank 2 and 1 broadcast with each other."""

    def accepts(type_: TensorType, earlier: Types) -> bool:
        if type_.dtype not in INDEX_DTYPES or type_.rank != rank or type_.size > 32:
            return False
        return len(earlier) < 2 or (type_.dtype == earlier[1].dtype and type_.shape == earlier[1].shape[1:])

    def fresh(d: Draw, earlier: Types) -> TensorType:
        if len(earlier) < 2:
            return TensorType(d.choice(INDEX_DTYPES), tuple(draw_dim(d, 4) for _ in range(rank)))
        return TensorType(earlier[1].dtype, earlier[1].shape[1:])

    return Slot(accepts, fresh, _least_side)


def _added(earlier: Types) -> TensorType:
    return TensorType(earlier[0].dtype, (*earlier[1].shape, *earlier[0].shape[2:]))


def _index_put_type(operands: Types, attrs: Attrs) -> TensorType:
    x, rows, columns, values = operands
    if x.dtype not in FLOATS or x.rank < 2 or columns.shape != rows.shape[1:] or values != _added(operands):
        raise TypeRuleError(f"{values} cannot be added to {x} at {rows} and {columns}")
    return x


def _index_put(args: Sequence[Bounded], call: Call) -> Bounded:
    """Each place a sum of what was there and all that is added, in any order."""
    x, rows, columns, values = args
    at = np.broadcast_arrays(rows.value.astype(np.int64), columns.value.astype(np.int64))
    most = int(np.bincount(np.ravel_multi_index([a.ravel() for a in at], x.value.shape[:2]), minlength=1).max())
    layers = [x.map(lambda a: a[None])]
    # the terms of one place side by side, zeros where there are fewer
    seen: dict[tuple[int, int], int] = {}
    extra, error = (np.zeros((most, *x.value.shape)) for _ in range(2))
    for place in np.ndindex(*at[0].shape):
        spot = (int(at[0][place]), int(at[1][place]))
        layer = seen[spot] = seen.get(spot, -1) + 1
        extra[(layer, *spot)], error[(layer, *spot)] = values.value[place], values.error[place]
    layers.append(Bounded(extra, error, x.dtype))
    value, bound = (np.concatenate([getattr(b, k) for b in layers]) for k in ("value", "error"))
    return summed(Bounded(value, bound, x.dtype), lambda array: np.sum(array, axis=0), most + 1)


index_put = OpSpec(
    "index_put", "indexing",
    (tensor(FLOATS, 2, 3, nonempty=True), _places(2), _places(1), computed(_added)), _index_put_type, _index_put,
    torch="torch.index_put({0}, ({1}, {2}), {3}, accumulate=True)",
    tensorflow="tf.tensor_scatter_nd_add({0}, tf.stack([{1}, tf.broadcast_to({2}, {shape1})], -1), {3})",
    jax="jnp.asarray({0}).at[{1}, {2}].add({3})", relax="index_put({0}, {1}, {2}, {3}, {shape1})",
    onnx="index_put(g, {0}, {1}, {2}, {3}, {shape1})",
)  # fmt: skip

ARRAYS: tuple[OpSpec, ...] = (vander, tensordot, corrcoef, nanmedian, histogram, index_put)
