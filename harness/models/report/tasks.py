"""What an output seems to be, by its shape, dtype and name, and the measures of agreement that fit it. A guess decides
what is shown, never a verdict."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.models.report.words import short
from oracles.models import agreement
from oracles.models.agreement import Agreement

CLASSES, BOXES, RATED, MAP, STEPS, VECTOR, WHOLE, TEXT, NUMBERS = (
    "class scores", "boxes", "scores of boxes", "a map", "scores by step", "an embedding", "whole numbers", "text",
    "numbers",
)  # fmt: skip
TASKS = {BOXES: "detection", MAP: "segmentation, or images", STEPS: "sequence", CLASSES: "classification"}
TASKS |= {VECTOR: "embedding"}
"""In this order: the first that an output stands for is the task."""
SIDE = 8
"""Least height and width of a map."""
MANY = 32
"""Least number of boxes in an output that holds all of them with their scores."""
WIDTHS = 64
"""Vectors without a telling name that have a multiple of so many numbers are taken for embeddings."""
NEAR = 1e-3
HALF = 0.5
_SCORES = re.compile(r"prob|score|logit|class|softmax|pred", re.IGNORECASE)
_BOXES = re.compile(r"box|bbox|loc(ation)?s?\b|regressor|detection_", re.IGNORECASE)
_VECTOR = re.compile(r"embed|feature|hidden|pool|vector|latent|encod", re.IGNORECASE)
_MAP = re.compile(r"mask|seg|heat|map|depth", re.IGNORECASE)


@dataclass(frozen=True)
class Kind:
    """word: one of those above; why: it is taken for that."""

    word: str
    why: str


def kind_of(name: str, array: np.ndarray, others: Sequence[np.ndarray] = (), labelled: bool = False) -> Kind:
    """others: the other outputs; labelled: are names of classes, or the right ones, given?"""
    shape, said = array.shape, f"its name, {name}"
    if array.dtype.kind in "US":
        return Kind(TEXT, "its dtype")
    if array.dtype.kind in "biu":
        return Kind(WHOLE, "its dtype")
    if array.ndim >= 2 and shape[-1] == 4 and _BOXES.search(name):
        return Kind(BOXES, f"{said}, with four numbers each")
    boxes = [other.shape[-2] for other in others if other.ndim >= 2 and other.shape[-1] == 4]
    if shape[-1:] != (4,) and any(count >= MANY and _counted(array, count) for count in boxes):
        return Kind(RATED, "as many rows as there are boxes in another output")
    if array.ndim == 3 and _packed(shape) and not _SCORES.search(name):
        return Kind(BOXES, f"its shape: {max(shape[1:])} boxes of {min(shape[1:])} numbers")
    if array.ndim >= 2 and shape[-1] == 4 and any(_counted(other, shape[-2]) for other in others):
        return Kind(BOXES, "four numbers each, beside an output of as many scores")
    if array.ndim == 4 and min(shape[2:]) >= SIDE:
        return Kind(MAP, "its shape: a plane for each channel")
    if array.ndim == 4 and min(shape[1:3]) >= SIDE:
        return Kind(MAP, "its shape: planes, channels last")
    if array.ndim == 3 and _MAP.search(name) and min(shape[1:]) >= SIDE:
        return Kind(MAP, said)
    if array.ndim == 3 and shape[-1] > 1:
        if _VECTOR.search(name):
            return Kind(VECTOR, said)
        return Kind(STEPS, "its shape: numbers for each step")
    if not agreement.scored(array):
        return Kind(NUMBERS, "its shape")
    return _row(name, array, others, labelled)


def _row(name: str, array: np.ndarray, others: Sequence[np.ndarray], labelled: bool) -> Kind:
    """Of a vector a sample."""
    if labelled:
        return Kind(CLASSES, "names of classes, or the right ones, are given")
    if _VECTOR.search(name):
        return Kind(VECTOR, f"its name, {name}")
    wide = array.astype(np.float64)
    if wide.min() >= 0 and np.allclose(wide.sum(axis=1), 1, atol=NEAR):
        return Kind(CLASSES, "not negative, and each row adds up to 1")
    if np.allclose(np.linalg.norm(wide, axis=1), 1, atol=NEAR):
        return Kind(VECTOR, "each row has the length 1")
    if _SCORES.search(name):
        return Kind(CLASSES, f"its name, {name}")
    if others:
        return Kind(NUMBERS, "one of several outputs, without a telling name")
    if array.shape[1] % WIDTHS == 0:
        return Kind(VECTOR, f"the only output, {array.shape[1]} numbers a sample, a multiple of {WIDTHS}")
    return Kind(CLASSES, f"the only output, {array.shape[1]} numbers a sample")


def task_of(kinds: Sequence[Kind]) -> str:
    """Of the whole model; empty where no output tells."""
    words = [kind.word for kind in kinds]
    return next((task for word, task in TASKS.items() if word in words), "")


def measures(kind: Kind, base: np.ndarray, other: np.ndarray) -> list[tuple[str, str]]:
    """Titles and values of what fits it, of two outputs of one shape over all samples; always the greatest
    difference."""
    if base.shape != other.shape or (kind.word == TEXT) != (other.dtype.kind in "US"):
        return [("greatest difference", f"{other.shape} for {base.shape}")]
    if kind.word in (TEXT, WHOLE):
        return [("the same", _part(np.mean(base == other)) if base.size else "-")]
    if base.size == 0:
        return [("greatest difference", "-")]
    a, b = (array.astype(np.complex128 if array.dtype.kind == "c" else np.float64) for array in (base, other))
    if (np.isnan(a) != np.isnan(b)).any() or not (np.isfinite(a) | (a == b) | np.isnan(a)).all():
        return [("greatest difference", "∞")]
    with np.errstate(all="ignore"):
        apart = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
    largest = [("greatest difference", short(float(apart.max())))]
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return largest
    with np.errstate(all="ignore"):
        return _FITTING.get(kind.word, lambda *_: [])(a, b) + largest


def _part(value: float | np.floating) -> str:
    """A share; never 100 % where it is less."""
    share = float(value)
    return "100 %" if share == 1 else f"{min(100 * share, 99.999):.5g} %"


def _classes(a: np.ndarray, b: np.ndarray) -> list[tuple[str, str]]:
    found = agreement.agreement(a, b)
    if not isinstance(found, Agreement) or found.top1 is None or found.top5 is None:
        return []
    told = [("same first", _part(found.top1)), ("first five", _part(found.top5)), ("RBO", short(found.rbo, 5))]
    return [*told, ("tau", short(found.kendall, 5)), ("KL", short(found.kl))]


def _boxes(a: np.ndarray, b: np.ndarray) -> list[tuple[str, str]]:
    """Intersection over union, of boxes with an area."""
    first, second = (_corners(_coordinates(array), _coordinates(a)) for array in (a, b))
    low, high = np.maximum(first[..., :2], second[..., :2]), np.minimum(first[..., 2:], second[..., 2:])
    common = np.prod(np.maximum(high - low, 0), axis=-1)
    areas = [np.prod(np.maximum(one[..., 2:] - one[..., :2], 0), axis=-1) for one in (first, second)]
    whole = areas[0] + areas[1] - common
    shares = (common / np.where(whole > 0, whole, 1))[whole > 0]
    return [("mean IoU", short(shares.mean(), 6)), ("least IoU", short(shares.min(), 6))] if shares.size else []


def _packed(shape: tuple[int, ...]) -> bool:
    """May it be all boxes with their scores, either axis last?"""
    few, many = sorted(shape[1:])
    return 5 <= few < many and many >= MANY * few


def _counted(array: np.ndarray, count: int) -> bool:
    """Does it hold a score, or some, for each of so many boxes?"""
    return array.shape[:2].count(count) > 0 and array.shape[-1:] != (4,)


def _coordinates(array: np.ndarray) -> np.ndarray:
    """Four numbers of each box, last."""
    if array.shape[-1] != 4 and array.ndim == 3 and array.shape[1] < array.shape[2]:
        array = array.swapaxes(1, 2)
    return array[..., :4]


def _corners(boxes: np.ndarray, base: np.ndarray) -> np.ndarray:
    """Corners as they are; of centres and sizes, which they are where the third and fourth number are no second corner,
    their corners."""
    if np.mean((base[..., 2:] >= base[..., :2]).all(axis=-1)) >= 0.9:
        return boxes
    centre, half = boxes[..., :2], np.abs(boxes[..., 2:]) / 2
    return np.concatenate([centre - half, centre + half], axis=-1)


def _map(a: np.ndarray, b: np.ndarray) -> list[tuple[str, str]]:
    """The class of each position: of the greatest channel, or, where there is one channel, on which side of the middle
    it is."""
    first, second = (_positions(array, a) for array in (a, b))
    found = [("same class of a position", _part(np.mean(first == second)))]
    shares = []
    for one in np.union1d(first, second):
        ours, theirs = first == one, second == one
        shares.append(np.count_nonzero(ours & theirs) / np.count_nonzero(ours | theirs))
    return [*found, ("mean IoU of classes", short(float(np.mean(shares)), 6))]


def _positions(array: np.ndarray, base: np.ndarray) -> np.ndarray:
    axis = 3 if array.ndim == 4 and min(array.shape[2:]) < SIDE else 1
    if array.ndim < 4 or array.shape[axis] == 1:
        return (array > (base.min() + base.max()) / 2).astype(np.int64)
    return array.argmax(axis=axis)


def _steps(a: np.ndarray, b: np.ndarray) -> list[tuple[str, str]]:
    same = a.argmax(axis=-1) == b.argmax(axis=-1)
    return [("same first of a step", _part(same.mean())), ("same whole sequence", _part(same.all(axis=-1).mean()))]


def _rated(a: np.ndarray, b: np.ndarray) -> list[tuple[str, str]]:
    """Scores on the same side of one half; the greatest of a box, where there are several."""
    first, second = ((array if array.ndim < 3 else array.max(axis=-1)) > HALF for array in (a, b))
    return [("same side of 0.5", _part(np.mean(first == second))), ("above 0.5", f"{second.sum()} for {first.sum()}")]


def _vector(a: np.ndarray, b: np.ndarray) -> list[tuple[str, str]]:
    """Cosines of rows that are not zero."""
    sizes = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    far = 1 - ((a * b).sum(axis=-1) / np.where(sizes > 0, sizes, 1))[sizes > 0]
    if not far.size:
        return []
    return [("1 - cosine, mean", short(max(0.0, far.mean()))), ("1 - cosine, greatest", short(max(0.0, far.max())))]


_FITTING = {CLASSES: _classes, BOXES: _boxes, RATED: _rated, MAP: _map, STEPS: _steps, VECTOR: _vector}
