"""Normalisations, attention and recurrent layers in steps; recurrent layers one step of time after the other."""

from __future__ import annotations

import numpy as np

from generators.graph import Node
from generators.ops.slots import normalized
from oracles.decompositions.composite import GraphBuilder, Rule
from oracles.decompositions.expressions import Term, number, terms, whole

# ---- normalisation ------------------------------------------------------------------------------------


def standardised(x: Term, axes: tuple[int, ...], epsilon: float) -> Term:
    d = x - x.mean(*axes, keepdims=True)
    return d / ((d * d).mean(*axes, keepdims=True) + epsilon).sqrt()


def _batch_norm_training(s: GraphBuilder, node: Node) -> str:
    x, scale, bias = terms(s, node)
    wide = (-1, *[1] * (len(x.shape) - 2))
    scale, bias = (p.reshape(p.shape[0], *wide[1:]) for p in (scale, bias))
    axes = (0, *range(2, len(x.shape)))
    return (standardised(x, axes, number(node, "epsilon")) * scale + bias).name


def _fused_batch_norm(s: GraphBuilder, node: Node) -> str | None:
    """Channels last; with given statistics, or of these, nothing cancels that the operands do not tell."""
    x, scale, offset, *_ = terms(s, node)
    if not node.attributes["training"] or node.attributes["output"] != "y":
        return None
    return (standardised(x, tuple(range(len(x.shape) - 1)), number(node, "epsilon")) * scale + offset).name


def _layer_norm_plain(s: GraphBuilder, node: Node) -> str:
    (x,) = terms(s, node)
    return standardised(x, tuple(range(-whole(node, "last"), 0)), number(node, "epsilon")).name


def _instance_norm_plain(s: GraphBuilder, node: Node) -> str:
    (x,) = terms(s, node)
    return standardised(x, tuple(range(2, len(x.shape))), number(node, "epsilon")).name


def _group_norm_plain(s: GraphBuilder, node: Node) -> str:
    (x,), groups = terms(s, node), whole(node, "groups")
    split = x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
    axes = tuple(range(2, len(split.shape)))
    return standardised(split, axes, number(node, "epsilon")).reshape(*x.shape).name


def _mean_variance(s: GraphBuilder, node: Node) -> str:
    (x,) = terms(s, node)
    axes = normalized(node.attributes["axes"], len(x.shape))
    d = x - x.mean(*axes, keepdims=True)
    return (d / ((d * d).mean(*axes, keepdims=True).sqrt() + 1e-9)).name


def _local_response_norm(s: GraphBuilder, node: Node) -> str:
    (x,), size = terms(s, node), whole(node, "size")
    half, channels = size // 2, x.shape[1]
    pads = (0, 0, half, half, *[0] * (2 * len(x.shape) - 4))  # before and after each axis
    wide = (x * x).op("pad", pads=pads, value=0.0) if half else x * x
    total = wide.part(1, 0, channels)
    for i in range(1, size):
        total = total + wide.part(1, i, i + channels)
    power = (total * (number(node, "alpha") / size) + number(node, "k")).op("pow", number(node, "beta"))
    return (x / power).name


# ---- attention ----------------------------------------------------------------------------------------

_HIDDEN, _LOW = -1e4, -9e3
"""A score whose exponential is zero in float64 beside any that is not low; where all are, the result is left open."""


def _heads(q: Term, x: Term) -> Term:
    """Repeated for the queries that share them."""
    times = q.shape[1] // x.shape[1]
    return x.op("repeat", repeats=times, axis=1) if times > 1 else x


def _attention(s: GraphBuilder, node: Node) -> str:
    q, k, v, *mask = terms(s, node)
    scale = q.shape[-1] ** -0.5 if node.attributes["scale"] is None else number(node, "scale")
    scores = q @ _heads(q, k).transposed() * scale
    kept = None
    if node.op == "attention_masked":
        kept = mask[0]
    elif node.op == "attention_biased":
        scores = scores + mask[0]
    elif node.attributes["causal"]:
        kept = q.array(np.tri(*scores.shape[-2:], dtype=bool))
    if kept is not None:
        scores = kept.where(scores, _HIDDEN)
    found = scores.op("softmax", axis=3) @ _heads(q, v)
    if kept is not None:
        found = found.open(scores.op("max", axes=(-1,), keepdims=True).op("less", _LOW))
    if node.op == "attention_masked":  # a row of which nothing counts has no derivative: the logarithm of 0
        ones = kept.where(q.of(1.0), q.of(0.0))  # type: ignore[union-attr]
        found = found + ones.op("max", axes=(-1,), keepdims=True).op("log")
    return found.name


# ---- recurrent layers ---------------------------------------------------------------------------------


def _gates(x: Term, count: int, axis: int) -> list[Term]:
    size = x.shape[axis] // count
    return [x.part(axis, i * size, (i + 1) * size) for i in range(count)]


def _simple(x: Term, state: list[Term], weights: list[Term], node: Node) -> list[Term]:
    w, r, bw, br = weights
    total = x.op("linear", w, bw) + state[0].op("linear", r, br)
    return [total.op(str(node.attributes["activation"]))]


def _gated(x: Term, state: list[Term], weights: list[Term], node: Node) -> list[Term]:
    (h,), (w, r, bw, br) = state, weights
    given = _gates(x.op("linear", w, bw), 3, 1)
    rs, brs = _gates(r, 3, 0), _gates(br, 3, 0)
    kept = [h.op("linear", rs[i], brs[i]) for i in (0, 1)]
    reset, update = ((given[i] + kept[i]).op("sigmoid") for i in (0, 1))
    if node.attributes["reset"] == "after":
        new = given[2] + reset * h.op("linear", rs[2], brs[2])
    else:
        new = given[2] + (reset * h).op("linear", rs[2], brs[2])
    return [(1.0 - update) * new.op("tanh") + update * h]


def _with_memory(x: Term, state: list[Term], weights: list[Term], node: Node) -> list[Term]:
    (h, c), (w, r, bw, br) = state, weights
    i, f, g, o = _gates(x.op("linear", w, bw) + h.op("linear", r, br), 4, 1)
    cell = f.op("sigmoid") * c + i.op("sigmoid") * g.op("tanh")
    return [o.op("sigmoid") * cell.op("tanh"), cell]


_STEPS = {"rnn": _simple, "gru": _gated, "lstm": _with_memory}


def _cell(s: GraphBuilder, node: Node) -> str:
    x, *rest = terms(s, node)
    state = _STEPS[node.op.removesuffix("_cell")](x, rest[:-4], rest[-4:], node)
    return state[1 if node.attributes.get("output") == "cell" else 0].name


def _sequence(s: GraphBuilder, node: Node) -> str:
    x, *rest = terms(s, node)
    state, outputs = rest[:-4], []
    times = list(range(x.shape[0]))
    forward = node.attributes["direction"] == "forward"
    for t in times if forward else reversed(times):
        state = _STEPS[node.op](x.at(0, t), state, rest[-4:], node)
        outputs.append(state[0])
    if node.attributes["output"] != "all":
        return state[1 if node.attributes["output"] == "cell" else 0].name
    first, *others = outputs if forward else reversed(outputs)
    return first.joined(*others, axis=0).name


LAYERS: dict[str, Rule] = {
    "batch_norm_training": _batch_norm_training,
    "fused_batch_norm": _fused_batch_norm,
    "layer_norm_plain": _layer_norm_plain,
    "instance_norm_plain": _instance_norm_plain,
    "group_norm_plain": _group_norm_plain,
    "mean_variance_normalization": _mean_variance,
    "local_response_norm": _local_response_norm,
    **dict.fromkeys(("attention", "attention_masked", "attention_biased"), _attention),
    **dict.fromkeys(("rnn_cell", "gru_cell", "lstm_cell"), _cell),
    **dict.fromkeys(("rnn", "gru", "lstm"), _sequence),
}
