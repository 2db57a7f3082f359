"""What an output is taken for, and the measures of it."""

from __future__ import annotations

import numpy as np
import pytest

from harness.models.report import tasks
from harness.models.report.tasks import Kind, kind_of, measures, task_of

RNG = np.random.default_rng(2)


def some(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


def spread(array: np.ndarray) -> np.ndarray:
    """Probabilities."""
    whole = np.exp(array)
    return whole / whole.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("name", "array", "others", "word"),
    [
        ("logits", some(2, 10), [], tasks.CLASSES),
        ("y", some(2, 1000), [], tasks.CLASSES),
        ("y", spread(some(2, 128)), [], tasks.CLASSES),
        ("y", some(2, 512), [], tasks.VECTOR),
        ("embedding", some(2, 100), [], tasks.VECTOR),
        ("last_hidden_state", some(2, 7, 64), [], tasks.VECTOR),
        ("y", some(2, 100) / 1e3, [some(2, 3)], tasks.NUMBERS),
        ("boxes", some(1, 100, 4), [], tasks.BOXES),
        ("y0", some(1, 100, 4), [some(1, 100)], tasks.BOXES),
        ("y1", some(1, 100), [some(1, 100, 4)], tasks.RATED),
        ("output0", some(1, 84, 8400), [], tasks.BOXES),
        ("output0", some(1, 8400, 85), [], tasks.BOXES),
        ("mask", some(1, 3, 64, 64), [], tasks.MAP),
        ("y", some(1, 64, 64, 2), [], tasks.MAP),
        ("y", some(1, 40, 97), [], tasks.STEPS),
        ("ids", np.ones((1, 4), np.int64), [], tasks.WHOLE),
        ("label", np.array(["a"]), [], tasks.TEXT),
        ("y", some(3), [], tasks.NUMBERS),
        ("y", some(3, 1), [], tasks.NUMBERS),
    ],
)
def test_kinds(name: str, array: np.ndarray, others: list[np.ndarray], word: str) -> None:
    assert kind_of(name, array, others).word == word


def test_names_of_classes_decide() -> None:
    assert kind_of("y", some(2, 512), labelled=True).word == tasks.CLASSES
    assert kind_of("y", some(2, 512) / 1e9, labelled=False).word == tasks.VECTOR


def test_the_task_is_that_of_the_first_kind_that_tells() -> None:
    assert task_of([Kind(tasks.RATED, ""), Kind(tasks.BOXES, "")]) == "detection"
    assert task_of([Kind(tasks.CLASSES, "")]) == "classification"
    assert task_of([Kind(tasks.NUMBERS, "")]) == ""


def of(word: str, base: np.ndarray, other: np.ndarray) -> dict[str, str]:
    return dict(measures(Kind(word, ""), base, other))


def test_what_is_the_same_is_fully_the_same() -> None:
    scores = some(4, 9)
    assert of(tasks.CLASSES, scores, scores)["same first"] == "100 %"
    boxes = np.sort(RNG.random((1, 6, 4)), axis=-1)
    assert of(tasks.BOXES, boxes, boxes)["least IoU"] == "1"
    planes = some(1, 3, 8, 8)
    assert of(tasks.MAP, planes, planes)["mean IoU of classes"] == "1"
    assert of(tasks.STEPS, planes[0], planes[0])["same whole sequence"] == "100 %"
    assert float(of(tasks.VECTOR, scores, scores)["1 - cosine, greatest"]) < 1e-12
    assert of(tasks.WHOLE, np.arange(4), np.arange(4)) == {"the same": "100 %"}


def test_what_differs_shows() -> None:
    boxes = np.array([[[0.0, 0.0, 2.0, 2.0], [5.0, 5.0, 6.0, 7.0]]])
    moved = boxes.copy()
    moved[0, 0] += [1, 0, 1, 0]
    assert float(of(tasks.BOXES, boxes, moved)["least IoU"]) == pytest.approx(1 / 3, abs=1e-5)
    centres = np.array([[[10.0, 10.0, 2.0, 2.0], [20.0, 20.0, 4.0, 2.0]]])
    shifted = centres + np.array([1, 0, 0, 0])
    assert float(of(tasks.BOXES, centres, shifted)["least IoU"]) == pytest.approx(1 / 3, abs=1e-5)
    planes = np.zeros((1, 2, 8, 8))
    planes[0, 0] = 1
    other = planes.copy()
    other[0, :, 0, 0] = [0, 1]
    assert of(tasks.MAP, planes, other)["same class of a position"] == "98.438 %"
    steps = np.eye(3)[None]
    turned = np.eye(3)[[0, 1, 1]][None]
    assert of(tasks.STEPS, steps, turned)["same whole sequence"] == "0 %"
    assert of(tasks.WHOLE, np.arange(4), np.array([0, 1, 2, 9])) == {"the same": "75 %"}
    assert of(tasks.RATED, np.array([[0.4, 0.6]]), np.array([[0.6, 0.6]]))["above 0.5"] == "2 for 1"


def test_almost_all_is_not_all() -> None:
    first = np.zeros(10_000_000, np.int8)
    second = first.copy()
    second[7] = 1
    assert of(tasks.WHOLE, first, second) == {"the same": "99.999 %"}


def test_what_cannot_be_laid_beside() -> None:
    assert of(tasks.CLASSES, some(2, 3), some(2, 4)) == {"greatest difference": "(2, 4) for (2, 3)"}
    assert of(tasks.NUMBERS, np.array([1.0]), np.array([np.nan])) == {"greatest difference": "∞"}
    assert of(tasks.NUMBERS, np.array([np.inf]), np.array([-np.inf])) == {"greatest difference": "∞"}
    assert of(tasks.NUMBERS, np.array([np.inf, 1.0]), np.array([np.inf, 1.5])) == {"greatest difference": "0.5"}
    assert of(tasks.NUMBERS, np.zeros((0, 3)), np.zeros((0, 3))) == {"greatest difference": "-"}
