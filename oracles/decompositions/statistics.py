"""Norms, covariances and distances in steps."""

from __future__ import annotations

from math import prod

from generators.graph import Node
from oracles.decompositions.composite import GraphBuilder, Rule
from oracles.decompositions.expressions import Term, number, terms, whole
from oracles.decompositions.losses import distance

_ROWS_OR_COLUMNS = {"1": (-2, "max"), "-1": (-2, "min"), "inf": (-1, "max"), "-inf": (-1, "min")}


def _vector_norm(s: GraphBuilder, node: Node) -> str:
    (x,), p = terms(s, node), float(str(node.attributes["ord"]))
    over = {"axes": node.attributes["axes"], "keepdims": node.attributes["keepdims"]}
    if p == float("-inf"):
        return x.op("abs").op("min", **over).name
    return x.op("abs").op("pow", p).op("sum", **over).op("pow", 1 / p).name


def _matrix_norm(s: GraphBuilder, node: Node) -> str:
    (x,), order, keep = terms(s, node), str(node.attributes["ord"]), bool(node.attributes["keepdims"])
    if order == "fro":
        return (x * x).sum(-2, -1, keepdims=keep).sqrt().name
    axis, taken = _ROWS_OR_COLUMNS[order]
    sums = x.op("abs").sum(axis, keepdims=True)
    found = sums.op(taken, axes=(-3 - axis,), keepdims=True)
    return found.name if keep else found.reshape(*x.shape[:-2]).name


def _spectral_norm(s: GraphBuilder, node: Node) -> str:
    (x,) = terms(s, node)
    values = x.op("singular_values", form=node.attributes["form"])
    last = len(values.shape) - 1
    if node.attributes["ord"] == "nuc":
        return values.sum(last).name
    return values.at(last, 0 if node.attributes["ord"] == "2" else values.shape[-1] - 1).name


def _lp_pool(s: GraphBuilder, node: Node) -> str:
    """The root of as many times the mean of squares as a window has elements."""
    (x,), kernel, spatial = terms(s, node), node.attributes["kernel"], int(node.op[-2])
    assert isinstance(kernel, tuple)
    sizes = {"kernel": kernel, "stride": node.attributes["stride"], "padding": (0,) * spatial}
    mean = (x * x).op(f"avg_pool{spatial}d", **sizes, count_include_pad=True)
    return (mean * float(prod(kernel))).sqrt().name


def _lp_normalize(s: GraphBuilder, node: Node) -> str:
    (x,), along = terms(s, node), {"axes": (whole(node, "axis"),), "keepdims": True}
    return (x / (x.op("abs").op("sum", **along) if whole(node, "p") == 1 else x.op("l2_norm", **along))).name


def _l2_normalize(s: GraphBuilder, node: Node) -> str:
    (x,), along = terms(s, node), {"axes": (whole(node, "axis"),), "keepdims": True}
    return (x / x.op("l2_norm", **along).op("maximum", number(node, "eps"))).name


def _log_sum(s: GraphBuilder, node: Node) -> str:
    (x,) = terms(s, node)
    return x.op("sum", **node.attributes).op("log").name


def _global_lp_pool(s: GraphBuilder, node: Node) -> str:
    (x,), p, over = terms(s, node), whole(node, "p"), {"axes": (2, 3), "keepdims": True}
    if p == 2:
        return x.op("l2_norm", **over).name
    size = x.op("abs")
    return (size.op("sum", **over) if p == 1 else size.op("pow", 3.0).op("sum", **over).op("pow", 1 / 3)).name


def _adjust_contrast(s: GraphBuilder, node: Node) -> str:
    (x,) = terms(s, node)
    mean = x.mean(-3, -2, keepdims=True)
    return ((x - mean) * number(node, "factor") + mean).name


def _deviations(x: Term) -> Term:
    return x - x.mean(1, keepdims=True)


def _cov(s: GraphBuilder, node: Node) -> str:
    (x,) = terms(s, node)
    d = _deviations(x)
    return (d @ d.transposed() / (x.shape[1] - whole(node, "correction"))).name


def _corrcoef(s: GraphBuilder, node: Node) -> str:
    (x,) = terms(s, node)
    d = _deviations(x)
    size = (d * d).sum(1, keepdims=True).sqrt()
    return (d @ d.transposed() / size / size.transposed()).name


def _cdist(s: GraphBuilder, node: Node) -> str:
    x, y = terms(s, node)
    rank = len(x.shape)
    x, y = x.op("unsqueeze", axis=rank - 1), y.op("unsqueeze", axis=rank - 2)
    return distance(x, y, number(node, "p")).name


def _matrix_power(s: GraphBuilder, node: Node) -> str | None:
    """Products, one after the other."""
    (x,), k = terms(s, node), whole(node, "k")
    if k < 2:
        return None
    found = x
    for _ in range(k - 1):
        found = found @ x
    return found.name


STATISTICS: dict[str, Rule] = {
    "vector_norm": _vector_norm,
    "matrix_norm": _matrix_norm,
    "spectral_norm": _spectral_norm,
    **dict.fromkeys(("lp_pool1d", "lp_pool2d"), _lp_pool),
    "lp_normalize": _lp_normalize,
    "l2_normalize": _l2_normalize,
    "log_sum": _log_sum,
    "global_lp_pool": _global_lp_pool,
    "adjust_contrast": _adjust_contrast,
    "cov": _cov,
    "corrcoef": _corrcoef,
    "cdist": _cdist,
    "matrix_power": _matrix_power,
}
