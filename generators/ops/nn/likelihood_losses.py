"""Losses that are negative logarithms of likelihoods: binary and weighted cross entropy, Poisson, Gaussian, KL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded, add, divide, monotone, multiply
from generators.bounds.sums import scaled_product, summed
from generators.graph import FLOATS, TensorType
from generators.ops.composed import chosen, compute, given, negated, shared, undetermined
from generators.ops.elementwise.activations import softplus
from generators.ops.elementwise.exponential import exp, log
from generators.ops.elementwise.references import exactly, loose
from generators.ops.nn.losses import CLASSES, REDUCTIONS, SCORES, check_reduction, reduced
from generators.ops.reduce.softmax import log_softmax
from generators.ops.slots import computed, floating, like, one_of, tensor
from generators.ops.spec import (
    AttrRule,
    Attrs,
    Call,
    OpSpec,
    Reference,
    ResultRule,
    Slot,
    Spelling,
    TypeRuleError,
    Types,
)

Array = np.ndarray

# ---- elementwise --------------------------------------------------------------------------------------


def _bce(args: Sequence[Bounded], call: Call) -> Bounded:
    """-(t max(log x, -100) + (1 - t) max(log(1 - x), -100)), x and t between 0 and 1. The logarithms have 3 ulp
    (OpenCL); where 1 - x is rounded first, log(1 - x) is off by an absolute u."""
    x, t = args

    def limited(v: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.maximum(np.log(np.maximum(v, 0.0)), -100.0)

    first = monotone(limited, x, 3)
    second = loose(monotone(lambda v: limited(1 - v), x, 3), 1.5, x.value > 0)
    # a subnormal x may be read as zero
    total = add(multiply(t, first), multiply(add(exactly(1.0, t), t, -1.0), second))
    return reduced(negated(total), call)


def _bce_pos_weight(args: Sequence[Bounded], call: Call) -> Bounded:
    """-(w t log(s) + (1 - t) log(1 - s)) of s = sigmoid(x): the terms are w t softplus(-x) and (1 - t) softplus(x);
    or, with softplus(x) = x + softplus(-x), (1 - t) x + (1 + (w - 1) t) softplus(-x), whose four roundings are of
    larger terms. Beside an infinity the terms may cancel to NaN or not: undetermined."""
    x, t, weight = args
    unit = PRECISION[x.dtype].unit
    rest = add(exactly(1.0, t), t, -1.0)
    total = add(multiply(multiply(weight, t), softplus(negated(x))), multiply(rest, softplus(x)))
    with np.errstate(all="ignore"):
        size = np.abs(x.value) + x.error
        terms = size * (1 + rest.value) + (1 + weight.value) * (np.logaddexp(0, -x.value) + x.error)
        error = total.error + 8 * unit * np.where(np.isfinite(terms), terms, 0.0)
        wild = np.isinf(x.value) | (terms > PRECISION[x.dtype].largest / 4)
    return reduced(undetermined(Bounded(total.value, error, x.dtype), wild), call)


def _kl_div_log_target(args: Sequence[Bounded], call: Call) -> Bounded:
    """exp(t) (t - x)."""
    x, t = args
    power, difference = compute(exp, t), add(t, x, -1.0)
    return reduced(_kept(multiply(power, difference), args, power, difference), call)


def _poisson_nll(args: Sequence[Bounded], call: Call) -> Bounded:
    """exp(x) - t x, or x - t log(x + eps) if x is no logarithm."""
    x, t = args
    if call.attrs["log_input"]:
        power, product = compute(exp, x), multiply(t, x)
        return reduced(_kept(add(power, product, -1.0), args, power, product), call)
    logarithm = compute(log, add(x, given(call.number("eps"), x.dtype)))
    product = multiply(t, logarithm)
    return reduced(_kept(add(x, product, -1.0), args, product), call)


def _kept(result: Bounded, operands: Sequence[Bounded], *steps: Bounded) -> Bounded:
    """Undetermined where a step overflows that no operand makes infinite: a compiler may keep it in a wider format
    (float16 in float32), or contract it with the next one."""
    finite = np.logical_and.reduce([np.isfinite(x.value) for x in operands])
    over = np.logical_or.reduce([np.isinf(step.value) for step in steps])
    return replace(result, error=np.where(finite & over, np.inf, result.error))


def _gaussian_nll(args: Sequence[Bounded], call: Call) -> Bounded:
    """(log v + (x - t)^2 / v) / 2, where v is the variance, or eps if that is greater."""
    x, t, variance = args
    eps = call.number("eps")
    with np.errstate(all="ignore"):
        limited = Bounded(np.maximum(variance.value, eps), variance.error, x.dtype)
        d = add(x, t, -1.0)
        total = add(compute(log, limited), divide(multiply(d, d), limited))
        return reduced(Bounded(total.value / 2, total.error / 2, x.dtype), call)


# ---- of classes ---------------------------------------------------------------------------------------


def _weighted(scores: Bounded, classes: Bounded, weight: Bounded, call: Call, smoothing: float) -> Bounded:
    """-w[y] x[y], with so much of it taken by the mean of -w[c] x[c] over all classes c; 0 where the class y is to be
    ignored. The mean is over the weights w[y] of what is not ignored; nothing to average is undetermined."""
    count = scores.value.shape[1]
    places = np.expand_dims(classes.value, 1)
    kept = classes.value != call.attrs["ignore"]
    weights = weight.map(lambda a: np.where(kept, a[classes.value], 0.0))
    right = scores.map(lambda a: np.squeeze(np.take_along_axis(a, places, 1), 1))
    times = scaled_product if smoothing else multiply  # the factors of smoothing may apply before the weights
    terms = negated(times(weight.map(lambda a: a[classes.value]), right))
    if smoothing:
        each = weight.map(lambda a: np.broadcast_to(a.reshape(-1, *[1] * (scores.value.ndim - 2)), scores.value.shape))
        spread = summed(negated(times(each, scores)), partial(np.sum, axis=1), count, overflows=False)
        factors = (1 - smoothing, smoothing / count)
        parts = [multiply(exactly(factor, x), x) for factor, x in zip(factors, (terms, spread), strict=True)]
        terms = add(parts[0], parts[1])
        # the factors may be rounded, and apply before the sums or after them, or after the mean
        unit = PRECISION[terms.dtype].unit
        with np.errstate(all="ignore"):
            own = 4 * unit * (np.abs(parts[0].value) + np.abs(parts[1].value))
            own += 2 * unit * count * smoothing * np.max(np.abs(scores.value) * 4, 1)
            terms = Bounded(terms.value, terms.error + np.where(np.isfinite(own), own, 0.0), terms.dtype)
    terms = chosen(kept, terms, given(np.zeros(kept.shape), terms.dtype))
    if call.attrs["reduction"] != "mean":
        return reduced(terms, call)
    total, weighing = (summed(x, np.sum, kept.size, overflows=False) for x in (terms, weights))
    result = divide(total, weighing)
    # divided before the sum, or after it
    with np.errstate(all="ignore"):
        magnitude = np.sum(np.abs(terms.value)) / np.sum(weights.value)
        error = result.error + 3 * PRECISION[terms.dtype].unit * np.where(np.isfinite(magnitude), magnitude, 0.0)
    return undetermined(Bounded(result.value, error, terms.dtype), ~kept.any() | np.isinf(total.value))


def _nll_weighted(args: Sequence[Bounded], call: Call) -> Bounded:
    scores, classes, weight = args
    return _weighted(scores, classes, weight, call, 0.0)


def _cross_entropy_weighted(args: Sequence[Bounded], call: Call) -> Bounded:
    scores, classes, weight = args
    logarithms = compute(log_softmax, scores, axis=1)
    return _weighted(logarithms, classes, weight, call, call.number("smoothing"))


# ---- operands, types and records ----------------------------------------------------------------------


def _elementwise(operands: Types, attrs: Attrs) -> TensorType:
    x, t = operands[:2]
    if x.size == 0 or x != t or any(o not in (x, TensorType(x.dtype, x.shape[-1:])) for o in operands[2:]):
        raise TypeRuleError(f"no loss of {', '.join(map(str, operands))}")
    if "eps" in attrs and not (isinstance(attrs["eps"], float) and attrs["eps"] > 0):
        raise TypeRuleError(f"eps {attrs['eps']!r} is not a positive float")
    return check_reduction(x, attrs)


def _of_classes(operands: Types, attrs: Attrs) -> TensorType:
    x, classes, weight = operands
    if x.rank < 2 or classes.shape != (x.shape[0], *x.shape[2:]) or x.size == 0 or weight.shape != x.shape[1:2]:
        raise TypeRuleError(f"{classes} and {weight} hold no classes and weights for {x}")
    if isinstance(attrs["ignore"], bool) or not isinstance(attrs["ignore"], int):
        raise TypeRuleError(f"{attrs['ignore']!r} is no class")
    if "smoothing" in attrs and not (isinstance(attrs["smoothing"], float) and 0 <= attrs["smoothing"] < 1):
        raise TypeRuleError(f"the smoothing {attrs['smoothing']!r} is not a float between 0 and 1")
    return check_reduction(TensorType(x.dtype, classes.shape), attrs)


def _between(low: int, high: int, slot: Slot) -> Slot:
    return Slot(slot.accepts, slot.fresh, lambda earlier: (low, high))


_F = "torch.nn.functional"
PROBABILITIES = _between(0, 1, floating(nonempty=True))
TARGETS = _between(0, 1, like(0))
WEIGHTS = computed(lambda earlier: TensorType(earlier[0].dtype, earlier[0].shape[1:2]), lambda earlier: (1, 4))
LAST = computed(lambda earlier: TensorType(earlier[0].dtype, earlier[0].shape[-1:]), lambda earlier: (0, 4))
EPSILONS = one_of(2.0**-10, 2.0**-20, 1.0)


def _loss(
    name: str,
    operands: tuple[Slot, ...],
    reference: Reference,
    torch: Spelling,
    result: ResultRule = _elementwise,
    attrs: Mapping[str, AttrRule] | None = None,
    **others: Spelling,
) -> OpSpec:
    rules = {**(attrs or {}), "reduction": one_of(*REDUCTIONS)}
    spellings = {**shared(name), "torch": torch, **others}
    return OpSpec(name, "loss", operands, result, reference, attrs=rules, **spellings)


def _plain_or(text: str) -> Spelling:
    """`text` without smoothing of labels, which only PyTorch knows."""
    composed = shared("cross_entropy_weighted")["onnx"]
    assert callable(composed)
    return lambda call: composed(call) if call.attrs["smoothing"] else text


_IGNORE: dict[str, AttrRule] = {"ignore": one_of(-100, 0, 1)}
_CLASS = "{0}, {1}, {2}, ignore_index={ignore}, reduction={reduction}"

OPERATORS: tuple[OpSpec, ...] = (
    _loss(
        "binary_cross_entropy", (PROBABILITIES, TARGETS), _bce,
        f"{_F}.binary_cross_entropy({{0}}, {{1}}, reduction={{reduction}})",
    ),
    _loss(
        "bce_pos_weight", (tensor(FLOATS, 1, nonempty=True), TARGETS, LAST), _bce_pos_weight,
        f"{_F}.binary_cross_entropy_with_logits({{0}}, {{1}}, pos_weight={{2}}, reduction={{reduction}})",
        tensorflow="reduced(Space, tf.nn.weighted_cross_entropy_with_logits({1}, {0}, {2}), {reduction})",
        # log(1 + exp(-|x|)) + max(-x, 0) has two kinks at 0, of which JAX takes different sides
        jax="reduced(Space, (1 - {1}) * {0} + (({2} - 1) * {1} + 1) * jax.nn.softplus(-{0}), {reduction})",
    ),
    _loss(
        "kl_div_log_target", (floating(nonempty=True), like(0)), _kl_div_log_target,
        f"{_F}.kl_div({{0}}, {{1}}, reduction={{reduction}}, log_target=True)",
    ),
    _loss(
        "poisson_nll", (floating(nonempty=True), like(0)), _poisson_nll,
        f"{_F}.poisson_nll_loss({{0}}, {{1}}, {{log_input}}, eps={{eps}}, reduction={{reduction}})",
        attrs={"log_input": one_of(True, False), "eps": EPSILONS},
    ),
    _loss(
        "gaussian_nll", (floating(nonempty=True), like(0), _between(0, 4, like(0))), _gaussian_nll,
        f"{_F}.gaussian_nll_loss({{0}}, {{1}}, {{2}}, eps={{eps}}, reduction={{reduction}})",
        attrs={"eps": EPSILONS},
    ),
    _loss(
        "nll_loss_weighted", (SCORES, CLASSES, WEIGHTS), _nll_weighted,
        f"{_F}.nll_loss({{0}}, {{1}}, {{2}}, ignore_index={{ignore}}, reduction={{reduction}})", _of_classes, _IGNORE,
        relax="relax.op.nn.nll_loss({0}, {1}, {2}, {reduction}, {ignore})",
        onnx=f'g.op("NegativeLogLikelihoodLoss", {_CLASS})',
    ),
    _loss(
        "cross_entropy_weighted", (SCORES, CLASSES, WEIGHTS), _cross_entropy_weighted,
        f"{_F}.cross_entropy({_CLASS}, label_smoothing={{smoothing}})", _of_classes,
        {**_IGNORE, "smoothing": one_of(0.0, 0.25, 0.5)},
        onnx=_plain_or(f'g.op("SoftmaxCrossEntropyLoss", {_CLASS})'),
    ),
)  # fmt: skip
