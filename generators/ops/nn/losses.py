"""Losses: elementwise ones of a prediction and a target, and those of classes, followed by no reduction, the mean or
the sum of all elements. u is the unit roundoff of the dtype; an ulp is at most 2 u |v|."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, add, gamma, monotone, multiply, rounded
from generators.graph import FLOATS, TensorType
from generators.ops.composed import magnitude
from generators.ops.reduce.reductions import mean, sum_
from generators.ops.reduce.softmax import log_softmax
from generators.ops.slots import floating, like, one_of, positive, tensor
from generators.ops.spec import (
    AttrRule,
    Attrs,
    Call,
    Domain,
    OpSpec,
    Reference,
    ResultRule,
    Slot,
    Spelling,
    TypeRuleError,
    Types,
)

Array = np.ndarray

_REDUCE = {"mean": mean.reference, "sum": sum_.reference}
REDUCTIONS = ("none", "mean", "sum")

# ---- references ---------------------------------------------------------------------------------------


def reduced(elements: Bounded, call: Call) -> Bounded:
    """The mean, or the sum, of all elements, if any is asked for. The sum may be scaled beforehand."""
    reduction = str(call.attrs["reduction"])
    if reduction == "none":
        return elements
    axes = tuple(range(elements.value.ndim))
    type_ = TensorType(elements.dtype, elements.value.shape)
    inner = Call((type_,), {"axes": axes, "keepdims": False}, TensorType(elements.dtype, ()))
    return _REDUCE[reduction]([elements], inner)


def _elementwise(f: Callable[[Bounded, Bounded, Call], Bounded]) -> Reference:
    return lambda args, call: reduced(f(args[0], args[1], call), call)


def _squared_error(x: Bounded, y: Bounded, call: Call) -> Bounded:
    difference = add(x, y, -1.0)
    return multiply(difference, difference)


def _absolute_error(x: Bounded, y: Bounded, call: Call) -> Bounded:
    return magnitude(add(x, y, -1.0))


def _quadratic_near_zero(x: Bounded, y: Bounded, limit: float, steepness: float) -> Bounded:
    """With d = |x - y|: steepness d (d / limit) / 2 below the limit, steepness (d - limit / 2) above, which meet with
    one slope. Every factor but d is a power of two. A d in error by e moves the result by e times the greatest slope,
    at most steepness; three roundings above or below. Squares may vanish; steepness d may overflow on the way."""
    d = magnitude(add(x, y, -1.0))
    unit = PRECISION[d.dtype].unit

    def loss(v: Array) -> Array:
        return steepness * np.where(v < limit, 0.5 * v * (v / limit), v - 0.5 * limit)

    result = monotone(lambda v: loss(np.maximum(v, 0.0)), d, 1.5)
    with np.errstate(all="ignore"):
        own = np.where((d.value > 0) & np.isfinite(d.value), PRECISION[d.dtype].tiny * (1 + steepness / limit), 0.0)
        near = np.isfinite(d.value) & (np.abs(d.value - limit) <= d.error)
        own += np.where(near, 4 * unit * steepness * limit, 0.0)
        own = np.where(np.isfinite(d.value) & (d.value > PRECISION[d.dtype].largest / 4), np.inf, own)
    return replace(result, error=result.error + own)


def _smooth_l1(x: Bounded, y: Bounded, call: Call) -> Bounded:
    """By a beta of 0, as PyTorch documents it, the absolute difference."""
    if not call.attrs["beta"]:
        return _absolute_error(x, y, call)
    return _quadratic_near_zero(x, y, call.number("beta"), 1.0)


def _huber(x: Bounded, y: Bounded, call: Call) -> Bounded:
    return _quadratic_near_zero(x, y, call.number("delta"), call.number("delta"))


def _bce_with_logits(x: Bounded, z: Bounded, call: Call) -> Bounded:
    """max(x, 0) - x z + L, or (1 - z) x + max(-x, 0) + L, with L = log(1 + exp(-|x|)). At most four roundings of
    what is at most |x| (1 + |z|) + L; L has 3 ulp of exp, which weigh exp(-|x|), u of the sum and 3 ulp of log. The
    slopes are at most 1 + |z| in x, |x| in z. Beside an infinity the terms may cancel to NaN or not: undetermined."""
    unit = PRECISION[x.dtype].unit + U64
    with np.errstate(all="ignore"):
        power = np.exp(-np.abs(x.value))
        logarithm = np.log1p(power)
        value = np.maximum(x.value, 0.0) - x.value * z.value + logarithm
        size_x, size_z = np.abs(x.value) + x.error, np.abs(z.value) + z.error
        error = x.error * (1 + size_z) + size_x * z.error
        error += gamma(5, unit) * (size_x * (1 + size_z) + logarithm) + unit * (6 * power + 1 + 6 * logarithm)
        nan = (np.isnan(x.value) & ~x.undetermined) | (np.isnan(z.value) & ~z.undetermined)
        loose = x.undetermined | z.undetermined | np.isinf(x.value) | np.isinf(z.value)
        loose |= size_x * (1 + size_z) > PRECISION[x.dtype].largest / 2
    return rounded(np.where(nan, np.nan, value), np.where(nan, 0.0, np.where(loose, np.inf, error)), x.dtype)


def _kl_div(x: Bounded, t: Bounded, call: Call) -> Bounded:
    """t log t - t x, or t (log t - x): log 3 ulp, a product and a sum of at most t (|log t| + |x|). 0 for t = 0 and
    a finite x, by continuity. t is between 0 and 1."""
    p = PRECISION[x.dtype]
    unit = p.unit + U64
    with np.errstate(all="ignore"):
        logarithm = np.where(t.value > 0, np.log(np.where(t.value > 0, t.value, 1.0)), 0.0)
        value = t.value * logarithm - t.value * x.value
        size = t.value * (np.abs(logarithm) + np.abs(x.value))
        error = t.value * x.error + gamma(4, unit) * (size + t.value * x.error) + 6 * unit * t.value * np.abs(logarithm)
        error += np.where(size > 0, 4 * p.tiny, 0.0)
        # a subnormal target may be read as 0: all of its term goes
        error += t.error * (800 + np.abs(x.value))
        nan = np.isnan(x.value) & ~x.undetermined
        loose = x.undetermined | np.isinf(x.value) | ~np.isfinite(error)
    return rounded(np.where(nan, np.nan, value), np.where(nan, 0.0, np.where(loose, np.inf, error)), x.dtype)


def _hinge(x: Bounded, y: Bounded, call: Call) -> Bounded:
    """max(0, 1 - x y): a product, a difference; the maximum rounds nothing and keeps NaN."""
    one = Bounded(np.ones(x.value.shape), np.zeros(x.value.shape), x.dtype)
    margin = add(one, multiply(x, y), -1.0)
    with np.errstate(all="ignore"):
        below = margin.value + margin.error < 0
        return Bounded(np.maximum(margin.value, 0.0), np.where(below, 0.0, margin.error), x.dtype)


def _at_classes(x: Bounded, classes: Bounded, call: Call) -> Bounded:
    places = np.expand_dims(classes.value, 1)
    return x.map(lambda a: np.squeeze(np.take_along_axis(a, places, 1), 1))


def _nll(args: Sequence[Bounded], call: Call) -> Bounded:
    chosen = _at_classes(args[0], args[1], call)
    return reduced(replace(chosen, value=-chosen.value), call)


def _cross_entropy(args: Sequence[Bounded], call: Call) -> Bounded:
    """The negative log_softmax over the classes, at the target."""
    inner = Call(call.operands[:1], {"axis": 1}, call.operands[0])
    return _nll([log_softmax.reference(args[:1], inner), args[1]], call)


# ---- operands and types -------------------------------------------------------------------------------


def check_reduction(type_: TensorType, attrs: Attrs) -> TensorType:
    if attrs["reduction"] not in REDUCTIONS:
        raise TypeRuleError(f"{attrs['reduction']!r} is no reduction")
    return type_ if attrs["reduction"] == "none" else TensorType(type_.dtype, ())


def _loss_type(operands: Types, attrs: Attrs) -> TensorType:
    if operands[0] != operands[1] or operands[0].size == 0:
        raise TypeRuleError(f"no loss of {operands[0]} and {operands[1]}")
    return check_reduction(operands[0], attrs)


def _class_type(operands: Types, attrs: Attrs) -> TensorType:
    x, classes = operands
    if x.rank < 2 or classes.shape != (x.shape[0], *x.shape[2:]) or x.size == 0:
        raise TypeRuleError(f"{classes} holds no classes for {x}")
    return check_reduction(replace(classes, dtype=x.dtype), attrs)


def _probabilities(earlier: Types) -> Domain:
    return 0, 1


def _classes() -> Slot:
    def accepts(type_: TensorType, earlier: Types) -> bool:
        x = earlier[0]
        return type_ == TensorType("int64", (x.shape[0], *x.shape[2:]))

    return Slot(
        accepts,
        lambda d, earlier: TensorType("int64", (earlier[0].shape[0], *earlier[0].shape[2:])),
        lambda earlier: (0, earlier[0].shape[1] - 1),
    )


SCORES = tensor(FLOATS, 2, 4, nonempty=True)
CLASSES = _classes()

# ---- records ------------------------------------------------------------------------------------------


Element = str | Callable[[Call], str]
"""The spelling of one element of a loss."""


def _reducing(dialect: Mapping[str, str], text: Element) -> Spelling:
    def spell(call: Call) -> str:
        return dialect[str(call.attrs["reduction"])].replace("{loss}", text if isinstance(text, str) else text(call))

    return spell


_TF = {"none": "{loss}", "mean": "tf.reduce_mean({loss})", "sum": "tf.reduce_sum({loss})"}
_JAX = {"none": "{loss}", "mean": "jnp.mean({loss})", "sum": "jnp.sum({loss})"}
_RELAX = {"none": "{loss}", "mean": "relax.op.mean({loss})", "sum": "relax.op.sum({loss})"}
_ONNX = {
    "none": "{loss}",
    "mean": 'g.op("ReduceMean", {loss}, keepdims=0)',
    "sum": 'g.op("ReduceSum", {loss}, keepdims=0)',
}


def _loss(
    name: str,
    reference: Reference,
    torch: str,
    tensorflow: Element,
    jax: Element,
    relax: Element,
    onnx: Element,
    *,
    target: Slot | None = None,
    attrs: Mapping[str, AttrRule] | None = None,
    result: ResultRule = _loss_type,
) -> OpSpec:
    """torch: the name of the function, with its attributes; the others: one element, to be reduced."""
    return OpSpec(
        name, "loss", (floating(nonempty=True), target or like(0)), result, reference,
        attrs={**(attrs or {}), "reduction": one_of(*REDUCTIONS)},
        torch=torch, tensorflow=_reducing(_TF, tensorflow), jax=_reducing(_JAX, jax),
        relax=_reducing(_RELAX, relax), onnx=_reducing(_ONNX, onnx),
    )  # fmt: skip


_F = "torch.nn.functional"
_POWERS = one_of(1.0, 0.5, 2.0)
_DIFFERENCE = "relax.op.abs(relax.op.subtract({0}, {1}))"


def _smooth_type(operands: Types, attrs: Attrs) -> TensorType:
    beta = attrs["beta"]
    if not isinstance(beta, float) or beta < 0:
        raise TypeRuleError(f"beta {beta!r} is no float of 0 or more")
    return _loss_type(operands, attrs)


def _smooth(plain: str, smoothed: str) -> Element:
    """`plain` by a beta of 0, which nothing is divided by."""
    return lambda call: smoothed if call.attrs["beta"] else plain


OPERATORS: tuple[OpSpec, ...] = (
    _loss(
        "mse_loss", _elementwise(_squared_error), f"{_F}.mse_loss({{0}}, {{1}}, reduction={{reduction}})",
        "tf.math.squared_difference({0}, {1})", "jnp.square({0} - {1})",
        "relax.op.square(relax.op.subtract({0}, {1}))", "squared_difference(g, {0}, {1})",
    ),
    _loss(
        "l1_loss", _elementwise(_absolute_error), f"{_F}.l1_loss({{0}}, {{1}}, reduction={{reduction}})",
        "tf.abs({0} - {1})", "jnp.abs({0} - {1})", _DIFFERENCE, 'g.op("Abs", g.op("Sub", {0}, {1}))',
    ),
    _loss(
        "smooth_l1_loss", _elementwise(_smooth_l1),
        f"{_F}.smooth_l1_loss({{0}}, {{1}}, reduction={{reduction}}, beta={{beta}})",
        _smooth("tf.abs({0} - {1})", "huber({0}, {1}, {beta}) / {beta}"),
        _smooth("jnp.abs({0} - {1})", "huber({0}, {1}, {beta}) / {beta}"),
        _smooth(_DIFFERENCE, "relax.op.divide(huber(bb, {0}, {1}, {beta}, {dtype}), relax.const({beta}, {dtype}))"),
        _smooth(
            'g.op("Abs", g.op("Sub", {0}, {1}))',
            'g.op("Div", huber(g, {0}, {1}, {beta}, {name}), g.const({beta}, {name}))',
        ),
        attrs={"beta": one_of(1.0, 0.5, 2.0, 0.0)}, result=_smooth_type,
    ),
    _loss(
        "huber_loss", _elementwise(_huber), f"{_F}.huber_loss({{0}}, {{1}}, reduction={{reduction}}, delta={{delta}})",
        "huber({0}, {1}, {delta})", "huber({0}, {1}, {delta})", "huber(bb, {0}, {1}, {delta}, {dtype})",
        "huber(g, {0}, {1}, {delta}, {name})", attrs={"delta": _POWERS},
        result=positive(_loss_type, "delta"),
    ),
    _loss(
        "bce_with_logits", _elementwise(_bce_with_logits),
        f"{_F}.binary_cross_entropy_with_logits({{0}}, {{1}}, reduction={{reduction}})",
        "tf.nn.sigmoid_cross_entropy_with_logits(labels={1}, logits={0})", "bce_with_logits({0}, {1})",
        "bce_with_logits(bb, {0}, {1}, {dtype})", "bce_with_logits(g, {0}, {1}, {name})",
    ),
    _loss(
        "kl_div", _elementwise(_kl_div), f"{_F}.kl_div({{0}}, {{1}}, reduction={{reduction}})",
        "tf.math.xlogy({1}, {1}) - {1} * {0}", "jax.scipy.special.xlogy({1}, {1}) - {1} * {0}",
        "relax.op.subtract(xlogy({1}, {1}, {dtype}), relax.op.multiply({1}, {0}))",
        'g.op("Sub", xlogy(g, {1}, {1}, {name}), g.op("Mul", {1}, {0}))',
        target=replace(like(0), domain=_probabilities),
    ),
    _loss(
        "hinge_loss", _elementwise(_hinge), "hinge_loss({0}, {1}, {reduction})",
        "tf.maximum(1 - {0} * {1}, tf.zeros_like({0}))", "jnp.maximum(1 - {0} * {1}, 0)",
        "relax.op.maximum(relax.op.subtract(relax.const(1, {dtype}), relax.op.multiply({0}, {1})), "
        "relax.const(0, {dtype}))",
        'g.op("Max", g.op("Sub", g.const(1, {name}), g.op("Mul", {0}, {1})), g.const(0, {name}))',
    ),
    OpSpec(
        "nll_loss", "loss", (SCORES, CLASSES), _class_type, _nll, attrs={"reduction": one_of(*REDUCTIONS)},
        torch=f"{_F}.nll_loss({{0}}, {{1}}, reduction={{reduction}})",
        tensorflow=_reducing(_TF, "-at_classes({0}, {1})"), jax=_reducing(_JAX, "-at_classes({0}, {1})"),
        relax="relax.op.nn.nll_loss({0}, {1}, reduction={reduction})",
        onnx='g.op("NegativeLogLikelihoodLoss", {0}, {1}, reduction={reduction})',
    ),
    OpSpec(
        "cross_entropy", "loss", (SCORES, CLASSES), _class_type, _cross_entropy,
        attrs={"reduction": one_of(*REDUCTIONS)},
        torch=f"{_F}.cross_entropy({{0}}, {{1}}, reduction={{reduction}})",
        tensorflow=_reducing(_TF, "cross_entropy({0}, {1})"),
        jax=_reducing(_JAX, "-at_classes(jax.nn.log_softmax({0}, axis=1), {1})"),
        relax="relax.op.nn.nll_loss(relax.op.nn.log_softmax({0}, axis=1), {1}, reduction={reduction})",
        onnx='g.op("SoftmaxCrossEntropyLoss", {0}, {1}, reduction={reduction})',
    ),
)  # fmt: skip
