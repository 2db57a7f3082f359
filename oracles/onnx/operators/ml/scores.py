"""What is done with scores: transforms and the best class."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from oracles.onnx.operators.arguments import refuse
from oracles.onnx.operators.elementwise.functions import sigmoid
from oracles.onnx.operators.reducing.softmax import softmax
from oracles.onnx.rule import Call

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


def transformed(call: Call, scores: np.ndarray) -> np.ndarray:
    """By the attribute post_transform."""
    how = call.get("post_transform", "NONE")
    how = TRANSFORMS[how] if isinstance(how, int) and 0 <= how < len(TRANSFORMS) else how
    if how == "NONE":
        return scores
    if how == "LOGISTIC":
        return sigmoid(scores)
    if how == "SOFTMAX_ZERO" and (np.abs(scores) < 1e-6).any():
        raise refuse(call, "SOFTMAX_ZERO of a score of zero, which the text does not define")
    if how in ("SOFTMAX", "SOFTMAX_ZERO"):
        return softmax(scores, scores.ndim - 1)
    if how == "PROBIT":
        return ndtri(scores)
    raise refuse(call, f"post_transform {how!r}")


def labelled(call: Call, places: np.ndarray, *names: str) -> np.ndarray:
    """The labels at places, from the one attribute of these that is stated."""
    for name in names:
        labels = call.get(name, None)
        if labels:
            dtype = object if isinstance(labels[0], str) else np.int64
            return np.array(labels, dtype)[places]
    raise refuse(call, "no labels")


def best(call: Call, scores: np.ndarray, *names: str) -> np.ndarray:
    """The label of the greatest score, the first of equal ones. Raises NoRule where classes have no score each."""
    count = max(len(call.get(name, None) or ()) for name in names)
    if scores.shape[1] != count or count < 2:
        raise refuse(call, f"{scores.shape[1]} scores for {count} classes, for which the text has no rule")
    return labelled(call, scores.argmax(1), *names)
