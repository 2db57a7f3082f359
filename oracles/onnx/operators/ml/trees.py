"""Ensembles of trees."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from oracles.onnx.operators.arguments import refuse
from oracles.onnx.operators.ml.scores import best, transformed
from oracles.onnx.rule import Call, Value

_MODES: dict[str, Callable[[np.ndarray, Any], np.ndarray]] = {
    "BRANCH_LEQ": np.less_equal,
    "BRANCH_LT": np.less,
    "BRANCH_GTE": np.greater_equal,
    "BRANCH_GT": np.greater,
    "BRANCH_EQ": np.equal,
    "BRANCH_NEQ": np.not_equal,
    "BRANCH_MEMBER": lambda x, members: np.isin(x, members),
}


@dataclass(frozen=True)
class _Node:
    """A comparison of one feature and where it leads; missing: NaN goes where true does."""

    mode: str
    feature: int
    value: Any
    true: Hashable
    false: Hashable
    missing: bool


def _leaves(call: Call, x: np.ndarray, nodes: Mapping[Hashable, _Node], root: Hashable) -> dict[Hashable, np.ndarray]:
    """By leaf, the rows that reach it: what is no node is a leaf."""
    found: dict[Hashable, np.ndarray] = {}
    waiting = [(root, np.arange(len(x)))]
    while waiting:
        place, rows = waiting.pop()
        node = nodes.get(place)
        if node is None:
            found[place] = np.concatenate([found.get(place, rows[:0]), rows])
            continue
        if node.mode not in _MODES:
            raise refuse(call, f"mode {node.mode!r}")
        if not len(rows):
            continue
        values = x[rows, node.feature]
        goes = np.where(np.isnan(values), node.missing, _MODES[node.mode](values, node.value))
        waiting += [(node.true, rows[goes]), (node.false, rows[~goes])]
    return found


def _gathered(call: Call, parts: list[list[tuple[np.ndarray, int, float]]], rows: int, count: int) -> np.ndarray:
    """By row and target, the votes of all trees: (rows, target, weight) by tree, put together as the attribute says."""
    how = call.get("aggregate_function", "SUM")
    how = ("AVERAGE", "SUM", "MIN", "MAX")[how] if isinstance(how, int) else how
    total = np.zeros((rows, count))
    if how in ("SUM", "AVERAGE"):
        for chosen, target, weight in (vote for tree in parts for vote in tree):
            total[chosen, target] += weight
        return total / len(parts) if how == "AVERAGE" else total
    if how not in ("MIN", "MAX"):
        raise refuse(call, f"aggregate_function {how!r}")
    best, start = (np.minimum, np.inf) if how == "MIN" else (np.maximum, -np.inf)
    total = np.full((rows, count), start)
    for chosen, target, weight in (vote for tree in parts for vote in tree):
        total[chosen, target] = best(total[chosen, target], weight)
    if np.isinf(total).any():
        raise refuse(call, f"the {how} of no votes")
    return total


def _stated(call: Call, name: str, default: Any = None) -> Any:
    """An attribute, or that of doubles in its place."""
    tensor = call.get(f"{name}_as_tensor", None)
    return call.get(name, default) if tensor is None else tensor.tolist()


def _early(call: Call, votes: str, count: int) -> np.ndarray:
    """Trees as the operators of classes and targets hold them."""
    x = call.input(0).astype(np.float64)
    trees, ids = call.get("nodes_treeids", ()), call.get("nodes_nodeids", ())
    true, false = call.get("nodes_truenodeids", ()), call.get("nodes_falsenodeids", ())
    values, features = _stated(call, "nodes_values"), call.get("nodes_featureids", ())
    missing = call.get("nodes_missing_value_tracks_true", None) or [0] * len(ids)
    nodes: dict[Hashable, _Node] = {
        (tree, node): _Node(mode, features[k], values[k], (tree, true[k]), (tree, false[k]), bool(missing[k]))
        for k, (tree, node, mode) in enumerate(zip(trees, ids, call.get("nodes_modes", ()), strict=True))
        if mode != "LEAF"
    }
    weights: dict[Hashable, list[tuple[int, float]]] = {}
    columns = (call.get(f"{votes}_{part}", ()) for part in ("treeids", "nodeids", "ids"))
    for tree, node, target, weight in zip(*columns, _stated(call, f"{votes}_weights"), strict=True):
        weights.setdefault((tree, node), []).append((target, weight))
    parts = []
    for tree in dict.fromkeys(trees):
        root = (tree, ids[list(trees).index(tree)])  # the first node that is listed
        reached = _leaves(call, x, nodes, root)
        parts.append([(rows, *vote) for leaf, rows in reached.items() for vote in weights.get(leaf, ())])
    base = _stated(call, "base_values")
    total = _gathered(call, parts, len(x), count)
    return total + np.array(base) if base else total


def _regressor(call: Call) -> list[Value]:
    return [transformed(call, _early(call, "target", call.get("n_targets", 1)))]


def _classifier(call: Call) -> list[Value]:
    names = ("classlabels_strings", "classlabels_int64s")
    count = max(len(call.get(name, None) or ()) for name in names)
    if count == 2 and set(call.get("class_ids", ())) == {0}:
        scores = _of_one(call, _early(call, "class", 1))
    elif count == 2 and len(set(call.get("class_ids", ()))) < 2:
        raise refuse(call, "weights of the second class of two alone, for which nobody has a rule")
    else:
        scores = _early(call, "class", count)
    return [best(call, scores, *names), transformed(call, scores)]


def _of_one(call: Call, scores: np.ndarray) -> np.ndarray:
    """By row, the scores of two classes of which the trees vote for one: probabilities, or margins to be transformed.
    The text is silent; ONNX Runtime and ONNX' own evaluator do the same where converters write such ensembles (binary
    classifiers of scikit-learn, LightGBM and XGBoost), and part elsewhere. Raises NoRule there."""
    how = call.get("post_transform", "NONE")
    signed = min(_stated(call, "class_weights"), default=0) < 0
    if (how, signed) == ("NONE", False):
        return np.concatenate([1 - scores, scores], axis=1)
    if (how, signed) == ("LOGISTIC", True):
        return np.concatenate([-scores, scores], axis=1)
    raise refuse(call, f"weights of one class of two with {how}, for which the text has no rule")


def _ensemble(call: Call) -> list[Value]:
    """Trees by place: nodes and leaves are counted apart."""
    x = call.input(0).astype(np.float64)
    modes = np.asarray(call.get("nodes_modes", ())).ravel().tolist()
    splits = np.asarray(call.get("nodes_splits", ())).ravel().tolist()
    sets = _members(call)
    missing = call.get("nodes_missing_value_tracks_true", None) or [0] * len(modes)
    features = call.get("nodes_featureids", ())
    ways = []
    for way in ("true", "false"):
        leafs, ids = call.get(f"nodes_{way}leafs", ()), call.get(f"nodes_{way}nodeids", ())
        ways.append([("leaf" if leaf else "node", place) for leaf, place in zip(leafs, ids, strict=True)])
    nodes: dict[Hashable, _Node] = {}
    for k, mode in enumerate(modes):
        name = tuple(_MODES)[mode]
        value = sets.pop(0) if name == "BRANCH_MEMBER" else splits[k]
        nodes["node", k] = _Node(name, features[k], value, ways[0][k], ways[1][k], bool(missing[k]))
    targets, weights = call.get("leaf_targetids", ()), np.asarray(call.get("leaf_weights", ())).ravel()
    parts = []
    for root in call.get("tree_roots", ()):
        reached = _leaves(call, x, nodes, ("node", root))
        parts.append([(rows, targets[leaf[1]], weights[leaf[1]]) for leaf, rows in reached.items()])  # type: ignore[index]
    return [transformed(call, _gathered(call, parts, len(x), call.get("n_targets", 1)))]


def _members(call: Call) -> list[list[float]]:
    """The sets of numbers, between which NaN stands."""
    given = call.get("membership_values", None)
    found: list[list[float]] = [[]]
    for number in np.asarray([] if given is None else given).ravel().tolist():
        if np.isnan(number):
            found.append([])
        else:
            found[-1].append(number)
    return found


RULES = {
    "ai.onnx.ml:TreeEnsemble": _ensemble,
    "ai.onnx.ml:TreeEnsembleClassifier": _classifier,
    "ai.onnx.ml:TreeEnsembleRegressor": _regressor,
}
