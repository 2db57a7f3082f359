"""Norms of vectors and matrices of any order, sums of squares, means of magnitudes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, exact, monotone, multiply
from generators.bounds.sums import root, scaled_square, summed
from generators.graph import FLOATS, TensorType
from generators.ops.composed import compute, magnitude
from generators.ops.elementwise.cast import cast
from generators.ops.linear.decompositions import singular_values
from generators.ops.linear.matrices import DOMINATED, FORMS, checked, form_of, matrix
from generators.ops.reduce.records import along, count, onnx_reduction, reducible, reduction, reduction_of
from generators.ops.reduce.reductions import count_nonzero, max_, mean, min_, sum_
from generators.ops.slots import axes_of, flag, floating, one_of, reduced
from generators.ops.spec import Attrs, Call, OpSpec, Reference, Spelling, TypeRuleError, Types, Unsupported, unsupported

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
    form_of(attrs, FORMS)
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
    attrs={"ord": one_of("2", "-2", "nuc"), "form": one_of("tamed", *DOMINATED)},
    torch=f"torch.linalg.matrix_norm(formed({{0}}, {{form}}), ord={_SPECTRAL})",
    tensorflow=lambda call: "tf.norm(formed({0}, {form}), ord=2, axis=[-2, -1])" if call.attrs["ord"] == "2" else
        Unsupported("tf.norm has no such norm of matrices"),
    jax=f"jnp.linalg.matrix_norm(formed({{0}}, {{form}}), ord={_SPECTRAL})", relax=_NONE, onnx=_NONE,
)  # fmt: skip

_SAME = "axis={axes}, keepdims={keepdims}"
_RELAX = "axis=list({axes}), keepdims={keepdims}"


_RELAX_NONZERO = "relax.op.astype(relax.op.logical_not(relax.op.equal({0}, relax.const(0, {dtype}))), {dtype})"
_ONNX_NONZERO = 'g.op("Not", g.op("Equal", {0}, g.const(0, {name})))'


def _composed(
    reduction: OpSpec,
    name: str,
    reference: Reference,
    *,
    torch: Spelling,
    tensorflow: Spelling,
    jax: Spelling,
    relax: Spelling,
    onnx: Spelling,
) -> OpSpec:
    """`reduction`: whose attributes and type rule it has, of floating numbers."""
    slot = floating() if reduction in (sum_, mean) else reducible(FLOATS)
    return replace(
        reduction, name=name, operands=(slot,), reference=reference, signed_zero=False,
        torch=torch, tensorflow=tensorflow, jax=jax, relax=relax, onnx=onnx,
    )  # fmt: skip


def _l0_norm(args: Sequence[Bounded], call: Call) -> Bounded:
    """How many are other than 0."""
    counted = compute(count_nonzero, args[0], **call.attrs)
    return compute(cast, counted, to=call.result.dtype)


def _mean_abs(call: Call) -> str | Unsupported:
    if not count(call):
        return Unsupported("ONNX leaves ReduceMean of an empty set undefined")
    return onnx_reduction("ReduceMean", 'g.op("Abs", {0})')


def _l2_norm(args: Sequence[Bounded], call: Call) -> Bounded:
    """sqrt(sum x^2). Squares may overflow or vanish, or be scaled beforehand."""
    return root(summed(scaled_square(args[0]), along(np.sum, call), count(call), overflows=False))


l2_norm = reduction(
    "l2_norm", floating(), _l2_norm,
    torch="torch.linalg.vector_norm({0}, dim={axes}, keepdim={keepdims})",
    tensorflow=f"tf.sqrt(tf.reduce_sum(tf.square({{0}}), {_SAME}))",
    jax=f"jnp.sqrt(jnp.sum(jnp.square({{0}}), {_SAME}))",
    relax="relax.op.sqrt(relax.op.sum(relax.op.square({0}), axis=list({axes}), keepdims={keepdims}))",
    onnx=onnx_reduction("ReduceL2"),
)  # fmt: skip


def _torch_norm(call: Call) -> str:
    """By default the Frobenius norm, which PyTorch documents for two axes at most."""
    axes = call.attrs["axes"]
    order = ", p=2" if isinstance(axes, tuple) and len(axes) > 2 else ""
    return f"torch.norm({{0}}{order}, dim={{axes}}, keepdim={{keepdims}})"


OPERATORS: tuple[OpSpec, ...] = (
    _composed(
        sum_, "l1_norm", reduction_of(sum_, magnitude),
        torch="torch.linalg.vector_norm({0}, ord=1, dim={axes}, keepdim={keepdims})",
        tensorflow=f"tf.reduce_sum(tf.abs({{0}}), {_SAME})", jax=f"jnp.sum(jnp.abs({{0}}), {_SAME})",
        relax=f"relax.op.sum(relax.op.abs({{0}}), {_RELAX})", onnx=onnx_reduction("ReduceL1"),
    ),
    _composed(
        sum_, "l0_norm", _l0_norm,
        torch="torch.linalg.vector_norm({0}, ord=0, dim={axes}, keepdim={keepdims})",
        tensorflow=f"tf.math.count_nonzero({{0}}, {_SAME}, dtype={{dtype}})",
        jax=f"jnp.sum({{0}} != 0, {_SAME}, dtype={{dtype}})",
        relax=f"relax.op.sum({_RELAX_NONZERO}, {_RELAX})",
        onnx=onnx_reduction("ReduceSum", f'g.op("Cast", {_ONNX_NONZERO}, to={{dtype}})'),
    ),
    l2_norm,
    replace(
        l2_norm, name="euclidean_norm", torch=_torch_norm,
        tensorflow=f"tf.math.reduce_euclidean_norm({{0}}, {_SAME})", jax=f"jnp.sqrt(jnp.sum({{0}} * {{0}}, {_SAME}))",
    ),
    _composed(
        max_, "linf_norm", reduction_of(max_, magnitude),
        torch='torch.linalg.vector_norm({0}, ord=float("inf"), dim={axes}, keepdim={keepdims})',
        tensorflow=f"tf.reduce_max(tf.abs({{0}}), {_SAME})", jax=f"jnp.max(jnp.abs({{0}}), {_SAME})",
        relax=f"relax.op.max(relax.op.abs({{0}}), {_RELAX})", onnx=onnx_reduction("ReduceMax", 'g.op("Abs", {0})'),
    ),
    _composed(
        mean, "mean_abs", reduction_of(mean, magnitude),
        torch="torch.mean(torch.abs({0}), dim={axes}, keepdim={keepdims})",
        tensorflow=f"tf.reduce_mean(tf.abs({{0}}), {_SAME})", jax=f"jnp.mean(jnp.abs({{0}}), {_SAME})",
        relax=f"relax.op.mean(relax.op.abs({{0}}), {_RELAX})", onnx=_mean_abs,
    ),
    _composed(
        sum_, "sum_of_squares", reduction_of(sum_, lambda x: multiply(x, x)),
        torch="torch.sum(torch.square({0}), dim={axes}, keepdim={keepdims})",
        tensorflow=f"tf.reduce_sum(tf.square({{0}}), {_SAME})", jax=f"jnp.sum(jnp.square({{0}}), {_SAME})",
        relax=f"relax.op.sum(relax.op.square({{0}}), {_RELAX})", onnx=onnx_reduction("ReduceSumSquare"),
    ),
    vector_norm,
    matrix_norm,
    spectral_norm,
)  # fmt: skip
