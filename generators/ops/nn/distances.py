"""Distances of vectors: of all pairs (cdist), and row by row (pairwise_distance)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from generators.bounds.bounded import Bounded, add, monotone, multiply
from generators.bounds.sums import root, scaled_square, summed
from generators.graph import FLOATS, TensorType
from generators.ops.composed import Spellings, compute, given, magnitude, shared
from generators.ops.reduce.norms import vector_norm
from generators.ops.reduce.reductions import count_nonzero, max_, sum_
from generators.ops.slots import MAX_ELEMENTS, draw_dim, floating, like, one_of, tensor
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Slot, TypeRuleError, Types, unsupported

Array = np.ndarray

EPSILON = 2.0**-20


def distance(x: Bounded, y: Bounded, p: float) -> Bounded:
    """The 1-norm or 2-norm of x - y + EPSILON, along the last axis. Squares that vanish count as flushed; those that
    overflow are undetermined: of one element, |d| is as good."""
    d = add(add(x, y, -1.0), given(EPSILON, x.dtype))
    if p == 1.0:
        return summed(magnitude(d), partial(np.sum, axis=-1), d.value.shape[-1])
    return root(summed(scaled_square(d), partial(np.sum, axis=-1), d.value.shape[-1], overflows=False))


def _pairwise_distance(args: Sequence[Bounded], call: Call) -> Bounded:
    x, y = args
    return distance(x, y, call.number("p"))


def of_rows(operands: Types, attrs: Attrs) -> TensorType:
    """One number for each row of matrices of one shape; beside them there may be one number, or label, a row."""
    x = operands[0]
    if x.rank != 2 or x.size == 0 or any(t.shape not in (x.shape, x.shape[:1]) for t in operands):
        raise TypeRuleError(f"{', '.join(map(str, operands))} have not the same rows")
    if "p" in attrs and attrs["p"] not in (1.0, 2.0):
        raise TypeRuleError(f"the norm of {attrs['p']!r} is not here")
    return TensorType(x.dtype, x.shape[:1])


ROWS = tensor(FLOATS, 2, 2, nonempty=True)

_F = "torch.nn.functional"

_DISTANCE: Spellings = {
    **shared("pairwise_distance", eps=lambda call: EPSILON),
    "torch": f"{_F}.pairwise_distance({{0}}, {{1}}, {{p}}, {EPSILON!r})",
}


# ---- of all pairs -------------------------------------------------------------------------------------


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

# ---- of all pairs, by other norms ---------------------------------------------------------------------

ORDERS = ("inf", "3", "0", "0.5", "4")


def _orders_type(operands: Types, attrs: Attrs) -> TensorType:
    if attrs["ord"] not in ORDERS:
        raise TypeRuleError(f"no distances of order {attrs['ord']!r}")
    return _cdist_type(operands, {"p": 2.0})


def _of_order(args: Sequence[Bounded], call: Call) -> Bounded:
    """The norm of every difference of two rows. Of order 0 it counts what differs; whether NaN does, nobody says."""
    x, y = args[0].map(lambda a: a[..., :, None, :]), args[1].map(lambda a: a[..., None, :, :])
    d, over = add(x, y, -1.0), {"axes": (-1,), "keepdims": False}
    order = str(call.attrs["ord"])
    if order == "inf":
        return compute(max_, magnitude(d), **over)
    if order != "0":
        return compute(vector_norm, d, ord=order, **over) if d.value.size else compute(sum_, d, **over)
    counted = compute(count_nonzero, d, **over)
    unknown = np.any(~np.isfinite(d.value), axis=-1) | counted.undetermined | (counted.error > 0)
    return Bounded(counted.value.astype(np.float64), np.where(unknown, np.inf, 0.0), d.dtype)


cdist_of_order = OpSpec(
    "cdist_of_order", "statistics", cdist.operands, _orders_type, _of_order, attrs={"ord": one_of(*ORDERS)},
    torch="torch.cdist({0}, {1}, p=float({ord}))",
    tensorflow=unsupported("it has no such operator"),
    jax="jnp.linalg.norm({0}[..., :, None, :] - {1}[..., None, :, :], ord=float({ord}), axis=-1)",
    relax=unsupported("it has no such operator"), onnx=unsupported("it has no such operator"),
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (
    cdist,
    cdist_of_order,
    OpSpec(
        "pairwise_distance", "loss", (ROWS, like(0)), of_rows, _pairwise_distance, attrs={"p": one_of(2.0, 1.0)},
        **_DISTANCE,
    ),
)  # fmt: skip
