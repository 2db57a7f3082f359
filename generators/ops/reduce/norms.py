"""Norms of vectors and matrices of any order, ranks, and reductions that leave NaN out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, divide, exact, monotone
from generators.graph import TensorType
from generators.ops.composed import compute, given, undetermined
from generators.ops.linear.decompositions import singular_values
from generators.ops.linear.matrices import checked, form_of, matrix
from generators.ops.reduce.magnitudes import magnitude
from generators.ops.reduce.reductions import l2_norm, max_, min_, sum_
from generators.ops.shape.reshape import Attrs
from generators.ops.slots import axes_of, flag, floating, one_of, reduced
from generators.ops.spec import Call, OpSpec, Spelling, TypeRuleError, Types, Unsupported, unsupported

Array = np.ndarray

_NONE = unsupported("it has no orthogonal decompositions")

# ---- vectors ------------------------------------------------------------------------------------------

ORDERS = ("3", "-inf", "0.5", "-1", "4", "-2")
"""Those beside 1, 2 and infinity, which have operators of their own."""


def _vector_type(operands: Types, attrs: Attrs) -> TensorType:
    if attrs["ord"] not in ORDERS or operands[0].size == 0:
        raise TypeRuleError(f"no norm of order {attrs['ord']!r} of {operands[0]}")
    return reduced()(operands, attrs)


def _vector_norm(args: Sequence[Bounded], call: Call) -> Bounded:
    """Powers of 16 ulp, their sum, and a power of it, whose exponent 1/p is rounded: an error of u |log sum| / |p|
    relative to the result. A sum that overflows or a power that does decides nothing: one may scale first."""
    x, p = magnitude(args[0]), float(str(call.attrs["ord"]))
    if np.isinf(p):
        return min_.reference([x], call)
    tiny, unit = PRECISION[x.dtype].tiny, PRECISION[x.dtype].unit + U64
    with np.errstate(all="ignore"):
        powers = monotone(lambda v: np.maximum(v, 0.0) ** p, x, 16)
        number = np.isfinite(x.value) & (x.value != 0)
        error = powers.error + np.where(number & (powers.value == 0), tiny, 0.0)
        powers = replace(powers, error=np.where(number & np.isinf(powers.value), np.inf, error))
        total = sum_.reference([powers], call)
        infinite = compute(max_, exact(np.isinf(powers.value), "int32"), **call.attrs).value > 0
        result = monotone(lambda v: np.maximum(v, 0.0) ** (1 / p), total, 16)
        exponent = (
            unit
            * np.abs(np.log(np.where((total.value > 0) & np.isfinite(total.value), total.value, 1.0)) / p)
            * np.abs(result.value)
        )
        error = np.where(np.isfinite(result.value), result.error + exponent, result.error)
        loose = np.isinf(total.value) & (total.error == 0) & ~infinite
    return replace(result, error=np.where(loose, np.inf, error))


_AXES = "axis={axes}, keepdims={keepdims}"
_RELAX_AXES = "axis=list({axes}), keepdims={keepdims}"
_ONNX_AXES = 'g.const({axes}, "int64"), keepdims=int({keepdims})'


def _by_order(least: str, other: str) -> Spelling:
    """The text for the order of minus infinity, or for another one, in which <p> and <q> are the exponents."""

    def spell(call: Call) -> str:
        p = float(str(call.attrs["ord"]))
        return least if np.isinf(p) else other.replace("<p>", repr(p)).replace("<q>", repr(1 / p))

    return spell


vector_norm = OpSpec(
    "vector_norm", "norms", (floating(1, nonempty=True),), _vector_type, _vector_norm,
    attrs={"ord": one_of(*ORDERS), "axes": axes_of(0), "keepdims": flag()},
    torch="torch.linalg.vector_norm({0}, ord=float({ord}), dim={axes}, keepdim={keepdims})",
    tensorflow=_by_order(
        f"tf.reduce_min(tf.abs({{0}}), {_AXES})",
        f"tf.pow(tf.reduce_sum(tf.pow(tf.abs({{0}}), <p>), {_AXES}), <q>)",
    ),
    jax=f"jnp.linalg.vector_norm({{0}}, ord=float({{ord}}), {_AXES})",
    relax=_by_order(
        f"relax.op.min(relax.op.abs({{0}}), {_RELAX_AXES})",
        "relax.op.power(relax.op.sum(relax.op.power(relax.op.abs({0}), relax.const(<p>, {dtype0})), "
        + _RELAX_AXES
        + "), relax.const(<q>, {dtype0}))",
    ),
    onnx=_by_order(
        f'g.op("ReduceMin", g.op("Abs", {{0}}), {_ONNX_AXES})',
        'g.op("Pow", g.op("ReduceSum", g.op("Pow", g.op("Abs", {0}), g.const(<p>, {name0})), '
        + _ONNX_AXES
        + "), g.const(<q>, {name0}))",
    ),
)  # fmt: skip

# ---- matrices -----------------------------------------------------------------------------------------


def _stacked(operands: Types, attrs: Attrs) -> TensorType:
    x = operands[0]
    if x.rank < 2 or x.size == 0:
        raise TypeRuleError(f"no norms of the matrices of {x}")
    return TensorType(x.dtype, (*x.shape[:-2], *((1, 1) if attrs["keepdims"] else ())))


_INNER = {"1": (-2, "max"), "-1": (-2, "min"), "inf": (-1, "max"), "-inf": (-1, "min")}
"""Order -> the axis of the sums of magnitudes, and which of them is taken."""


def _matrix_norm(args: Sequence[Bounded], call: Call) -> Bounded:
    order, keepdims = str(call.attrs["ord"]), bool(call.attrs["keepdims"])
    if order == "fro":
        return compute(l2_norm, args[0], axes=(-2, -1), keepdims=keepdims)
    axis, taken = _INNER[order]
    sums = compute(sum_, magnitude(args[0]), axes=(axis,), keepdims=keepdims)
    return compute(max_ if taken == "max" else min_, sums, axes=(-3 - axis if keepdims else -1,), keepdims=keepdims)


def _norm_type(operands: Types, attrs: Attrs) -> TensorType:
    if attrs["ord"] not in ("fro", *_INNER):
        raise TypeRuleError(f"no norm of order {attrs['ord']!r}")
    return _stacked(operands, attrs)


def _nested(frobenius: str, outer: str, inner: str) -> Spelling:
    """`inner` sums magnitudes along <axis>, `outer` takes the greatest or the least of <inner> along <axis>."""

    def spell(call: Call) -> str:
        order = str(call.attrs["ord"])
        if order == "fro":
            return frobenius
        axis, taken = _INNER[order]
        rest = -3 - axis if call.attrs["keepdims"] else -1
        text = outer.replace("<taken>", taken).replace("<Taken>", taken.title()).replace("<axis>", str(rest))
        return text.replace("<inner>", inner.replace("<axis>", str(axis)))

    return spell


_KEEP = "keepdims=int({keepdims})"
_ORDER = "{{'fro': 'fro', '1': 1, '-1': -1, 'inf': float('inf'), '-inf': -float('inf')}}[{ord}]"

matrix_norm = OpSpec(
    "matrix_norm", "norms", (floating(2, nonempty=True),), _norm_type, _matrix_norm,
    attrs={"ord": one_of("fro", *_INNER), "keepdims": flag()},
    torch=f"torch.linalg.matrix_norm({{0}}, ord={_ORDER}, keepdim={{keepdims}})",
    tensorflow=lambda call: Unsupported("tf.norm has no least sum") if str(call.attrs["ord"]).startswith("-") else
        f"tf.norm({{0}}, ord={_ORDER}, axis=[-2, -1], keepdims={{keepdims}})",
    jax=f"jnp.linalg.matrix_norm({{0}}, ord={_ORDER}, keepdims={{keepdims}})",
    relax=_nested(
        "relax.op.sqrt(relax.op.sum(relax.op.square({0}), axis=[-2, -1], keepdims={keepdims}))",
        "relax.op.<taken>(<inner>, axis=[<axis>], keepdims={keepdims})",
        "relax.op.sum(relax.op.abs({0}), axis=[<axis>], keepdims={keepdims})",
    ),
    onnx=_nested(
        f'g.op("ReduceL2", {{0}}, g.const([-2, -1], "int64"), {_KEEP})',
        f'g.op("Reduce<Taken>", <inner>, g.const([<axis>], "int64"), {_KEEP})',
        f'g.op("ReduceL1", {{0}}, g.const([<axis>], "int64"), {_KEEP})',
    ),
)  # fmt: skip


def _of_singular_type(operands: Types, attrs: Attrs) -> TensorType:
    form_of(attrs)
    if attrs["ord"] not in ("2", "-2", "nuc"):
        raise TypeRuleError(f"no norm of order {attrs['ord']!r}")
    return TensorType(operands[0].dtype, checked(operands, square=False).shape[:-2])


def _of_singular(args: Sequence[Bounded], call: Call) -> Bounded:
    """The greatest of the singular values, the least, or their sum."""
    s = compute(singular_values, args[0], form=call.attrs["form"])
    if call.attrs["ord"] == "nuc":
        return compute(sum_, s, axes=(-1,), keepdims=False)
    return s.map(lambda array: array[..., 0 if call.attrs["ord"] == "2" else -1])


_SPECTRAL = "{{'2': 2, '-2': -2, 'nuc': 'nuc'}}[{ord}]"
spectral_norm = OpSpec(
    "spectral_norm", "norms", (matrix(square=False),), _of_singular_type, _of_singular,
    attrs={"ord": one_of("2", "-2", "nuc"), "form": one_of("tamed", "shifted", "turned")},
    torch=f"torch.linalg.matrix_norm(formed({{0}}, {{form}}), ord={_SPECTRAL})",
    tensorflow=lambda call: "tf.norm(formed({0}, {form}), ord=2, axis=[-2, -1])" if call.attrs["ord"] == "2" else
        Unsupported("tf.norm has no such norm of matrices"),
    jax=f"jnp.linalg.matrix_norm(formed({{0}}, {{form}}), ord={_SPECTRAL})", relax=_NONE, onnx=_NONE,
)  # fmt: skip


def _rank_type(operands: Types, attrs: Attrs) -> TensorType:
    form_of(attrs)
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
    attrs={"rtol": one_of(0.01, 0.25), "form": one_of("tamed", "shifted", "turned")},
    torch="torch.linalg.matrix_rank(formed({0}, {form}), rtol={rtol})",
    tensorflow=unsupported("the tolerance of tf.linalg.matrix_rank is absolute"),
    jax="jnp.linalg.matrix_rank(formed({0}, {form}), rtol={rtol}).astype(jnp.int64)", relax=_NONE, onnx=_NONE,
)  # fmt: skip

# ---- reductions without NaN ----------------------------------------------------------------------------


def _numbers(x: Bounded) -> tuple[Bounded, Array]:
    """NaN replaced by 0, and where it stood."""
    nan = np.isnan(x.value) & (x.error == 0)
    return Bounded(np.where(nan, 0.0, x.value), np.where(np.isnan(x.value) & ~nan, np.inf, x.error), x.dtype), nan


def _nansum(args: Sequence[Bounded], call: Call) -> Bounded:
    return sum_.reference([_numbers(args[0])[0]], call)


def _nanmean(args: Sequence[Bounded], call: Call) -> Bounded:
    """The sum by the count, which the dtype may have to round. A sum that overflows decides nothing."""
    x, nan = _numbers(args[0])
    total = sum_.reference([x], call)
    counts = compute(sum_, exact(~nan, "int64"), **call.attrs).value.astype(np.float64)
    unit = PRECISION[x.dtype].unit
    count = replace(given(counts, x.dtype), error=np.where(counts * unit > 1, counts * unit, 0.0))
    result = divide(total, replace(count, zero_sign=True))
    result = replace(result, error=np.where(counts == 0, 0.0, result.error))
    special = compute(max_, exact(np.isinf(x.value), "int32"), **call.attrs).value > 0
    return undetermined(result, np.isinf(total.value) & ~special)


def _without_nan(name: str, reference, relax: Spelling, onnx: Spelling, tensorflow: Spelling) -> OpSpec:
    return OpSpec(
        name, "norms", (floating(1, nonempty=True),), reduced(), reference,
        attrs={"axes": axes_of(0), "keepdims": flag()},
        torch=f"torch.{name}({{0}}, dim={{axes}}, keepdim={{keepdims}})", tensorflow=tensorflow,
        jax=f"jnp.{name}({{0}}, {_AXES})", relax=relax, onnx=onnx,
    )  # fmt: skip


_RELAX_NUMBERS = "relax.op.where(relax.op.isnan({0}), relax.const(0, {dtype0}), {0})"
_RELAX_SUM = f"relax.op.sum({_RELAX_NUMBERS}, {_RELAX_AXES})"
_RELAX_COUNT = f"relax.op.sum(relax.op.astype(relax.op.logical_not(relax.op.isnan({{0}})), {{dtype0}}), {_RELAX_AXES})"
_ONNX_SUM = f'g.op("ReduceSum", g.op("Where", g.op("IsNaN", {{0}}), g.const(0, {{name0}}), {{0}}), {_ONNX_AXES})'
_ONNX_ONES = 'g.op("Where", g.op("IsNaN", {0}), g.const(0, {name0}), g.const(1, {name0}))'
_TF_SUM = f"tf.experimental.numpy.nansum({{0}}, {_AXES})"

NORMS: tuple[OpSpec, ...] = (
    vector_norm,
    matrix_norm,
    spectral_norm,
    matrix_rank,
    _without_nan("nansum", _nansum, _RELAX_SUM, _ONNX_SUM, _TF_SUM),
    _without_nan(
        "nanmean", _nanmean, f"relax.op.divide({_RELAX_SUM}, {_RELAX_COUNT})",
        f'g.op("Div", {_ONNX_SUM}, g.op("ReduceSum", {_ONNX_ONES}, {_ONNX_AXES}))',
        f"tf.experimental.numpy.nanmean({{0}}, {_AXES})",
    ),
)  # fmt: skip
