"""Operators in steps for second derivatives only: first ones are measured on them as a whole."""

from __future__ import annotations

from math import prod

from generators.graph import FLOATS, Node
from generators.ops.slots import normalized
from oracles.decompositions.composite import GraphBuilder, Rule
from oracles.decompositions.expressions import Term, number, terms, whole
from oracles.decompositions.layers import standardised
from oracles.decompositions.losses import reduced, right_class

LONGEST = 64
"""Of products one after the other: so many factors."""


def _square(x: Term, node: Node) -> Term:
    d = x - x.op("mean", axes=node.attributes["axes"], keepdims=True)
    return (d * d).op("mean", axes=node.attributes["axes"], keepdims=node.attributes["keepdims"])


def _variance(s: GraphBuilder, node: Node) -> str | None:
    (x,) = terms(s, node)
    return _square(x, node).name if node.attributes["axes"] else None


def _std(s: GraphBuilder, node: Node) -> str | None:
    (x,) = terms(s, node)
    return _square(x, node).sqrt().name if node.attributes["axes"] else None


def _variance_corrected(s: GraphBuilder, node: Node) -> str:
    (x,) = terms(s, node)
    return _sample_variance(x, node).name


def _std_corrected(s: GraphBuilder, node: Node) -> str:
    (x,) = terms(s, node)
    return _sample_variance(x, node).sqrt().name


def _sample_variance(x: Term, node: Node) -> Term:
    axes = normalized(node.attributes["axes"], len(x.shape))
    n = prod(x.shape[axis] for axis in axes)
    return _square(x, node) * (n / (n - whole(node, "correction")))


def _l2_norm(s: GraphBuilder, node: Node) -> str:
    (x,) = terms(s, node)
    return (x * x).op("sum", axes=node.attributes["axes"], keepdims=node.attributes["keepdims"]).sqrt().name


def _per_channel(x: Term, *parameters: Term) -> list[Term]:
    return [p.reshape(p.shape[0], *[1] * (len(x.shape) - 2)) for p in parameters]


def _batch_norm(s: GraphBuilder, node: Node) -> str:
    x, *parameters = terms(s, node)
    scale, bias, mean, variance = _per_channel(x, *parameters)
    return ((x - mean) / (variance + number(node, "epsilon")).sqrt() * scale + bias).name


def _instance_norm(s: GraphBuilder, node: Node) -> str:
    x, *parameters = terms(s, node)
    scale, bias = _per_channel(x, *parameters)
    return (standardised(x, tuple(range(2, len(x.shape))), number(node, "epsilon")) * scale + bias).name


def _group_norm(s: GraphBuilder, node: Node) -> str:
    x, *parameters = terms(s, node)
    scale, bias = _per_channel(x, *parameters)
    groups = whole(node, "groups")
    apart = x.reshape(x.shape[0], groups, prod(x.shape[1:]) // groups)
    return (standardised(apart, (2,), number(node, "epsilon")).reshape(*x.shape) * scale + bias).name


def _glu(s: GraphBuilder, node: Node) -> str:
    (x,), axis = terms(s, node), whole(node, "axis")
    axis %= len(x.shape)
    half = x.shape[axis] // 2
    return (x.part(axis, 0, half) * x.part(axis, half, 2 * half).op("sigmoid")).name


def _bce_with_logits(s: GraphBuilder, node: Node) -> str:
    x, t = terms(s, node)
    return reduced(t * (-x).op("softplus") + (1.0 - t) * x.op("softplus"), node)


def _kl_div(s: GraphBuilder, node: Node) -> str:
    x, t = terms(s, node)
    return reduced(t.op("xlogy", t) - t * x, node)


def _hinge(s: GraphBuilder, node: Node) -> str:
    x, y = terms(s, node)
    return reduced((1.0 - x * y).relu(), node)


def _nll(s: GraphBuilder, node: Node) -> str:
    x, classes = terms(s, node)
    return reduced(-right_class(classes, x.shape[1]).where(x, 0.0).sum(1), node)


def _cross_entropy(s: GraphBuilder, node: Node) -> str:
    x, classes = terms(s, node)
    return reduced(-right_class(classes, x.shape[1]).where(x.op("log_softmax", axis=1), 0.0).sum(1), node)


def _cumprod(s: GraphBuilder, node: Node) -> str | None:
    """One factor after the other. PyTorch and TensorFlow divide the sum of products by a factor, so that the second
    derivative by the same factor, which is 0, is a difference of two quotients by its square: x stands as x (x / x)."""
    (x,), axis = terms(s, node), whole(node, "axis")
    axis %= len(x.shape)
    if not 0 < x.shape[axis] <= LONGEST:
        return None
    if x.dtype in FLOATS:
        zero = x.op("equal", 0.0)
        x = x * zero.where(1.0, x / zero.where(1.0, x))
    found = [x.part(axis, 0, 1)]
    for place in range(1, x.shape[axis]):
        found.append(found[-1] * x.part(axis, place, place + 1))
    return found[0].op("concat", *found[1:], axis=axis).name


SECOND: dict[str, Rule] = {
    "cumprod": _cumprod,
    "variance": _variance,
    "std": _std,
    "variance_corrected": _variance_corrected,
    "std_corrected": _std_corrected,
    "l2_norm": _l2_norm,
    "batch_norm": _batch_norm,
    "instance_norm": _instance_norm,
    "group_norm": _group_norm,
    "glu": _glu,
    "bce_with_logits": _bce_with_logits,
    "kl_div": _kl_div,
    "hinge_loss": _hinge,
    "nll_loss": _nll,
    "cross_entropy": _cross_entropy,
}
