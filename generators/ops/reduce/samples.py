"""Functions that are known at places of equal distance: their slopes, their integrals so far, convolutions of two; and
polynomials of given coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from generators.bounds.bounded import Bounded, add, multiply
from generators.bounds.products import bilinear
from generators.bounds.sums import summed
from generators.graph import FLOATS, TensorType
from generators.ops.composed import given, joined
from generators.ops.reduce.differences import LONG
from generators.ops.slots import axis_in, axis_of, draw_dim, draw_dtype, floating, one_of
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Slot, TypeRuleError, Types, Unsupported, unsupported

Array = np.ndarray

_NONE = unsupported("it has no such operator")
STEPS = (1.0, 0.5, 2.0)
"""Distances of two places: powers of two, by which products and quotients are exact."""

# ---- slopes -------------------------------------------------------------------------------------------


def _sampled_type(operands: Types, attrs: Attrs) -> TensorType:
    x = operands[0]
    if x.shape[axis_in(attrs, x.rank)] <= attrs.get("edge", 1) or attrs["dx"] not in STEPS:  # type: ignore[operator]
        raise TypeRuleError(f"no slopes along axis {attrs['axis']} of {x} by {attrs['dx']!r}")
    return x


def _taken(x: Bounded, axis: int, *places: int | slice) -> list[Bounded]:
    whole = [slice(p, p + 1 or None) if isinstance(p, int) else p for p in places]
    return [x.map(lambda a, p=p: a[(slice(None),) * axis + (p,)]) for p in whole]


def _slopes(args: Sequence[Bounded], call: Call) -> Bounded:
    """(f(x + h) - f(x - h)) / 2 h, at the ends (f(x + h) - f(x)) / h or, of edge 2, (-3 f(x) + 4 f(x + h) -
    f(x + 2 h)) / 2 h, whose products may be of rounded coefficients and whose sum may be in any order."""
    x, axis, dx = args[0], axis_in(call.attrs, args[0].value.ndim), call.number("dx")
    later, earlier = _taken(x, axis, slice(2, None), slice(None, -2))
    inner = _by(add(later, earlier, -1.0), 0.5 / dx)
    if call.attrs["edge"] == 1:
        a, b, y, z = _taken(x, axis, 0, 1, -2, -1)
        return joined(_by(add(b, a, -1.0), 1 / dx), inner, _by(add(z, y, -1.0), 1 / dx), axis=axis)
    ends = []
    for places, sign in (((0, 1, 2), 1.0), ((-1, -2, -3), -1.0)):
        terms = joined(*_taken(x, axis, *places), axis=axis)
        weights = given(sign * np.array([-1.5, 2.0, -0.5]) / dx, x.dtype)
        moved = terms.map(partial(np.moveaxis, source=axis, destination=-1))
        ends.append(bilinear(np.matmul, moved, weights, 8).map(partial(np.expand_dims, axis=axis)))
    return joined(ends[0], inner, ends[1], axis=axis)


def _by(x: Bounded, number: float) -> Bounded:
    return multiply(x, given(number, x.dtype))


def _jax_slopes(call: Call) -> str | Unsupported:
    return "jnp.gradient({0}, {dx}, axis={axis})" if call.attrs["edge"] == 1 else Unsupported("it has edges of order 1")


def _edge(d: Draw, operands: Types, attrs: Attrs) -> int:
    return 1 if operands[0].shape[axis_in(attrs, operands[0].rank)] < 3 else d.choice((1, 2))


# ---- integrals so far ---------------------------------------------------------------------------------


def _integrals_type(operands: Types, attrs: Attrs) -> TensorType:
    shape, axis = list(_sampled_type(operands, attrs).shape), axis_in(attrs, operands[0].rank)
    shape[axis] -= 1
    return TensorType(operands[0].dtype, tuple(shape))


def _integrals(args: Sequence[Bounded], call: Call) -> Bounded:
    """Sums of neighbours, running, times dx / 2, before or after."""
    x, axis = args[0], axis_in(call.attrs, args[0].value.ndim)
    later, earlier = _taken(x, axis, slice(1, None), slice(None, -1))
    pairs = _by(add(later, earlier), call.number("dx") / 2)
    terms = np.arange(1, pairs.value.shape[axis] + 1).reshape([-1] + [1] * (x.value.ndim - axis - 1))
    return summed(pairs, partial(np.cumsum, axis=axis), terms + 1, overflows=False)


# ---- polynomials --------------------------------------------------------------------------------------


def _polynomial_type(operands: Types, attrs: Attrs) -> TensorType:
    coefficients, x = operands
    if coefficients.rank != 1 or not 1 <= coefficients.shape[0] <= 9 or coefficients.dtype != x.dtype:
        raise TypeRuleError(f"{coefficients} is no polynomial for {x}")
    return x


def _polynomial(args: Sequence[Bounded], call: Call) -> Bounded:
    """Horner's rule. What overflows on the way is open."""
    coefficients, x = args
    found = Bounded(np.zeros(x.value.shape), np.zeros(x.value.shape), x.dtype)
    wild = np.zeros(x.value.shape, bool)
    for place in range(coefficients.value.size):
        one = coefficients.map(lambda a, p=place: np.broadcast_to(a[p], x.value.shape))
        found = add(multiply(found, x), one)
        wild |= ~np.isfinite(found.value)
    plain = np.isfinite(x.value) & np.isfinite(coefficients.value).all()
    return Bounded(np.where(wild, 0.0, found.value), np.where(wild | ~plain, np.inf, found.error), x.dtype)


_COEFFICIENTS = Slot(
    lambda t, earlier: t.dtype in FLOATS and t.rank == 1 and 1 <= t.shape[0] <= 9,
    lambda d, earlier: TensorType(draw_dtype(d, FLOATS), (d.choice((3, 1, 2, 5, 9)),)),
)
_ARGUMENT = Slot(
    lambda t, earlier: t.dtype == earlier[0].dtype,
    lambda d, earlier: TensorType(earlier[0].dtype, floating().fresh(d, earlier).shape),
)

# ---- convolutions -------------------------------------------------------------------------------------

MODES = ("full", "same", "valid")


def _convolution_type(operands: Types, attrs: Attrs) -> TensorType:
    x, y = operands
    if attrs["mode"] not in MODES or not _ROW.accepts(x, ()) or not _ROW.accepts(y, ()) or x.dtype != y.dtype:
        raise TypeRuleError(f"no convolution of {x} and {y} by {attrs['mode']!r}")
    n, m = sorted((x.shape[0], y.shape[0]))
    return TensorType(x.dtype, ({"full": n + m - 1, "same": m, "valid": m - n + 1}[str(attrs["mode"])],))


def _convolution(args: Sequence[Bounded], call: Call) -> Bounded:
    """Of the longer with the shorter one: each number a sum of as many products."""
    x, y = sorted(args, key=lambda a: -a.value.size)
    n, m = x.value.size, y.value.size
    places = np.arange(n + m - 1)[:, None] - np.arange(m)
    inside = (places >= 0) & (places < n)
    rows = x.map(lambda a: np.where(inside, a[np.clip(places, 0, n - 1)], 0.0))
    # zeros beside the signal: they count where a number of the other is not finite
    full = bilinear(np.matmul, rows, y, m)
    short = ~np.isfinite(y.value).all() & ~inside.all(-1)
    full = Bounded(full.value, np.where(short, np.inf, full.error), full.dtype)
    first, count = {"full": (0, n + m - 1), "same": ((m - 1) // 2, n), "valid": (m - 1, n - m + 1)}[
        str(call.attrs["mode"])
    ]
    return full.map(lambda a: a[first : first + count])


_ROW = Slot(
    lambda t, earlier: t.dtype in FLOATS and t.rank == 1 and 1 <= t.shape[0] <= 64,
    lambda d, earlier: TensorType(
        earlier[0].dtype if earlier else draw_dtype(d, FLOATS), (draw_dim(d, 33, zero=False),)
    ),
)
_OTHER = Slot(lambda t, earlier: _ROW.accepts(t, ()) and t.dtype == earlier[0].dtype, _ROW.fresh)


OPERATORS: tuple[OpSpec, ...] = (
    OpSpec(
        "sampled_gradient", "statistics", (LONG,), _sampled_type, _slopes,
        attrs={"axis": axis_of(0), "dx": one_of(*STEPS), "edge": _edge},
        torch="torch.gradient({0}, spacing={dx}, dim={axis}, edge_order={edge})[0]", tensorflow=_NONE,
        jax=_jax_slopes, relax=_NONE, onnx=_NONE,
    ),
    OpSpec(
        "cumulative_trapezoid", "statistics", (LONG,), _integrals_type, _integrals,
        attrs={"axis": axis_of(0), "dx": one_of(*STEPS)}, torch="torch.cumulative_trapezoid({0}, dx={dx}, dim={axis})",
        tensorflow=_NONE, jax=_NONE, relax=_NONE, onnx=_NONE,
    ),
    OpSpec(
        "polynomial", "special", (_COEFFICIENTS, _ARGUMENT), _polynomial_type, _polynomial, torch=_NONE,
        tensorflow=lambda call: "tf.math.polyval(tf.unstack({0}), {1})" if call.operands[0].size > 1
        else Unsupported("one coefficient keeps its own shape"), jax="jnp.polyval({0}, {1})", relax=_NONE, onnx=_NONE,
    ),
    OpSpec(
        "convolution", "statistics", (_ROW, _OTHER), _convolution_type, _convolution, attrs={"mode": one_of(*MODES)},
        torch=_NONE, tensorflow=_NONE, jax="jnp.convolve({0}, {1}, mode={mode})", relax=_NONE, onnx=_NONE,
    ),
)  # fmt: skip
