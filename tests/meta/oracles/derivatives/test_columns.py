"""Elements that reach no result in common are moved at once, and their slopes are those of one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from generators.bounds.bounded import Bounded
from oracles.derivatives.jacobians.measured import jacobian
from oracles.derivatives.jacobians.sparsity import FAR, reach_of

Array = np.ndarray
X = np.random.default_rng(5).uniform(-2.0, 2.0, (6, 5))


def _exact(x: Array) -> Bounded:
    return Bounded(x, np.zeros(x.shape), "float64")


def _softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def _reach(of: Callable[[Array], Array], x: Array) -> Array:
    with np.errstate(all="ignore"):
        return reach_of(lambda values: of(values[0]).ravel(), [_exact(x)], 0, FAR, of(x).ravel())


@pytest.mark.parametrize(
    ("of", "places"),
    [
        (_softmax, "ij"),
        (lambda x: x - x.mean(-1, keepdims=True), "ij"),
        (lambda x: np.cumsum(x, 0), "ji"),
        (lambda x: x.min(0), "ji"),
        (lambda x: np.fmax.reduce(x, 1), "ij"),
    ],
    ids=["softmax", "centred", "cumsum", "min", "fmax"],
)
def test_rows_that_do_not_meet_are_apart(of: Callable[[Array], Array], places: str) -> None:
    """An element reaches what stands in its row ("ij") or column, and nothing else, be it seen by NaN or by a step."""
    row = np.indices(X.shape)[places.index("i")].ravel()
    shown = np.indices(X.shape)[places.index("i")] if of(X).shape == X.shape else np.arange(of(X).size)
    assert np.array_equal(_reach(of, X), row[:, None] == shown.ravel())


def test_rows_that_meet_anywhere_are_not() -> None:
    """One row that reads another, or a result that is open here and reads all elsewhere, and nothing is kept apart."""

    def leaking(x: Array) -> Array:
        found = _softmax(x)
        found[4] += 1e-9 * x[1]
        return found

    assert _reach(leaking, X)[5:10].all()
    assert _reach(lambda x: np.append(_softmax(x), np.nan if np.array_equal(x, X) else x.sum()), X)[:, -1].all()


def test_slopes_of_rows_at_once() -> None:
    """The slopes of a softmax of each row, with a third of the evaluations that elements one by one take at least."""
    asked = []

    def f(values: Sequence[Array]) -> Array:
        asked.append(1)
        return _softmax(values[0]).ravel()

    x = np.random.default_rng(6).uniform(-2.0, 2.0, (24, 3))
    with np.errstate(all="ignore"):
        found = jacobian(f, [_exact(x)], 0, _exact(_softmax(x)))
    dense = np.zeros((x.size, x.size))
    dense[found.rows, found.columns] = found.value
    y = _softmax(x)
    for i in range(len(x)):
        block = slice(3 * i, 3 * i + 3)
        exact = np.diag(y[i]) - np.outer(y[i], y[i])
        assert np.abs(dense[block, block] - exact).max() < 1e-11
        dense[block, block] = 0
    assert not dense.any()
    assert not found.open.any()
    assert len(asked) < 4 * x.size
