"""Differences of neighbours, and integrals by the trapezoidal rule."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded, add, exact
from generators.bounds.products import bilinear
from generators.graph import FLOATS, TensorType
from generators.ops.slots import axis_in, axis_of, draw_dim, floating, int_of, numeric, one_of
from generators.ops.spec import Attrs, Call, OpSpec, Slot, TypeRuleError, Types


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


LONG = Slot(
    lambda t, earlier: t.dtype in FLOATS and t.rank >= 1 and t.size > 0 and min(t.shape) >= 2,
    lambda d, earlier: TensorType(
        floating().fresh(d, earlier).dtype,
        tuple(max(2, draw_dim(d, 9, zero=False)) for _ in range(d.choice((1, 2, 3)))),
    ),
)

trapezoid = OpSpec(
    "trapezoid", "statistics", (LONG,), _trapezoid_type, _trapezoid,
    attrs={"axis": axis_of(0), "dx": one_of(1.0, 0.5, 2.0)},
    torch="torch.trapezoid({0}, dx={dx}, dim={axis})", tensorflow="trapezoid({0}, {dx}, {axis})",
    jax="jnp.trapezoid({0}, dx={dx}, axis={axis})", relax="trapezoid(bb, {0}, {dx}, {axis}, {shape0}, {name})",
    onnx="trapezoid(g, {0}, {dx}, {axis}, {shape0}, {name})",
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (diff, trapezoid)
