"""Sequences, maps and text become named arrays, of a value and of its noise alike."""

from __future__ import annotations

import numpy as np
import pytest

from harness.models.helpers.containers import spread, spread_noisy


def plain(pairs: list) -> list:
    return [(name, array.tolist()) for name, array in pairs]


def test_sequences_and_maps_are_named_element_by_element() -> None:
    assert plain(spread("y", np.float32(3))) == [("y", 3.0)]
    assert plain(spread("s", [np.ones(2), [np.zeros(1)]])) == [("s[0]", [1, 1]), ("s[1][0]", [0])]
    assert plain(spread("m", {"b": 2.0, "a": 1.0})) == [("m.keys", ["a", "b"]), ("m.values", [1, 2])]
    rows = [{1: 0.25, 0: 0.75}, {0: 0.5, 1: 0.5}]
    assert plain(spread("p", rows)) == [("p.keys", [0, 1]), ("p.values", [[0.75, 0.25], [0.5, 0.5]])]
    assert plain(spread("p", [{0: 1.0}, {1: 1.0}]))[0] == ("p[0].keys", [0])
    words = spread("w", np.array(["a", "bc"], object))
    assert (words[0][1].dtype.kind, plain(words)) == ("U", [("w", ["a", "bc"])])
    assert spread("s", []) == []
    assert spread("o", None)[0][1].size == 0


def test_noise_goes_with_its_element() -> None:
    exact = np.arange(6.0).reshape(2, 3)
    noisy = np.stack([exact + k for k in range(4)])
    ((_, y, moved),) = spread_noisy("y", exact, noisy, False)
    assert (y.shape, moved.shape) == ((2, 3), (4, 2, 3))
    first, second = spread_noisy("s", exact, noisy, True)
    assert (first[0], second[0], second[1].tolist(), second[2][3].tolist()) == ("s[0]", "s[1]", [3, 4, 5], [6, 7, 8])
    rows = np.array([{"a": 0.5, "b": 0.5}], object)
    keys, values = spread_noisy("p", rows, np.stack([rows, rows]), True)
    assert (keys[1].tolist(), values[1].tolist(), values[2].shape) == (["a", "b"], [[0.5, 0.5]], (2, 1, 2))
    one = np.array({"a": 0.5}, object)
    assert [name for name, _, _ in spread_noisy("m", one, np.stack([one, one]), False)] == ["m.keys", "m.values"]
    ragged = np.array([{"a": 0.5}, {"b": 0.5}], object)
    with pytest.raises(ValueError, match="noise changes how many elements p has"):
        spread_noisy("p", rows, np.stack([ragged, ragged]), True)
