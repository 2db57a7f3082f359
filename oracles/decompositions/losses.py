"""Losses of margins, distances and likelihoods in steps."""

from __future__ import annotations

import numpy as np

from generators.graph import Node
from generators.ops.nn.distances import EPSILON
from oracles.decompositions.composite import GraphBuilder, Rule
from oracles.decompositions.expressions import Term, number, terms, whole


def reduced(x: Term, node: Node) -> str:
    reduction = str(node.attributes["reduction"])
    return (x if reduction == "none" else x.op(reduction, axes=x.axes, keepdims=False)).name


# ---- margins and distances ----------------------------------------------------------------------------


def _margin_ranking(s: GraphBuilder, node: Node) -> str:
    first, second, y = terms(s, node)
    return reduced((number(node, "margin") - y * (first - second)).relu(), node)


def _hinge_embedding(s: GraphBuilder, node: Node) -> str:
    x, alike = terms(s, node)
    return reduced(alike.where(x, (number(node, "margin") - x).relu()), node)


def _soft_margin(s: GraphBuilder, node: Node) -> str:
    x, y = terms(s, node)
    return reduced(((-(x * y)).op("exp") + 1.0).op("log"), node)


def _cosine_embedding(s: GraphBuilder, node: Node) -> str:
    x, y, alike = terms(s, node)
    squares = [(v * v).sum(1) + 1e-12 for v in (x, y)]
    cosine = (x * y).sum(1) / (squares[0] * squares[1]).sqrt()
    return reduced(alike.where(1.0 - cosine, (cosine - number(node, "margin")).relu()), node)


def distance(x: Term, y: Term, p: float, epsilon: float = 0.0) -> Term:
    """The 1-norm or 2-norm of x - y + epsilon along the last axis."""
    d = x - y + epsilon if epsilon else x - y
    last = len(d.shape) - 1
    return d.op("abs").sum(last) if p == 1 else (d * d).sum(last).sqrt()


def _pairwise_distance(s: GraphBuilder, node: Node) -> str:
    x, y = terms(s, node)
    return distance(x, y, number(node, "p"), EPSILON).name


def _triplet_margin(s: GraphBuilder, node: Node) -> str:
    anchor, positive, negative = terms(s, node)
    near, far = (distance(anchor, other, number(node, "p"), EPSILON) for other in (positive, negative))
    return reduced((near - far + number(node, "margin")).relu(), node)


def right_class(classes: Term, count: int) -> Term:
    """Along a new axis 1 of that many classes: is this the one?"""
    row = np.arange(count, dtype=classes.dtype).reshape(count, *[1] * (len(classes.shape) - 1))
    return classes.op("unsqueeze", axis=1).op("equal", classes.array(row))


def _multi_margin(s: GraphBuilder, node: Node) -> str:
    x, classes = terms(s, node)
    count = x.shape[1]
    right = right_class(classes, count)
    chosen = right.where(x, 0.0).sum(1, keepdims=True)
    apart = (number(node, "margin") - chosen + x).relu()
    each = right.where(0.0, apart * apart if whole(node, "p") == 2 else apart)
    return reduced(each.sum(1) / count, node)


# ---- likelihoods --------------------------------------------------------------------------------------


def _binary_cross_entropy(s: GraphBuilder, node: Node) -> str:
    """PyTorch's derivative divides by x (1 - x), or by 1e-12 where that is less."""
    x, t = terms(s, node)
    x = x.open((x * (1.0 - x)).op("less", 1e-11))
    first, second = (v.op("log").op("maximum", -100.0) for v in (x, 1.0 - x))
    return reduced(-(t * first + (1.0 - t) * second), node)


def _bce_pos_weight(s: GraphBuilder, node: Node) -> str:
    x, t, weight = terms(s, node)
    return reduced(weight * t * (-x).op("softplus") + (1.0 - t) * x.op("softplus"), node)


def _kl_div_log_target(s: GraphBuilder, node: Node) -> str:
    x, t = terms(s, node)
    return reduced(t.op("exp") * (t - x), node)


def _softmax_cross_entropy(s: GraphBuilder, node: Node) -> str:
    x, labels = terms(s, node)
    if node.attributes["output"] == "backprop":
        return (x.op("softmax", axis=1) - labels).name
    return (-(labels * x.op("log_softmax", axis=1)).sum(1)).name


def _poisson_nll(s: GraphBuilder, node: Node) -> str:
    x, t = terms(s, node)
    if node.attributes["log_input"]:
        return reduced(x.op("exp") - t * x, node)
    return reduced(x - t * (x + number(node, "eps")).op("log"), node)


def _gaussian_nll(s: GraphBuilder, node: Node) -> str:
    """A variance below eps is left open: PyTorch's documentation says that autograd ignores the clamping."""
    x, t, variance = terms(s, node)
    eps = number(node, "eps")
    variance = variance.open(variance.op("less", eps)).op("maximum", eps)
    d = x - t
    return reduced((variance.op("log") + d * d / variance) * 0.5, node)


def _weighted(scores: Term, classes: Term, weight: Term, node: Node, smoothing: float) -> str:
    count = scores.shape[1]
    right = right_class(classes, count)
    weights = weight.op("take", classes, axis=0)
    each = -(weights * right.where(scores, 0.0).sum(1))
    if smoothing:
        wide = weight.reshape(count, *[1] * (len(scores.shape) - 2))
        each = each * (1 - smoothing) - (wide * scores).sum(1) * (smoothing / count)
    kept = classes.op("not_equal", classes.array(np.asarray(whole(node, "ignore"), classes.dtype)))
    each = kept.where(each, 0.0)
    if node.attributes["reduction"] != "mean":
        return reduced(each, node)
    return (each.sum(*each.axes) / kept.where(weights, 0.0).sum(*each.axes)).name


def _nll_weighted(s: GraphBuilder, node: Node) -> str:
    scores, classes, weight = terms(s, node)
    return _weighted(scores, classes, weight, node, 0.0)


def _cross_entropy_weighted(s: GraphBuilder, node: Node) -> str:
    scores, classes, weight = terms(s, node)
    return _weighted(scores.op("log_softmax", axis=1), classes, weight, node, number(node, "smoothing"))


LOSSES: dict[str, Rule] = {
    "margin_ranking": _margin_ranking,
    "hinge_embedding": _hinge_embedding,
    "soft_margin": _soft_margin,
    "cosine_embedding": _cosine_embedding,
    "pairwise_distance": _pairwise_distance,
    "triplet_margin": _triplet_margin,
    "multi_margin": _multi_margin,
    "binary_cross_entropy": _binary_cross_entropy,
    "bce_pos_weight": _bce_pos_weight,
    "kl_div_log_target": _kl_div_log_target,
    "softmax_cross_entropy": _softmax_cross_entropy,
    "poisson_nll": _poisson_nll,
    "gaussian_nll": _gaussian_nll,
    "nll_loss_weighted": _nll_weighted,
    "cross_entropy_weighted": _cross_entropy_weighted,
}
