"""Losses of classes."""

from __future__ import annotations

import numpy as np

from oracles.onnx.operators.arguments import refuse
from oracles.onnx.rule import Call, Value


def _loss(call: Call, log: np.ndarray, target: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Of (N, C, D...) by (N, D...): the weighted mean, the sum, or each sample's loss."""
    ignored = target == call.get("ignore_index", None) if "ignore_index" in call.attributes else np.zeros(1, bool)
    safe = np.where(ignored, 0, target).astype(np.int64)
    if safe.size and (safe.min() < 0 or safe.max() >= log.shape[1]):
        raise refuse(call, "a class that is not there")
    taken = np.take_along_axis(log, np.expand_dims(safe, 1), 1)[:, 0]
    weights = np.where(ignored, 0.0, 1.0 if weight is None else weight[safe])
    losses = np.where(ignored, 0.0, -taken * weights)
    how = call.get("reduction", "mean")
    if how == "none":
        return losses
    if how not in ("mean", "sum"):
        raise refuse(call, f"reduction {how!r}")
    total = np.broadcast_to(weights, losses.shape).sum() if how == "mean" else 1.0
    with np.errstate(invalid="ignore"):
        return np.asarray(losses.sum() / total)


def _likelihood(call: Call) -> list[Value]:
    return [_loss(call, *(call.input(place) for place in range(3)))]


def _cross_entropy(call: Call) -> list[Value]:
    scores, labels, weights = (call.input(place) for place in range(3))
    below = scores - scores.max(1, keepdims=True, initial=-np.inf)
    log = below - np.log(np.exp(below).sum(1, keepdims=True))
    return [_loss(call, log, labels, weights), log]


RULES = {"NegativeLogLikelihoodLoss": _likelihood, "SoftmaxCrossEntropyLoss": _cross_entropy}
