"""Losses of margins: ranking, embeddings, triplets, classes. Every dtype holds the margins exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded, add, divide, multiply
from generators.bounds.sums import root, summed
from generators.graph import TensorType
from generators.ops.composed import chosen, compute, given, negated, shared, undetermined
from generators.ops.elementwise.activations import softplus
from generators.ops.elementwise.rectifiers import relu
from generators.ops.nn.distances import EPSILON, ROWS, distance, of_rows
from generators.ops.nn.losses import CLASSES, REDUCTIONS, check_reduction, reduced
from generators.ops.slots import computed, floating, like, one_of
from generators.ops.spec import (
    AttrRule,
    Attrs,
    Call,
    OpSpec,
    Reference,
    ResultRule,
    Slot,
    TypeRuleError,
    Types,
    unsupported,
)

# ---- references ---------------------------------------------------------------------------------------


def _limited(margin: float, x: Bounded, sign: float) -> Bounded:
    """max(0, margin + sign x): the maximum rounds nothing and keeps NaN."""
    return compute(relu, add(given(margin, x.dtype), x, sign))


def _margin_ranking(args: Sequence[Bounded], call: Call) -> Bounded:
    """max(0, margin - y (x1 - x2)); the sign may be taken into any factor."""
    first, second, y = args
    product = multiply(y, add(first, second, -1.0))
    return reduced(_limited(call.number("margin"), product, -1.0), call)


def _hinge_embedding(args: Sequence[Bounded], call: Call) -> Bounded:
    """x where the label is 1, max(0, margin - x) where it is -1. The label is a boolean here."""
    x, alike = args
    far = _limited(call.number("margin"), x, -1.0)
    return reduced(undetermined(chosen(alike.value, x, far), alike.undetermined), call)


def _soft_margin(args: Sequence[Bounded], call: Call) -> Bounded:
    """log(1 + exp(-x y)), undetermined where the exponential alone overflows: the formula is documented as such."""
    x, y = args
    product = negated(multiply(x, y))
    with np.errstate(all="ignore"):
        over = product.value + product.error > np.log(PRECISION[product.dtype].largest) - 1
    return reduced(undetermined(softplus(product), over), call)


def _dot(x: Bounded, y: Bounded) -> Bounded:
    product = multiply(x, y)
    return summed(product, partial(np.sum, axis=-1), x.value.shape[-1], overflows=False)


def _cosine(x: Bounded, y: Bounded, epsilon: Bounded) -> Bounded:
    """The dot product by the root of the product of both sums of squares, each with epsilon added. Sums of squares
    whose product leaves the range of the dtype are undetermined: other orders of the same are common."""
    p = PRECISION[x.dtype]
    squares = [add(_dot(v, v), epsilon) for v in (x, y)]
    product = multiply(*squares)
    with np.errstate(all="ignore"):
        result = divide(_dot(x, y), root(product))
        lost = ~(product.value < p.largest / 4) | (product.value < 4 * p.tiny)
    return undetermined(result, lost)


def _cosine_embedding(args: Sequence[Bounded], call: Call) -> Bounded:
    """1 - cos where the label is 1, max(0, cos - margin) where it is -1. The label is a boolean here. PyTorch adds
    1e-12 as a float32 number to the sums of squares, once each, which no page says: as float64, too."""
    x, y, alike = args
    epsilon = given(float(np.dtype(x.dtype).type(1e-12)), x.dtype)
    cosine = _cosine(x, y, replace(epsilon, error=np.abs(epsilon.value - float(np.float32(1e-12)))))
    near = add(given(1.0, x.dtype), cosine, -1.0)
    far = _limited(-call.number("margin"), cosine, 1.0)
    return reduced(undetermined(chosen(alike.value, near, far), alike.undetermined), call)


def _triplet_margin(args: Sequence[Bounded], call: Call) -> Bounded:
    """max(0, margin + |anchor - positive| - |anchor - negative|), of which the sums may be taken in either order:
    one rounding more, of the greater distance."""
    anchor, positive, negative = args
    near, far = (distance(anchor, other, call.number("p")) for other in (positive, negative))
    total = add(add(near, given(call.number("margin"), near.dtype)), far, -1.0)
    with np.errstate(all="ignore"):
        order = 2 * PRECISION[near.dtype].unit * (near.value + near.error + far.value + far.error)
        error = total.error + np.where(np.isfinite(order), order, 0.0)
    return reduced(compute(relu, Bounded(total.value, error, near.dtype)), call)


def _short_of(margin: float, right: Bounded, other: Bounded) -> Bounded:
    """max(0, margin - right + other) of scores, whose terms are added in any order."""
    with np.errstate(all="ignore"):
        d = add(add(given(margin, right.dtype), right, -1.0), other)
        order = 2 * PRECISION[d.dtype].unit * (np.abs(other.value) + other.error + np.abs(right.value) + right.error)
        d = Bounded(d.value, d.error + np.where(np.isfinite(order), order, 0.0), d.dtype)
        return compute(relu, d)


def _multi_margin(args: Sequence[Bounded], call: Call) -> Bounded:
    """The sum over the wrong classes j of max(0, margin - x[y] + x[j]) to the power p, by the number of classes."""
    x, classes = args
    count = x.value.shape[1]
    right = x.map(lambda a: np.take_along_axis(a, classes.value[:, np.newaxis], 1))
    terms = _short_of(call.number("margin"), right, x)
    with np.errstate(all="ignore"):
        terms = multiply(terms, terms) if call.attrs["p"] == 2 else terms
        wrong = np.arange(count) != classes.value[:, np.newaxis]
        terms = chosen(wrong, terms, given(np.zeros(x.value.shape), x.dtype))
        total = summed(terms, partial(np.sum, axis=1), count, overflows=False)
        # one non-finite score of the right class leaves inf - inf, or not, in the term that is left out
        loose = ~np.isfinite(right.value[:, 0]) & ~np.isnan(total.value)
    return reduced(undetermined(divide(total, given(float(count), x.dtype)), loose), call)


def _multilabel_margin(args: Sequence[Bounded], call: Call) -> Bounded:
    """The sum of max(0, 1 - x[y] + x[i]) over the classes y of a row before its first -1 and the i that are none of
    them, by the number of classes; a class that is there twice counts twice."""
    x, count = args[0], args[0].value.shape[1]
    classes = args[1].value
    listed = np.cumsum(classes < 0, axis=1) == 0
    among = np.zeros(classes.shape, bool)
    rows, places = np.nonzero(listed)
    among[rows, classes[rows, places]] = True
    right = x.map(lambda a: np.take_along_axis(a, np.where(listed, classes, 0), 1)[:, :, np.newaxis])
    other = x.map(lambda a: a[:, np.newaxis, :])
    terms = _short_of(1.0, right, other)
    with np.errstate(all="ignore"):
        counts = listed[:, :, np.newaxis] & ~among[:, np.newaxis, :]
        terms = chosen(counts, terms, given(np.zeros(terms.value.shape), x.dtype))
        total = summed(terms, partial(np.sum, axis=(1, 2)), count * count, overflows=False)
        # what is left out may be multiplied by nothing
        loose = np.any(~np.isfinite(x.value) | x.undetermined, (1,))
    return reduced(undetermined(divide(total, given(float(count), x.dtype)), loose), call)


# ---- operands, types and records ----------------------------------------------------------------------


def _alike(rank: int | None) -> Slot:
    return computed(lambda earlier: TensorType("bool", earlier[0].shape[:rank]))


def _elementwise(operands: Types, attrs: Attrs) -> TensorType:
    if operands[0].size == 0 or any(t.shape != operands[0].shape for t in operands):
        raise TypeRuleError(f"no loss of {', '.join(map(str, operands))}")
    return check_reduction(operands[0], attrs)


def _by_rows(operands: Types, attrs: Attrs) -> TensorType:
    """Of vectors: one number a row, or one in all."""
    return check_reduction(of_rows(operands, attrs), attrs)


def _lists(earlier: Types) -> TensorType:
    return TensorType("int64", earlier[0].shape)


_LISTS = computed(_lists, lambda earlier: (-1, earlier[0].shape[1] - 1))
"""The classes of each row, as far as there is no -1."""


def _listed_type(operands: Types, attrs: Attrs) -> TensorType:
    if operands[1] != _lists(operands) or attrs["reduction"] not in REDUCTIONS:
        raise TypeRuleError(f"{operands[1]} lists no classes of {operands[0]}")
    return _by_rows(operands, attrs)


_OWN = unsupported("a loss of PyTorch")
MARGINS: AttrRule = one_of(1.0, 0.0, 0.5)
_F = "torch.nn.functional"
_SIGNS = "torch.where({%d}, 1, -1)"


def _loss(
    name: str, operands: tuple[Slot, ...], result: ResultRule, reference: Reference, torch: str, **attrs: AttrRule
) -> OpSpec:
    rules = {**attrs, "reduction": one_of(*REDUCTIONS)}
    keywords = ", ".join(f"{key}={{{key}}}" for key in rules)
    spellings = shared(name)
    spellings["torch"] = f"{_F}.{torch}, {keywords})"
    return OpSpec(name, "loss", operands, result, reference, attrs=rules, **spellings)


OPERATORS: tuple[OpSpec, ...] = (
    _loss(
        "margin_ranking", (floating(nonempty=True), like(0), like(0)), _elementwise, _margin_ranking,
        "margin_ranking_loss({0}, {1}, {2}", margin=MARGINS,
    ),
    _loss(
        "hinge_embedding", (floating(nonempty=True), _alike(None)), _elementwise, _hinge_embedding,
        f"hinge_embedding_loss({{0}}, {_SIGNS % 1}", margin=MARGINS,
    ),
    _loss("soft_margin", (floating(nonempty=True), like(0)), _elementwise, _soft_margin, "soft_margin_loss({0}, {1}"),
    _loss(
        "cosine_embedding", (ROWS, like(0), _alike(1)), _by_rows, _cosine_embedding,
        f"cosine_embedding_loss({{0}}, {{1}}, {_SIGNS % 2}", margin=one_of(0.0, 0.5, -0.5),
    ),
    _loss(
        "triplet_margin", (ROWS, like(0), like(0)), _by_rows, _triplet_margin,
        f"triplet_margin_loss({{0}}, {{1}}, {{2}}, eps={EPSILON!r}", margin=one_of(1.0, 0.5, 2.0), p=one_of(2.0, 1.0),
    ),
    _loss(
        "multi_margin", (ROWS, CLASSES), _by_rows, _multi_margin, "multi_margin_loss({0}, {1}", margin=MARGINS,
        p=one_of(1, 2),
    ),
    OpSpec(
        "multilabel_margin", "loss", (ROWS, _LISTS), _listed_type, _multilabel_margin,
        attrs={"reduction": one_of(*REDUCTIONS)},
        torch=f"{_F}.multilabel_margin_loss({{0}}, {{1}}, reduction={{reduction}})",
        tensorflow=_OWN, jax=_OWN, relax=_OWN, onnx=_OWN,
    ),
)  # fmt: skip
