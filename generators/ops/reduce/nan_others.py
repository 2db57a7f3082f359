"""Extremes, products, places, scans and quantiles that leave NaN out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, rounded
from generators.graph import TensorType
from generators.ops.reduce.cumulative import cumprod, cumsum
from generators.ops.reduce.nan_reductions import nanmedian, replaced
from generators.ops.reduce.records import along
from generators.ops.reduce.reductions import OPERATORS as REDUCTIONS
from generators.ops.reduce.reductions import argmax, argmin, max_, min_
from generators.ops.reduce.sorting import ordered
from generators.ops.slots import axes_of, axis_in, axis_of, flag, floating, one_of, reduced
from generators.ops.spec import Attrs, Call, OpSpec, Reference, Spelling, TypeRuleError, Types, unsupported

Array = np.ndarray

_NONE = unsupported("it has no such operator")
_PROD = next(spec for spec in REDUCTIONS if spec.name == "prod")


def _extreme(base: OpSpec, least: float) -> Reference:
    """NaN where all are."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x, nan = replaced(args[0], least)
        found, none = base.reference([x], call), along(np.all, call)(nan)
        return Bounded(np.where(none, np.nan, found.value), np.where(none, 0.0, found.error), found.dtype)

    return reference


def _place(base: OpSpec, least: float) -> Reference:
    """-1 where all are NaN. An infinity may be taken for what stands in place of NaN: the same value, but the first of
    them is meant, and it is open where one of both stands first."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x, nan = replaced(args[0], least)
        found, none = base.reference([x], call), along(np.all, call)(nan)
        mixed = along(np.any, call)(nan) & along(np.all, call)(x.value == least)
        return Bounded(np.where(none, -1, found.value), np.where(mixed & ~none, np.inf, found.error), found.dtype)

    return reference


def _without(base: OpSpec, neutral: float) -> Reference:
    return lambda args, call: base.reference([replaced(args[0], neutral)[0]], call)


# ---- quantiles ----------------------------------------------------------------------------------------

METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile_type(operands: Types, attrs: Attrs) -> TensorType:
    q = attrs["q"]
    if attrs["method"] not in METHODS or not isinstance(q, float) or not 0 <= q <= 1:
        raise TypeRuleError(f"no quantile {q!r} of {operands[0]} by {attrs['method']!r}")
    return nanmedian.result(operands, attrs)


def _quantile(args: Sequence[Bounded], call: Call) -> Bounded:
    """As `quantile`, between the two elements in order that q times (count - 1) falls between; q is a multiple of 1/8,
    so that the place is exact. NaN of none; half way, `nearest` may be either."""
    axis, method = axis_in(call.attrs, args[0].value.ndim), call.attrs["method"]
    given, nan = replaced(args[0], np.inf)
    x = ordered(given, axis, descending=False)
    count = np.sum(~nan, axis=axis, keepdims=True)
    place = call.number("q") * np.maximum(count - 1, 0)
    low = np.floor(place).astype(np.int64)
    a, b = (x.map(lambda v, i=i: np.take_along_axis(v, i, axis)) for i in (low, np.ceil(place).astype(np.int64)))
    w = place - low
    half = w == 0.5
    weights = {"lower": 0 * w, "higher": np.ceil(w), "midpoint": np.where(w > 0, 0.5, 0.0), "nearest": np.rint(w)}
    w = weights.get(str(method), w)
    p = PRECISION[x.dtype]
    with np.errstate(all="ignore"):
        size = np.abs(a.value) + np.abs(b.value) + a.error + b.error
        between = (w > 0) & (w < 1)
        error = (1 - w) * a.error + w * b.error + 4 * (p.unit + U64) * size * between
        value = np.where(w == 0, a.value, np.where(w == 1, b.value, (1 - w) * a.value + w * b.value))
        error = np.where(w == 0, a.error, np.where(w == 1, b.error, error))
        # a whole place may be interpolated, too: half of a sum that overflows, NaN beside an infinity
        some = np.any(np.isinf(given.value) & ~nan, axis=axis, keepdims=True) | (2 * size > p.largest)
        bad = some & (method in ("linear", "midpoint")) | half & (method == "nearest")
    none = count == 0
    value, error = np.where(none, np.nan, np.where(bad, 0.0, value)), np.where(none, 0.0, np.where(bad, np.inf, error))
    return rounded(value.squeeze(axis), error.squeeze(axis), x.dtype, 0)


# ---- records ------------------------------------------------------------------------------------------

_AXES = "axis={axes}, keepdims={keepdims}"
_PLACE = "{0}, axis={axis}, keepdims={keepdims}).astype(jnp.int64)"


def _reduction(name: str, reference: Reference, tensorflow: Spelling = _NONE) -> OpSpec:
    return OpSpec(
        name, "norms", (floating(1, nonempty=True),), reduced(), reference,
        attrs={"axes": axes_of(0), "keepdims": flag()}, torch=_NONE, tensorflow=tensorflow,
        jax=f"jnp.{name}({{0}}, {_AXES})", relax=_NONE, onnx=_NONE,
    )  # fmt: skip


def _along(name: str, base: OpSpec, reference: Reference, jax: str) -> OpSpec:
    return OpSpec(
        name, base.family, (floating(1, nonempty=True),), base.result, reference, attrs=dict(base.attrs),
        torch=_NONE, tensorflow=_NONE, jax=jax, relax=_NONE, onnx=_NONE,
    )  # fmt: skip


OPERATORS: tuple[OpSpec, ...] = (
    _reduction("nanmax", _extreme(max_, -np.inf)),
    _reduction("nanmin", _extreme(min_, np.inf)),
    _reduction("nanprod", _without(_PROD, 1.0), f"tf.experimental.numpy.nanprod({{0}}, {_AXES})"),
    _along("nanargmax", argmax, _place(argmax, -np.inf), f"jnp.nanargmax({_PLACE}"),
    _along("nanargmin", argmin, _place(argmin, np.inf), f"jnp.nanargmin({_PLACE}"),
    _along("nancumsum", cumsum, _without(cumsum, 0.0), "jnp.nancumsum({0}, axis={axis}, dtype={dtype})"),
    _along("nancumprod", cumprod, _without(cumprod, 1.0), "jnp.nancumprod({0}, axis={axis}, dtype={dtype})"),
    OpSpec(
        "nanquantile", "statistics", (floating(1, nonempty=True),), _quantile_type, _quantile,
        attrs={"axis": axis_of(0), "q": one_of(0.5, 0.0, 1.0, 0.25, 0.875), "method": one_of(*METHODS)},
        torch="torch.nanquantile({0}, {q}, dim={axis}, interpolation={method})", tensorflow=_NONE,
        jax="jnp.nanquantile({0}, {q}, axis={axis}, method={method})", relax=_NONE, onnx=_NONE,
    ),
)  # fmt: skip
